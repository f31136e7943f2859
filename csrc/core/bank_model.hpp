// The bank model: how many wavefronts a warp's shared-memory request takes, and how few it could take.
//
// Note [Bank model]
// Shared memory has 32 banks of 4 bytes; the bank of a byte address is (address / 4) mod 32. A request of a warp is
// served in groups of lanes: all 32 for accesses of 1, 2 or 4 bytes, halves for 8, quarters for 16. A group takes as
// many wavefronts as the most *distinct words* that it wants from one bank: lanes that meet in one word share it. The
// least possible is one wavefront a group with a live lane; what exceeds it is called excess, and is what Nsight
// Compute counts as bank conflicts. Two groups are served together where each lane's address equals that of the lane
// beside it (or two further) across the warp.
#pragma once

#include <cstdint>

#include "config.hpp"

namespace swizzle {

inline constexpr int kLanes = 32;
inline constexpr int kBanks = 32;
inline constexpr int kWordBytes = 4;
inline constexpr int kLineBytes = kBanks * kWordBytes;

/// One shared-memory instruction of one warp: a byte offset for each lane that takes part.
struct WarpRequest {
  int width_bytes = 4;
  bool active[kLanes] = {};
  std::int32_t offset[kLanes] = {};
};

/// Wavefronts of a request: `actual` as the offsets make it, `ideal` the least for its width and live lanes.
struct Wavefronts {
  int actual = 0;
  int ideal = 0;
  constexpr int excess() const { return actual - ideal; }
};

/// Lanes that are served together: 32, 16 or 8.
constexpr int lanes_per_group(int width_bytes) {
  return width_bytes <= kWordBytes ? kLanes : kLanes * kWordBytes / width_bytes;
}

/// Words that one lane's access lies in: an access wider than a word spans several.
constexpr int words_per_access(int width_bytes) { return width_bytes > kWordBytes ? width_bytes / kWordBytes : 1; }

/// The bank of a word, which is a byte offset divided by kWordBytes.
constexpr int bank_of(std::int32_t word) { return word % kBanks; }

namespace detail {

// Whether every live lane shares its offset with the live lane `distance` (1 or 2) away.
constexpr bool lanes_are_paired(const WarpRequest& request, int distance) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const int other = lane ^ distance;
    if (request.active[lane] != request.active[other]) return false;
    if (request.active[lane] && request.offset[lane] != request.offset[other]) return false;
  }
  return true;
}

// Most distinct words that lanes [first, last) want from one bank; 0 without a live lane.
constexpr int busiest_bank(const WarpRequest& request, int first, int last) {
  int count[kBanks] = {};
  std::int32_t seen[kBanks][kLanes] = {};
  int busiest = 0;
  for (int lane = first; lane < last; ++lane) {
    if (!request.active[lane]) continue;
    for (int i = 0; i < words_per_access(request.width_bytes); ++i) {
      const std::int32_t word = request.offset[lane] / kWordBytes + i;
      const int bank = bank_of(word);
      bool known = false;
      for (int j = 0; j < count[bank] && !known; ++j) known = seen[bank][j] == word;
      if (!known) seen[bank][count[bank]++] = word;
      if (count[bank] > busiest) busiest = count[bank];
    }
  }
  return busiest;
}

}  // namespace detail

/// Lanes of this request that are served together: twice lanes_per_group, at most all, where neighbours share addresses.
constexpr int lanes_served_together(const WarpRequest& request) {
  const int group = lanes_per_group(request.width_bytes);
  const bool is_paired = detail::lanes_are_paired(request, 1) || detail::lanes_are_paired(request, 2);
  return is_paired && group < kLanes ? 2 * group : group;
}

/// Wavefronts of one request by Note [Bank model]. Offsets are in bytes and multiples of the width, which is 1, 2, 4, 8
/// or 16. Example: 16 bytes a lane at 16 * lane takes 4 wavefronts, none in excess; at 128 * lane it takes 32, 28 in
/// excess.
constexpr Wavefronts count_wavefronts(const WarpRequest& request) {
  const int group = lanes_served_together(request);
  Wavefronts result;
  for (int first = 0; first < kLanes; first += group) {
    const int busiest = detail::busiest_bank(request, first, first + group);
    result.actual += busiest;
    result.ideal += busiest > 0 ? 1 : 0;
  }
  return result;
}

}  // namespace swizzle
