// Shared-memory layouts: where chunk (row, byte) of a tile is stored. The only home of these formulas, but for the XOR
// itself, which chunk_swizzle.hpp derives.
#pragma once

#include "chunk_swizzle.hpp"

namespace swizzle {

/// Every layout maps (row, byte within the row) of a tile to a byte offset, and says how many bytes `rows` rows span.
/// All are linear over disjoint bits: where rows a and b share no bit, nor bytes x and y, offset(a + b, x + y) is
/// join(offset(a, x), offset(b, y)), by addition or by XOR. So a thread's offsets differ from its first one by constants.
/// kClaimsConflictFree is a claim that a tile program must prove at compile time before it may be used (proof.hpp).

/// Rows follow one another: a column of 128-byte rows lies in a single bank.
template <int kRowBytes>
struct RowMajor {
  static constexpr bool kClaimsConflictFree = false;
  SWIZZLE_HOST_DEVICE static constexpr int offset(int row, int byte) { return row * kRowBytes + byte; }
  SWIZZLE_HOST_DEVICE static constexpr int join(int offset, int step) { return offset + step; }
  SWIZZLE_HOST_DEVICE static constexpr int span_bytes(int rows) { return rows * kRowBytes; }
};

/// Where a byte of a row lies with `pad_bytes` unused bytes after every `rows_per_pad` rows.
SWIZZLE_HOST_DEVICE constexpr int padded_offset(int row_bytes, int pad_bytes, int rows_per_pad, int row, int byte) {
  return row * row_bytes + (row / rows_per_pad) * pad_bytes + byte;
}

/// kPadBytes unused bytes after every kRowsPerPad rows. The pad is at least one word: a pad of one element, as in the
/// habitual [32][33], leaves conflicts of two where elements are smaller than a bank.
template <int kRowBytes, int kPadBytes, int kRowsPerPad>
struct Padded {
  static_assert(kPadBytes >= 4 && kPadBytes % 4 == 0, "Padded: the pad is in whole words of 4 bytes");
  static_assert(is_power_of_two(kRowsPerPad), "Padded: the rows between two pads are a power of two");
  static constexpr bool kClaimsConflictFree = true;
  SWIZZLE_HOST_DEVICE static constexpr int offset(int row, int byte) {
    return padded_offset(kRowBytes, kPadBytes, kRowsPerPad, row, byte);
  }
  SWIZZLE_HOST_DEVICE static constexpr int join(int offset, int step) { return offset + step; }
  SWIZZLE_HOST_DEVICE static constexpr int span_bytes(int rows) { return offset(rows, 0); }
};

/// No byte unused: chunks of a row are exchanged by an XOR with bits of the row number.
template <int kRowBytes, class Xor>
struct Swizzled {
  static_assert(is_power_of_two(kRowBytes) && (1 << (Xor::kBase + Xor::kBits)) <= kRowBytes &&
                    (1 << (Xor::kBase + Xor::kShift)) >= kRowBytes,
                "Swizzled: the XOR must move chunks within a row and be fed by the row number alone");
  using Exchange = Xor;
  static constexpr bool kClaimsConflictFree = true;
  // Equal to Xor::apply(row * kRowBytes + byte); kept apart so that a compiler sees the row's part as a constant from
  // one unrolled step to the next (10 instead of 31 instructions more than RowMajor in a scalar32 kernel).
  SWIZZLE_HOST_DEVICE static constexpr int offset(int row, int byte) {
    return row * kRowBytes + (byte ^ Xor::key(row * kRowBytes));
  }
  SWIZZLE_HOST_DEVICE static constexpr int join(int offset, int step) { return offset ^ step; }
  SWIZZLE_HOST_DEVICE static constexpr int span_bytes(int rows) { return rows * kRowBytes; }
};

/// The layouts that fit a policy. A column access of a program steps kChunkElements rows from lane to lane, so pads
/// come after that many rows and the XOR, the line form of chunk_swizzle.hpp, is fed by the row number divided by it.
/// Chunks below one word (4 bytes) stay together, since lanes that meet in one word do not conflict, and so do as many
/// as lanes that are served together read of one row, where a column has fewer chunks than those lanes.
template <class Policy>
struct LayoutsFor {
  static constexpr int kUnitBytes = max_of(kWordBytes, Policy::kChunkBytes) *
                                    max_of(1, lanes_per_group(Policy::kChunkBytes) / Policy::kChunksPerColumn);

  using Naive = RowMajor<Policy::kRowBytes>;
  using Pad = Padded<Policy::kRowBytes, kUnitBytes, Policy::kChunkElements>;
  using Xor =
      Swizzled<Policy::kRowBytes, typename ChunkedRow<Policy::kRowBytes, kUnitBytes, Policy::kChunkElements>::LineForm>;
};

}  // namespace swizzle
