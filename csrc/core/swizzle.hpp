// Swizzle<Bits, Base, Shift>: the XOR of address bits that every swizzled layout of this project is built from.
#pragma once

#include "arithmetic.hpp"

namespace swizzle {

/// The three numbers of a Swizzle as a value, for layouts that are chosen at run time: what Swizzle<bits, base, shift>
/// says below holds for it. No bits: offsets stay as they are.
struct SwizzleBits {
  int bits = 0;
  int base = 0;
  int shift = 0;

  /// What an offset is XORed with: its source bits, moved to the target.
  SWIZZLE_HOST_DEVICE constexpr int key(int offset) const {
    return ((offset >> (base + shift)) & ((1 << bits) - 1)) << base;
  }
  SWIZZLE_HOST_DEVICE constexpr int apply(int offset) const { return offset ^ key(offset); }

  /// Bytes after which the pattern starts anew: where the XOR acts on addresses instead of on offsets from a tile's
  /// start, as TMA's does, the tile has to start at a multiple of it.
  constexpr int period() const { return bits > 0 ? 1 << (bits + base + shift) : 1; }
};

/// XORs `Bits` bits of an offset, found at bit Base + Shift and up, into the bits at Base and up.
///
///     offset   ... s s s ......... t t t b b b b          (here Bits = 3, Base = 4)
///                  |-----|         |---| |-----|
///                  source, at      target, at    untouched: a chunk of
///                  Base + Shift    Base          2^Base bytes stays whole
///     result   target ^= source
///
/// Offsets are in bytes unless the user of the type says otherwise; the same three integers as CuTe's Swizzle<B, M, S>
/// and, on byte addresses, as TMA's modes (<1,4,3>, <2,4,3>, <3,4,3> are its 32, 64 and 128 byte swizzles).
/// The map is an involution where source and target do not overlap, hence one-to-one.
///
/// Example: Swizzle<5, 2, 5>::apply(row * 128 + col * 4) stores a 32 x 32 tile of 4-byte elements so that both its
/// rows and its columns touch every bank once.
template <int kBits_, int kBase_, int kShift_>
struct Swizzle {
  static constexpr int kBits = kBits_;
  static constexpr int kBase = kBase_;
  static constexpr int kShift = kShift_;

  static_assert(kBits >= 0, "Swizzle: the number of bits cannot be negative");
  static_assert(kBase >= 0, "Swizzle: the base bit cannot be negative");
  static_assert(kShift >= kBits, "Swizzle: source and target bits overlap, so the map would not be its own inverse");
  static_assert(kBase + kShift + kBits <= 31, "Swizzle: the source bits must lie in a 31-bit offset");

  SWIZZLE_HOST_DEVICE static constexpr int key(int offset) { return SwizzleBits{kBits, kBase, kShift}.key(offset); }

  SWIZZLE_HOST_DEVICE static constexpr int apply(int offset) { return offset ^ key(offset); }
};

}  // namespace swizzle
