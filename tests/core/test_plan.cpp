// Claims about canonical problems, transpositions and the choice of a tile: pure functions, tested on their own.
#include <gtest/gtest.h>

#include <algorithm>

#include "strided_view.hpp"

namespace swizzle {
namespace {

Problem canonical(const View& view, std::uint64_t src_address = 0, std::uint64_t dst_address = 0) {
  return canonicalize(static_cast<int>(view.size.size()), view.size.data(), view.stride.data(), view.element_bytes,
                      src_address, dst_address);
}

View view_of(int element_bytes, std::vector<std::int64_t> size, std::vector<std::int64_t> stride) {
  View view;
  view.element_bytes = element_bytes;
  view.size = std::move(size);
  view.stride = std::move(stride);
  return view;
}

Plan plan_of(const Problem& problem, Method method = Method::kAuto, std::uint64_t src = 0, std::uint64_t dst = 0) {
  return make_plan(problem, src, dst, method, DeviceTraits{132});
}

// The tile for contiguous matrices.
Tile tile_of(int bytes, std::int64_t rows, std::int64_t cols, std::int64_t batches = 1) {
  return plan_of(canonical(matrix_view(bytes, rows, cols, cols, batches))).tile;
}

TEST(Canonicalize, DropsUnitDimensionsWhateverTheirStride) {
  const Problem problem = canonical(view_of(4, {1, 7, 1, 5}, {1000, 1, 1 << 30, 9}));
  ASSERT_EQ(problem.rank, 2);
  EXPECT_EQ(problem.size[0], 7);
  EXPECT_EQ(problem.src_stride[1], 9);
}

TEST(Canonicalize, FusesDimensionsThatStayTogether) {
  // (3, 4, 5, 6) contiguous with the last two exchanged: batches fuse.
  const Problem problem = canonical(view_of(4, {3, 4, 6, 5}, {120, 30, 1, 6}));
  ASSERT_EQ(problem.rank, 3);
  EXPECT_EQ(problem.size[0], 12);
  EXPECT_EQ(problem.src_stride[0], 30);
}

TEST(Canonicalize, KnowsEmptyAndCopy) {
  EXPECT_TRUE(canonical(view_of(4, {3, 0, 5}, {0, 5, 1})).is_empty);
  EXPECT_TRUE(canonical(view_of(4, {1, 4096}, {1, 1})).is_copy());
  EXPECT_TRUE(canonical(view_of(4, {}, {})).is_copy());
  EXPECT_TRUE(canonical(view_of(4, {8, 16}, {16, 1})).is_copy());
  EXPECT_FALSE(canonical(view_of(4, {8, 16}, {1, 8})).is_copy());
}

TEST(Canonicalize, WidensTheElementThatStaysWhole) {
  // (8, 4, 2) float32 with its first two dimensions exchanged: a 4 x 8 transpose of 8-byte elements.
  const Problem problem = canonical(view_of(4, {4, 8, 2}, {2, 8, 1}));
  EXPECT_EQ(problem.element_bytes, 8);
  ASSERT_EQ(problem.rank, 2);
  EXPECT_EQ(problem.src_stride[0], 1);
  EXPECT_EQ(problem.src_stride[1], 4);
}

TEST(Canonicalize, SplitsElementsThatAreNotAligned) {
  const Problem problem = canonical(view_of(16, {4, 8}, {1, 4}), 8, 0);
  EXPECT_EQ(problem.element_bytes, 8);
  ASSERT_EQ(problem.rank, 3);
  EXPECT_EQ(problem.size[2], 2);
  EXPECT_EQ(problem.src_stride[2], 1);
  EXPECT_EQ(problem.src_stride[1], 8);
}

TEST(Canonicalize, NeverWidensBeyondWhatAddressesAndStridesAllow) {
  EXPECT_EQ(canonical(view_of(1, {5, 64}, {80, 1})).element_bytes, 16);
  EXPECT_EQ(canonical(view_of(1, {5, 64}, {80, 1}), 4).element_bytes, 4);
  EXPECT_EQ(canonical(view_of(1, {5, 64}, {80, 1}), 0, 2).element_bytes, 2);
  EXPECT_EQ(canonical(view_of(1, {5, 64}, {81, 1})).element_bytes, 1);
  EXPECT_EQ(canonical(view_of(1, {5, 24}, {80, 1})).element_bytes, 8);
}

// Rank 0 to 8, dimensions in memory in any order, dense, with gaps, expanded or overlapping, from any address: the
// canonical problem reads the same bytes in the same order, and nothing of it could be left out.
TEST(Canonicalize, KeepsEveryByteInItsPlaceWhateverTheStrides) {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t limit) { return static_cast<std::int64_t>(random()) % limit; };
  // Byte offsets of the source, in the output's order.
  const auto offsets_of = [](int rank, const std::int64_t* size, const std::int64_t* stride, int bytes) {
    std::vector<std::int64_t> offsets = {0};
    for (int i = 0; i < rank; ++i) {
      std::vector<std::int64_t> outer;
      outer.swap(offsets);
      for (const std::int64_t base : outer) {
        for (std::int64_t k = 0; k < size[i]; ++k) offsets.push_back(base + k * stride[i] * bytes);
      }
    }
    std::vector<std::int64_t> result;
    for (const std::int64_t base : offsets) {
      for (int byte = 0; byte < bytes; ++byte) result.push_back(base + byte);
    }
    return result;
  };
  int widened = 0;
  for (int round = 0; round < 5000; ++round) {
    View view;
    view.element_bytes = 1 << below(5);
    const int rank = static_cast<int>(below(9));
    std::vector<std::size_t> order;
    for (int d = 0; d < rank; ++d) {
      view.size.push_back(1 + below(rank < 4 ? 9 : 4));
      view.stride.push_back(0);
      order.push_back(static_cast<std::size_t>(d));
    }
    if (below(2) == 0) std::shuffle(order.begin(), order.end(), random);
    std::reverse(order.begin(), order.end());
    std::int64_t stride = 1;
    for (const std::size_t d : order) {
      view.stride[d] = below(15) == 0 ? below(3) : stride;
      stride *= view.size[d];
      if (below(5) == 0) stride += below(2) == 0 ? 1 : 16 - stride % 16;
    }
    const auto src = static_cast<std::uint64_t>(below(3) == 0 ? below(33) : 0);
    const auto dst = static_cast<std::uint64_t>(below(3) == 0 ? below(33) : 0);
    const Problem problem = canonical(view, src, dst);
    ASSERT_EQ(offsets_of(problem.rank, problem.size, problem.src_stride, problem.element_bytes),
              offsets_of(rank, view.size.data(), view.stride.data(), view.element_bytes))
        << view.describe();
    ASSERT_EQ(src % problem.element_bytes, 0u);
    ASSERT_EQ(dst % problem.element_bytes, 0u);
    for (int i = 0; i < problem.rank; ++i) {
      ASSERT_GT(problem.size[i], 1) << view.describe();
      if (i > 0) {
        ASSERT_NE(problem.src_stride[i - 1], problem.size[i] * problem.src_stride[i]) << view.describe();
      }
    }
    widened += problem.element_bytes > view.element_bytes ? 1 : 0;
  }
  EXPECT_GT(widened, 300);
}

TEST(Transposition, IsFoundBetweenTheDensestAndTheInnermostDimension) {
  Transposition matrices;
  ASSERT_TRUE(find_transposition(canonical(view_of(4, {9, 5, 6, 7}, {210, 1, 35, 5})), matrices));
  EXPECT_EQ(matrices.cols, 5);
  EXPECT_EQ(matrices.rows, 9 * 42 / 9);
  EXPECT_EQ(matrices.dst_col_stride, 42);
}

TEST(Transposition, HasNoneWhereRowsStayContiguous) {
  Transposition matrices;
  EXPECT_FALSE(find_transposition(canonical(view_of(4, {8, 16}, {32, 1})), matrices));
  EXPECT_FALSE(find_transposition(canonical(view_of(4, {8, 16}, {100, 2})), matrices));
  EXPECT_FALSE(find_transposition(canonical(view_of(4, {8, 16}, {0, 3})), matrices));
}

TEST(Plan, TakesChunksOnlyWhereTheyFit) {
  const auto tile_of = [](std::int64_t rows, std::int64_t cols, std::int64_t pitch, std::uint64_t src) {
    return plan_of(canonical(matrix_view(4, rows, cols, pitch), src), Method::kAuto, src).tile;
  };
  EXPECT_EQ(tile_of(8192, 8192, 8192, 0), Tile::kVector);
  EXPECT_EQ(tile_of(1536, 1536, 1536, 0), Tile::kVector);
  EXPECT_EQ(tile_of(1280, 1280, 1280, 0), Tile::kVector128);
  EXPECT_EQ(tile_of(256, 256, 256, 0), Tile::kShortVector);
  EXPECT_EQ(tile_of(8192, 8192, 8193, 0), Tile::kWindow);
  EXPECT_EQ(tile_of(8191, 8192, 8192, 0), Tile::kWindow);
  EXPECT_EQ(tile_of(4096, 4096, 4104, 0), Tile::kVector);
  EXPECT_EQ(tile_of(8192, 8192, 8224, 0), Tile::kVector);
  EXPECT_EQ(tile_of(8192, 8192, 8200, 0), Tile::kWindow) << "a large input whose rows begin within lines";
  EXPECT_EQ(tile_of(8192, 8192, 8196, 0), Tile::kWindow) << "rows begin at odd multiples of 16 bytes";
}

TEST(Plan, TakesVectorsWhereRowsCutChunksAllAtOnePlace) {
  const auto tile_of = [](int bytes, std::int64_t rows, std::int64_t cols, std::int64_t pitch, std::uint64_t src,
                          Method method = Method::kAuto) {
    return plan_of(canonical(matrix_view(bytes, rows, cols, pitch), src), method, src).tile;
  };
  EXPECT_EQ(tile_of(4, 8192, 8192, 8192, 4), Tile::kVector);
  EXPECT_EQ(tile_of(4, 8192, 8192, 8192, 4, Method::kPadded), Tile::kVector);
  EXPECT_EQ(tile_of(4, 8192, 8191, 8192, 0), Tile::kVector);
  EXPECT_EQ(tile_of(1, 8192, 8192, 8192, 1), Tile::kVector);
  EXPECT_EQ(tile_of(1, 32, 1638400, 1638464, 1), Tile::kVector);
  EXPECT_EQ(tile_of(4, 8192, 8192, 8196, 4), Tile::kWindow) << "rows begin at odd multiples of 16 bytes";
  EXPECT_EQ(tile_of(4, 8196, 8192, 8192, 4), Tile::kWindow) << "output rows begin at odd multiples of 16 bytes";
  EXPECT_EQ(tile_of(4, 204800, 48, 256, 4), Tile::kVector);
  EXPECT_NE(tile_of(4, 204800, 64, 256, 4), Tile::kVector) << "two tiles for what would fill one";
  EXPECT_NE(tile_of(4, 256, 256, 256, 4), Tile::kVector) << "too small";
  EXPECT_NE(tile_of(4, 16, 1638400, 1638464, 4), Tile::kVector) << "few rows";
}

TEST(Plan, GathersShortVectorsOfColumnsAFewElementsApart) {
  const auto tile_of = [](int bytes, std::int64_t rows, std::int64_t stride = 3) {
    View view = matrix_view(bytes, rows, 4096, 4096 * stride);
    view.stride[1] = stride;
    return plan_of(canonical(view)).tile;
  };
  EXPECT_EQ(tile_of(1, 1024), Tile::kShortVector);
  EXPECT_EQ(tile_of(2, 1026), Tile::kShortVector);
  EXPECT_EQ(tile_of(1, 1024, 8), Tile::kScalar32);
  EXPECT_EQ(tile_of(1, 512), Tile::kScalar32) << "too small";
  EXPECT_EQ(tile_of(1, 1026), Tile::kScalar32);
  EXPECT_EQ(tile_of(2, 1025), Tile::kScalar32);
  EXPECT_EQ(tile_of(4, 1024), Tile::kScalar32);
}

TEST(Plan, TakesSingleElementsWhereElementsAreWide) {
  EXPECT_EQ(plan_of(canonical(matrix_view(16, 641, 643, 643))).tile, Tile::kVector);
  EXPECT_EQ(plan_of(canonical(matrix_view(16, 1593, 3465, 3465))).tile, Tile::kScalar32) << "halves of sectors";
  EXPECT_EQ(plan_of(canonical(matrix_view(16, 1594, 3466, 3466))).tile, Tile::kVector);
}

TEST(Plan, LeavesTinyMatricesAndUnpackedShortSidesToTheDirectKernel) {
  EXPECT_EQ(plan_of(canonical(matrix_view(8, 2, 2, 2, 99999))).route, Route::kGather);
  EXPECT_EQ(plan_of(canonical(matrix_view(4, 3, 5, 5, 40000))).route, Route::kGather);
  EXPECT_EQ(plan_of(canonical(matrix_view(1, 8388609, 3, 5))).route, Route::kGather);
}

TEST(Plan, TakesFlatRunsWhereTilesWouldBeMostlyEmpty) {
  EXPECT_EQ(tile_of(1, 1048576, 32), Tile::kFlat);
  EXPECT_EQ(tile_of(1, 524288, 64), Tile::kVector);
  EXPECT_EQ(tile_of(2, 4, 1048576 + 1), Tile::kFlat);
  EXPECT_EQ(tile_of(4, 16, 524288), Tile::kVector);
  EXPECT_EQ(tile_of(8, 16, 16, 65536), Tile::kVector128);
  EXPECT_EQ(tile_of(4, 100, 100, 5000), Tile::kWindow);
}

TEST(Plan, TakesFlatRunsForShortSidesThatChunksDoNotFit) {
  EXPECT_EQ(tile_of(1, 8388609, 3), Tile::kFlat);
  EXPECT_EQ(tile_of(1, 3, 8388609), Tile::kFlat);
  EXPECT_EQ(tile_of(1, 8388609, 24), Tile::kFlat);
  EXPECT_EQ(tile_of(4, 267489, 49), Tile::kFlat);
  EXPECT_EQ(tile_of(1, 23, 1458889), Tile::kFlat);
  EXPECT_EQ(tile_of(4, 49, 49, 20000), Tile::kFlat);
  EXPECT_EQ(tile_of(1, 120, 2080), Tile::kShortVector) << "too small to fill the GPU with runs";
}

TEST(Plan, ScattersFewRowsAndSmallMatricesOfShortElements) {
  EXPECT_EQ(tile_of(1, 8, 1048576), Tile::kScatter);
  EXPECT_EQ(tile_of(2, 24, 1048576), Tile::kScatter);
  EXPECT_EQ(tile_of(4, 8, 1048576), Tile::kScatter);
  EXPECT_EQ(tile_of(1, 64, 1048576), Tile::kVector);
  EXPECT_EQ(tile_of(2, 24, 87376), Tile::kVector) << "too small";
  for (const int bytes : {1, 2, 4}) EXPECT_EQ(tile_of(bytes, 16, 16, 65536), Tile::kScatter);
  EXPECT_EQ(tile_of(8, 16, 16, 65536), Tile::kVector128);
  EXPECT_EQ(tile_of(1, 100, 100, 5000), Tile::kScatter) << "pieces of 4 bytes";
  EXPECT_EQ(tile_of(2, 100, 100, 5000), Tile::kFlat);
  for (const int side : {25, 33, 49}) {
    EXPECT_EQ(tile_of(1, side, side, 20000), Tile::kScatter) << "byte by byte";
    EXPECT_EQ(tile_of(1, side, 1069969), Tile::kScatter) << "byte by byte";
  }
  EXPECT_EQ(tile_of(1, 9, 25, 99999), Tile::kScatter);
  EXPECT_EQ(tile_of(1, 17, 16, 99999), Tile::kScatter);
  EXPECT_EQ(tile_of(1, 49, 15, 99999), Tile::kFlat) << "little of a row's words";
  EXPECT_EQ(tile_of(1, 7, 49, 99999), Tile::kFlat) << "few rows";
  EXPECT_EQ(tile_of(1, 144, 233008), Tile::kScatter) << "half of a tile";
  EXPECT_EQ(tile_of(1, 7, 7, 99999), Tile::kFlat);
  EXPECT_EQ(tile_of(2, 49, 49, 20000), Tile::kFlat);
  EXPECT_EQ(tile_of(1, 4, 4, 99999), Tile::kScatter);
}

TEST(Plan, RepeatsTheElementsOfAnExpandedRowDirectly) {
  const auto route_of = [](int bytes, std::int64_t rows, std::uint64_t dst_address) {
    return make_plan(canonical(matrix_view(bytes, rows, 8192, 0)), 0, dst_address, Method::kAuto, {}).route;
  };
  for (const int bytes : {1, 2, 4, 8, 16}) EXPECT_EQ(route_of(bytes, 8192, 0), Route::kGather);
  EXPECT_EQ(route_of(1, 8191, 0), Route::kTile) << "no whole vectors";
  EXPECT_EQ(route_of(2, 8192, 2), Route::kTile) << "no aligned vectors";
  EXPECT_EQ(route_of(4, 8191, 4), Route::kGather);
}

TEST(Transposition, FoldsTheDimensionsBehindTheRowsIntoThem) {
  Transposition matrices;
  ASSERT_TRUE(find_transposition(canonical(permuted_view(1, {29, 31, 13, 7, 137}, {4, 3, 2, 1, 0})), matrices));
  const FoldedRows folded = fold_rows(matrices);
  ASSERT_EQ(folded.dims, kMaxFoldedDims);
  EXPECT_EQ(folded.matrices.rows, 29 * 31 * 13);
  EXPECT_EQ(folded.matrices.outer_rank, 1);
  EXPECT_EQ(folded.size[1], 31);
  EXPECT_EQ(folded.src_stride[1], 13 * 7 * 137);
  EXPECT_EQ(folded.size[2], 13);
  EXPECT_EQ(folded.src_stride[2], 7 * 137);
  ASSERT_TRUE(find_transposition(canonical(matrix_view(1, 29, 137, 137, 31)), matrices));
  EXPECT_EQ(fold_rows(matrices).dims, 0) << "columns lie behind the rows";
  ASSERT_TRUE(
      find_transposition(canonical(view_of(1, {7, 50000, 50000}, {1, 8 * 50001LL, 400009LL * 50000})), matrices));
  EXPECT_EQ(fold_rows(matrices).dims, 0) << "row numbers have 31 bits";
}

TEST(Plan, FoldsRowsWhereTheyFillTheWindowsThen) {
  const auto is_folded = [](int bytes, const std::vector<std::int64_t>& sizes, const std::vector<std::size_t>& dims) {
    const Plan plan = plan_of(canonical(permuted_view(bytes, sizes, dims)));
    return plan.tile == Tile::kWindow && windows_fold_rows(plan.matrices);
  };
  EXPECT_TRUE(is_folded(1, {31, 29, 137, 78, 13}, {3, 4, 0, 2, 1}));
  EXPECT_TRUE(is_folded(1, {131, 6, 19, 158, 11}, {1, 3, 4, 0, 2}));
  EXPECT_TRUE(is_folded(2, {8, 179, 6, 15, 887}, {4, 0, 2, 3, 1}));
  EXPECT_TRUE(is_folded(2, {238, 5, 78, 466}, {1, 3, 0, 2}));
  EXPECT_TRUE(is_folded(8, {39, 71, 12, 163}, {2, 3, 1, 0}));
  EXPECT_FALSE(is_folded(1, {29, 31, 137}, {2, 1, 0})) << "too small";
  EXPECT_FALSE(is_folded(1, {8191, 3, 8193}, {1, 2, 0})) << "rows are long";
}

TEST(Plan, ScattersBytesOfUpTo512Rows) {
  for (const std::int64_t rows : {231, 265, 276, 373, 501, 510}) EXPECT_EQ(tile_of(1, rows, 200003), Tile::kScatter);
  EXPECT_EQ(tile_of(1, 265, 182, 466), Tile::kScatter);
  EXPECT_EQ(tile_of(1, 276, 275, 669), Tile::kScatter);
  EXPECT_EQ(tile_of(1, 280, 200004), Tile::kScatter) << "in words";
  EXPECT_NE(tile_of(1, 514, 200003), Tile::kScatter);
  EXPECT_NE(tile_of(1, 264, 200003), Tile::kScatter) << "would take eight lanes a column";
  EXPECT_EQ(tile_of(1, 256, 200000), Tile::kVector) << "fills its tiles";
  EXPECT_NE(tile_of(2, 265, 200003), Tile::kScatter);
  EXPECT_NE(tile_of(2, 265, 200003), Tile::kFlat);
}

TEST(Plan, TakesLargerBoxesOfBytesThatAreCutNowhere) {
  const auto box_of = [](int bytes, const std::vector<std::int64_t>& sizes, const std::vector<std::size_t>& dims) {
    const Plan plan = plan_of(canonical(permuted_view(bytes, sizes, dims)));
    EXPECT_EQ(plan.route, Route::kBox);
    return plan.box;
  };
  const Box whole = box_of(1, {7, 33, 92, 168, 32}, {4, 1, 2, 0, 3});
  EXPECT_GT(whole.element_count(), kBoxBytes);
  EXPECT_LT(whole.input_cut, 0);
  EXPECT_LT(whole.output_cut, 0);
  EXPECT_LE(whole.shared_bytes(), kMaxBoxSharedBytes);
  const Box cut = box_of(1, {30, 7, 28, 65, 4, 57}, {0, 2, 3, 5, 4, 1});
  EXPECT_LE(cut.element_count(), kBoxBytes);
}

TEST(Plan, LeavesSmallWindowsToSingleElements) {
  EXPECT_EQ(tile_of(4, 8191, 8193), Tile::kWindow);
  EXPECT_EQ(tile_of(4, 257, 255), Tile::kScalar32);
}

TEST(Plan, DeinterleavesTwoToFourColumns) {
  EXPECT_EQ(plan_of(canonical(matrix_view(1, 2073600, 3, 3, 16))).tile, Tile::kDeinterleave);
  EXPECT_EQ(plan_of(canonical(matrix_view(1, 2073601, 3, 3))).tile, Tile::kFlat);
  EXPECT_EQ(plan_of(canonical(matrix_view(1, 2073600, 3, 4))).route, Route::kGather);
}

TEST(Plan, ReadsFewRowsAsStreams) {
  const auto tile_of = [](const View& view) { return plan_of(canonical(view)).tile; };
  for (const int bytes : {4, 8, 16}) {
    const int most = bytes == 8 ? 8 : 5;
    for (int rows = 2; rows <= most; ++rows) {
      EXPECT_EQ(tile_of(matrix_view(bytes, rows, 2073600, 2073600)), Tile::kDirect);
    }
    EXPECT_NE(tile_of(matrix_view(bytes, most + 1, 2073600, 2073600)), Tile::kDirect);
    EXPECT_NE(tile_of(matrix_view(bytes, 3, 24, 24, 65536)), Tile::kDirect) << "rows are short";
  }
  EXPECT_EQ(tile_of(matrix_view(2, 3, 2073600, 2073600)), Tile::kFlat);
  EXPECT_NE(tile_of(permuted_view(4, {47, 110, 15, 4, 3, 52}, {2, 5, 1, 3, 0, 4})), Tile::kDirect)
      << "columns lie apart";
}

TEST(Plan, TakesShortVectorsForFewTiles) {
  const auto tile_of = [](int bytes, std::int64_t side) {
    return plan_of(canonical(matrix_view(bytes, side, side, side))).tile;
  };
  EXPECT_EQ(tile_of(1, 64), Tile::kShortVector);
  EXPECT_EQ(tile_of(1, 1536), Tile::kShortVector);
  EXPECT_EQ(tile_of(1, 2048), Tile::kVector128);
  EXPECT_EQ(tile_of(2, 256), Tile::kShortVector);
  EXPECT_EQ(tile_of(2, 512), Tile::kVector128);
  EXPECT_EQ(tile_of(4, 1024), Tile::kShortVector);
  EXPECT_EQ(tile_of(8, 512), Tile::kShortVector);
  EXPECT_EQ(tile_of(8, 1024), Tile::kShortVector);
  EXPECT_EQ(tile_of(8, 4096), Tile::kShortVector);
  EXPECT_EQ(tile_of(8, 8192), Tile::kVector) << "keeps its input in the L2 cache";
  EXPECT_EQ(tile_of(2, 462), Tile::kShortVector) << "chunks do not fit, short vectors do";
  EXPECT_EQ(tile_of(2, 461), Tile::kScalar32);
  EXPECT_EQ(tile_of(16, 64), Tile::kVector128);
}

TEST(Plan, TakesSmallTilesForSmallMatrices) {
  EXPECT_EQ(plan_of(canonical(matrix_view(2, 64, 64, 64, 65536))).tile, Tile::kVector128);
  EXPECT_EQ(plan_of(canonical(matrix_view(16, 16, 16, 16, 65536))).tile, Tile::kVector);
}

TEST(Plan, ANamedMethodChangesTheLayoutAlone) {
  const Problem problem = canonical(matrix_view(2, 4096, 4096, 4096));
  const Plan automatic = plan_of(problem);
  EXPECT_EQ(automatic.layout, Method::kSwizzled);
  for (const Method method : {Method::kNaive, Method::kPadded, Method::kSwizzled}) {
    const Plan plan = plan_of(problem, method);
    EXPECT_EQ(plan.layout, method);
    EXPECT_EQ(plan.tile, automatic.tile);
    EXPECT_EQ(plan.route, Route::kTile);
  }
}

TEST(Plan, IsACopyForEveryMethodWhereNothingIsTransposed) {
  for (const Method method : {Method::kAuto, Method::kNaive, Method::kPadded, Method::kSwizzled}) {
    EXPECT_EQ(plan_of(canonical(matrix_view(4, 1, 512, 512)), method).route, Route::kCopy);
    EXPECT_EQ(plan_of(canonical(matrix_view(4, 512, 1, 1)), method).route, Route::kCopy);
  }
}

TEST(Plan, NamesParseBackToWhatTheyName) {
  for (const Named<Method>& entry : kMethodNames) {
    Method method{};
    EXPECT_TRUE(parse_name(kMethodNames, entry.name, method));
    EXPECT_EQ(name_of(method), entry.name);
  }
  for (const Named<Tile>& entry : kTileNames) {
    Tile tile{};
    EXPECT_TRUE(parse_name(kTileNames, entry.name, tile));
    EXPECT_EQ(name_of(tile), entry.name);
  }
  Method method{};
  Tile tile{};
  EXPECT_FALSE(parse_name(kMethodNames, "fastest", method));
  EXPECT_FALSE(parse_name(kTileNames, "scalar33", tile));
}

// The permutes that models make, and odd ones: what each is moved by.
TEST(Plan, GivesEveryOrderOfDimensionsAProgramThatSuitsIt) {
  const auto name_of_plan = [](int bytes, const std::vector<std::int64_t>& sizes,
                               const std::vector<std::size_t>& dims) {
    const Plan plan = plan_of(canonical(permuted_view(bytes, sizes, dims)));
    return plan.route == Route::kCopy ? "copy" : name_of(plan.tile);
  };
  // Attention heads, forth and back; K transposed.
  EXPECT_EQ(name_of_plan(2, {8, 2048, 32, 128}, {0, 2, 1, 3}), "direct");
  EXPECT_EQ(name_of_plan(2, {8, 32, 2048, 128}, {0, 2, 1, 3}), "direct");
  EXPECT_EQ(name_of_plan(2, {2, 4429, 24, 64}, {0, 2, 1, 3}), "direct");
  EXPECT_EQ(name_of_plan(2, {1, 4608, 24, 128}, {0, 2, 1, 3}), "direct");
  EXPECT_EQ(name_of_plan(2, {64, 12, 512, 64}, {0, 1, 3, 2}), "vector");
  // NCHW to NHWC and back.
  EXPECT_EQ(name_of_plan(2, {32, 256, 56, 56}, {0, 2, 3, 1}), "vector");
  EXPECT_EQ(name_of_plan(2, {32, 56, 56, 256}, {0, 3, 1, 2}), "vector");
  for (const int bytes : {2, 4}) {
    EXPECT_EQ(name_of_plan(bytes, {64, 2048, 7, 7}, {0, 2, 3, 1}), "flat");
    EXPECT_EQ(name_of_plan(bytes, {64, 7, 7, 2048}, {0, 3, 1, 2}), bytes == 2 ? "flat" : "scatter");
  }
  EXPECT_EQ(name_of_plan(2, {8, 8, 512, 512}, {0, 2, 3, 1}), "scatter");
  EXPECT_EQ(name_of_plan(2, {8, 512, 512, 8}, {0, 3, 1, 2}), "flat");
  // Images, experts.
  EXPECT_EQ(name_of_plan(1, {16, 1080, 1920, 3}, {0, 3, 1, 2}), "deinterleave");
  EXPECT_EQ(name_of_plan(1, {16, 3, 1080, 1920}, {0, 2, 3, 1}), "flat");
  EXPECT_EQ(name_of_plan(1, {32, 4032, 7168}, {0, 2, 1}), "vector");
  EXPECT_EQ(name_of_plan(2, {16, 8192, 5120}, {0, 2, 1}), "vector");
  // Reversed and odd; five dimensions.
  EXPECT_EQ(name_of_plan(4, {33, 100019, 33}, {2, 1, 0}), "box");
  EXPECT_EQ(name_of_plan(2, {1, 462, 16, 64}, {0, 2, 3, 1}), "short_vector");
  EXPECT_EQ(name_of_plan(4, {99999, 2, 2}, {0, 2, 1}), "direct");
  EXPECT_EQ(name_of_plan(4, {4, 16, 32, 64, 48}, {4, 2, 0, 3, 1}), "vector");
  EXPECT_EQ(name_of_plan(2, {2, 3, 224, 224, 4}, {0, 4, 1, 2, 3}), "deinterleave");
  // Nothing moves.
  EXPECT_EQ(name_of_plan(2, {8, 1, 32, 128}, {0, 2, 1, 3}), "copy");
}

TEST(Plan, TakesBoxesWhereOtherTilesWouldBeMostlyEmpty) {
  const auto tile_of = [](const View& view) { return plan_of(canonical(view)).tile; };
  // Short odd sides between other dimensions; alone they are flat runs.
  EXPECT_EQ(tile_of(matrix_view(2, 2184529, 12, 12)), Tile::kFlat);
  EXPECT_EQ(tile_of(permuted_view(1, {690, 53, 11, 57}, {1, 3, 0, 2})), Tile::kBox);
  EXPECT_EQ(tile_of(permuted_view(16, {35, 57, 29, 54, 3}, {4, 0, 2, 1, 3})), Tile::kBox);
  // Rows that stay as they are, at any pitch.
  View rows = permuted_view(1, {3000, 1001}, {0, 1});
  rows.stride[0] = 1003;
  EXPECT_EQ(tile_of(rows), Tile::kBox);
  EXPECT_EQ(plan_of(canonical(rows), Method::kPadded).tile, Tile::kBox) << "no layout to choose where rows stay";
  // Below a MiB, or expanded: element by element.
  rows.size[0] = 300;
  EXPECT_EQ(plan_of(canonical(rows)).route, Route::kGather);
  rows.size[0] = 3000;
  rows.stride[0] = 0;
  EXPECT_EQ(plan_of(canonical(rows)).route, Route::kGather);
}

// Any strided view, any method: the planned program writes what element-by-element indexing says.
TEST(Plan, EveryRandomViewIsMovedRight) {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit)); };
  int routes[5] = {};
  for (int round = 0; round < 4000; ++round) {
    View view;
    view.element_bytes = 1 << below(5);
    const std::int64_t rank = below(7);
    std::vector<std::int64_t> order;
    for (std::int64_t d = 0; d < rank; ++d) {
      view.size.push_back(round % 50 == 0 && d == 1 ? 0
                          : below(10) == 0          ? 1
                                                    : 1 + below(rank < 3   ? 70
                                                                : rank < 6 ? 9
                                                                           : 5));
      view.stride.push_back(0);
      order.push_back(d);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::int64_t stride = below(8) == 0 ? 1 + below(3) : 1;
    for (const std::int64_t d : order) {
      const auto i = static_cast<std::size_t>(d);
      view.stride[i] = below(12) == 0 ? 0 : stride;
      stride *= std::max<std::int64_t>(view.size[i], 1);
      if (below(3) == 0) stride += below(2) == 0 ? 1 + below(5) : 16 - stride % 16;
    }
    view.offset_bytes = below(3) == 0 ? view.element_bytes * below(5) : 0;
    view.dst_offset_bytes = below(6) == 0 ? view.element_bytes * below(3) : 0;
    Arena arena(view);
    const Problem problem = arena.problem();
    const Plan plan = plan_of(problem, kMethodNames[below(4)].value, reinterpret_cast<std::uintptr_t>(arena.src()),
                              reinterpret_cast<std::uintptr_t>(arena.dst()));
    ++routes[static_cast<int>(plan.route)];
    ASSERT_TRUE(arena.run(plan, problem)) << "round " << round;
  }
  // (Boxes are for problems larger than these; test_box.cpp runs them.)
  for (const Route route : {Route::kNothing, Route::kCopy, Route::kGather, Route::kTile}) {
    EXPECT_GT(routes[static_cast<int>(route)], 20) << "each route must have been taken";
  }
}

// The shapes that bring each program to its kernel: whole chunks, odd sides, short sides, few columns.
TEST(SharedMemory, OfEveryKernelIsGrantedByEverySupportedGpu) {
  int largest = 0;
  int without = 0;
  for (const int bytes : {1, 2, 4, 8, 16}) {
    for (const auto& tile : kTileNames) {
      for (const auto& method : kMethodNames) {
        for (const auto& [rows, cols] : {std::pair{1024, 1024}, {1023, 1023}, {4096, 6}, {6, 4096}, {4096, 3}}) {
          const Problem problem = canonical(matrix_view(bytes, rows, cols, cols));
          Plan plan;
          if (!make_forced_plan(problem, 0, 0, method.value, tile.value, plan)) continue;
          const int asked = shared_bytes_of(plan, problem.element_bytes, nullptr, nullptr);
          EXPECT_LE(asked, kGrantedSharedBytes) << tile.name << " " << method.name << " " << bytes;
          largest = std::max(largest, asked);
          without += asked == 0 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(largest, 48 * 1024) << "some tile must be granted more than a launch gets unasked";
  EXPECT_GT(without, 0) << "direct and deinterleave use none";
}

}  // namespace
}  // namespace swizzle
