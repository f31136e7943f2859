// swizzle::transpose and swizzle::permute on meta and fake tensors: shape, strides and checks, with symbolic sizes.
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

at::Tensor gather_meta(const at::Tensor& self, const PermuteRequest& request) {
  return at::empty_symint(permute_sizes(self.sym_sizes(), request), self.options());
}

at::Tensor& gather_out_meta(const at::Tensor& self, const PermuteRequest& request, at::Tensor& out) {
  check_out(request.op, self, out);
  const auto sizes = permute_sizes(self.sym_sizes(), request);
  if (at::native::resize_output_check_symint(out, sizes)) out.resize__symint(sizes);
  return out;
}

at::Tensor transpose_meta(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  return gather_meta(self, check_transpose(self, dim0, dim1, method));
}
at::Tensor& transpose_out_meta(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method,
                               at::Tensor& out) {
  return gather_out_meta(self, check_transpose(self, dim0, dim1, method), out);
}
at::Tensor permute_meta(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  return gather_meta(self, check_permute(self, dims, method));
}
at::Tensor& permute_out_meta(const at::Tensor& self, at::IntArrayRef dims, std::string_view method, at::Tensor& out) {
  return gather_out_meta(self, check_permute(self, dims, method), out);
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, Meta, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_meta);
  m.impl("transpose.out", &transpose_out_meta);
  m.impl("permute", &permute_meta);
  m.impl("permute.out", &permute_out_meta);
}

}  // namespace swizzle
