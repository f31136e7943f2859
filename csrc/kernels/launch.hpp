// The launch of the kernels. Raw pointers, a plan and a stream in, cudaError_t out; no torch header.
#pragma once

#include <cuda_runtime_api.h>

#include "core/plan.hpp"

namespace swizzle {

/// Enqueues what `plan` says for `problem` on `stream`: a memory copy or one kernel (several only where a gather has
/// 2^31 elements or more). Does not synchronise or allocate, so it can be captured into a graph. The current device
/// must be the one that owns src, dst and stream; both addresses are those that the plan was made for. Returns the
/// first CUDA error.
cudaError_t launch_transpose(const Plan& plan, const Problem& problem, const void* src, void* dst, cudaStream_t stream);

/// Enqueues the bank probe of that many ways (is_probe_ways) over `count` contiguous floats, under the same conditions.
cudaError_t launch_bank_probe(std::int64_t ways, const void* src, void* dst, std::int64_t count, cudaStream_t stream);

}  // namespace swizzle
