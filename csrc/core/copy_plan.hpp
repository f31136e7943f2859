// The decision on a copy between two strided views: whether the programs move it faster than a copy element by element,
// and the problem and plan if so. Pure functions of sizes, strides, addresses and the device.
#pragma once

#include "plan.hpp"

namespace swizzle {

/// A copy between two views of one shape. Strides in elements; addresses of the first elements.
struct CopyView {
  int element_bytes = 1;
  int rank = 0;
  const std::int64_t* size = nullptr;
  const std::int64_t* src_stride = nullptr;
  const std::int64_t* dst_stride = nullptr;
  std::uint64_t src_address = 0;
  std::uint64_t dst_address = 0;
};

/// Why a copy is taken or left. The second group is decided before strides are looked at, by whoever knows tensors.
enum class CopyReason {
  kTransposition,
  kRuns,
  kPlain,
  kNoGain,
  kSmall,
  kExpanded,
  kDestination,
  kOverlap,

  kDevice,
  kDtype,
  kShape,
  kLazyBits,
  kKind,
  kNoCode,
};

inline constexpr Named<CopyReason> kCopyReasonNames[] = {
    {CopyReason::kTransposition, "transposition"},
    {CopyReason::kRuns, "permuted or pitched runs"},
    {CopyReason::kPlain, "plain copy"},
    {CopyReason::kNoGain, "nothing to transpose or to widen"},
    {CopyReason::kSmall, "small"},
    {CopyReason::kExpanded, "expanded source"},
    {CopyReason::kDestination, "destination with gaps or overlaps"},
    {CopyReason::kOverlap, "source and destination overlap"},
    {CopyReason::kDevice, "another device"},
    {CopyReason::kDtype, "another dtype"},
    {CopyReason::kShape, "broadcast source"},
    {CopyReason::kLazyBits, "conjugate or negative bits differ"},
    {CopyReason::kKind, "kind of tensor"},
    {CopyReason::kNoCode, "no code for this GPU"},
};
constexpr std::string_view name_of(CopyReason reason) { return find_name(kCopyReasonNames, reason); }

constexpr bool is_taken(CopyReason reason) {
  return reason == CopyReason::kTransposition || reason == CopyReason::kRuns;
}

/// Copies of fewer bytes are left alone: a launch takes longer than moving them, whoever does it. 64 x 64 bytes took
/// 4.67 us taken and 4.48 us left, 64 x 64 of 2 bytes 4.16 and 5.06 (H200, 2026-11-30).
inline constexpr std::int64_t kMinCopyBytes = 8192;

/// Copies of fewer bytes in runs of elements that become no wider are left alone: no gain was measured on them.
inline constexpr std::int64_t kMinRunCopyBytes = std::int64_t{1} << 20;

/// What to launch for a copy that is taken.
struct CopyPlan {
  Problem problem;
  Plan plan;
};

namespace detail {

/// Dimensions of a copy, outermost of the destination first, without those of size 1.
struct OrderedDims {
  int rank = 0;
  std::int64_t size[kMaxRank];
  std::int64_t src_stride[kMaxRank];
  std::int64_t dst_stride[kMaxRank];
};

inline OrderedDims order_by_destination(const CopyView& view) {
  OrderedDims dims;
  for (int i = 0; i < view.rank; ++i) {
    if (view.size[i] == 1) continue;
    int at = dims.rank++;
    for (; at > 0 && dims.dst_stride[at - 1] < view.dst_stride[i]; --at) {
      dims.size[at] = dims.size[at - 1];
      dims.src_stride[at] = dims.src_stride[at - 1];
      dims.dst_stride[at] = dims.dst_stride[at - 1];
    }
    dims.size[at] = view.size[i];
    dims.src_stride[at] = view.src_stride[i];
    dims.dst_stride[at] = view.dst_stride[i];
  }
  return dims;
}

/// How ordered dimensions lie over the destination's memory.
enum class Density { kDense, kGaps, kOverlaps };

inline Density density_of(const OrderedDims& dims) {
  Density density = Density::kDense;
  std::int64_t extent = 1;  // of the dimensions inside
  for (int i = dims.rank - 1; i >= 0; --i) {
    if (dims.dst_stride[i] < extent) return Density::kOverlaps;
    if (dims.dst_stride[i] > extent) density = Density::kGaps;
    extent = dims.dst_stride[i] * dims.size[i];
  }
  return density;
}

// One past the last byte of a view that begins at `address`.
inline std::uint64_t end_of(std::uint64_t address, const OrderedDims& dims, const std::int64_t* stride,
                            int element_bytes) {
  std::int64_t last = 0;
  for (int i = 0; i < dims.rank; ++i) last += (dims.size[i] - 1) * stride[i];
  return address + static_cast<std::uint64_t>((last + 1) * element_bytes);
}

// Plans a transposition into memory with gaps between its rows. Dimensions fuse where they do on both sides; elements
// keep their width.
inline CopyReason plan_copy_with_gaps(const OrderedDims& dims, const CopyView& view, const DeviceTraits& device,
                                      CopyPlan& copy) {
  Problem& problem = copy.problem;
  problem.element_bytes = view.element_bytes;
  std::int64_t dst_stride[kMaxRank];
  int count = 0;
  for (int i = 0; i < dims.rank; ++i) {
    const bool fuses = count > 0 && problem.src_stride[count - 1] == dims.src_stride[i] * dims.size[i] &&
                       dst_stride[count - 1] == dims.dst_stride[i] * dims.size[i];
    if (!fuses) problem.size[count++] = 1;
    problem.size[count - 1] *= dims.size[i];
    problem.src_stride[count - 1] = dims.src_stride[i];
    dst_stride[count - 1] = dims.dst_stride[i];
  }
  problem.rank = count;
  const std::uint64_t misalignment = (view.src_address | view.dst_address) % view.element_bytes;
  if (dst_stride[count - 1] != 1 || misalignment != 0) return CopyReason::kDestination;
  Plan& plan = copy.plan;
  if (!find_transposition(problem, dst_stride, plan.matrices)) return CopyReason::kDestination;
  plan.tile = select_tile(plan.matrices, view.src_address, view.dst_address, device);
  if (!can_serve(plan.tile, plan.matrices, view.src_address, view.dst_address)) return CopyReason::kDestination;
  plan.route = Route::kTile;
  return CopyReason::kTransposition;
}

}  // namespace detail

/// Decides on a copy and, if it is taken, fills in `copy`. Taken are transpositions that a tile serves or the direct
/// kernel reads in streams, and permuted or pitched runs that move in wider pieces than the view's own elements, since
/// a copy element by element is bound by its instructions: torch 2.11 took 282 us or more for 2^26 elements of 1 or 2
/// bytes on an H200 (2026-11-29), whatever the strides, where a memory copy took 36 or 67.
///
/// The destination may be dense in any order of its dimensions; transpositions may also go into a destination with
/// gaps, such as a slice, whose innermost stride is 1.
inline CopyReason plan_copy(const CopyView& view, const DeviceTraits& device, CopyPlan& copy) {
  std::int64_t bytes = view.element_bytes;
  for (int i = 0; i < view.rank; ++i) bytes *= view.size[i];
  if (bytes < kMinCopyBytes) return CopyReason::kSmall;
  const detail::OrderedDims dims = detail::order_by_destination(view);
  for (int i = 0; i < dims.rank; ++i) {
    if (dims.src_stride[i] == 0) return CopyReason::kExpanded;
  }
  const detail::Density density = detail::density_of(dims);
  if (density == detail::Density::kOverlaps) return CopyReason::kDestination;
  const bool meet = view.src_address < detail::end_of(view.dst_address, dims, dims.dst_stride, view.element_bytes) &&
                    view.dst_address < detail::end_of(view.src_address, dims, dims.src_stride, view.element_bytes);
  if (meet) return CopyReason::kOverlap;
  if (density == detail::Density::kGaps) return detail::plan_copy_with_gaps(dims, view, device, copy);

  const Problem problem =
      canonicalize(dims.rank, dims.size, dims.src_stride, view.element_bytes, view.src_address, view.dst_address);
  if (problem.is_copy()) return CopyReason::kPlain;
  const Plan plan = make_plan(problem, view.src_address, view.dst_address, Method::kAuto, device);
  const bool is_wider = problem.element_bytes > view.element_bytes;
  const bool is_transposition = plan.route == Route::kTile || reads_streams(plan.matrices);
  if (plan.route == Route::kGather && !is_transposition && !is_wider &&
      (bytes < kMinRunCopyBytes || !keeps_long_runs(problem))) {
    return CopyReason::kNoGain;
  }
  // Not before: these two are 1.6 KiB, and a copy that is left should not pay for moving them.
  copy.problem = problem;
  copy.plan = plan;
  return is_transposition ? CopyReason::kTransposition : CopyReason::kRuns;
}

}  // namespace swizzle
