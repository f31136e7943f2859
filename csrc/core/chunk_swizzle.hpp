// The chunk-exchange formula for a tile in shared memory: from the sizes of a row and of a chunk to the Swizzle, the
// chunk to choose, and constexpr checks of what the formula promises. docs/formula.md derives it.
#pragma once

#include "bank_model.hpp"
#include "swizzle.hpp"

namespace swizzle {

/// The longest row: every bit that the formula reads then lies below bit 31 of an offset.
inline constexpr int kMaxSwizzledRowBytes = 1 << 15;

/// Whether the formula is defined for rows of `cols` elements whose chunks of `chunk_bytes` stay whole. ChunkedTile
/// refuses exactly the others, with the reason.
constexpr bool is_chunked_tile(int element_bytes, int chunk_bytes, int cols) {
  return is_power_of_two(element_bytes) && is_power_of_two(chunk_bytes) && is_power_of_two(cols) &&
         element_bytes <= chunk_bytes && chunk_bytes <= kLineBytes && cols <= kMaxSwizzledRowBytes / element_bytes &&
         chunk_bytes <= cols * element_bytes;
}

/// The article's form for rows of `row_bytes` in chunks of `chunk_bytes`, both powers of two: chunk c of row y goes to
/// place c ^ (y mod chunks in a row). It is fed by the row number and moves chunks across the whole row. Where a column
/// access steps rows_per_step rows from lane to lane, the row number is divided by that first.
constexpr SwizzleBits row_form(int row_bytes, int chunk_bytes, int rows_per_step = 1) {
  const int chunk_bits = log2_floor(chunk_bytes);
  return {log2_floor(row_bytes) - chunk_bits, chunk_bits, log2_floor(row_bytes * rows_per_step) - chunk_bits};
}

/// The line form: the same XOR, fed by the number of the 128-byte line where rows are shorter than a line (rows that
/// share a line have different banks already), and kept within a line where rows are longer (a chunk one line farther
/// has the same banks). With chunks of 16 bytes and rows of 32, 64 and 128 bytes these are TMA's swizzle modes of those
/// sizes.
constexpr SwizzleBits line_form(int row_bytes, int chunk_bytes, int rows_per_step = 1) {
  const int chunk_bits = log2_floor(chunk_bytes);
  return {log2_floor(min_of(kLineBytes, row_bytes)) - chunk_bits, chunk_bits,
          log2_floor(max_of(kLineBytes, row_bytes * rows_per_step)) - chunk_bits};
}

/// TMA's swizzle mode of 32, 64 or 128 bytes, which acts on shared-memory addresses: the line form of rows of that
/// length in chunks of 16 bytes.
constexpr SwizzleBits tma_form(int mode_bytes) { return line_form(mode_bytes, 16); }

/// A row of kRowBytes cut into chunks of kChunkBytes, and the two XORs that exchange its chunks, as types.
template <int kRowBytes, int kChunkBytes, int kRowsPerStep = 1>
struct ChunkedRow {
  static_assert(is_power_of_two(kChunkBytes) && kChunkBytes <= kLineBytes,
                "ChunkedRow: a chunk has a power of two of bytes, at most the 128 of a line");
  static_assert(is_power_of_two(kRowBytes) && kRowBytes <= kMaxSwizzledRowBytes,
                "ChunkedRow: a row has a power of two of bytes, at most 32768; the XOR of two chunk numbers may leave "
                "a row of any other length");
  static_assert(kChunkBytes <= kRowBytes, "ChunkedRow: a chunk is not longer than the row that it lies in");
  static_assert(is_power_of_two(kRowsPerStep), "ChunkedRow: the rows of a step are a power of two");

  static constexpr SwizzleBits kRowForm = row_form(kRowBytes, kChunkBytes, kRowsPerStep);
  static constexpr SwizzleBits kLineForm = line_form(kRowBytes, kChunkBytes, kRowsPerStep);
  using RowForm = Swizzle<kRowForm.bits, kRowForm.base, kRowForm.shift>;
  using LineForm = Swizzle<kLineForm.bits, kLineForm.base, kLineForm.shift>;
};

/// A tile of elements with kCols to a row. A chunk is what must stay contiguous and aligned: the widest vector that
/// any reader or writer of the tile moves. Apply a form to byte offsets from the tile's start, on both sides.
///
/// Example, for a tile `T a[NY][NX]` and vectors TC:
///   using Xor = ChunkedTile<sizeof(T), sizeof(TC), NX>::LineForm;
///   int byte = Xor::apply((y * NX + x) * sizeof(T));   // or Swizzled<NX * sizeof(T), Xor> of layout.hpp
template <int kElementBytes_, int kChunkBytes_, int kCols_>
struct ChunkedTile {
  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kChunkBytes = kChunkBytes_;
  static constexpr int kCols = kCols_;

  static_assert(is_power_of_two(kElementBytes), "ChunkedTile: an element has a power of two of bytes");
  static_assert(kElementBytes <= kChunkBytes, "ChunkedTile: a chunk holds at least one whole element");
  static_assert(is_power_of_two(kCols),
                "ChunkedTile: the number of columns is a power of two, or the XOR would lose elements");

  static constexpr int kRowBytes = kCols * kElementBytes;
  static constexpr int kChunkElements = kChunkBytes / kElementBytes;
  static constexpr int kChunksPerRow = kRowBytes / kChunkBytes;

  using RowForm = typename ChunkedRow<kRowBytes, kChunkBytes>::RowForm;
  using LineForm = typename ChunkedRow<kRowBytes, kChunkBytes>::LineForm;
};

/// The same in the article's terms: `T array[][NX]`, whose chunks TC stay whole. Its SWIZZLE_SIZE is kRowBytes.
template <class T, class TC, int NX>
using ArrayTile = ChunkedTile<sizeof(T), sizeof(TC), NX>;

/// The chunk with which the line form makes both accesses of a scalar transpose, row write and column read, free of
/// conflicts in every tile of at least a line: one word or one element, whichever is wider. A tile with fewer rows than
/// the lanes served together makes a group read several columns, which stay apart if that many words or elements stay
/// together. Precondition: rows and element_bytes are powers of two.
constexpr int scalar_chunk_bytes(int element_bytes, int rows) {
  return max_of(kWordBytes, element_bytes) * max_of(1, lanes_per_group(element_bytes) / rows);
}

/// The tile of a scalar transpose, with that chunk: its LineForm is the XOR to use.
template <int kElementBytes, int kRows, int kCols>
struct ScalarTile : ChunkedTile<kElementBytes, scalar_chunk_bytes(kElementBytes, kRows), kCols> {
  static_assert(is_power_of_two(kRows), "ScalarTile: the number of rows is a power of two");
};

/// What a layout does to the chunks of a tile of kRows rows, whatever its formula. A layout has offset(row, byte) and
/// span_bytes(rows), as in layout.hpp.
template <class Layout, int kRows, int kRowBytes, int kChunkBytes>
struct ChunkPlacement {
  /// Property 1: no two chunks share a place, and none lies outside the tile's memory.
  static constexpr bool is_one_to_one() {
    bool taken[Layout::span_bytes(kRows) / kChunkBytes] = {};
    for (int row = 0; row < kRows; ++row) {
      for (int byte = 0; byte < kRowBytes; byte += kChunkBytes) {
        const int offset = Layout::offset(row, byte);
        if (offset < 0 || offset + kChunkBytes > Layout::span_bytes(kRows)) return false;
        if (taken[offset / kChunkBytes]) return false;
        taken[offset / kChunkBytes] = true;
      }
    }
    return true;
  }

  /// Property 2: each chunk is aligned to its size and its bytes follow one another, so that vectors stay legal.
  static constexpr bool keeps_chunks_whole() {
    for (int row = 0; row < kRows; ++row) {
      for (int byte = 0; byte < kRowBytes; ++byte) {
        const int chunk_offset = Layout::offset(row, byte - byte % kChunkBytes);
        if (chunk_offset % kChunkBytes != 0 || Layout::offset(row, byte) != chunk_offset + byte % kChunkBytes)
          return false;
      }
    }
    return true;
  }

  /// Property 3: at how many places modulo kWindowBytes the chunk at `byte` lies in `rows` rows from `first_row` on.
  /// The window of a row is the article's measure; that of a line is what the banks see.
  template <int kWindowBytes>
  static constexpr int spread(int byte, int first_row, int rows) {
    bool seen[kWindowBytes / kChunkBytes] = {};
    int distinct = 0;
    for (int row = first_row; row < first_row + rows; ++row) {
      bool& place = seen[Layout::offset(row, byte) % kWindowBytes / kChunkBytes];
      distinct += place ? 0 : 1;
      place = true;
    }
    return distinct;
  }
};

}  // namespace swizzle
