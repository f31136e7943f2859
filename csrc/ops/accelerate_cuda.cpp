// torch_swizzle::accelerate on CUDA tensors: the kernel for aten::copy_.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/record_function.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include "kernels/launch.hpp"
#include "ops/accelerate.hpp"
#include "ops/architecture.hpp"

namespace swizzle {

namespace {

DeviceTraits traits_of(const at::Tensor& self) {
  DeviceTraits traits;
  traits.multiprocessors = at::cuda::getDeviceProperties(self.get_device())->multiProcessorCount;
  return traits;
}

}  // namespace

at::Tensor& copy_cuda(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  CopyPlan copy;
  const CopyReason reason = plan_tensor_copy(self, src, &traits_of, copy);
  if (!is_taken(reason)) return leave_copy(reason, self, src, non_blocking);
  RECORD_FUNCTION("swizzle::copy_", std::vector<c10::IValue>({self, src, non_blocking}));
  const c10::cuda::CUDAGuard device_guard(self.device());
  const cudaError_t status = launch_transpose(copy.plan, copy.problem, src.const_data_ptr(), self.mutable_data_ptr(),
                                              at::cuda::getCurrentCUDAStream());
  if (is_without_code(status)) {
    return leave_copy(CopyReason::kNoCode, self, src, non_blocking);
  }
  C10_CUDA_CHECK(status);
  count_copy(reason, self);
  return self;
}

}  // namespace swizzle
