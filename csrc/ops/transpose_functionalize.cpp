// The out overloads under functionalisation (torch.compile, export): torch cannot rewrite an op that returns the
// argument it writes, so these kernels say how: the functional op, then a copy into `out`.
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "ops/registration.hpp"
#include "ops/request.hpp"
#include "torch_swizzle/torch_swizzle.h"

namespace swizzle {

namespace {

at::Tensor& copy_into(const at::Tensor& result, at::Tensor& out) {
  if (at::native::resize_output_check_symint(out, result.sym_sizes())) out.resize__symint(result.sym_sizes());
  out.copy_(result);
  return out;
}

at::Tensor& transpose_out_functionalize(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1,
                                        std::string_view method, at::Tensor& out) {
  check_out("swizzle::transpose", self, out);
  return copy_into(torch_swizzle::transpose(self, dim0, dim1, method), out);
}

at::Tensor& permute_out_functionalize(const at::Tensor& self, at::IntArrayRef dims, std::string_view method,
                                      at::Tensor& out) {
  check_out("swizzle::permute", self, out);
  return copy_into(torch_swizzle::permute(self, dims, method), out);
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, Functionalize, m) {
  if (!owns_operators()) return;
  m.impl("transpose.out", &transpose_out_functionalize);
  m.impl("permute.out", &permute_out_functionalize);
}

}  // namespace swizzle
