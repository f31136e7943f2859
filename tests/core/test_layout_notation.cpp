// Claims about layouts by notation: each is the type of its name, keeps what it promises for every size, and is refused
// where it has no meaning.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/layout_notation.hpp"

namespace swizzle {
namespace {

constexpr TileShape kFloats{32, 32, 4};

template <class Layout>
void expect_same(std::string_view notation, const TileShape& tile) {
  const TileLayout parsed = parse_layout(notation, tile);
  for (int row = 0; row < tile.rows; ++row) {
    for (int byte = 0; byte < tile.row_bytes(); ++byte) {
      ASSERT_EQ(parsed.offset(row, byte), Layout::offset(row, byte)) << notation << " row " << row << " byte " << byte;
    }
  }
  EXPECT_EQ(parsed.span_bytes(tile.rows), Layout::span_bytes(tile.rows)) << notation;
}

TEST(LayoutNotation, EachNameIsTheTypeOfThatName) {
  expect_same<RowMajor<128>>("naive", kFloats);
  expect_same<Padded<128, 4, 1>>("padded", kFloats);
  expect_same<Padded<128, 4, 1>>("padded:4", kFloats);
  expect_same<Padded<128, 16, 4>>("padded:16/4", kFloats);
  expect_same<Padded<512, 16, 1>>("padded", {32, 32, 16});
  expect_same<Swizzled<128, ScalarTile<4, 32, 32>::LineForm>>("swizzled", kFloats);
  expect_same<Swizzled<128, ScalarTile<4, 16, 32>::LineForm>>("swizzled", {16, 32, 4});
  expect_same<Swizzled<64, ChunkedTile<2, 16, 32>::LineForm>>("line:16", {32, 32, 2});
  expect_same<Swizzled<64, ArrayTile<short, int, 32>::RowForm>>("article:4", {32, 32, 2});
  expect_same<Swizzled<64, ArrayTile<short, int, 32>::RowForm>>("article:4,32", {32, 32, 2});
  expect_same<Swizzled<128, Swizzle<3, 4, 3>>>("cute:3,4,3", kFloats);
  expect_same<Swizzled<128, Swizzle<3, 4, 3>>>("cute-elements:3,2,3", kFloats);
  expect_same<Swizzled<128, Swizzle<3, 4, 3>>>("tma:128", kFloats);
  expect_same<Swizzled<64, Swizzle<2, 4, 3>>>("tma:64", {32, 16, 4});
  expect_same<Swizzled<32, Swizzle<1, 4, 3>>>("tma:32", {32, 8, 4});
}

TEST(LayoutNotation, TheFormsOfSizesKnownAtRunTimeAreThoseOfTheTypes) {
  static_assert(row_form(128, 4).bits == 5 && row_form(128, 4).base == 2 && row_form(128, 4).shift == 5);
  static_assert(line_form(64, 4).bits == 4 && line_form(64, 4).base == 2 && line_form(64, 4).shift == 5);
  static_assert(line_form(256, 16, 4).shift == ChunkedRow<256, 16, 4>::LineForm::kShift);
  static_assert(tma_form(32).period() == 256 && tma_form(64).period() == 512 && tma_form(128).period() == 1024);
  static_assert(SwizzleBits{}.period() == 1 && SwizzleBits{}.apply(12345) == 12345);
}

// Whether the chunks of a row stay whole and aligned, have places of their own, and lie in the tile's memory.
bool keeps_chunks(const TileLayout& layout, int rows, int chunk_bytes) {
  std::set<int> places;
  for (int row = 0; row < rows; ++row) {
    for (int byte = 0; byte < layout.row_bytes; ++byte) {
      const int first = layout.offset(row, byte - byte % chunk_bytes);
      if (first % chunk_bytes != 0 || layout.offset(row, byte) != first + byte % chunk_bytes) return false;
      if (first < 0 || first + chunk_bytes > layout.span_bytes(rows)) return false;
      if (byte % chunk_bytes == 0 && !places.insert(first).second) return false;
    }
  }
  return true;
}

// At how many places modulo `window` the chunk at `byte` lies in 32 rows from `first_row` on.
int spread(const TileLayout& layout, int first_row, int byte, int chunk_bytes, int window) {
  std::set<int> places;
  for (int row = first_row; row < first_row + 32; ++row) places.insert(layout.offset(row, byte) % window / chunk_bytes);
  return static_cast<int>(places.size());
}

// Every element size, chunk and number of columns, powers of two or not: the formula is accepted exactly where it is
// one-to-one, and then has all three properties.
TEST(LayoutNotation, TheFormulaHasItsThreePropertiesForEverySizeThatIsAccepted) {
  int accepted = 0;
  int refused = 0;
  for (int element_bytes = 1; element_bytes <= 16; ++element_bytes) {
    for (const int chunk_bytes : {4, 8, 16}) {
      for (int cols = 2; cols <= 256; ++cols) {
        const TileShape tile{64, cols, element_bytes};
        if (!is_chunked_tile(element_bytes, chunk_bytes, cols)) {
          for (const char* form : {"article:", "line:"})
            ASSERT_THROW(parse_layout(form + std::to_string(chunk_bytes), tile), std::invalid_argument);
          ++refused;
          continue;
        }
        ++accepted;
        const TileLayout row = parse_layout("article:" + std::to_string(chunk_bytes), tile);
        const TileLayout line = parse_layout("line:" + std::to_string(chunk_bytes), tile);
        ASSERT_TRUE(keeps_chunks(row, tile.rows, chunk_bytes)) << element_bytes << ' ' << chunk_bytes << ' ' << cols;
        ASSERT_TRUE(keeps_chunks(line, tile.rows, chunk_bytes)) << element_bytes << ' ' << chunk_bytes << ' ' << cols;
        for (const int first_row : {0, 1, 7, 32}) {
          for (int byte = 0; byte < tile.row_bytes(); byte += chunk_bytes) {
            ASSERT_EQ(spread(row, first_row, byte, chunk_bytes, tile.row_bytes()),
                      min_of(32, tile.row_bytes() / chunk_bytes));
            ASSERT_EQ(spread(line, first_row, byte, chunk_bytes, kLineBytes), min_of(32, kLineBytes / chunk_bytes));
          }
        }
      }
    }
  }
  EXPECT_EQ(accepted, 86);
  EXPECT_EQ(refused, 16 * 3 * 255 - 86);
}

TEST(LayoutNotation, AnXorOfAnyRowLengthIsOneToOneAndStaysInItsSpan) {
  for (const int cols : {20, 24, 33, 48, 100}) {
    for (const char* notation : {"cute:5,2,5", "cute:3,4,3", "cute:1,4,3", "cute:0,4,3", "cute:2,3,6"}) {
      const TileLayout layout = parse_layout(notation, {31, cols, 4});
      EXPECT_TRUE(keeps_chunks(layout, 31, 4)) << notation << ", " << cols << " columns";
    }
  }
}

TEST(LayoutNotation, TheChunkOfALayoutIsTheWidestThatStaysWholeAndAligned) {
  for (const char* notation : {"naive", "padded:4", "padded:12", "padded:16", "padded:8/4", "swizzled", "line:8",
                               "article:16", "cute:3,4,3", "cute:1,5,2"}) {
    const TileLayout layout = parse_layout(notation, kFloats);
    const int chunk = layout.chunk_bytes();
    EXPECT_TRUE(keeps_chunks(layout, 32, chunk)) << notation;
    if (2 * chunk <= layout.row_bytes) {
      EXPECT_FALSE(keeps_chunks(layout, 32, 2 * chunk)) << notation;
    }
  }
  EXPECT_EQ(parse_layout("padded:4", kFloats).chunk_bytes(), 4);
  EXPECT_EQ(parse_layout("tma:128", kFloats).chunk_bytes(), 16);
}

TEST(LayoutNotation, WhatTmaWritesIsToldApart) {
  const auto is_expressible = [](std::string_view notation, const TileShape& tile) {
    return is_tma_expressible(parse_layout(notation, tile));
  };
  EXPECT_TRUE(is_expressible("naive", kFloats));
  EXPECT_TRUE(is_expressible("line:16", kFloats));
  EXPECT_TRUE(is_expressible("article:16", kFloats));
  EXPECT_TRUE(is_expressible("line:16", {32, 16, 4}));
  EXPECT_FALSE(is_expressible("article:16", {32, 16, 4})) << "source bit 6 instead of 7";
  EXPECT_FALSE(is_expressible("line:4", kFloats));
  EXPECT_FALSE(is_expressible("padded:16", kFloats));
  EXPECT_FALSE(is_expressible("line:16", {32, 64, 4})) << "rows longer than the mode";
  EXPECT_FALSE(is_expressible("naive", {32, 3, 4})) << "rows of 12 bytes";
}

void expect_refused(std::string_view notation, const TileShape& tile, const std::string& sentence) {
  try {
    parse_layout(notation, tile);
    FAIL() << notation << " was accepted";
  } catch (const std::invalid_argument& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find(sentence), std::string::npos) << said;
    EXPECT_NE(said.find("got '" + std::string(notation) + "'"), std::string::npos) << said;
  }
}

TEST(LayoutNotation, WhatHasNoMeaningIsRefusedInOneSentence) {
  for (const char* notation : {"", "fast", "naive:4", "swizzled:4", ":4", "tma128"})
    expect_refused(notation, kFloats, "expected a layout: naive, ");
  for (const char* notation : {"line", "line:", "line:4,4", "line:x", "line:4x", "line:-4", "line:99999999999"})
    expect_refused(notation, kFloats, "expected line:CHUNK");
  for (const char* notation : {"cute:3,4", "cute:3,4,3,1", "cute:3;4;3", "cute:3,4,", "cute-elements:3"})
    expect_refused(notation, kFloats, "expected cute:B,M,S");
  expect_refused("cute:3,4,2", kFloats, "source and target bits are apart");
  expect_refused("cute:3,30,3", kFloats, "below 31");
  expect_refused("cute-elements:3,1,3", {32, 32, 12}, "a power of two of bytes");
  expect_refused("padded:2", kFloats, "whole elements (4 bytes each)");
  expect_refused("padded:0", kFloats, "whole elements");
  expect_refused("padded:4/0", kFloats, "at least one row");
  expect_refused("padded:4,2", kFloats, "expected padded:BYTES");
  expect_refused("padded:", kFloats, "expected padded:BYTES");
  expect_refused("padded:32768", {1 << 17, 1, 4}, "pads of at most 1073741824 bytes in all");
  expect_refused("swizzled", {24, 32, 4}, "a power of two of rows");
  for (const int cols : {24, 48, 33, 20}) {
    expect_refused("article:4", {32, cols, 4}, std::to_string(cols) + " columns");
    expect_refused("swizzled", {32, cols, 4}, "to be powers of two");
  }
  expect_refused("article:4,64", kFloats, "the columns of the tile, 32");
  expect_refused("tma:256", kFloats, "tma:32, tma:64 or tma:128");
  expect_refused("tma:64", kFloats, "here 128 bytes: cut the tile into panels");
}

}  // namespace
}  // namespace swizzle
