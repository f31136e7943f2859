// A problem: what is left of "write this strided view contiguously" once everything that does not matter is removed.
#pragma once

#include <cstdint>

#include "arithmetic.hpp"

namespace swizzle {

/// Most dimensions of an input; torch's own limit for copies.
inline constexpr int kMaxRank = 64;

/// A gather from strided memory into contiguous memory, in the order of the output's dimensions. Strides in elements.
/// Canonical: no dimension of size 1, none that could be fused with its neighbour, the element as wide as sizes,
/// strides and addresses allow. Rank 0 is a single element, or nothing at all where is_empty.
struct Problem {
  bool is_empty = false;
  int element_bytes = 1;
  int rank = 0;
  std::int64_t size[kMaxRank];
  std::int64_t src_stride[kMaxRank];

  std::int64_t element_count() const {
    std::int64_t count = is_empty ? 0 : 1;
    for (int i = 0; i < rank; ++i) count *= size[i];
    return count;
  }

  /// Whether source and destination bytes are in the same order: a plain copy.
  bool is_copy() const { return rank == 0 || (rank == 1 && src_stride[0] == 1); }
};

namespace detail {

// The largest power of two, at most `limit` (one itself), that divides value; `limit` for 0. By the lowest bit:
// divisions took half the time of deciding on a copy of five dimensions.
constexpr std::int64_t alignment_of(std::int64_t value, std::int64_t limit) {
  return (value | limit) & -(value | limit);
}

}  // namespace detail

/// Brings a view into canonical form.
///
/// `sizes` and `src_strides` (in elements, not negative) have `rank` entries in the output's order; the output is
/// contiguous. `src_address` and `dst_address` matter by their alignment only: an element that is not aligned to its
/// size becomes several smaller ones, and a contiguous innermost run becomes fewer wider ones, up to 16 bytes.
///
/// Example: a contiguous (8, 4, 2) float32 tensor with its first two dimensions swapped becomes the 4 x 8 transpose of
/// 8-byte elements.
inline Problem canonicalize(int rank, const std::int64_t* sizes, const std::int64_t* src_strides, int element_bytes,
                            std::uint64_t src_address, std::uint64_t dst_address) {
  Problem problem;
  problem.element_bytes = element_bytes;
  int count = 0;
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] == 0) {
      problem.is_empty = true;
      problem.rank = 0;
      return problem;
    }
    if (sizes[i] == 1) continue;
    if (count > 0 && problem.src_stride[count - 1] == src_strides[i] * sizes[i]) {
      problem.size[count - 1] *= sizes[i];
      problem.src_stride[count - 1] = src_strides[i];
    } else {
      problem.size[count] = sizes[i];
      problem.src_stride[count] = src_strides[i];
      ++count;
    }
  }

  // The element's width: what the addresses allow, then what the innermost contiguous run and the strides allow.
  std::int64_t width = detail::alignment_of(static_cast<std::int64_t>((src_address | dst_address) & 15u), 16);
  const bool innermost_is_contiguous = count > 0 && problem.src_stride[count - 1] == 1;
  const std::int64_t run_bytes = (innermost_is_contiguous ? problem.size[count - 1] : 1) * element_bytes;
  width = detail::alignment_of(run_bytes, width);
  for (int i = 0; i < count - (innermost_is_contiguous ? 1 : 0); ++i) {
    width = detail::alignment_of(problem.src_stride[i] * element_bytes, width);
  }
  if (width != element_bytes) {
    const std::int64_t run = run_bytes / width;
    if (innermost_is_contiguous) --count;
    for (int i = 0; i < count; ++i) problem.src_stride[i] = problem.src_stride[i] * element_bytes / width;
    if (run > 1) {
      problem.size[count] = run;
      problem.src_stride[count] = 1;
      ++count;
    }
    problem.element_bytes = static_cast<int>(width);
  }
  problem.rank = count;
  return problem;
}

}  // namespace swizzle
