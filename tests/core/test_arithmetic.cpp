// Claims about the integer helpers.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "core/arithmetic.hpp"

namespace swizzle {
namespace {

constexpr std::uint32_t kLimit = (1u << 31) - 1;

void expect_division(std::uint32_t dividend, std::uint32_t divisor) {
  const FastDivision division(divisor);
  const std::uint32_t quotient = division.quotient(dividend);
  ASSERT_EQ(quotient, dividend / divisor) << dividend << " / " << divisor;
  ASSERT_EQ(division.remainder(dividend, quotient), dividend % divisor) << dividend << " % " << divisor;
}

TEST(FastDivision, EqualsDivisionAtEveryEdge) {
  for (const std::uint32_t divisor :
       {1u, 2u, 3u, 5u, 7u, 31u, 32u, 33u, 641u, 65535u, 65536u, 65537u, 1u << 30, kLimit - 1, kLimit}) {
    for (const std::uint32_t multiple : {0u, 1u, 2u, 3u, kLimit / divisor}) {
      const std::uint64_t middle = std::uint64_t{divisor} * multiple;
      for (std::uint64_t dividend = middle > 2 ? middle - 2 : 0; dividend <= middle + 2 && dividend <= kLimit;
           ++dividend) {
        expect_division(static_cast<std::uint32_t>(dividend), divisor);
      }
    }
    expect_division(kLimit, divisor);
  }
}

TEST(FastDivision, EqualsDivisionAtRandom) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::uint32_t> bits(0, 30);
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t divisor = (random() >> 1 >> bits(random)) + 1;
    expect_division(random() >> 1, divisor > kLimit ? kLimit : divisor);
  }
}

TEST(Arithmetic, PowersOfTwoAndRounding) {
  static_assert(is_power_of_two(1) && is_power_of_two(64) && !is_power_of_two(0) && !is_power_of_two(48));
  static_assert(log2_floor(1) == 0 && log2_floor(2) == 1 && log2_floor(3) == 1 && log2_floor(128) == 7);
  static_assert(ceil_div(0, 32) == 0 && ceil_div(1, 32) == 1 && ceil_div(32, 32) == 1 && ceil_div(33, 32) == 2);
}

}  // namespace
}  // namespace swizzle
