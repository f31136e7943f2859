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

}  // namespace detail

/// Distinct words that a group of lanes wants from each bank.
struct BankLoads {
  int words[kBanks] = {};
  /// Wavefronts of the group: the words of its busiest bank; 0 without a live lane.
  int busiest = 0;
};

/// The bank loads of lanes [first, last) of a request. Fewer banks than there are show how words fold onto them.
constexpr BankLoads count_bank_loads(const WarpRequest& request, int first, int last, int banks = kBanks) {
  BankLoads loads;
  std::int32_t seen[kBanks][kLanes] = {};
  for (int lane = first; lane < last; ++lane) {
    if (!request.active[lane]) continue;
    for (int i = 0; i < words_per_access(request.width_bytes); ++i) {
      const std::int32_t word = request.offset[lane] / kWordBytes + i;
      const int bank = word % banks;
      int& count = loads.words[bank];
      bool known = false;
      for (int j = 0; j < count && !known; ++j) known = seen[bank][j] == word;
      if (!known) seen[bank][count++] = word;
      if (count > loads.busiest) loads.busiest = count;
    }
  }
  return loads;
}

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
    const int busiest = count_bank_loads(request, first, first + group).busiest;
    result.actual += busiest;
    result.ideal += busiest > 0 ? 1 : 0;
  }
  return result;
}

/// The least wavefronts that a request can take in any layout that keeps aligned chunks of `chunk_bytes` (a power of
/// two) whole. Its offsets only say which words of which chunk a lane wants: take those of the row-major tile. The words
/// at one place within chunks have kLineBytes / chunk_bytes banks between them, since chunks are aligned; what a group
/// wants of them beyond that has to wait. Example: 4 bytes a lane, from 32 chunks of 16 bytes, take at least 4.
constexpr int least_wavefronts(const WarpRequest& request, int chunk_bytes) {
  if (chunk_bytes < kWordBytes) return count_wavefronts(request).ideal;
  const int places = (chunk_bytes < kLineBytes ? chunk_bytes : kLineBytes) / kWordBytes;
  const int banks_of_place = kBanks / places;
  const int group = lanes_served_together(request);
  int result = 0;
  for (int first = 0; first < kLanes; first += group) {
    const int words = count_bank_loads(request, first, first + group, places).busiest;
    result += (words + banks_of_place - 1) / banks_of_place;
  }
  return result;
}

/// The request of a warp whose lane `lane` accesses the byte offset index(lane); a negative one leaves the lane out.
/// `index` is any callable, constexpr if the result is to be.
template <class Index>
constexpr WarpRequest make_request(int width_bytes, const Index& index) {
  WarpRequest request;
  request.width_bytes = width_bytes;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::int32_t offset = index(lane);
    request.active[lane] = offset >= 0;
    request.offset[lane] = offset;
  }
  return request;
}

/// The threads of a block. A warp is 32 of them that follow one another in the linear index, x fastest, whatever the
/// shape: in a block 16 wide it covers two rows.
struct BlockShape {
  int x = kLanes;
  int y = 1;
  int z = 1;
  constexpr int threads() const { return x * y * z; }
  constexpr int warps() const { return (threads() + kLanes - 1) / kLanes; }
};

/// The request of one warp of a block whose thread (x, y, z) accesses the byte offset index(x, y, z); lanes that the
/// last warp lacks take no part.
template <class Index>
constexpr WarpRequest make_block_request(int width_bytes, const BlockShape& block, int warp, const Index& index) {
  return make_request(width_bytes, [&](int lane) -> std::int32_t {
    const int thread = warp * kLanes + lane;
    if (thread >= block.threads()) return -1;
    return index(thread % block.x, thread / block.x % block.y, thread / (block.x * block.y));
  });
}

/// Wavefronts of all warps of a block for one access. Example: rows of 16 floats at a pitch of 17, written by 16 x 32
/// threads, take two wavefronts a warp:
///   count_block_wavefronts(4, {16, 32}, [](int x, int y, int) { return 4 * (17 * y + x); })    // 32, ideal 16
template <class Index>
constexpr Wavefronts count_block_wavefronts(int width_bytes, const BlockShape& block, const Index& index) {
  Wavefronts sum;
  for (int warp = 0; warp < block.warps(); ++warp) {
    const Wavefronts one = count_wavefronts(make_block_request(width_bytes, block, warp, index));
    sum.actual += one.actual;
    sum.ideal += one.ideal;
  }
  return sum;
}

/// One access of a warp as a type: lane `lane` moves kWidthBytes at the byte offset kIndex(lane), a constexpr function.
template <auto kIndex, int kWidthBytes>
struct WarpAccess {
  static constexpr Wavefronts wavefronts() { return count_wavefronts(make_request(kWidthBytes, kIndex)); }
};

/// One access of a block of kX x kY x kZ threads as a type; kIndex(x, y, z) is a constexpr function.
template <auto kIndex, int kWidthBytes, int kX, int kY = 1, int kZ = 1>
struct BlockAccess {
  static constexpr Wavefronts wavefronts() { return count_block_wavefronts(kWidthBytes, {kX, kY, kZ}, kIndex); }
};

/// Whether an access takes no more wavefronts than its width asks for, as a gate for a build:
///   constexpr int column(int lane) { return Layout::offset(lane, 0); }
///   static_assert(is_conflict_free_v<WarpAccess<column, 4>>);
/// A captureless lambda serves as WarpAccess<+lambda, 4>. proof.hpp answers for whole tile programs.
template <class Access, class = void>
inline constexpr bool is_conflict_free_v = Access::wavefronts().excess() == 0;

}  // namespace swizzle
