// The way from a strided view to a launch, for every op on CUDA tensors: canonicalise, plan, launch, check.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string_view>

#include "core/plan.hpp"

namespace swizzle {

/// Writes a strided view contiguously to `dst`, on the current device and its current stream.
///
/// `sizes` and `strides` (in elements of `element_bytes`, not negative) are those of the view, in the order of the
/// output's dimensions, at most kMaxRank; `src` is its first element. Source and destination do not overlap. `op` is
/// named if the launch fails (RuntimeError). Neither synchronises nor allocates.
void gather_into(std::string_view op, c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t element_bytes,
                 const void* src, void* dst, Method method = Method::kAuto);

/// The same for a canonical problem.
void gather_into(std::string_view op, const Problem& problem, const void* src, void* dst, Method method);

/// Launches a plan that was made for these addresses; raises RuntimeError where that fails.
void launch_plan(std::string_view op, const Plan& plan, const Problem& problem, const void* src, void* dst);

}  // namespace swizzle
