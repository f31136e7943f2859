// Swizzle<Bits, Base, Shift>: the XOR of address bits that every swizzled layout of this project is built from.
#pragma once

#include "arithmetic.hpp"

namespace swizzle {

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

  static constexpr int kMask = (1 << kBits) - 1;

  /// What an offset is XORed with: its source bits, moved to the target.
  SWIZZLE_HOST_DEVICE static constexpr int key(int offset) { return ((offset >> (kBase + kShift)) & kMask) << kBase; }

  SWIZZLE_HOST_DEVICE static constexpr int apply(int offset) { return offset ^ key(offset); }
};

}  // namespace swizzle
