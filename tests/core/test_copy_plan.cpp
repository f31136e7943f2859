// Claims about copies between two strided views: which are taken, and that a copy that is taken writes the destination
// and nothing else.
#include "core/copy_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "core/host_runner.hpp"

namespace swizzle {
namespace {

using Strides = std::vector<std::int64_t>;

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;

CopyReason reason_of(int element_bytes, const Strides& size, const Strides& src_stride, const Strides& dst_stride,
                     std::uint64_t src_address = 0, std::uint64_t dst_address = kFar) {
  CopyPlan copy;
  const CopyView view{
      element_bytes, static_cast<int>(size.size()), size.data(), src_stride.data(), dst_stride.data(), src_address,
      dst_address};
  return plan_copy(view, DeviceTraits{}, copy);
}

TEST(CopyPlan, TakesTranspositionsInWhateverOrderTheDestinationIsDense) {
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {65, 1}), CopyReason::kTransposition);
  EXPECT_EQ(reason_of(4, {64, 65}, {65, 1}, {1, 64}), CopyReason::kTransposition);
  // NCHW to NHWC: the same indices, other strides.
  EXPECT_EQ(reason_of(2, {2, 30, 17, 19}, {9690, 323, 19, 1}, {9690, 1, 570, 30}), CopyReason::kTransposition);
}

TEST(CopyPlan, TakesTranspositionsIntoSlices) {
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {100, 1}, 0, kFar + 12), CopyReason::kTransposition);
  EXPECT_EQ(reason_of(4, {3, 64, 64}, {4096, 1, 64}, {9000, 80, 1}), CopyReason::kTransposition);
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {130, 2}), CopyReason::kDestination);
  EXPECT_EQ(reason_of(4, {64, 64}, {64, 1}, {80, 1}), CopyReason::kDestination);
}

TEST(CopyPlan, TakesRunsThatMoveAsWiderElements) {
  EXPECT_EQ(reason_of(2, {8, 16, 64}, {64, 512, 1}, {1024, 64, 1}), CopyReason::kRuns);
  EXPECT_EQ(reason_of(2, {8, 16, 63}, {63, 504, 1}, {1008, 63, 1}), CopyReason::kNoGain);
  EXPECT_EQ(reason_of(2, {64, 64}, {80, 1}, {64, 1}), CopyReason::kRuns);
  EXPECT_EQ(reason_of(2, {64, 64}, {80, 1}, {64, 1}, 2), CopyReason::kNoGain);
}

TEST(CopyPlan, TakesLongRunsThatKeepTheirElementsFromAMebibyteOn) {
  EXPECT_EQ(reason_of(4, {8192, 33}, {35, 1}, {33, 1}), CopyReason::kRuns);
  EXPECT_EQ(reason_of(4, {4096, 33}, {35, 1}, {33, 1}), CopyReason::kNoGain);
}

TEST(CopyPlan, LeavesPlainCopiesOfEveryOrder) {
  EXPECT_EQ(reason_of(4, {64, 65}, {65, 1}, {65, 1}), CopyReason::kPlain);
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {1, 64}), CopyReason::kPlain);
  EXPECT_EQ(reason_of(4, {64, 1, 65}, {65, 9, 1}, {65, 1 << 20, 1}), CopyReason::kPlain);
}

TEST(CopyPlan, LeavesSmallEmptyExpandedAndOverlappingCopies) {
  EXPECT_EQ(reason_of(4, {31, 33}, {1, 31}, {33, 1}), CopyReason::kSmall);
  EXPECT_EQ(reason_of(4, {0, 33}, {1, 31}, {33, 1}), CopyReason::kSmall);
  EXPECT_EQ(reason_of(4, {64, 65}, {0, 1}, {65, 1}), CopyReason::kExpanded);
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {0, 1}), CopyReason::kDestination);
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {2, 1}), CopyReason::kDestination);
  const std::uint64_t bytes = 64 * 65 * 4;
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {65, 1}, kFar, kFar + bytes - 4), CopyReason::kOverlap);
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {65, 1}, kFar, kFar - bytes + 4), CopyReason::kOverlap);
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {65, 1}, kFar, kFar + bytes), CopyReason::kTransposition);
  EXPECT_EQ(reason_of(4, {64, 65}, {1, 64}, {65, 1}, kFar, kFar - bytes), CopyReason::kTransposition);
}

TEST(CopyPlan, EveryReasonHasAName) {
  for (const Named<CopyReason>& entry : kCopyReasonNames) {
    EXPECT_EQ(&entry - kCopyReasonNames, static_cast<std::ptrdiff_t>(entry.value)) << entry.name;
    EXPECT_EQ(name_of(entry.value), entry.name);
  }
}

// A view over memory of its own: dimensions in a random order, perhaps with gaps.
struct RandomView {
  Strides stride;
  std::int64_t elements = 1;

  RandomView(const Strides& size, std::mt19937& random, int one_in) : stride(size.size()) {
    std::vector<std::size_t> order(size.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      stride[i] = elements;
      elements *= size[i];
      if (random() % static_cast<unsigned>(one_in) == 0) elements += 1 + static_cast<std::int64_t>(random() % 40);
    }
  }
};

TEST(CopyPlan, EveryRandomCopyThatIsTakenWritesItsDestinationAndNothingElse) {
  std::mt19937 random(11);
  int taken[2] = {};
  int with_gaps = 0;
  int tiles[std::size(kTileNames)] = {};
  for (int round = 0; round < 1200; ++round) {
    const int element_bytes = 1 << random() % 5;
    Strides size(2 + random() % 3);
    for (std::int64_t& side : size) {
      side = 1 + static_cast<std::int64_t>(random() % (size.size() == 2 ? 150 : 40));
      if (random() % 2 == 0) side = (side + 7) / 8 * 8;
    }
    const RandomView from(size, random, 4);
    const RandomView to(size, random, 3);
    const std::int64_t offset = static_cast<std::int64_t>(random() % 3) * element_bytes;
    // Both in one block, 256-byte aligned but for the offset.
    const auto span = [&](const RandomView& view) {
      return (view.elements * element_bytes + offset + 511) / 256 * 256;
    };
    std::vector<unsigned char> storage(static_cast<std::size_t>(span(from) + span(to) + 256));
    for (unsigned char& byte : storage) byte = static_cast<unsigned char>(random());
    const std::vector<unsigned char> before = storage;
    const auto base = static_cast<std::size_t>((256 - reinterpret_cast<std::uintptr_t>(storage.data()) % 256) % 256);
    unsigned char* const src = storage.data() + base;
    unsigned char* const dst = src + span(from) + offset;

    CopyPlan copy;
    const CopyView view{element_bytes,
                        static_cast<int>(size.size()),
                        size.data(),
                        from.stride.data(),
                        to.stride.data(),
                        reinterpret_cast<std::uintptr_t>(src),
                        reinterpret_cast<std::uintptr_t>(dst)};
    const CopyReason reason = plan_copy(view, DeviceTraits{}, copy);
    if (!is_taken(reason)) continue;
    ++taken[reason == CopyReason::kTransposition ? 0 : 1];
    std::int64_t count = 1;
    for (const std::int64_t side : size) count *= side;
    with_gaps += to.elements > count ? 1 : 0;
    // The planned tile or any other that can serve.
    const Tile other = kTileNames[random() % std::size(kTileNames)].value;
    if (copy.plan.route == Route::kTile && can_serve(other, copy.plan.matrices, view.src_address, view.dst_address)) {
      copy.plan.tile = other;
      ++tiles[static_cast<std::size_t>(other)];
    }
    HostMemory memory({src, src + from.elements * element_bytes}, {dst, dst + to.elements * element_bytes});
    run_plan(copy.plan, copy.problem, src, dst, memory);

    std::vector<unsigned char> expected = before;
    Strides index(size.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t read = 0;
      std::int64_t write = 0;
      for (std::size_t d = 0; d < index.size(); ++d) {
        read += index[d] * from.stride[d];
        write += index[d] * to.stride[d];
      }
      std::memcpy(expected.data() + (dst - storage.data()) + write * element_bytes,
                  before.data() + (src - storage.data()) + read * element_bytes,
                  static_cast<std::size_t>(element_bytes));
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == size[d];) index[d] = 0;
    }
    ASSERT_EQ(storage, expected) << "round " << round << ", " << name_of(reason);
  }
  EXPECT_GT(taken[0], 200);
  EXPECT_GT(taken[1], 15);
  EXPECT_GT(with_gaps, 50);
  for (const Tile tile :
       {Tile::kScalar32, Tile::kVector, Tile::kVector128, Tile::kShortVector, Tile::kWindow, Tile::kFlat}) {
    EXPECT_GT(tiles[static_cast<std::size_t>(tile)], 0) << name_of(tile);
  }
}

}  // namespace
}  // namespace swizzle
