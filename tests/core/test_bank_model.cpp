// Claims about the bank model: published counters and facts that any tool on shared-memory banks must reproduce.
#include <gtest/gtest.h>

#include "core/bank_model.hpp"

namespace swizzle {
namespace {

template <class Offset>
constexpr WarpRequest request_of(int width_bytes, Offset offset) {
  WarpRequest request;
  request.width_bytes = width_bytes;
  for (int lane = 0; lane < kLanes; ++lane) {
    request.active[lane] = true;
    request.offset[lane] = offset(lane);
  }
  return request;
}

template <class Offset>
constexpr bool takes(int width_bytes, Offset offset, int actual, int ideal) {
  const Wavefronts wavefronts = count_wavefronts(request_of(width_bytes, offset));
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

TEST(BankModel, PairedLanesAreServedInGroupsTwiceAsLarge) {
  EXPECT_EQ(lanes_served_together(request_of(4, [](int) { return 0; })), 32);
  EXPECT_EQ(lanes_served_together(request_of(8, [](int lane) { return 8 * lane; })), 16);
  EXPECT_EQ(lanes_served_together(request_of(8, [](int lane) { return 8 * (lane / 2); })), 32);
  EXPECT_EQ(lanes_served_together(request_of(16, [](int lane) { return 16 * lane; })), 8);
  EXPECT_EQ(lanes_served_together(request_of(16, [](int lane) { return 16 * (lane / 2); })), 16);
}

TEST(BankModel, TheStrideOfWordsDecidesTheWays) {
  for (int stride = 1; stride < 200; ++stride) {
    int ways = 1;
    while (ways < kBanks && stride % (2 * ways) == 0) ways *= 2;
    EXPECT_TRUE(takes(4, [&](int lane) { return 4 * stride * lane; }, ways, 1)) << "stride " << stride;
  }
}

TEST(BankModel, InactiveLanesAndGroupsCostNothing) {
  WarpRequest request = request_of(16, [](int lane) { return 128 * lane; });
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

// Which threads make up a warp decides the count: a block of 16 x 32 threads over rows of 16 floats, pitch 17.
TEST(BankModel, WarpsFollowTheLinearThreadIndex) {
  EXPECT_TRUE(takes(4, [](int lane) { return 4 * (lane / 16 * 17 + lane % 16); }, 2, 1));  // row store, 16 wide
  EXPECT_TRUE(takes(4, [](int lane) { return 4 * (lane * 17); }, 1, 1));                   // column load of 32 rows
  EXPECT_TRUE(takes(4, [](int lane) { return 4 * (lane * 33); }, 1, 1));                   // 32 x 32, pitch 33
  EXPECT_TRUE(takes(4, [](int lane) { return 4 * (lane % 16 * 33 + lane / 16); }, 2, 1));  // 32 wide, 16 high
}

}  // namespace
}  // namespace swizzle
