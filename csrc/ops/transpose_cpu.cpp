// swizzle::transpose on CPU tensors: ATen's own strided copy.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "ops/out_variant.hpp"
#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

at::Tensor transpose_cpu(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  const TransposeRequest request = check_transpose(self, dim0, dim1, method);
  // clone, not contiguous: the result never aliases the input, not even where nothing is to be moved.
  return self.transpose(request.dim0, request.dim1).clone(at::MemoryFormat::Contiguous);
}

at::Tensor& transpose_out_cpu(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method,
                              at::Tensor& out) {
  const TransposeRequest request = check_transpose(self, dim0, dim1, method);
  check_out(self, out);
  if (prepare_out(self, request, out)) {
    out.copy_(self.transpose(request.dim0, request.dim1));
  } else {
    out.copy_(transpose_cpu(self, dim0, dim1, method));
  }
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CPU, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_cpu);
  m.impl("transpose.out", &transpose_out_cpu);
}

}  // namespace swizzle
