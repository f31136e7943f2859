// Chunks of elements in registers, and the transpose of a square block of them.
#pragma once

#include <cstdint>

#include "config.hpp"

namespace swizzle {

/// An opaque value of kBytes bytes, aligned to its size: the unit of every global and shared access.
template <int kBytes>
struct Opaque;
template <>
struct Opaque<1> {
  std::uint8_t value;
};
template <>
struct Opaque<2> {
  std::uint16_t value;
};
template <>
struct Opaque<4> {
  std::uint32_t value;
};
template <>
struct alignas(8) Opaque<8> {
  std::uint32_t word[2];
};
template <>
struct alignas(16) Opaque<16> {
  std::uint32_t word[4];
};

/// PTX prmt in its default mode: byte i of the result is byte (selector >> 4i) & 7 of the eight bytes high:low.
SWIZZLE_HOST_DEVICE inline std::uint32_t byte_permute(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, selector);
#else
  const std::uint64_t bytes = (std::uint64_t{high} << 32) | low;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t index = (selector >> (4 * i)) & 7u;
    result |= static_cast<std::uint32_t>((bytes >> (8 * index)) & 0xffu) << (8 * i);
  }
  return result;
#endif
}

/// Transposes a square block of a word a row in place: word[r] holds elements (r, 0 .. n-1) before and (0 .. n-1, r)
/// after, n = 4 / kElementBytes. One permute an output word of halves, two of bytes, none where an element is a word.
template <int kElementBytes>
SWIZZLE_HOST_DEVICE inline void transpose_words(std::uint32_t (&word)[4 / kElementBytes]) {
  if constexpr (kElementBytes == 2) {
    const std::uint32_t upper = word[0];
    word[0] = byte_permute(upper, word[1], 0x5410);
    word[1] = byte_permute(upper, word[1], 0x7632);
  } else if constexpr (kElementBytes == 1) {
    const std::uint32_t low01 = byte_permute(word[0], word[1], 0x5140);
    const std::uint32_t high01 = byte_permute(word[0], word[1], 0x7362);
    const std::uint32_t low23 = byte_permute(word[2], word[3], 0x5140);
    const std::uint32_t high23 = byte_permute(word[2], word[3], 0x7362);
    word[0] = byte_permute(low01, low23, 0x5410);
    word[1] = byte_permute(low01, low23, 0x7632);
    word[2] = byte_permute(high01, high23, 0x5410);
    word[3] = byte_permute(high01, high23, 0x7632);
  }
}

/// Transposes a square block in place: block[r] holds elements (r, 0 .. n-1) before and (0 .. n-1, r) after, where
/// n = kChunkBytes / kElementBytes. Elements of a word or more are renamed registers; halves take one permute an output
/// word, bytes two (4 x 4 bytes in two rounds of four).
template <int kElementBytes, int kChunkBytes>
SWIZZLE_HOST_DEVICE inline void transpose_block(Opaque<kChunkBytes> (&block)[kChunkBytes / kElementBytes]) {
  constexpr int n = kChunkBytes / kElementBytes;
  if constexpr (n > 1 && kChunkBytes == 4) {
    std::uint32_t word[n];
    SWIZZLE_UNROLL
    for (int r = 0; r < n; ++r) word[r] = block[r].value;
    transpose_words<kElementBytes>(word);
    SWIZZLE_UNROLL
    for (int r = 0; r < n; ++r) block[r].value = word[r];
  } else if constexpr (n > 1) {
    constexpr int kSide = kChunkBytes / 4;
    Opaque<kChunkBytes> out[n];
    if constexpr (kElementBytes >= 4) {
      constexpr int kWords = kElementBytes / 4;
      SWIZZLE_UNROLL
      for (int r = 0; r < n; ++r) {
        SWIZZLE_UNROLL
        for (int c = 0; c < n; ++c) {
          SWIZZLE_UNROLL
          for (int w = 0; w < kWords; ++w) out[c].word[r * kWords + w] = block[r].word[c * kWords + w];
        }
      }
    } else {
      constexpr int kRows = 4 / kElementBytes;
      SWIZZLE_UNROLL
      for (int r = 0; r < kSide; ++r) {
        SWIZZLE_UNROLL
        for (int c = 0; c < kSide; ++c) {
          std::uint32_t word[kRows];
          SWIZZLE_UNROLL
          for (int k = 0; k < kRows; ++k) word[k] = block[kRows * r + k].word[c];
          transpose_words<kElementBytes>(word);
          SWIZZLE_UNROLL
          for (int k = 0; k < kRows; ++k) out[kRows * c + k].word[r] = word[k];
        }
      }
    }
    SWIZZLE_UNROLL
    for (int r = 0; r < n; ++r) block[r] = out[r];
  }
}

/// The low word of high:low >> shift, shift in 0 .. 31 bits.
SWIZZLE_HOST_DEVICE inline std::uint32_t funnel_shift_right(std::uint32_t low, std::uint32_t high, int shift) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<std::uint32_t>(((std::uint64_t{high} << 32) | low) >> shift);
#endif
}

/// One value of the given elements, in their order, of 16 bytes at most: one permute a word of halves, three a word of
/// bytes.
template <int kElementBytes, int kCount>
SWIZZLE_HOST_DEVICE inline Opaque<kCount * kElementBytes> pack(const Opaque<kElementBytes> (&element)[kCount]) {
  if constexpr (kCount == 1) {
    return element[0];
  } else {
    constexpr int kWords = kCount * kElementBytes / 4;
    std::uint32_t word[kWords];
    SWIZZLE_UNROLL
    for (int i = 0; i < kWords; ++i) {
      if constexpr (kElementBytes == 1) {
        const std::uint32_t low = byte_permute(element[4 * i].value, element[4 * i + 1].value, 0x0040);
        const std::uint32_t high = byte_permute(element[4 * i + 2].value, element[4 * i + 3].value, 0x0040);
        word[i] = byte_permute(low, high, 0x5410);
      } else if constexpr (kElementBytes == 2) {
        word[i] = byte_permute(element[2 * i].value, element[2 * i + 1].value, 0x5410);
      } else if constexpr (kElementBytes == 4) {
        word[i] = element[i].value;
      } else {
        word[i] = element[i / 2].word[i % 2];
      }
    }
    if constexpr (kWords == 1) {
      return {word[0]};
    } else {
      Opaque<kCount * kElementBytes> result;
      SWIZZLE_UNROLL
      for (int i = 0; i < kWords; ++i) result.word[i] = word[i];
      return result;
    }
  }
}

/// A chunk whose element k is element (first + k) mod n of the given one, n = 16 / kElementBytes: words in two
/// conditional steps, bits in one funnel shift a word.
template <int kElementBytes>
SWIZZLE_HOST_DEVICE inline Opaque<16> rotate(const Opaque<16>& chunk, int first) {
  const int bytes = first * kElementBytes;
  Opaque<16> result;
  SWIZZLE_UNROLL
  for (int i = 0; i < 4; ++i) result.word[i] = (bytes & 8) != 0 ? chunk.word[(i + 2) % 4] : chunk.word[i];
  if constexpr (kElementBytes < 8) {
    const Opaque<16> by_pairs = result;
    SWIZZLE_UNROLL
    for (int i = 0; i < 4; ++i) result.word[i] = (bytes & 4) != 0 ? by_pairs.word[(i + 1) % 4] : by_pairs.word[i];
  }
  if constexpr (kElementBytes < 4) {
    const Opaque<16> by_words = result;
    SWIZZLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      result.word[i] = funnel_shift_right(by_words.word[i], by_words.word[(i + 1) % 4], bytes % 4 * 8);
    }
  }
  return result;
}

/// Element k of a chunk.
template <int kElementBytes>
SWIZZLE_HOST_DEVICE inline Opaque<kElementBytes> element_of(const Opaque<16>& chunk, int k) {
  const int byte = k * kElementBytes;
  if constexpr (kElementBytes == 16) {
    return chunk;
  } else if constexpr (kElementBytes == 8) {
    return {{chunk.word[2 * k], chunk.word[2 * k + 1]}};
  } else {
    using Value = decltype(Opaque<kElementBytes>::value);
    return {static_cast<Value>(chunk.word[byte / 4] >> (byte % 4 * 8))};
  }
}

}  // namespace swizzle
