// swizzle::transpose and swizzle::permute on CUDA tensors: check, guard, allocate, launch.
#include <ATen/cuda/EmptyTensor.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "ops/forced_tile.hpp"
#include "ops/gather_cuda.hpp"
#include "ops/out_variant.hpp"
#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

at::Tensor empty_for(const at::Tensor& self, const PermuteRequest& request) {
  return at::detail::empty_cuda(permute_sizes(self.sizes(), request), self.scalar_type(), self.device(), std::nullopt);
}

void gather_to(const at::Tensor& self, const PermuteRequest& request, void* dst) {
  gather_into(request.op, make_problem(self, request, dst), self.const_data_ptr(), dst, request.method);
}

at::Tensor gather_cuda(const at::Tensor& self, const PermuteRequest& request) {
  const c10::cuda::CUDAGuard guard(self.device());
  at::Tensor out = empty_for(self, request);
  gather_to(self, request, out.mutable_data_ptr());
  return out;
}

at::Tensor& gather_out_cuda(const at::Tensor& self, const PermuteRequest& request, at::Tensor& out) {
  check_out(request.op, self, out);
  const c10::cuda::CUDAGuard guard(self.device());
  if (prepare_out(self, request, out)) {
    gather_to(self, request, out.mutable_data_ptr());
  } else {
    out.copy_(gather_cuda(self, request));
  }
  return out;
}

at::Tensor transpose_cuda(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  return gather_cuda(self, check_transpose(self, dim0, dim1, method));
}
at::Tensor& transpose_out_cuda(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method,
                               at::Tensor& out) {
  return gather_out_cuda(self, check_transpose(self, dim0, dim1, method), out);
}
at::Tensor permute_cuda(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  return gather_cuda(self, check_permute(self, dims, method));
}
at::Tensor& permute_out_cuda(const at::Tensor& self, at::IntArrayRef dims, std::string_view method, at::Tensor& out) {
  return gather_out_cuda(self, check_permute(self, dims, method), out);
}

at::Tensor transpose_with_cuda(const at::Tensor& self, std::string_view method, std::string_view tile) {
  const ForcedRequest forced = check_forced(self, method, tile);
  const c10::cuda::CUDAGuard guard(self.device());
  at::Tensor out = empty_for(self, forced.request);
  const Problem problem = make_problem(self, forced.request, out.const_data_ptr());
  const Plan plan = check_forced_plan(self, problem, out, forced);
  launch_plan(kForcedName, plan, problem, self.const_data_ptr(), out.mutable_data_ptr());
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CUDA, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_cuda);
  m.impl("transpose.out", &transpose_out_cuda);
  m.impl("permute", &permute_cuda);
  m.impl("permute.out", &permute_out_cuda);
  m.impl("_transpose_with", &transpose_with_cuda);
}

}  // namespace swizzle
