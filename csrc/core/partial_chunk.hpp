// Storing a part of a 16-byte chunk in as few accesses as its ends allow: a beginning or an end takes at most one each
// of 8, 4, 2 and 1 bytes.
#pragma once

#include "register_transpose.hpp"

namespace swizzle {

namespace detail {

// The first `bytes` bytes, from the widest access on.
template <int kElementBytes, class Memory>
SWIZZLE_HOST_DEVICE inline void store_beginning(Memory& memory, unsigned char* dst, Opaque<16> chunk, int bytes) {
  if ((bytes & 8) != 0) {
    memory.store_global(dst, Opaque<8>{{chunk.word[0], chunk.word[1]}});
    chunk.word[0] = chunk.word[2];
    chunk.word[1] = chunk.word[3];
    dst += 8;
  }
  if constexpr (kElementBytes <= 4) {
    if ((bytes & 4) != 0) {
      memory.store_global(dst, Opaque<4>{chunk.word[0]});
      chunk.word[0] = chunk.word[1];
      dst += 4;
    }
  }
  if constexpr (kElementBytes <= 2) {
    if ((bytes & 2) != 0) {
      memory.store_global(dst, Opaque<2>{static_cast<std::uint16_t>(chunk.word[0])});
      chunk.word[0] >>= 16;
      dst += 2;
    }
  }
  if constexpr (kElementBytes == 1) {
    if ((bytes & 1) != 0) memory.store_global(dst, Opaque<1>{static_cast<std::uint8_t>(chunk.word[0])});
  }
}

// The last `bytes` bytes, from the widest access on.
template <int kElementBytes, class Memory>
SWIZZLE_HOST_DEVICE inline void store_end(Memory& memory, unsigned char* dst, Opaque<16> chunk, int bytes) {
  dst += 16;
  if ((bytes & 8) != 0) {
    dst -= 8;
    memory.store_global(dst, Opaque<8>{{chunk.word[2], chunk.word[3]}});
    chunk.word[2] = chunk.word[0];
    chunk.word[3] = chunk.word[1];
  }
  if constexpr (kElementBytes <= 4) {
    if ((bytes & 4) != 0) {
      dst -= 4;
      memory.store_global(dst, Opaque<4>{chunk.word[3]});
      chunk.word[3] = chunk.word[2];
    }
  }
  if constexpr (kElementBytes <= 2) {
    if ((bytes & 2) != 0) {
      dst -= 2;
      memory.store_global(dst, Opaque<2>{static_cast<std::uint16_t>(chunk.word[3] >> 16)});
      chunk.word[3] <<= 16;
    }
  }
  if constexpr (kElementBytes == 1) {
    if ((bytes & 1) != 0) memory.store_global(dst - 1, Opaque<1>{static_cast<std::uint8_t>(chunk.word[3] >> 24)});
  }
}

}  // namespace detail

/// Stores elements begin .. end - 1 of a chunk whose first one would lie at `dst`, a multiple of 16 bytes.
template <int kElementBytes, class Memory>
SWIZZLE_HOST_DEVICE inline void store_chunk(Memory& memory, unsigned char* dst, const Opaque<16>& chunk, int begin,
                                            int end) {
  constexpr int kElements = 16 / kElementBytes;
  if (begin == 0 && end == kElements) {
    memory.store_global(dst, chunk);
  } else if (begin == 0) {
    detail::store_beginning<kElementBytes>(memory, dst, chunk, end * kElementBytes);
  } else if (end == kElements) {
    detail::store_end<kElementBytes>(memory, dst, chunk, (kElements - begin) * kElementBytes);
  } else {
    Opaque<16> rest = rotate<kElementBytes>(chunk, begin);
    SWIZZLE_NO_UNROLL
    for (int k = begin; k < end; ++k) {
      memory.store_global(dst + k * kElementBytes, element_of<kElementBytes>(rest, 0));
      rest = rotate<kElementBytes>(rest, 1);
    }
  }
}

}  // namespace swizzle
