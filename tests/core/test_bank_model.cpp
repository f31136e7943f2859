// Claims about the bank model: published counters and facts that any tool on shared-memory banks must reproduce.
#include <gtest/gtest.h>

#include <vector>

#include "core/bank_model.hpp"

namespace swizzle {
namespace {

template <class Offset>
constexpr bool takes(int width_bytes, Offset offset, int actual, int ideal) {
  const Wavefronts wavefronts = count_wavefronts(make_request(width_bytes, offset));
  return wavefronts.actual == actual && wavefronts.ideal == ideal && wavefronts.excess() == actual - ideal;
}

// Written once, checked by the compiler and again at run time.
constexpr bool consecutive_accesses_have_no_excess() {
  return takes(
             1, [](int lane) { return lane; }, 1, 1) &&
         takes(
             2, [](int lane) { return 2 * lane; }, 1, 1) &&
         takes(
             4, [](int lane) { return 4 * lane; }, 1, 1) &&
         takes(8, [](int lane) { return 8 * lane; }, 2, 2) && takes(16, [](int lane) { return 16 * lane; }, 4, 4);
}
static_assert(consecutive_accesses_have_no_excess());

TEST(BankModel, ConsecutiveAccessesHaveNoExcess) { EXPECT_TRUE(consecutive_accesses_have_no_excess()); }

TEST(BankModel, AColumnOfLinesTakesOneWavefrontALane) {
  EXPECT_TRUE(takes(4, [](int lane) { return 128 * lane; }, 32, 1));
  EXPECT_TRUE(takes(8, [](int lane) { return 128 * lane; }, 32, 2));
  EXPECT_TRUE(takes(16, [](int lane) { return 128 * lane; }, 32, 4));
}

TEST(BankModel, LanesThatMeetInOneWordShareIt) {
  EXPECT_TRUE(takes(4, [](int) { return 64; }, 1, 1));
  EXPECT_TRUE(takes(1, [](int lane) { return lane % 4; }, 1, 1));
  EXPECT_TRUE(takes(2, [](int lane) { return 128 * (lane / 2) + 2 * (lane % 2); }, 16, 1));
}

TEST(BankModel, PairedLanesMergeTwoGroups) {
  EXPECT_TRUE(takes(8, [](int lane) { return 8 * (lane / 2); }, 1, 1));
  EXPECT_TRUE(takes(16, [](int lane) { return 16 * (lane / 2); }, 2, 2));
  EXPECT_TRUE(takes(16, [](int) { return 0; }, 2, 2));
}

TEST(BankModel, NeighboursThatAreNotLiveLetGroupsMerge) {
  const auto even_lanes = [](int lane) { return lane % 2 == 0 ? 8 * (lane / 2) : -1; };
  EXPECT_TRUE(takes(8, even_lanes, 1, 1));
  EXPECT_TRUE(takes(16, [](int lane) { return lane == 17 ? -1 : 16 * (lane / 2); }, 2, 2));
  EXPECT_TRUE(takes(16, [](int lane) { return lane % 2 == 0 ? 16 * (lane / 2) : -1; }, 2, 2));
}

// As an H200 showed, for whatever reason.
TEST(BankModel, TheFirstHalfOfSixteenByteLoadsNeedsBothPartnersIfTheLastLaneIsLive) {
  EXPECT_TRUE(takes(16, [](int lane) { return lane == 1 ? -1 : 16 * (lane / 2); }, 3, 3));
  EXPECT_TRUE(takes(16, [](int lane) { return lane % 2 == 1 ? 16 * (lane / 2) : -1; }, 3, 3));
  EXPECT_TRUE(takes(16, [](int lane) { return lane == 1 || lane == 31 ? -1 : 16 * (lane / 2); }, 2, 2));
  EXPECT_TRUE(takes(16, [](int lane) { return lane < 2 ? -1 : 16 * (lane / 2); }, 2, 2)) << "a pair may be missing";
  EXPECT_TRUE(takes(8, [](int lane) { return lane == 1 ? -1 : 8 * (lane / 2); }, 1, 1)) << "8 bytes do not";
}

TEST(BankModel, EachHalfOfSixteenByteLoadsMergesByItself) {
  const auto pairs_then_rows = [](int lane) { return lane < 16 ? 16 * (lane / 2) : 16 * lane; };
  EXPECT_TRUE(takes(16, pairs_then_rows, 3, 3));
  EXPECT_TRUE(takes(16, [](int lane) { return lane < 16 ? 16 * (lane / 2) : 16 * (lane / 4 * 2 + lane % 2); }, 2, 2));
  EXPECT_TRUE(takes(16, [](int lane) { return lane < 8 ? 16 * (lane / 2) : 16 * (lane / 4 * 2 + lane % 2); }, 3, 3));
  const LaneGroups groups = lane_groups(make_request(16, pairs_then_rows));
  EXPECT_EQ(std::vector<int>(groups.begin, groups.begin + groups.count + 1), (std::vector<int>{0, 16, 24, 32}));
}

TEST(BankModel, LanesTwoApartMergeGroupsAndLanesThreeApartDoNot) {
  EXPECT_TRUE(takes(8, [](int lane) { return 8 * (lane / 4 * 2 + lane % 2); }, 1, 1));
  EXPECT_TRUE(takes(8, [](int lane) { return 8 * (lane / 4 * 2 + (lane % 4 < 2 ? lane % 2 : 1 - lane % 2)); }, 2, 2));
}

TEST(BankModel, GroupsOfAStoreNeverMerge) {
  for (const int width : {8, 16}) {
    WarpRequest request = make_request(width, [&](int lane) { return width * (lane / 2); });
    request.is_store = true;
    EXPECT_EQ(lane_groups(request).count, kLanes / lanes_per_group(width));
    EXPECT_EQ(count_wavefronts(request).actual, width / 4);
    EXPECT_EQ(count_wavefronts(request).excess(), 0);
  }
}

// Nsight Compute's ideal, in sums that it showed on an H200.
TEST(BankModel, LinesAreWhatTheBytesOfTheLiveLanesFill) {
  const auto lines = [](int width, auto offset) { return count_wavefronts(make_request(width, offset)).lines; };
  EXPECT_EQ(lines(16, [](int lane) { return 128 * lane; }), 4);
  EXPECT_EQ(lines(8, [](int lane) { return lane % 8 == 0 ? 8 * lane : -1; }), 1);
  EXPECT_EQ(lines(16, [](int lane) { return lane % 2 == 0 ? 16 * lane : -1; }), 2);
  EXPECT_EQ(lines(16, [](int lane) { return 16 * (lane / 2); }), 2) << "no more than the request takes";
  EXPECT_EQ(lines(8, [](int lane) { return 128 * (lane / 2); }), 2) << "of two groups served as one";
  EXPECT_EQ(lines(4, [](int) { return -1; }), 0);
}

TEST(BankModel, PairedLanesAreServedInGroupsTwiceAsLarge) {
  const auto groups_of = [](int width, auto offset) { return lane_groups(make_request(width, offset)).count; };
  EXPECT_EQ(groups_of(4, [](int) { return 0; }), 1);
  EXPECT_EQ(groups_of(8, [](int lane) { return 8 * lane; }), 2);
  EXPECT_EQ(groups_of(8, [](int lane) { return 8 * (lane / 2); }), 1);
  EXPECT_EQ(groups_of(16, [](int lane) { return 16 * lane; }), 4);
  EXPECT_EQ(groups_of(16, [](int lane) { return 16 * (lane / 2); }), 2);
}

TEST(BankModel, TheStrideOfWordsDecidesTheWays) {
  for (int stride = 1; stride < 200; ++stride) {
    int ways = 1;
    while (ways < kBanks && stride % (2 * ways) == 0) ways *= 2;
    EXPECT_TRUE(takes(4, [&](int lane) { return 4 * stride * lane; }, ways, 1)) << "stride " << stride;
  }
}

TEST(BankModel, InactiveLanesAndGroupsCostNothing) {
  WarpRequest request = make_request(16, [](int lane) { return 128 * lane; });
  for (int lane = 8; lane < kLanes; ++lane) request.active[lane] = false;
  EXPECT_EQ(count_wavefronts(request).actual, 8);
  EXPECT_EQ(count_wavefronts(request).ideal, 1);
  for (bool& active : request.active) active = false;
  EXPECT_EQ(count_wavefronts(request).actual, 0);
  EXPECT_EQ(count_wavefronts(request).ideal, 0);
}

TEST(BankModel, ABaseOffsetChangesNothing) {
  for (int base = 0; base < 256; base += 16) {
    EXPECT_TRUE(takes(16, [&](int lane) { return base + 16 * lane; }, 4, 4));
    EXPECT_TRUE(takes(4, [&](int lane) { return base + 8 * lane; }, 2, 1));
  }
}

// Which threads make up a warp decides the count: 512 threads over a tile of floats with a pad of one.
constexpr int store_16_wide(int x, int y, int) { return 4 * (17 * y + x); }
constexpr int load_16_wide(int x, int y, int) { return 4 * (17 * ((16 * y + x) % 32) + (16 * y + x) / 32); }
constexpr int store_32_wide(int x, int y, int) { return 4 * (33 * y + x); }
constexpr int load_16_high(int x, int y, int) { return 4 * (33 * ((32 * y + x) % 16) + (32 * y + x) / 16); }

TEST(BankModel, WarpsFollowTheLinearThreadIndex) {
  static_assert(count_block_wavefronts(4, {16, 32}, store_16_wide).actual == 2 * 16, "two rows a warp");
  static_assert(count_block_wavefronts(4, {16, 32}, load_16_wide).actual == 16);
  static_assert(count_block_wavefronts(4, {32, 16}, store_32_wide).actual == 16);
  static_assert(count_block_wavefronts(4, {32, 16}, load_16_high).actual == 2 * 16, "two columns a warp");
  for (const BlockShape& block : {BlockShape{512}, BlockShape{16, 32}, BlockShape{8, 8, 8}, BlockShape{1, 1, 512}}) {
    for (int warp = 0; warp < block.warps(); ++warp) {
      const WarpRequest request = make_block_request(
          4, block, warp, [&](int x, int y, int z) { return 4 * (x + block.x * (y + block.y * z)); });
      for (int lane = 0; lane < kLanes; ++lane) ASSERT_EQ(request.offset[lane], 4 * (kLanes * warp + lane));
    }
  }
}

TEST(BankModel, AnIncompleteWarpHasInactiveLanes) {
  constexpr BlockShape kBlock{5, 8};
  static_assert(kBlock.threads() == 40 && kBlock.warps() == 2);
  const WarpRequest last = make_block_request(16, kBlock, 1, [](int x, int y, int) { return 128 * (5 * y + x); });
  for (int lane = 0; lane < kLanes; ++lane) EXPECT_EQ(last.active[lane], lane < 8);
  EXPECT_EQ(count_wavefronts(last).actual, 8);
  EXPECT_EQ(count_wavefronts(last).ideal, 1);
}

TEST(BankModel, ANegativeOffsetLeavesALaneOut) {
  const WarpRequest request = make_request(4, [](int lane) { return lane % 2 == 0 ? 128 * lane : -1; });
  EXPECT_EQ(count_wavefronts(request).actual, 16);
  EXPECT_FALSE(request.active[1]);
}

// The gate for builds, with a function, a lambda, a block, and accesses that conflict.
constexpr int padded_column(int lane) { return 132 * lane; }
constexpr int naive_column(int lane) { return 128 * lane; }
constexpr auto chunk_row = [](int lane) { return 16 * lane; };

TEST(BankModel, AnyConstexprIndexCanBeHeldToTheModelAtCompileTime) {
  static_assert(is_conflict_free_v<WarpAccess<padded_column, 4>>);
  static_assert(!is_conflict_free_v<WarpAccess<naive_column, 4>>);
  static_assert(is_conflict_free_v<WarpAccess<+chunk_row, 16>>);
  static_assert(is_conflict_free_v<BlockAccess<load_16_wide, 4, 16, 32>>);
  static_assert(!is_conflict_free_v<BlockAccess<store_16_wide, 4, 16, 32>>);
  static_assert(BlockAccess<store_16_wide, 4, 16, 32>::wavefronts().excess() == 16);
}

TEST(BankModel, TheLoadsOfTheBanksAddUpToTheWavefronts) {
  const BankLoads loads = count_bank_loads(make_request(4, [](int lane) { return 8 * lane; }), 0, kLanes);
  for (int bank = 0; bank < kBanks; ++bank) EXPECT_EQ(loads.words[bank], bank % 2 == 0 ? 2 : 0);
  EXPECT_EQ(loads.busiest, 2);
  EXPECT_EQ(count_bank_loads(make_request(4, [](int) { return -1; }), 0, kLanes).busiest, 0);
}

// While chunks of 16 bytes stay whole, a column of words has 8 banks; what no layout can do better, one can reach.
TEST(BankModel, AWholeChunkBoundsWhatAnyLayoutCanReach) {
  const WarpRequest column = make_request(4, naive_column);
  EXPECT_EQ(least_wavefronts(column, 4), 1);
  EXPECT_EQ(least_wavefronts(column, 8), 2);
  EXPECT_EQ(least_wavefronts(column, 16), 4);
  EXPECT_EQ(least_wavefronts(column, 128), 32);
  EXPECT_EQ(least_wavefronts(column, 1024), 32);
  EXPECT_EQ(least_wavefronts(make_request(4, [](int lane) { return 4 * lane; }), 16), 1) << "a row of whole chunks";
  EXPECT_EQ(least_wavefronts(make_request(1, [](int lane) { return 32 * lane; }), 1), 1);
  EXPECT_EQ(least_wavefronts(make_request(1, [](int lane) { return 32 * lane; }), 16), 4);
  EXPECT_EQ(least_wavefronts(make_request(8, [](int lane) { return 256 * lane; }), 16), 4) << "8 banks of 16 a half";
  EXPECT_EQ(least_wavefronts(make_request(16, naive_column), 16), 4);
  EXPECT_EQ(least_wavefronts(make_request(4, [](int) { return -1; }), 16), 0);
}

TEST(BankModel, NoLayoutTakesFewerWavefrontsThanTheBound) {
  std::uint32_t state = 1;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  for (const int width : {1, 2, 4, 8, 16}) {
    for (int round = 0; round < 200; ++round) {
      const WarpRequest request =
          make_request(width, [&](int) { return next() % 8 == 0 ? -1 : static_cast<int>(next() % 512) * width; });
      for (const int chunk : {width, 16, 64}) {
        EXPECT_LE(least_wavefronts(request, chunk), count_wavefronts(request).actual);
        EXPECT_GE(least_wavefronts(request, chunk), count_wavefronts(request).ideal);
      }
    }
  }
}

}  // namespace
}  // namespace swizzle
