// Claims about the block transpose in registers and the host twin of the byte permute.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/register_transpose.hpp"

namespace swizzle {
namespace {

TEST(BytePermute, SelectsAnyByteOfBothWords) {
  const std::uint32_t low = 0x33221100;
  const std::uint32_t high = 0x77665544;
  EXPECT_EQ(byte_permute(low, high, 0x3210), low);
  EXPECT_EQ(byte_permute(low, high, 0x7654), high);
  EXPECT_EQ(byte_permute(low, high, 0x5410), 0x55441100u);
  EXPECT_EQ(byte_permute(low, high, 0x0246), 0x00224466u);
  EXPECT_EQ(byte_permute(low, high, 0x7777), 0x77777777u);
}

template <int kElementBytes, int kChunkBytes = 16>
void expect_transposed_block() {
  constexpr int n = kChunkBytes / kElementBytes;
  Opaque<kChunkBytes> block[n];
  unsigned char before[n][n][kElementBytes];
  std::mt19937 random(kElementBytes);
  for (auto& row : before) {
    for (auto& element : row) {
      for (unsigned char& byte : element) byte = static_cast<unsigned char>(random());
    }
  }
  std::memcpy(block, before, sizeof(before));
  transpose_block<kElementBytes, kChunkBytes>(block);
  unsigned char after[n][n][kElementBytes];
  std::memcpy(after, block, sizeof(after));
  for (int row = 0; row < n; ++row) {
    for (int col = 0; col < n; ++col) {
      EXPECT_EQ(std::memcmp(after[col][row], before[row][col], kElementBytes), 0) << row << ", " << col;
    }
  }
}

TEST(TransposeBlock, ExchangesRowsAndColumnsForEveryElementSize) {
  expect_transposed_block<1>();
  expect_transposed_block<2>();
  expect_transposed_block<4>();
  expect_transposed_block<8>();
  expect_transposed_block<16>();
}

TEST(TransposeBlock, ServesShortVectors) {
  expect_transposed_block<1, 4>();
  expect_transposed_block<2, 4>();
  expect_transposed_block<2, 8>();
  expect_transposed_block<4, 8>();
  expect_transposed_block<1, 8>();
}

TEST(TransposeBlock, LeavesASingleElementAlone) {
  Opaque<2> block[1] = {{0xbeef}};
  transpose_block<2, 2>(block);
  EXPECT_EQ(block[0].value, 0xbeef);
}

template <int kElementBytes>
void expect_packed_and_rotated() {
  constexpr int n = 16 / kElementBytes;
  Opaque<kElementBytes> element[n];
  unsigned char bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(17 * i + 3);
  std::memcpy(element, bytes, 16);
  const Opaque<16> chunk = pack<kElementBytes>(element);
  EXPECT_EQ(std::memcmp(&chunk, bytes, 16), 0);
  for (int first = 0; first < n; ++first) {
    const Opaque<16> rotated = rotate<kElementBytes>(chunk, first);
    for (int k = 0; k < n; ++k) {
      const Opaque<kElementBytes> actual = element_of<kElementBytes>(rotated, k);
      EXPECT_EQ(std::memcmp(&actual, &element[(first + k) % n], kElementBytes), 0) << first << ", " << k;
    }
  }
}

TEST(Pack, KeepsTheOrderAndRotatesByWholeElements) {
  expect_packed_and_rotated<1>();
  expect_packed_and_rotated<2>();
  expect_packed_and_rotated<4>();
  expect_packed_and_rotated<8>();
}

}  // namespace
}  // namespace swizzle
