// The refusal of a GPU that no code was built for.
#pragma once

#include <ATen/cuda/CUDAContext.h>

#include <string_view>

namespace swizzle {

/// Whether CUDA found no code for a GPU in the library, or only PTX that its driver cannot translate.
inline bool is_without_code(cudaError_t status) {
  return status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
         status == cudaErrorUnsupportedPtxVersion;
}

/// Raises RuntimeError with the architectures built and found if a launch failed for want of code for the current GPU.
inline void check_architecture(cudaError_t status, std::string_view op) {
  const cudaDeviceProp& device = *at::cuda::getCurrentDeviceProperties();
  TORCH_CHECK(!is_without_code(status), op, ": expected a GPU of the architectures built (",
              TORCH_SWIZZLE_CUDA_ARCHITECTURES, "), got ", device.name, " of compute capability ", device.major, ".",
              device.minor);
}

}  // namespace swizzle
