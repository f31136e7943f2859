// The launch of the bank probe (core/bank_probe_program.hpp).
#include "core/bank_probe_program.hpp"
#include "launch.hpp"
#include "tile_kernel.cuh"

namespace swizzle {

cudaError_t launch_bank_probe(std::int64_t ways, const void* src, void* dst, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return dispatch_bank_probe(ways, [&](auto program) {
    using Program = decltype(program);
    const typename Program::Arguments args = Program::make_arguments(src, dst, count);
    const auto blocks = static_cast<unsigned>(args.block_count);
    tile_kernel<Program, false><<<blocks, Program::kThreads, Program::kSharedBytes, stream>>>(args);
    return cudaGetLastError();
  });
}

}  // namespace swizzle
