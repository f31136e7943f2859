// swizzle::transpose on meta and fake tensors: shape, strides and checks, with symbolic sizes.
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

at::Tensor transpose_meta(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  const TransposeRequest request = check_transpose(self, dim0, dim1, method);
  return at::empty_symint(exchange_dims(self.sym_sizes(), request), self.options());
}

at::Tensor& transpose_out_meta(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method,
                               at::Tensor& out) {
  const TransposeRequest request = check_transpose(self, dim0, dim1, method);
  check_out(self, out);
  const auto sizes = exchange_dims(self.sym_sizes(), request);
  if (at::native::resize_output_check_symint(out, sizes)) out.resize__symint(sizes);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, Meta, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_meta);
  m.impl("transpose.out", &transpose_out_meta);
}

}  // namespace swizzle
