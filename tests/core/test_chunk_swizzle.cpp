// Claims about the chunk-exchange formula: it equals the article's index arithmetic, keeps its three properties,
// refuses what it cannot map, and takes the wavefronts that docs/formula.md states.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <set>
#include <type_traits>
#include <utility>

#include "core/chunk_swizzle.hpp"
#include "core/layout.hpp"
#include "core/policy.hpp"

namespace swizzle {
namespace {

constexpr int kTestedRows = 64;

template <int kValue>
using Int = std::integral_constant<int, kValue>;

template <class Visit, int... kValues>
void for_each_value(std::integer_sequence<int, kValues...>, Visit visit) {
  (visit(Int<kValues>{}), ...);
}

using ElementSizes = std::integer_sequence<int, 1, 2, 4, 8, 16>;
using ChunkSizes = std::integer_sequence<int, 4, 8, 16>;
using PowersOfTwoCols = std::integer_sequence<int, 2, 4, 8, 16, 32, 64, 128, 256>;

// Calls visit(ChunkedTile) for every tile with a chunk that holds an element and fits in a row.
template <class Visit>
int for_each_tile(Visit visit) {
  int tiles = 0;
  for_each_value(ElementSizes{}, [&](auto element) {
    for_each_value(ChunkSizes{}, [&](auto chunk) {
      for_each_value(PowersOfTwoCols{}, [&](auto cols) {
        constexpr int kElement = decltype(element)::value;
        constexpr int kChunk = decltype(chunk)::value;
        constexpr int kCols = decltype(cols)::value;
        if constexpr (is_chunked_tile(kElement, kChunk, kCols)) {
          visit(ChunkedTile<kElement, kChunk, kCols>{});
          ++tiles;
        }
      });
    });
  });
  return tiles;
}

template <class Tile>
using RowLayout = Swizzled<Tile::kRowBytes, typename Tile::RowForm>;
template <class Tile>
using LineLayout = Swizzled<Tile::kRowBytes, typename Tile::LineForm>;

template <class Tile, class Layout>
using Placement = ChunkPlacement<Layout, kTestedRows, Tile::kRowBytes, Tile::kChunkBytes>;

// The article's formula, in elements; where it prints i for the number of the chunk in the tile, that number is meant.
int article_col(int element_bytes, int chunk_bytes, int cols, int y, int x) {
  const int chunks_per_row = cols * element_bytes / chunk_bytes;
  const int elements_per_chunk = chunk_bytes / element_bytes;
  const int chunk = (y * cols + x) * element_bytes / chunk_bytes;
  const int y_chunk = chunk / chunks_per_row;
  const int x_chunk = chunk % chunks_per_row;
  return (y_chunk ^ x_chunk) * elements_per_chunk % cols + x % elements_per_chunk;
}

TEST(ChunkSwizzle, TheRowFormIsTheArticlesFormula) {
  const int tiles = for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    for (int y = 0; y < kTestedRows; ++y) {
      for (int x = 0; x < Tile::kCols; ++x) {
        const int expected =
            (y * Tile::kCols + article_col(Tile::kElementBytes, Tile::kChunkBytes, Tile::kCols, y, x)) *
            Tile::kElementBytes;
        ASSERT_EQ(Tile::RowForm::apply((y * Tile::kCols + x) * Tile::kElementBytes), expected);
        ASSERT_EQ(RowLayout<Tile>::offset(y, x * Tile::kElementBytes), expected);
      }
    }
  });
  EXPECT_EQ(tiles, 86);
}

TEST(ChunkSwizzle, TheRowFormShiftsByAsManyBitsAsItXors) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    constexpr int kBase = log2_floor(Tile::kChunkBytes);
    constexpr int kBits = log2_floor(Tile::kRowBytes / Tile::kChunkBytes);
    static_assert(std::is_same_v<typename Tile::RowForm, Swizzle<kBits, kBase, kBits>>);
  });
}

TEST(ChunkSwizzle, BothFormsAreOneToOne) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    EXPECT_TRUE((Placement<Tile, RowLayout<Tile>>::is_one_to_one()));
    EXPECT_TRUE((Placement<Tile, LineLayout<Tile>>::is_one_to_one()));
  });
}

TEST(ChunkSwizzle, BothFormsKeepChunksWhole) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    EXPECT_TRUE((Placement<Tile, RowLayout<Tile>>::keeps_chunks_whole()));
    EXPECT_TRUE((Placement<Tile, LineLayout<Tile>>::keeps_chunks_whole()));
  });
}

TEST(ChunkSwizzle, AppliedTwiceBothFormsGiveTheOffsetBack) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    for (int offset = 0; offset < kTestedRows * Tile::kRowBytes; ++offset) {
      ASSERT_EQ(Tile::RowForm::apply(Tile::RowForm::apply(offset)), offset);
      ASSERT_EQ(Tile::LineForm::apply(Tile::LineForm::apply(offset)), offset);
    }
  });
}

TEST(ChunkSwizzle, TheLineFormStaysWithinALine) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    for (int offset = 0; offset < kTestedRows * Tile::kRowBytes; ++offset) {
      ASSERT_EQ(Tile::LineForm::apply(offset) / kLineBytes, offset / kLineBytes);
    }
  });
}

// Counts places over consecutive rows from every row on, for every chunk of a row.
template <class Tile, class Layout, int kWindowBytes>
void expect_spread(int most) {
  for (const int rows : {1, 2, 3, 8, 31, 32}) {
    for (int first = 0; first + rows <= kTestedRows; ++first) {
      for (int byte = 0; byte < Tile::kRowBytes; byte += Tile::kChunkBytes) {
        ASSERT_EQ((Placement<Tile, Layout>::template spread<kWindowBytes>(byte, first, rows)), std::min(rows, most))
            << Tile::kElementBytes << " bytes, chunks of " << Tile::kChunkBytes << ", " << Tile::kCols << " columns";
      }
    }
  }
}

TEST(ChunkSwizzle, ConsecutiveRowsSpreadTheRowFormOverAllChunksOfARow) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    expect_spread<Tile, RowLayout<Tile>, Tile::kRowBytes>(Tile::kChunksPerRow);
  });
}

TEST(ChunkSwizzle, ConsecutiveRowsSpreadTheLineFormOverAllChunksOfALine) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    expect_spread<Tile, LineLayout<Tile>, kLineBytes>(kLineBytes / Tile::kChunkBytes);
  });
}

// The checks themselves: each refuses a layout that breaks its property alone.
struct EveryOtherRowFolded {
  static constexpr int offset(int row, int byte) { return row / 2 * 128 + byte; }
  static constexpr int span_bytes(int rows) { return rows * 128; }
};
struct WordsReversed {
  static constexpr int offset(int row, int byte) { return row * 128 + (byte ^ 12); }
  static constexpr int span_bytes(int rows) { return rows * 128; }
};
struct OneRowTooFar {
  static constexpr int offset(int row, int byte) { return (row + 1) * 128 + byte; }
  static constexpr int span_bytes(int rows) { return rows * 128; }
};

TEST(ChunkSwizzle, TheChecksRefuseLayoutsWithoutTheProperty) {
  using Naive = ChunkPlacement<RowMajor<128>, 32, 128, 16>;
  static_assert(Naive::is_one_to_one() && Naive::keeps_chunks_whole());
  static_assert(Naive::spread<kLineBytes>(0, 0, 32) == 1);
  using Folded = ChunkPlacement<EveryOtherRowFolded, 32, 128, 16>;
  static_assert(!Folded::is_one_to_one() && Folded::keeps_chunks_whole());
  static_assert(!ChunkPlacement<OneRowTooFar, 32, 128, 16>::is_one_to_one());
  static_assert(!ChunkPlacement<WordsReversed, 32, 128, 16>::keeps_chunks_whole());
  static_assert(ChunkPlacement<WordsReversed, 32, 128, 4>::keeps_chunks_whole());
  static_assert(!ChunkPlacement<Padded<128, 4, 1>, 32, 128, 16>::keeps_chunks_whole(), "a word's pad misaligns");
  static_assert(ChunkPlacement<Padded<128, 16, 1>, 32, 128, 16>::keeps_chunks_whole());
}

// What ships, at compile time: one-to-one, chunks whole, and the rows that one column access steps over spread over
// the whole line.
template <class Policy>
struct ShippedPlacement {
  using Xor = typename LayoutsFor<Policy>::Xor;
  static constexpr int kUnitBytes = LayoutsFor<Policy>::kUnitBytes;
  using Chunks = ChunkPlacement<Xor, Policy::kRows, Policy::kRowBytes, kUnitBytes>;

  // The rows 0, s, 2s, ... that a group of lanes reads, s being the elements in a chunk.
  struct Steps {
    static constexpr int offset(int step, int byte) { return Xor::offset(step * Policy::kChunkElements, byte); }
    static constexpr int span_bytes(int steps) { return Xor::span_bytes(steps * Policy::kChunkElements); }
  };
  static constexpr int kSteps = Policy::kRows / Policy::kChunkElements;
  static constexpr bool is_spread() {
    using Placed = ChunkPlacement<Steps, kSteps, Policy::kRowBytes, kUnitBytes>;
    for (int byte = 0; byte < Policy::kRowBytes; byte += kUnitBytes) {
      if (Placed::template spread<kLineBytes>(byte, 0, kSteps) != min_of(kSteps, kLineBytes / kUnitBytes)) return false;
    }
    return true;
  }

  static_assert(Chunks::is_one_to_one());
  static_assert(Chunks::keeps_chunks_whole());
  static_assert(is_spread());
  static constexpr bool kIsProved = true;
};

TEST(ChunkSwizzle, TheShippedLayoutsHaveTheThreeProperties) {
  for_each_value(ElementSizes{}, [](auto element) {
    constexpr int kElement = decltype(element)::value;
    static_assert(ShippedPlacement<Scalar32Policy<kElement>>::kIsProved);
    static_assert(ShippedPlacement<VectorPolicy<kElement>>::kIsProved);
    static_assert(ShippedPlacement<Vector128Policy<kElement>>::kIsProved);
    static_assert(ShippedPlacement<ShortVectorPolicy<kElement>>::kIsProved);
  });
}

TEST(ChunkSwizzle, TheLineFormWithChunksOf16BytesIsTma) {
  static_assert(std::is_same_v<ChunkedRow<32, 16>::LineForm, Swizzle<1, 4, 3>>);
  static_assert(std::is_same_v<ChunkedRow<64, 16>::LineForm, Swizzle<2, 4, 3>>);
  static_assert(std::is_same_v<ChunkedRow<128, 16>::LineForm, Swizzle<3, 4, 3>>);
}

TEST(ChunkSwizzle, TheRowFormIsTmaForRowsOf128BytesOnly) {
  static_assert(std::is_same_v<ChunkedRow<32, 16>::RowForm, Swizzle<1, 4, 1>>);
  static_assert(std::is_same_v<ChunkedRow<64, 16>::RowForm, Swizzle<2, 4, 2>>);
  static_assert(std::is_same_v<ChunkedRow<128, 16>::RowForm, Swizzle<3, 4, 3>>);
  static_assert(std::is_same_v<ChunkedRow<256, 16>::RowForm, Swizzle<4, 4, 4>>);
}

// Whether the XOR of every address from `base` on is the base plus the XOR of the offset.
template <class Xor>
bool starts_anew_at(int base) {
  for (int offset = 0; offset < 4096; ++offset) {
    if (Xor::apply(base + offset) != base + Xor::apply(offset)) return false;
  }
  return true;
}

TEST(ChunkSwizzle, AnXorOfAddressesNeedsABaseThatIsAMultipleOfItsPeriod) {
  for (const int base : {256, 512, 1024, 2048}) {
    EXPECT_TRUE((starts_anew_at<Swizzle<1, 4, 3>>(base)));
    EXPECT_EQ((starts_anew_at<Swizzle<2, 4, 3>>(base)), base % 512 == 0);
    EXPECT_EQ((starts_anew_at<Swizzle<3, 4, 3>>(base)), base % 1024 == 0);
  }
  EXPECT_FALSE((starts_anew_at<Swizzle<1, 4, 3>>(128)));
}

TEST(ChunkSwizzle, BothFormsAreOneExactlyForRowsOfOneLine) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    EXPECT_EQ((std::is_same_v<typename Tile::RowForm, typename Tile::LineForm>), Tile::kRowBytes == kLineBytes);
  });
}

// How many of 32 rows' elements have a place of their own under the article's formula, whatever its preconditions.
int surviving_elements(int element_bytes, int chunk_bytes, int cols) {
  std::set<int> places;
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < cols; ++x) places.insert(y * cols + article_col(element_bytes, chunk_bytes, cols, y, x));
  }
  return static_cast<int>(places.size());
}

TEST(ChunkSwizzle, RowsThatAreNoPowerOfTwoWouldLoseElementsAndAreRefused) {
  EXPECT_EQ(surviving_elements(4, 4, 24), 640);   // of 768
  EXPECT_EQ(surviving_elements(4, 4, 48), 1280);  // of 1536
  EXPECT_EQ(surviving_elements(4, 4, 33), 1025);  // of 1056
  EXPECT_EQ(surviving_elements(4, 4, 20), 544);   // of 640
  for (const int cols : {24, 48, 33, 20}) {
    for (const int element_bytes : {1, 2, 4, 8, 16}) {
      for (const int chunk_bytes : {4, 8, 16}) EXPECT_FALSE(is_chunked_tile(element_bytes, chunk_bytes, cols));
    }
  }
}

TEST(ChunkSwizzle, EveryPowerOfTwoFromOneChunkARowUpIsAcceptedAndLosesNothing) {
  for (int cols = 1; cols <= 256; ++cols) {
    for (const int element_bytes : {1, 2, 4, 8, 16}) {
      for (const int chunk_bytes : {1, 2, 4, 8, 16, 32}) {
        const bool is_expected =
            (cols & (cols - 1)) == 0 && element_bytes <= chunk_bytes && chunk_bytes <= cols * element_bytes;
        ASSERT_EQ(is_chunked_tile(element_bytes, chunk_bytes, cols), is_expected);
        if (is_expected) {
          ASSERT_EQ(surviving_elements(element_bytes, chunk_bytes, cols), 32 * cols);
        }
      }
    }
  }
}

TEST(ChunkSwizzle, SizesWithoutAMeaningAreRefused) {
  static_assert(is_chunked_tile(4, 16, 32));
  static_assert(!is_chunked_tile(0, 16, 32) && !is_chunked_tile(-4, 16, 32) && !is_chunked_tile(12, 16, 32));
  static_assert(!is_chunked_tile(4, 0, 32) && !is_chunked_tile(4, 12, 32));
  static_assert(!is_chunked_tile(4, 16, 0) && !is_chunked_tile(4, 16, -32));
  static_assert(!is_chunked_tile(8, 4, 32), "a chunk smaller than an element");
  static_assert(!is_chunked_tile(4, 16, 2), "a chunk longer than the row");
  static_assert(is_chunked_tile(4, 128, 32) && !is_chunked_tile(4, 256, 64), "a chunk longer than a line");
  static_assert(is_chunked_tile(16, 16, 2048) && !is_chunked_tile(16, 16, 4096), "offsets beyond 31 bits");
  static_assert(!is_chunked_tile(16, 16, 1 << 30));
  static_assert(ChunkedTile<16, 16, 2048>::RowForm::apply(2048 * 16) == 2048 * 16 + 16);
  static_assert(ChunkedTile<1, 1, 32768>::RowForm::apply(32768) == 32769);
}

// Slips of the article, each shown by the number that it gets wrong.

TEST(ChunkSwizzle, TheRowNumberIsReducedButNotScaled) {
  // Row 1 of 32 floats in chunks of 16 bytes: its first chunk moves by one, where a row number scaled by the chunk's
  // four elements would leave it.
  constexpr int kChunksPerRow = 8;
  EXPECT_EQ(1 % kChunksPerRow, 1);
  EXPECT_EQ(1 % 32 * 4 / 16, 0);
  EXPECT_EQ(article_col(4, 16, 32, 1, 0), 4);
  EXPECT_EQ((ChunkedTile<4, 16, 32>::RowForm::apply(128)), 128 + 16);
}

TEST(ChunkSwizzle, AnUnreducedRowNumberRunsOutOfTheRow) {
  constexpr int kChunksPerRow = 8;
  int largest = 0;
  for (int y = 0; y < kTestedRows; ++y) {
    for (int x_chunk = 0; x_chunk < kChunksPerRow; ++x_chunk) largest = std::max(largest, y ^ x_chunk);
  }
  EXPECT_EQ(largest, 63);
}

TEST(ChunkSwizzle, TheSpreadIsTheChunksOfARowNotItsColumns) {
  using Tile = ChunkedTile<4, 16, 32>;
  std::set<int> cols;
  for (int y = 0; y < 32; ++y) cols.insert(article_col(4, 16, 32, y, 5));
  EXPECT_EQ(cols.size(), 8u);
  EXPECT_EQ((Placement<Tile, RowLayout<Tile>>::spread<Tile::kRowBytes>(20, 0, 32)), 8);
}

// Wavefronts of the requests of one access, over all warps of a tile: fewest and most.
struct Range {
  int fewest;
  int most;
  constexpr Range(int both) : fewest(both), most(both) {}
  constexpr Range(int fewest_, int most_) : fewest(fewest_), most(most_) {}
  friend bool operator==(const Range& a, const Range& b) { return a.fewest == b.fewest && a.most == b.most; }
  friend std::ostream& operator<<(std::ostream& out, const Range& range) {
    return out << range.fewest << " to " << range.most;
  }
};

// A tile as a warp sees it: `rows` rows of `units`, each moved by one access of `width_bytes`.
struct Shape {
  int width_bytes;
  int rows;
  int units;
};

// Lanes follow the tile row by row, or column by column; each warp takes the next 32 units.
template <class Offset>
Range count_tile(const Shape& shape, bool is_column, Offset offset) {
  Range range(kLanes * kLanes, 0);
  for (int first = 0; first < shape.rows * shape.units; first += kLanes) {
    WarpRequest request;
    request.width_bytes = shape.width_bytes;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int i = first + lane;
      const int row = is_column ? i % shape.rows : i / shape.units;
      const int unit = is_column ? i / shape.rows : i % shape.units;
      request.active[lane] = true;
      request.offset[lane] = offset(row, unit * shape.width_bytes);
    }
    const int actual = count_wavefronts(request).actual;
    range.fewest = std::min(range.fewest, actual);
    range.most = std::max(range.most, actual);
  }
  return range;
}

template <class Offset>
Range row_write(const Shape& shape, Offset offset) {
  return count_tile(shape, false, offset);
}

template <class Offset>
Range column_read(const Shape& shape, Offset offset) {
  return count_tile(shape, true, offset);
}

struct Pitch {
  int bytes;
  int operator()(int row, int byte) const { return row * bytes + byte; }
};

template <class Xor>
struct Swizzling {
  int row_bytes;
  int operator()(int row, int byte) const { return Xor::apply(row * row_bytes + byte); }
};

constexpr Range kNone{-1};  // chunks smaller than an element

struct Access {
  Range row;
  Range column;
};

struct ScalarTileCounts {
  int ideal;
  Access naive, pad_element, pad_word;
  std::array<Range, 3> row_form;   // column reads with chunks of 4, 8 and 16 bytes
  std::array<Range, 3> line_form;  // likewise
};

template <int kElement, int kRows, int kCols>
void expect_scalar_counts(const ScalarTileCounts& expected) {
  SCOPED_TRACE(testing::Message() << kRows << " x " << kCols << " elements of " << kElement << " bytes");
  constexpr Shape kShape{kElement, kRows, kCols};
  constexpr int kRowBytes = kCols * kElement;
  EXPECT_EQ(expected.ideal, kLanes / lanes_per_group(kElement));
  const auto expect_pitch = [&](int pad_bytes, const Access& access) {
    SCOPED_TRACE(testing::Message() << "pad of " << pad_bytes);
    EXPECT_EQ(row_write(kShape, Pitch{kRowBytes + pad_bytes}), access.row);
    EXPECT_EQ(column_read(kShape, Pitch{kRowBytes + pad_bytes}), access.column);
  };
  expect_pitch(0, expected.naive);
  expect_pitch(kElement, expected.pad_element);
  expect_pitch(std::max(4, kElement), expected.pad_word);
  const auto expect_form = [&](auto xor_type, int chunk_bytes, Range column) {
    SCOPED_TRACE(testing::Message() << "chunks of " << chunk_bytes);
    const Swizzling<decltype(xor_type)> stored{kRowBytes};
    EXPECT_EQ(row_write(kShape, stored), Range(expected.ideal));
    EXPECT_EQ(column_read(kShape, stored), column);
  };
  for_each_value(ChunkSizes{}, [&](auto chunk) {
    constexpr int kChunk = decltype(chunk)::value;
    constexpr int kIndex = log2_floor(kChunk / 4);
    if constexpr (is_chunked_tile(kElement, kChunk, kCols)) {
      using Tile = ChunkedTile<kElement, kChunk, kCols>;
      expect_form(typename Tile::RowForm{}, kChunk, expected.row_form[kIndex]);
      expect_form(typename Tile::LineForm{}, kChunk, expected.line_form[kIndex]);
    } else {
      EXPECT_EQ(expected.row_form[kIndex], kNone);
      EXPECT_EQ(expected.line_form[kIndex], kNone);
    }
  });
}

// The table of docs/formula.md, cell by cell: {row write, column read}.
TEST(ChunkSwizzleCounts, ScalarAccesses) {
  // clang-format off
  //                    T  rows cols ideal naive  +1 element   +1 word row form            line form
  expect_scalar_counts< 1,  32,  32>({1, {1,  8}, {1, {1, 2}}, {1, 1}, {4, 8, 8},          {1, 2, 4}});
  expect_scalar_counts< 1,  32,  16>({1, {1,  4}, {1, {2, 3}}, {1, 1}, {4, 4, 4},          {1, 2, 4}});
  expect_scalar_counts< 1,  64,  32>({1, {1,  8}, {1, {1, 2}}, {1, 1}, {4, 8, 8},          {1, 2, 4}});
  expect_scalar_counts< 1,  64,  64>({1, {1, 16}, {1, 2},      {1, 1}, {2, 4, 8},          {1, 2, 4}});
  expect_scalar_counts< 1, 128, 128>({1, {1, 32}, {1, 4},      {1, 1}, {1, 2, 4},          {1, 2, 4}});
  expect_scalar_counts< 2,  32,  32>({1, {1, 16}, {1, {1, 2}}, {1, 1}, {2, 4, 8},          {1, 2, 4}});
  expect_scalar_counts< 2,  32,  16>({1, {1,  8}, {1, 2},      {1, 1}, {4, 8, 8},          {1, 2, 4}});
  expect_scalar_counts< 2,  64,  32>({1, {1, 16}, {1, {1, 2}}, {1, 1}, {2, 4, 8},          {1, 2, 4}});
  expect_scalar_counts< 2,  64,  64>({1, {1, 32}, {1, 2},      {1, 1}, {1, 2, 4},          {1, 2, 4}});
  expect_scalar_counts< 2, 128, 128>({1, {1, 32}, {1, 2},      {1, 1}, {1, 2, 4},          {1, 2, 4}});
  expect_scalar_counts< 4,  32,  32>({1, {1, 32}, {1, 1},      {1, 1}, {1, 2, 4},          {1, 2, 4}});
  expect_scalar_counts< 4,  32,  16>({1, {1, 16}, {2, 1},      {2, 1}, {2, 4, 8},          {1, 2, 4}});
  expect_scalar_counts< 4,  64,  32>({1, {1, 32}, {1, 1},      {1, 1}, {1, 2, 4},          {1, 2, 4}});
  expect_scalar_counts< 4,  64,  64>({1, {1, 32}, {1, 1},      {1, 1}, {1, 2, 4},          {1, 2, 4}});
  expect_scalar_counts< 4, 128, 128>({1, {1, 32}, {1, 1},      {1, 1}, {1, 2, 4},          {1, 2, 4}});
  expect_scalar_counts< 4,  16,  32>({1, {1, 16}, {1, 2},      {1, 2}, {2, 1, 2},          {2, 1, 2}});
  expect_scalar_counts< 8,  32,  32>({2, {2, 32}, {2, 2},      {2, 2}, {kNone, 2, 4},      {kNone, 2, 4}});
  expect_scalar_counts< 8,  32,  16>({2, {2, 32}, {2, 2},      {2, 2}, {kNone, 2, 4},      {kNone, 2, 4}});
  expect_scalar_counts< 8,  64,  32>({2, {2, 32}, {2, 2},      {2, 2}, {kNone, 2, 4},      {kNone, 2, 4}});
  expect_scalar_counts< 8,  64,  64>({2, {2, 32}, {2, 2},      {2, 2}, {kNone, 2, 4},      {kNone, 2, 4}});
  expect_scalar_counts< 8, 128, 128>({2, {2, 32}, {2, 2},      {2, 2}, {kNone, 2, 4},      {kNone, 2, 4}});
  expect_scalar_counts<16,  32,  32>({4, {4, 32}, {4, 4},      {4, 4}, {kNone, kNone, 4},  {kNone, kNone, 4}});
  expect_scalar_counts<16,  32,  16>({4, {4, 32}, {4, 4},      {4, 4}, {kNone, kNone, 4},  {kNone, kNone, 4}});
  expect_scalar_counts<16,  64,  32>({4, {4, 32}, {4, 4},      {4, 4}, {kNone, kNone, 4},  {kNone, kNone, 4}});
  expect_scalar_counts<16,  64,  64>({4, {4, 32}, {4, 4},      {4, 4}, {kNone, kNone, 4},  {kNone, kNone, 4}});
  expect_scalar_counts<16, 128, 128>({4, {4, 32}, {4, 4},      {4, 4}, {kNone, kNone, 4},  {kNone, kNone, 4}});
  // clang-format on
}

struct VectorCounts {
  int ideal;
  int row;  // naive and swizzled
  int row_padded;
  int column_naive;
  int column_padded;
  int column_row_form;
  int column_line_form;
};

template <int kWidth, int kRowBytes>
void expect_vector_counts(const VectorCounts& expected) {
  SCOPED_TRACE(testing::Message() << "rows of " << kRowBytes << " bytes, vectors of " << kWidth);
  constexpr Shape kShape{kWidth, kLanes, kRowBytes / kWidth};
  const Pitch naive{kRowBytes};
  const Pitch padded{kRowBytes + kWidth};
  const Swizzling<typename ChunkedRow<kRowBytes, kWidth>::RowForm> row_form{kRowBytes};
  const Swizzling<typename ChunkedRow<kRowBytes, kWidth>::LineForm> line_form{kRowBytes};
  EXPECT_EQ(expected.ideal, kLanes / lanes_per_group(kWidth));
  EXPECT_EQ(row_write(kShape, naive), Range(expected.row));
  EXPECT_EQ(row_write(kShape, row_form), Range(expected.row));
  EXPECT_EQ(row_write(kShape, line_form), Range(expected.row));
  EXPECT_EQ(row_write(kShape, padded), Range(expected.row_padded));
  EXPECT_EQ(column_read(kShape, naive), Range(expected.column_naive));
  EXPECT_EQ(column_read(kShape, padded), Range(expected.column_padded));
  EXPECT_EQ(column_read(kShape, row_form), Range(expected.column_row_form));
  EXPECT_EQ(column_read(kShape, line_form), Range(expected.column_line_form));
}

// A lane moves a whole chunk; the column is 32 rows of one chunk, as ldmatrix reads it. The pad is one chunk.
TEST(ChunkSwizzleCounts, VectorAccesses) {
  expect_vector_counts<8, 16>({2, 2, 4, 4, 2, 4, 2});
  expect_vector_counts<8, 32>({2, 2, 4, 8, 2, 8, 2});
  expect_vector_counts<8, 64>({2, 2, 4, 16, 2, 4, 2});
  expect_vector_counts<8, 128>({2, 2, 2, 32, 2, 2, 2});
  expect_vector_counts<8, 256>({2, 2, 2, 32, 2, 2, 2});
  expect_vector_counts<8, 512>({2, 2, 2, 32, 2, 2, 2});
  expect_vector_counts<16, 32>({4, 4, 8, 8, 4, 8, 4});
  expect_vector_counts<16, 64>({4, 4, 8, 16, 4, 8, 4});
  expect_vector_counts<16, 128>({4, 4, 4, 32, 4, 4, 4});
  expect_vector_counts<16, 256>({4, 4, 4, 32, 4, 4, 4});
  expect_vector_counts<16, 512>({4, 4, 4, 32, 4, 4, 4});
}

// What a chunk costs: the chunks' places in a line bound a scalar column from below, and both forms reach the bound
// where the tile has the rows and the lines for it.
TEST(ChunkSwizzleCounts, AWholeChunkLeavesAColumnOneBankAChunkOfTheLine) {
  for_each_value(ChunkSizes{}, [](auto chunk) {
    constexpr int kChunk = decltype(chunk)::value;
    for (int byte = 0; byte < kChunk; byte += 4) {
      std::set<int> banks;
      for (int place = 0; place < 1024; ++place) banks.insert((place * kChunk + byte) / kWordBytes % kBanks);
      EXPECT_EQ(static_cast<int>(banks.size()), kLineBytes / kChunk);
    }
  });
}

TEST(ChunkSwizzleCounts, TheLineFormReadsAColumnInAsFewWavefrontsAsItsChunkAllows) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    constexpr int kElement = Tile::kElementBytes;
    constexpr Shape kShape{kElement, kTestedRows, Tile::kCols};
    const int ideal = kLanes / lanes_per_group(kElement);
    EXPECT_EQ(column_read(kShape, Swizzling<typename Tile::LineForm>{Tile::kRowBytes}),
              Range(ideal * Tile::kChunkBytes / std::max(4, kElement)));
    EXPECT_EQ(row_write(kShape, Swizzling<typename Tile::LineForm>{Tile::kRowBytes}), Range(ideal));
  });
}

TEST(ChunkSwizzleCounts, TheLineFormIsNeverWorseThanTheRowForm) {
  for_each_tile([](auto tile) {
    using Tile = decltype(tile);
    constexpr Shape kShape{Tile::kElementBytes, kTestedRows, Tile::kCols};
    EXPECT_LE(column_read(kShape, Swizzling<typename Tile::LineForm>{Tile::kRowBytes}).most,
              column_read(kShape, Swizzling<typename Tile::RowForm>{Tile::kRowBytes}).fewest);
  });
}

template <int kElement, int kRows, int kCols>
void expect_scalar_tile_without_conflicts() {
  using Tile = ScalarTile<kElement, kRows, kCols>;
  constexpr Shape kShape{kElement, kRows, kCols};
  const Swizzling<typename Tile::LineForm> stored{Tile::kRowBytes};
  const Range ideal(kLanes / lanes_per_group(kElement));
  EXPECT_EQ(row_write(kShape, stored), ideal) << kRows << " x " << kCols << " elements of " << kElement << " bytes";
  EXPECT_EQ(column_read(kShape, stored), ideal) << kRows << " x " << kCols << " elements of " << kElement << " bytes";
}

// Every tile that holds a warp's lanes and a line, with rows of at least a word.
TEST(ChunkSwizzleCounts, ThePickedChunkMakesEveryScalarTileFreeOfConflicts) {
  static_assert(scalar_chunk_bytes(1, 32) == 4 && scalar_chunk_bytes(4, 32) == 4 && scalar_chunk_bytes(16, 8) == 16);
  static_assert(scalar_chunk_bytes(4, 16) == 8 && scalar_chunk_bytes(8, 8) == 16 && scalar_chunk_bytes(16, 4) == 32);
  int tiles = 0;
  for_each_value(ElementSizes{}, [&](auto element) {
    for_each_value(std::integer_sequence<int, 1, 2, 4, 8, 16, 32, 64, 128>{}, [&](auto rows) {
      for_each_value(PowersOfTwoCols{}, [&](auto cols) {
        constexpr int kElement = decltype(element)::value;
        constexpr int kRows = decltype(rows)::value;
        constexpr int kCols = decltype(cols)::value;
        constexpr bool kFillsAWarpAndALine = kRows * kCols >= kLanes && kRows * kCols * kElement >= kLineBytes;
        if constexpr (kFillsAWarpAndALine && kCols * kElement >= kWordBytes) {
          expect_scalar_tile_without_conflicts<kElement, kRows, kCols>();
          ++tiles;
        }
      });
    });
  });
  EXPECT_EQ(tiles, 252);
}

// The article's own tile, 32 wide and 16 high: a warp reads two columns of 16.
TEST(ChunkSwizzleCounts, The32WideAnd16HighTileOfFloats) {
  constexpr Shape kShape{4, 16, 32};
  EXPECT_EQ(column_read(kShape, Pitch{128}), Range(16));
  EXPECT_EQ(column_read(kShape, Swizzling<ChunkedTile<4, 4, 32>::RowForm>{128}), Range(2));
  EXPECT_EQ(column_read(kShape, Swizzling<ChunkedTile<4, 8, 32>::RowForm>{128}), Range(1));
  for (int pad_words = 1; pad_words <= 32; ++pad_words) {
    EXPECT_EQ(row_write(kShape, Pitch{128 + 4 * pad_words}), Range(1));
    EXPECT_EQ(column_read(kShape, Pitch{128 + 4 * pad_words}) == Range(1), pad_words % 4 == 2) << pad_words;
  }
}

TEST(ChunkSwizzleCounts, NoPadServesBothSidesOfThe16WideAnd32HighTileOfFloats) {
  constexpr Shape kShape{4, 32, 16};
  EXPECT_EQ(column_read(kShape, Pitch{64}), Range(16));
  EXPECT_EQ(column_read(kShape, Swizzling<ChunkedTile<4, 4, 16>::RowForm>{64}), Range(2));
  EXPECT_EQ(column_read(kShape, Swizzling<ChunkedTile<4, 4, 16>::LineForm>{64}), Range(1));
  for (int pad_words = 0; pad_words <= 64; ++pad_words) {
    const Pitch padded{64 + 4 * pad_words};
    EXPECT_GT(row_write(kShape, padded).most + column_read(kShape, padded).most, 2) << pad_words;
  }
}

// A row of P words under the row form with chunks of one word: 32 / max(P, 32 / P) wavefronts for a column of 32.
TEST(ChunkSwizzleCounts, ShortRowsLeaveTheRowFormConflicts) {
  for_each_value(std::integer_sequence<int, 2, 4, 8, 16, 32>{}, [](auto words) {
    constexpr int kWords = decltype(words)::value;
    const Swizzling<typename ChunkedTile<4, 4, kWords>::RowForm> stored{4 * kWords};
    EXPECT_EQ(column_read({4, 32, kWords}, stored), Range(32 / std::max(kWords, 32 / kWords))) << kWords;
  });
}

template <int kElement, int kRows, int kCols>
void expect_chunk_of_an_element(Range expected) {
  using Fine = ChunkedTile<kElement, kElement, kCols>;
  using Picked = ScalarTile<kElement, kRows, kCols>;
  constexpr Shape kShape{kElement, kRows, kCols};
  EXPECT_EQ(column_read(kShape, Swizzling<typename Fine::RowForm>{Fine::kRowBytes}), expected)
      << kRows << " x " << kCols << " elements of " << kElement;
  EXPECT_EQ(column_read(kShape, Swizzling<typename Picked::LineForm>{Picked::kRowBytes}), Range(1));
}

TEST(ChunkSwizzleCounts, ChunksBelowAWordAreTooFine) {
  expect_chunk_of_an_element<1, 32, 16>(2);
  expect_chunk_of_an_element<1, 64, 64>(2);
  expect_chunk_of_an_element<1, 128, 128>(4);
  expect_chunk_of_an_element<2, 32, 16>(2);
  expect_chunk_of_an_element<2, 64, 64>(2);
  expect_chunk_of_an_element<2, 128, 128>(2);
}

// 8192 x 8192 floats in 32 x 32 tiles: one request a warp, 31 wavefronts more than the one that is needed.
TEST(ChunkSwizzleCounts, TheArticlesTransposeHas65MillionExtraWavefronts) {
  constexpr Shape kShape{4, 32, 32};
  constexpr std::int64_t kRequests = 8192 * 8192 / kLanes;
  EXPECT_EQ(kRequests, 2097152);
  EXPECT_EQ(kRequests * (column_read(kShape, Pitch{128}).most - 1), 65011712);
  EXPECT_EQ(column_read(kShape, Pitch{132}), Range(1));
  EXPECT_EQ(column_read(kShape, Swizzling<ChunkedTile<4, 4, 32>::RowForm>{128}), Range(1));
}

}  // namespace
}  // namespace swizzle
