// swizzle::bank_probe on CUDA tensors.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/EmptyTensor.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/launch.hpp"
#include "ops/architecture.hpp"
#include "ops/bank_probe.hpp"
#include "ops/registration.hpp"

namespace swizzle {

namespace {

at::Tensor bank_probe_cuda(const at::Tensor& x, std::int64_t ways) {
  check_bank_probe(x, ways);
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor packed = x.contiguous();
  at::Tensor result = at::detail::empty_cuda(packed.sizes(), packed.scalar_type(), packed.device(), std::nullopt);
  const cudaError_t status = launch_bank_probe(ways, packed.const_data_ptr(), result.mutable_data_ptr(), packed.numel(),
                                               at::cuda::getCurrentCUDAStream());
  check_architecture(status, "swizzle::bank_probe");
  TORCH_CHECK(status == cudaSuccess, "swizzle::bank_probe: launching the probe of ", ways, " ways over ",
              packed.numel(), " floats failed: ", cudaGetErrorString(status));
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CUDA, m) {
  if (!owns_operators()) return;
  m.impl("bank_probe", &bank_probe_cuda);
}

}  // namespace swizzle
