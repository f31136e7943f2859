// Lets one source serve nvcc and a plain host compiler. Nothing here may include CUDA or torch.
#pragma once

#if defined(__CUDACC__)
#define SWIZZLE_HOST_DEVICE __host__ __device__
#else
#define SWIZZLE_HOST_DEVICE
#endif

#if defined(__CUDA_ARCH__)
#define SWIZZLE_UNROLL _Pragma("unroll")
#define SWIZZLE_UNROLL_TWICE _Pragma("unroll 2")
#define SWIZZLE_NO_UNROLL _Pragma("unroll 1")
#else
#define SWIZZLE_UNROLL
#define SWIZZLE_UNROLL_TWICE
#define SWIZZLE_NO_UNROLL
#endif
