// The kernel of every program that works in two phases over shared memory.
#pragma once

#include <type_traits>

#include "core/phases.hpp"
#include "core/tile_grid.hpp"
#include "device_memory.cuh"

namespace swizzle {

/// Whether a program's grid has a row of blocks a tile of columns, instead of one row of all blocks.
template <class Program>
inline constexpr bool kHasPlaneGrid = std::is_same_v<typename Program::Arguments, MatrixArguments>;

/// What this block works on.
template <class Program>
__device__ auto locate_block(const typename Program::Arguments& args) {
  if constexpr (kHasPlaneGrid<Program>) {
    return Program::locate(args, TilePosition{blockIdx.x, blockIdx.y, args.src, args.dst});
  } else {
    return Program::locate(args, blockIdx.x);
  }
}

/// One block moves one tile (core/tile_program.hpp): phase load, barrier, phase store. Some programs prepare tables
/// first.
template <class Program, bool kKeepsInput>
__global__ void __launch_bounds__(Program::kThreads)
    tile_kernel(const __grid_constant__ typename Program::Arguments args) {
  extern __shared__ __align__(128) unsigned char shared[];
  DeviceMemory<kKeepsInput> memory(shared);
  // Lets the compiler split row numbers into a thread's bits and a step's bits (58 of 373 instructions of a scalar32
  // kernel).
  __builtin_assume(threadIdx.x < Program::kThreads);
  const auto tile = locate_block<Program>(args);
  if constexpr (has_preparation<Program>) {
    Program::prepare(memory, args, tile, static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  Program::load(memory, args, tile, static_cast<int>(threadIdx.x));
  if constexpr (Program::kSharedBytes > 0) __syncthreads();
  Program::store(memory, args, tile, static_cast<int>(threadIdx.x));
}

}  // namespace swizzle
