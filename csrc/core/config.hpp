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

namespace swizzle {

/// Keeps a value of a loop in a register. The compiler takes what derives from the numbers of a thread and a block to
/// be cheap and computes it anew in every turn: 12 of the 90 instructions that a vector of bytes took in the box
/// program, 20 of 75 in the flat one.
SWIZZLE_HOST_DEVICE inline void keep_in_register([[maybe_unused]] int& value) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(value));
#endif
}
SWIZZLE_HOST_DEVICE inline void keep_in_register([[maybe_unused]] unsigned char*& address) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(address));
  __builtin_assume(__isGlobal(address));
#endif
}

}  // namespace swizzle
