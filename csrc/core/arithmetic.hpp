// Integer helpers shared by layouts, programs and plans: powers of two, rounding, misalignment, division by a
// precomputed divisor.
#pragma once

#include <cstdint>

#include "config.hpp"

namespace swizzle {

SWIZZLE_HOST_DEVICE constexpr bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

// Exact for powers of two; rounds down otherwise.
SWIZZLE_HOST_DEVICE constexpr int log2_floor(int value) {
  int result = 0;
  while (value > 1) {
    value >>= 1;
    ++result;
  }
  return result;
}

SWIZZLE_HOST_DEVICE constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

template <class T>
SWIZZLE_HOST_DEVICE constexpr T min_of(T a, T b) {
  return b < a ? b : a;
}

template <class T>
SWIZZLE_HOST_DEVICE constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}

/// How many bytes behind a multiple of `alignment`, a power of two, an address lies.
SWIZZLE_HOST_DEVICE inline int misalignment_of(const unsigned char* address, int alignment = 16) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) & (static_cast<std::uintptr_t>(alignment) - 1));
}

/// Workers (lanes, warps), as a power of two of at most 2^most, along `count` items: fewer where a quarter would be
/// idle.
constexpr int share_of(int count, int most) {
  int shift = most;
  while (shift > 0 && 4 * count < 3 * ((count + (1 << shift) - 1) >> shift << shift)) --shift;
  return shift;
}

/// Division of 31-bit unsigned integers by a divisor known before the launch: one multiply-high, one add, one shift
/// instead of the 20 or more instructions of a hardware-less integer division.
///
/// Source: T. Granlund and P. Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994, figure 4.1.
/// Precondition: divisor in 1 .. 2^31 - 1 and every dividend below 2^31, so that the sum below cannot overflow 32 bits.
struct FastDivision {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  FastDivision() = default;

  explicit constexpr FastDivision(std::uint32_t value) : divisor(value) {
    while (shift < 32 && (std::uint64_t{1} << shift) < value) ++shift;
    multiplier =
        static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - value)) / value + 1);
  }

  SWIZZLE_HOST_DEVICE constexpr std::uint32_t quotient(std::uint32_t dividend) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t{dividend} * multiplier) >> 32);
    return (high + dividend) >> shift;
  }

  SWIZZLE_HOST_DEVICE constexpr std::uint32_t remainder(std::uint32_t dividend, std::uint32_t known_quotient) const {
    return dividend - known_quotient * divisor;
  }
};

}  // namespace swizzle
