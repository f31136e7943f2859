// The bank model: how many wavefronts a warp's shared-memory request takes, and how few it could take.
//
// Note [Bank model]
// Shared memory has 32 banks of 4 bytes; the bank of a byte address is (address / 4) mod 32. A request of a warp is
// served in groups of lanes: all 32 for accesses of 1, 2 or 4 bytes, halves for 8, quarters for 16. A group takes as
// many wavefronts as the most *distinct words* that it wants from one bank: lanes that meet in one word share it. The
// least possible is one wavefront a group with a live lane; what exceeds it is called excess, and is what the hardware
// counts as bank conflicts.
//
// Two groups of a load that follow one another (both halves, or both quarters of one half) are served together where
// each of their lanes has the address of its neighbour, lane ^ 1, or each that of lane ^ 2. A lane whose partner is not
// live passes, but for one case that was found and not explained: in the first half of a 16-byte load, if lane 31 is
// live, both partners have to be. Groups of a store are never served together.
//
// The ideal on Nsight Compute's source page is another: the lines of 128 bytes that the live lanes' bytes would fill,
// or what the request takes where that is less. The two differ where few live lanes are spread over the groups of an
// access of 8 or 16 bytes, and where groups are served together.
//
// All of this was measured, on an H200 on 2026-11-30: docs/banks.md says how.
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
  bool is_store = false;
  bool active[kLanes] = {};
  std::int32_t offset[kLanes] = {};
};

/// Wavefronts of a request: `actual` as the offsets make it, `ideal` the least for its width and live lanes, `lines`
/// what Nsight Compute's source page calls ideal.
struct Wavefronts {
  int actual = 0;
  int ideal = 0;
  int lines = 0;
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

// Whether each lane in [first, last) has the offset of the lane `distance` (1 or 2) away, if both are live.
constexpr bool lanes_are_paired(const WarpRequest& request, int first, int last, int distance) {
  const bool needs_both = first == 0 && last < kLanes && request.active[kLanes - 1];
  for (int lane = first; lane < last; ++lane) {
    const int other = lane ^ distance;
    if (!request.active[lane] && !request.active[other]) continue;
    const bool both = request.active[lane] && request.active[other];
    if (both ? request.offset[lane] != request.offset[other] : needs_both) return false;
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

/// What count_bank_loads counts, word by word and for choices made on the host's time: words of one bank beyond the
/// first four are taken to be distinct.
class BankTally {
 public:
  void add(std::int32_t word) {
    const int bank = bank_of(word);
    int& count = count_[bank];
    for (int i = 0; i < count && i < kKnown; ++i) {
      if (seen_[bank][i] == word) return;
    }
    if (count < kKnown) seen_[bank][count] = word;
    if (++count > busiest_) busiest_ = count;
  }
  int busiest() const { return busiest_; }

 private:
  static constexpr int kKnown = 4;
  int count_[kBanks] = {};
  std::int32_t seen_[kBanks][kKnown];
  int busiest_ = 0;
};

/// The groups in which a request's lanes are served: group g is lanes [begin[g], begin[g + 1]).
struct LaneGroups {
  int count = 0;
  int begin[kLanes / 8 + 1] = {};
};

/// The groups of this request by Note [Bank model]: of lanes_per_group lanes, or of twice as many where two are served
/// together.
constexpr LaneGroups lane_groups(const WarpRequest& request) {
  const int group = lanes_per_group(request.width_bytes);
  LaneGroups groups;
  int first = 0;
  while (first < kLanes) {
    const int last = first + 2 * group;
    const bool can_merge = !request.is_store && last <= kLanes && first % (2 * group) == 0;
    const bool merges = can_merge && (detail::lanes_are_paired(request, first, last, 1) ||
                                      detail::lanes_are_paired(request, first, last, 2));
    first += merges ? 2 * group : group;
    groups.begin[++groups.count] = first;
  }
  return groups;
}

/// Wavefronts of one request by Note [Bank model]. Offsets are in bytes and multiples of the width, which is 1, 2, 4, 8
/// or 16. Example: 16 bytes a lane at 16 * lane takes 4 wavefronts, none in excess; at 128 * lane it takes 32, 28 in
/// excess.
constexpr Wavefronts count_wavefronts(const WarpRequest& request) {
  const LaneGroups groups = lane_groups(request);
  Wavefronts result;
  for (int g = 0; g < groups.count; ++g) {
    const int busiest = count_bank_loads(request, groups.begin[g], groups.begin[g + 1]).busiest;
    result.actual += busiest;
    result.ideal += busiest > 0 ? 1 : 0;
  }
  int live_bytes = 0;
  for (const bool active : request.active) live_bytes += active ? request.width_bytes : 0;
  const int lines = (live_bytes + kLineBytes - 1) / kLineBytes;
  result.lines = lines < result.actual ? lines : result.actual;
  return result;
}

/// The least wavefronts that a request can take in any layout that keeps aligned chunks of `chunk_bytes` (a power of
/// two) whole. Its offsets only say which words of which chunk a lane wants: take those of the row-major tile. The
/// words at one place within chunks have kLineBytes / chunk_bytes banks between them, since chunks are aligned; what a
/// group wants of them beyond that has to wait. Example: 4 bytes a lane, from 32 chunks of 16 bytes, take at least 4.
constexpr int least_wavefronts(const WarpRequest& request, int chunk_bytes) {
  if (chunk_bytes < kWordBytes) return count_wavefronts(request).ideal;
  const int places = (chunk_bytes < kLineBytes ? chunk_bytes : kLineBytes) / kWordBytes;
  const int banks_of_place = kBanks / places;
  const LaneGroups groups = lane_groups(request);
  int result = 0;
  for (int g = 0; g < groups.count; ++g) {
    const int words = count_bank_loads(request, groups.begin[g], groups.begin[g + 1], places).busiest;
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
    sum.lines += one.lines;
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
