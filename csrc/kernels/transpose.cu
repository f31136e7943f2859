// The transpose kernels and their launch. A kernel is a program of core/ on device memory; what differs between kernels
// is the program's type.
#include <atomic>

#include "core/box_program.hpp"
#include "core/dispatch.hpp"
#include "core/gather_program.hpp"
#include "launch.hpp"
#include "tile_kernel.cuh"

namespace swizzle {

/// A thread moves elements one by one, in output order (core/gather_program.hpp).
template <class Program, class Arguments>
__global__ void __launch_bounds__(Program::kThreads) direct_kernel(const __grid_constant__ Arguments args) {
  DeviceGlobalMemory memory;
  Program::run(memory, args, blockIdx.x, static_cast<int>(threadIdx.x));
}

namespace {

// Above 48 KiB a kernel must be granted its shared memory, once on each device. Threads that race here repeat the same
// harmless call; devices beyond the table are granted at every launch.
template <class Program, bool kKeepsInput>
cudaError_t allow_shared_memory() {
  constexpr int kDefaultLimit = 48 * 1024;
  static_assert(Program::kSharedBytes <= kGrantedSharedBytes, "some supported GPU would refuse this tile's launch");
  if constexpr (Program::kSharedBytes > kDefaultLimit) {
    constexpr int kDevices = 64;
    static std::atomic<bool> is_allowed[kDevices];
    int device = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status != cudaSuccess) return status;
    if (device < kDevices && is_allowed[device].load(std::memory_order_acquire)) return cudaSuccess;
    constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    status = cudaFuncSetAttribute((tile_kernel<Program, kKeepsInput>), kAttribute, Program::kSharedBytes);
    if (status == cudaSuccess && device < kDevices) is_allowed[device].store(true, std::memory_order_release);
    return status;
  } else {
    return cudaSuccess;
  }
}

template <class Program, bool kKeepsInput, class Shape>
cudaError_t launch_tile_kernel(const Shape& matrices, const void* src, void* dst, cudaStream_t stream) {
  const cudaError_t status = allow_shared_memory<Program, kKeepsInput>();
  if (status != cudaSuccess) return status;
  const typename Program::Arguments args = Program::make_arguments(matrices, src, dst);
  dim3 grid(static_cast<unsigned>(args.block_count));
  if constexpr (kHasPlaneGrid<Program>) grid = dim3(args.row_tiles.divisor, grid.x / args.row_tiles.divisor);
  tile_kernel<Program, kKeepsInput><<<grid, Program::kThreads, Program::shared_bytes(args), stream>>>(args);
  return cudaGetLastError();
}

// Only the kernels that the program's threshold can ask for are compiled.
template <class Program, class Shape>
cudaError_t launch_tile(const Shape& matrices, const void* src, void* dst, cudaStream_t stream) {
  if constexpr (Program::kMinKeptBytes == 0) {
    return launch_tile_kernel<Program, true>(matrices, src, dst, stream);
  } else if constexpr (Program::kMinKeptBytes == INT64_MAX) {
    return launch_tile_kernel<Program, false>(matrices, src, dst, stream);
  } else {
    return matrices.byte_count() >= Program::kMinKeptBytes
               ? launch_tile_kernel<Program, true>(matrices, src, dst, stream)
               : launch_tile_kernel<Program, false>(matrices, src, dst, stream);
  }
}

template <int kElementBytes>
cudaError_t launch_gather(const Problem& problem, const void* src, void* dst, cudaStream_t stream) {
  return dispatch_gather<kElementBytes>(problem, src, dst, [&](auto program, const auto& args, std::uint32_t blocks) {
    direct_kernel<decltype(program)><<<blocks, program.kThreads, 0, stream>>>(args);
    return cudaGetLastError();
  });
}

}  // namespace

cudaError_t launch_transpose(const Plan& plan, const Problem& problem, const void* src, void* dst,
                             cudaStream_t stream) {
  if (plan.route == Route::kNothing) return cudaSuccess;
  if (plan.route == Route::kCopy) {
    const auto bytes = static_cast<std::size_t>(problem.element_count() * problem.element_bytes);
    return cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  return dispatch_element_bytes(problem.element_bytes, [&](auto bytes) {
    constexpr int kElementBytes = decltype(bytes)::value;
    if (plan.route == Route::kGather) return launch_gather<kElementBytes>(problem, src, dst, stream);
    if (plan.route == Route::kBox) return launch_tile<BoxProgram<kElementBytes>>(plan.box, src, dst, stream);
    return dispatch_program<kElementBytes>(plan.tile, plan.layout, plan.matrices, src, dst, [&](auto program) {
      return launch_tile<decltype(program)>(plan.matrices, src, dst, stream);
    });
  });
}

}  // namespace swizzle
