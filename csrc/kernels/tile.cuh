// The tiled transpose kernel and its launch, over any tile program (core/tile_program.hpp).
#pragma once

#include <atomic>

#include "core/dispatch.hpp"
#include "device_memory.cuh"
#include "launch.hpp"

namespace swizzle {

/// One block moves one tile: phase load, barrier, phase store.
template <class Program>
__global__ void __launch_bounds__(Program::kThreads) tile_kernel(const __grid_constant__ TileArguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  DeviceMemory memory{shared};
  const TileOrigin tile = Program::locate(args, blockIdx.x);
  Program::load(memory, args, tile, static_cast<int>(threadIdx.x));
  if constexpr (Program::kUsesSharedMemory) __syncthreads();
  Program::store(memory, args, tile, static_cast<int>(threadIdx.x));
}

namespace detail {

// Above 48 KiB a kernel must be granted its shared memory, once on each device. Threads that race here repeat the same
// harmless call; devices beyond the table are granted at every launch.
template <class Program>
cudaError_t allow_shared_memory() {
  constexpr int kDefaultLimit = 48 * 1024;
  if constexpr (Program::kSharedBytes <= kDefaultLimit) return cudaSuccess;
  constexpr int kDevices = 64;
  static std::atomic<bool> is_allowed[kDevices];
  int device = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  if (device < kDevices && is_allowed[device].load(std::memory_order_acquire)) return cudaSuccess;
  status =
      cudaFuncSetAttribute(tile_kernel<Program>, cudaFuncAttributeMaxDynamicSharedMemorySize, Program::kSharedBytes);
  if (status == cudaSuccess && device < kDevices) is_allowed[device].store(true, std::memory_order_release);
  return status;
}

}  // namespace detail

template <int kElementBytes>
cudaError_t launch_tile(const Plan& plan, const void* src, void* dst, cudaStream_t stream) {
  return dispatch_program<kElementBytes>(plan.tile, plan.layout, [&](auto program) {
    using Program = decltype(program);
    const cudaError_t status = detail::allow_shared_memory<Program>();
    if (status != cudaSuccess) return status;
    const auto blocks = static_cast<unsigned>(Program::block_count(plan.matrices));
    const TileArguments args = Program::make_arguments(plan.matrices, src, dst);
    tile_kernel<Program><<<blocks, Program::kThreads, Program::kSharedBytes, stream>>>(args);
    return cudaGetLastError();
  });
}

}  // namespace swizzle
