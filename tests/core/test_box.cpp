// Claims about boxes: what their choice promises for any problem, and what their program writes, on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/request_counter.hpp"
#include "strided_view.hpp"

namespace swizzle {
namespace {

std::uint64_t address_of(const unsigned char* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// A view of the given rank whose dimensions lie in memory in any order, dense, with gaps or expanded.
View random_view(std::mt19937& random, int rank, std::int64_t longest, bool may_expand) {
  const auto below = [&](std::int64_t limit) { return static_cast<std::int64_t>(random()) % limit; };
  View view;
  view.element_bytes = 1 << below(5);
  std::vector<std::size_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  view.size.resize(order.size());
  view.stride.resize(order.size());
  std::int64_t stride = 1;
  const bool has_gaps = below(2) == 0;
  for (const std::size_t d : order) {
    view.size[d] = 1 + below(longest);
    view.stride[d] = may_expand && below(12) == 0 ? 0 : stride;
    stride *= view.size[d];
    if (has_gaps && below(3) == 0) stride += below(2) == 0 ? 1 + below(5) : 16 - stride % 16;
  }
  view.offset_bytes = below(3) == 0 ? view.element_bytes * below(5) : 0;
  view.dst_offset_bytes = below(4) == 0 ? view.element_bytes * below(3) : 0;
  return view;
}

constexpr std::int64_t kLongest[] = {1, 3000, 120, 40, 16, 9, 6, 4, 4};

TEST(Box, KeepsWhatItPromises) {
  std::mt19937 random(11);
  int found = 0;
  for (int round = 0; round < 20000; ++round) {
    const View view = random_view(random, round % 9, 3 * kLongest[round % 9], true);
    const auto src = static_cast<std::uint64_t>(view.offset_bytes);
    const Problem problem = canonicalize(static_cast<int>(view.size.size()), view.size.data(), view.stride.data(),
                                         view.element_bytes, src, static_cast<std::uint64_t>(view.dst_offset_bytes));
    Box box;
    if (!find_box(problem, src, kBoxBytes, box)) continue;
    ++found;
    std::int64_t elements = 1;
    std::int64_t image_end = box.element_bytes + 15;
    const int parts = static_cast<int>(ceil_div(box.extent[box.run_dim], box.run_steps));
    for (int i = 0; i < box.rank; ++i) {
      ASSERT_GE(box.extent[i], 1);
      ASSERT_LE(box.extent[i], box.size[i]);
      elements *= box.extent[i];
      if (box.extent[i] == 1) continue;
      image_end += box.image_offset(i, box.extent[i] - 1);
      ASSERT_EQ((box.image_pitch[i] - box.src_stride[i] * box.element_bytes) % 16, 0) << view.describe();
      const bool is_whole = box.size[i] % box.extent[i] == 0;
      ASSERT_TRUE(is_whole || i == box.input_cut || i == box.output_cut) << view.describe();
    }
    ASSERT_LE(elements * box.element_bytes, kBoxBytes);
    ASSERT_LE(image_end, box.image_bytes) << view.describe();
    ASSERT_LE(box.image_bytes, box.most_image_bytes);
    ASSERT_LE(box.shared_bytes(), box.most_image_bytes + kBoxTableBytes);
    ASSERT_LE(box.run_elements(), kMaxRunElements);
    ASSERT_GE(box.run_dim, box.rank - box.output_dims);
    for (int part = 0; part < parts; ++part) {
      ASSERT_EQ(box.image_offset(box.run_dim, part * box.run_steps),
                part * box.image_offset(box.run_dim, box.run_steps))
          << "parts lie alike in the image, " << view.describe();
    }
    dispatch_element_bytes(box.element_bytes, [&](auto bytes) {
      using Program = BoxProgram<decltype(bytes)::value>;
      const BoxArguments args = Program::make_arguments(box, nullptr, nullptr);
      ASSERT_EQ(args.element_table + 2 * (args.run_elements + Program::kChunkElements - 1), args.shared_bytes);
    });
    std::int64_t run = 1;
    for (int k = 0; k < box.input_dims; ++k) {
      const int dim = box.input_order[k];
      ASSERT_EQ(box.src_stride[dim], run) << "dimensions of an input run are dense";
      run *= box.extent[dim];
    }
    ASSERT_EQ(run, box.input_piece());
    ASSERT_EQ(box.input_run % run, 0);
    run = 1;
    for (int i = box.rank - 1; i >= box.rank - box.output_dims; --i) {
      ASSERT_EQ(box.dst_stride[i], run) << "dimensions of an output run are dense";
      run *= box.extent[i];
    }
    ASSERT_EQ(run, box.output_run);
  }
  EXPECT_GT(found, 8000);
}

TEST(Box, EveryRandomProblemIsMovedRight) {
  std::mt19937 random(5);
  int served = 0;
  int cut = 0;
  int aligned = 0;
  for (int round = 0; round < 3000; ++round) {
    const int rank = round % 9;
    const View view = random_view(random, rank, kLongest[rank], round % 5 == 0);
    Arena arena(view);
    const Problem problem = arena.problem();
    Plan plan;
    if (!make_forced_plan(problem, address_of(arena.src()), address_of(arena.dst()), Method::kAuto, Tile::kBox, plan)) {
      continue;
    }
    // Small boxes, so that small problems have edges too.
    if (plan.route == Route::kBox && round % 3 != 0) {
      ASSERT_TRUE(find_box(problem, address_of(arena.src()), round % 3 == 1 ? 1024 : 4096, plan.box));
    }
    served += plan.route == Route::kBox ? 1 : 0;
    cut += plan.route == Route::kBox && (plan.box.input_cut >= 0 || plan.box.output_cut >= 0) ? 1 : 0;
    aligned += plan.route == Route::kBox && plan.box.is_aligned ? 1 : 0;
    ASSERT_TRUE(arena.run(plan, problem)) << "round " << round;
  }
  EXPECT_GT(served, 1000);
  EXPECT_GT(cut, 300);
  EXPECT_GT(aligned, 100);
}

Box box_of(const View& view, std::int64_t bytes = kBoxBytes) {
  const Problem problem =
      canonicalize(static_cast<int>(view.size.size()), view.size.data(), view.stride.data(), view.element_bytes, 0, 0);
  Box box;
  EXPECT_TRUE(find_box(problem, 0, bytes, box)) << view.describe();
  return box;
}

TEST(Box, OfAttentionHeadsHasRunsOfSeveralHeadsAndPositions) {
  const Box box = box_of(permuted_view(2, {8, 2048, 32, 128}, {0, 2, 1, 3}));
  EXPECT_EQ(box.element_bytes, 16);
  EXPECT_GE(box.input_run * box.element_bytes, 2048);
  EXPECT_GE(box.output_run * box.element_bytes, 2048);
}

TEST(Box, MergesShortDimensionsOnBothSides) {
  for (const View& view :
       {permuted_view(4, {33, 100019, 33}, {2, 1, 0}), permuted_view(4, {4, 16, 32, 64, 48}, {4, 2, 0, 3, 1}),
        permuted_view(1, {500, 7, 600, 5, 3}, {1, 4, 2, 0, 3})}) {
    const Box box = box_of(view);
    EXPECT_GE(box.input_run * box.element_bytes, 128) << view.describe();
    EXPECT_GE(box.output_run * box.element_bytes, 128) << view.describe();
  }
}

// Wavefronts of an average load of elements from the image.
template <int kElementBytes>
double wavefronts_of_gathers(const std::vector<std::int64_t>& sizes, const std::vector<std::size_t>& order) {
  using Program = BoxProgram<kElementBytes>;
  RequestCounter counter;
  run_blocks<Program>(Program::make_arguments(box_of(permuted_view(kElementBytes, sizes, order)), nullptr, nullptr),
                      counter);
  double wavefronts = 0;
  double requests = 0;
  for (const RequestCount& count : counter.counts()) {
    if (count.access != SharedAccess::kLoad || count.width_bytes != kElementBytes) continue;
    wavefronts += static_cast<double>(count.actual);
    requests += static_cast<double>(count.requests);
  }
  return wavefronts / requests;
}

TEST(Box, PitchesAndSkewSpreadTheLanesOfAGatherOverTheBanks) {
  EXPECT_LE(wavefronts_of_gathers<16>({3, 8, 40}, {1, 2, 0}), 4.0) << "four groups of lanes";
  EXPECT_LE(wavefronts_of_gathers<4>({64, 3, 96}, {1, 2, 0}), 2.0) << "16 chunks in 8 places";
  EXPECT_LE(wavefronts_of_gathers<1>({128, 3, 128}, {1, 2, 0}), 1.5);
}

TEST(Box, LanesBeginAtSectorsUnlessThatTakesMoreOfThem) {
  const auto alignment = [](const View& view, int bytes) {
    const Box box = box_of(view);
    return dispatch_element_bytes(bytes, [&](auto size) {
      return BoxProgram<decltype(size)::value>::make_arguments(box, nullptr, nullptr).alignment;
    });
  };
  for (const int bytes : {4, 8, 16})
    EXPECT_EQ(alignment(permuted_view(bytes, {31, 29, 63, 45}, {1, 3, 2, 0}), bytes), 32);
  EXPECT_EQ(alignment(permuted_view(1, {36, 19, 6, 239, 114}, {2, 0, 4, 3, 1}), 1), 32) << "24 lanes for 285 bytes";
  EXPECT_EQ(alignment(permuted_view(1, {31, 29, 137, 78, 13}, {3, 4, 0, 2, 1}), 1), 16) << "16 lanes for 232 bytes";
}

TEST(Box, StoresLongRunsInPartsThatBeginAtTheSamePlaceOfAVector) {
  for (const View& view : {permuted_view(1, {30, 7, 28, 65, 4, 57}, {0, 2, 3, 5, 4, 1}),
                           permuted_view(2, {11, 69, 57, 24, 23, 3}, {1, 3, 0, 4, 2, 5})}) {
    const Box box = box_of(view);
    EXPECT_GE(box.runs(), 8) << view.describe();
    EXPECT_LT(box.run_elements(), box.output_run) << view.describe();
    EXPECT_EQ(box.run_elements() * box.element_bytes % 16, 0) << view.describe();
  }
}

TEST(Box, TakesUpWhatABalancedDimensionGaveUp) {
  // 265 rows fall into two boxes of 133, which leaves room for all 182 columns.
  const Box box = box_of(permuted_view(1, {466, 265, 182}, {0, 2, 1}));
  EXPECT_EQ(box.extent[1], 182);
  EXPECT_EQ(box.extent[2], 133);
}

TEST(Box, OfLongRowsIsFull) {
  const Box box = box_of([] {
    View view = permuted_view(1, {64, 100001}, {0, 1});
    view.stride[0] = 100003;
    return view;
  }());
  EXPECT_EQ(box.input_run, box.output_run);
  EXPECT_GE(box.output_run, kBoxBytes / 2);
}

TEST(Box, RefusesWhatIsExpandedOrHasGapsInTheInnermostDimension) {
  Box box;
  for (const auto& strides : {std::vector<std::int64_t>{0, 1}, {1, 0}, {2, 80}, {100, 2}}) {
    const std::vector<std::int64_t> sizes = {40, 30};
    const Problem problem = canonicalize(2, sizes.data(), strides.data(), 4, 0, 0);
    EXPECT_FALSE(find_box(problem, 0, kBoxBytes, box));
  }
}

}  // namespace
}  // namespace swizzle
