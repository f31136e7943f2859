// Claims about storing a part of a chunk: exactly the wanted elements, in few aligned accesses.
#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>

#include "core/dispatch.hpp"
#include "core/partial_chunk.hpp"

namespace swizzle {
namespace {

/// A chunk in memory that counts the accesses, each of which must be aligned to its width.
struct ChunkMemory {
  alignas(16) unsigned char bytes[16];
  int stores = 0;

  template <class T>
  void store_global(unsigned char* address, const T& value) {
    ASSERT_EQ((address - bytes) % static_cast<std::ptrdiff_t>(sizeof(T)), 0);
    ASSERT_GE(address, bytes);
    ASSERT_LE(address + sizeof(T), bytes + 16);
    std::memcpy(address, &value, sizeof(T));
    ++stores;
  }
};

TEST(PartialChunk, WritesTheWantedElementsAndNoOther) {
  for (const int element_bytes : {1, 2, 4, 8, 16}) {
    dispatch_element_bytes(element_bytes, [](auto bytes) {
      constexpr int kBytes = decltype(bytes)::value;
      constexpr int kElements = 16 / kBytes;
      Opaque<16> chunk;
      unsigned char expected[16];
      for (int i = 0; i < 16; ++i) expected[i] = static_cast<unsigned char>(0x91 + 7 * i);
      std::memcpy(&chunk, expected, 16);
      for (int begin = 0; begin < kElements; ++begin) {
        for (int end = begin + 1; end <= kElements; ++end) {
          ChunkMemory memory;
          std::memset(memory.bytes, 0x5a, 16);
          store_chunk<kBytes>(memory, memory.bytes, chunk, begin, end);
          for (int i = 0; i < 16; ++i) {
            const bool is_wanted = i >= begin * kBytes && i < end * kBytes;
            ASSERT_EQ(memory.bytes[i], is_wanted ? expected[i] : 0x5a) << begin << " " << end << " byte " << i;
          }
          if (begin == 0 || end == kElements) {
            ASSERT_LE(memory.stores, 4);
          }
          if (end - begin == kElements) {
            ASSERT_EQ(memory.stores, 1);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace swizzle
