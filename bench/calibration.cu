// Shared-memory accesses of given addresses, one SASS instruction for each pattern: what Nsight Compute counts of them is
// what the bank model must say. Compiled to a library by bench/contract.py, with -DPATTERNS=<how many>.
//
// The compiler orders instructions as it likes, so pattern p is executed p + 1 times: that number names it.
#include "kernels/device_memory.cuh"

namespace {

enum Access { kLoad, kStore, kAsyncCopy };

// One warp. Lane i of pattern p accesses byte offsets[32 p + i] of shared memory, none where that is negative.
template <int kAccess, int kWidth>
__global__ void __launch_bounds__(32)
    calibration_kernel(const int* offsets, const unsigned char* source, unsigned* sink) {
  using Value = swizzle::Opaque<kWidth>;
  extern __shared__ __align__(1024) unsigned char shared[];
  swizzle::DeviceMemory<false> memory(shared);
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned char* from = source + lane * kWidth;
  const Value written = memory.load_global<Value>(from);
  unsigned sum = 0;
#pragma unroll
  for (int pattern = 0; pattern < PATTERNS; ++pattern) {
    const int offset = offsets[32 * pattern + lane];
    if (offset < 0) continue;
#pragma unroll 1
    for (int i = 0; i <= pattern; ++i) {
      if constexpr (kAccess == kLoad) {
        // All of it is used, or the compiler would load less.
        const Value value = memory.load_shared<Value>(0, offset);
        for (int byte = 0; byte < kWidth; ++byte) sum += reinterpret_cast<const unsigned char*>(&value)[byte];
      } else if constexpr (kAccess == kStore) {
        memory.store_shared(0, offset, written);
      } else {
        memory.copy_to_shared<Value>(0, offset, from);
      }
    }
  }
  if constexpr (kAccess == kAsyncCopy) memory.await_copies();
  sink[lane] = sum;
}

template <int kAccess, int kWidth>
int launch(const void* offsets, const void* source, void* sink, int shared_bytes) {
  calibration_kernel<kAccess, kWidth><<<1, 32, shared_bytes>>>(
      static_cast<const int*>(offsets), static_cast<const unsigned char*>(source), static_cast<unsigned*>(sink));
  return static_cast<int>(cudaDeviceSynchronize());
}

template <int kAccess>
int launch_width(int width, const void* offsets, const void* source, void* sink, int shared_bytes) {
  switch (width) {
    case 1:
      return launch<kAccess, 1>(offsets, source, sink, shared_bytes);
    case 2:
      return launch<kAccess, 2>(offsets, source, sink, shared_bytes);
    case 4:
      return launch<kAccess, 4>(offsets, source, sink, shared_bytes);
    case 8:
      return launch<kAccess, 8>(offsets, source, sink, shared_bytes);
    default:
      return launch<kAccess, 16>(offsets, source, sink, shared_bytes);
  }
}

}  // namespace

// Launches one kernel of PATTERNS patterns and waits. All pointers are the device's: 32 ints a pattern, 512 bytes aligned
// to 512, 32 unsigned. Returns a cudaError_t.
extern "C" int calibrate(int access, int width, const void* offsets, const void* source, void* sink, int shared_bytes) {
  switch (access) {
    case kLoad:
      return launch_width<kLoad>(width, offsets, source, sink, shared_bytes);
    case kStore:
      return launch_width<kStore>(width, offsets, source, sink, shared_bytes);
    default:
      return launch<kAsyncCopy, 16>(offsets, source, sink, shared_bytes);
  }
}
