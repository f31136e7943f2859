// The skew of a flat image in shared memory: 16 bytes left free after every 2^shift bytes, so that lanes a power of two
// (times an odd number) of bytes apart meet the banks in turn. Chunks of 16 bytes stay whole.
#pragma once

#include "arithmetic.hpp"

namespace swizzle {

/// A skew that never comes.
inline constexpr int kNoSkew = 30;

/// Least bytes between skews: a line of banks. Free chunks within a line cost asynchronous copies 10 to 15 % (H200).
inline constexpr int kMinSkewShift = 7;

/// Where byte number `byte` of a flat image lies.
SWIZZLE_HOST_DEVICE constexpr int skewed(int byte, int shift) { return byte + (byte >> shift) * 16; }

/// The largest power of two that divides a positive value, as its exponent.
constexpr int log2_of_factor(std::int64_t value) {
  int result = 0;
  while (value % 2 == 0) {
    value /= 2;
    ++result;
  }
  return result;
}

/// The shift for lanes `stride` bytes apart: one free chunk a stride if it is a power of two, an odd number of them
/// else.
constexpr int skew_shift_for(std::int64_t stride) { return max_of(kMinSkewShift, log2_of_factor(stride)); }

}  // namespace swizzle
