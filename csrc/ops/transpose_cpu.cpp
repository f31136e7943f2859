// swizzle::transpose and swizzle::permute on CPU tensors: ATen's own strided copy.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "ops/out_variant.hpp"
#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

at::Tensor gather_cpu(const at::Tensor& self, const PermuteRequest& request) {
  // clone, not contiguous: the result never aliases the input, not even where nothing is to be moved.
  return permuted_view(self, request).clone(at::MemoryFormat::Contiguous);
}

at::Tensor& gather_out_cpu(const at::Tensor& self, const PermuteRequest& request, at::Tensor& out) {
  check_out(request.op, self, out);
  out.copy_(prepare_out(self, request, out) ? permuted_view(self, request) : gather_cpu(self, request));
  return out;
}

at::Tensor transpose_cpu(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  return gather_cpu(self, check_transpose(self, dim0, dim1, method));
}
at::Tensor& transpose_out_cpu(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method,
                              at::Tensor& out) {
  return gather_out_cpu(self, check_transpose(self, dim0, dim1, method), out);
}
at::Tensor permute_cpu(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  return gather_cpu(self, check_permute(self, dims, method));
}
at::Tensor& permute_out_cpu(const at::Tensor& self, at::IntArrayRef dims, std::string_view method, at::Tensor& out) {
  return gather_out_cpu(self, check_permute(self, dims, method), out);
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CPU, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_cpu);
  m.impl("transpose.out", &transpose_out_cpu);
  m.impl("permute", &permute_cpu);
  m.impl("permute.out", &permute_out_cpu);
}

}  // namespace swizzle
