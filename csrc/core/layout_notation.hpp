// Layouts chosen at run time, by notation: "naive", "padded:4", "line:16", "article:4", "cute:3,4,3", "tma:128". Host
// only; for tools that compare layouts. Kernels take the types of layout.hpp.
#pragma once

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "layout.hpp"

namespace swizzle {

inline constexpr std::int64_t kMaxPads = 1 << 30;  // bytes: offsets stay below bit 31

/// A tile of `rows` x `cols` elements.
struct TileShape {
  int rows = 0;
  int cols = 0;
  int element_bytes = 0;
  constexpr int row_bytes() const { return cols * element_bytes; }
};

/// A layout as numbers: a pad of pad_bytes after every rows_per_pad rows, then an XOR of address bits. Every notation
/// comes down to one of the two; both at their defaults are the row-major tile.
struct TileLayout {
  int row_bytes = 0;
  int pad_bytes = 0;
  int rows_per_pad = 1;
  SwizzleBits exchange;

  /// Byte offset of a byte of a row.
  constexpr int offset(int row, int byte) const {
    return exchange.apply(padded_offset(row_bytes, pad_bytes, rows_per_pad, row, byte));
  }

  /// Bytes of `rows` rows, pads and whole windows of the XOR included.
  constexpr int span_bytes(int rows) const {
    const int window = exchange.bits > 0 ? 1 << (exchange.bits + exchange.base) : 1;
    return static_cast<int>(ceil_div(padded_offset(row_bytes, pad_bytes, rows_per_pad, rows, 0), window)) * window;
  }

  /// The longest run of bytes, a power of two, that the layout keeps together and aligned wherever it starts a chunk of
  /// that length: the widest vector that stays legal. `row_bytes` itself bounds it.
  constexpr int chunk_bytes() const {
    int chunk = 1;
    while (row_bytes % (2 * chunk) == 0 && pad_bytes % (2 * chunk) == 0 &&
           (exchange.bits == 0 || 2 * chunk <= 1 << exchange.base)) {
      chunk *= 2;
    }
    return chunk;
  }
};

namespace detail {

[[noreturn]] inline void refuse_layout(std::string_view expected, std::string_view notation) {
  throw std::invalid_argument("expected " + std::string(expected) + ", got '" + std::string(notation) + "'");
}

// The integers after the colon, as many as `least` to `most`.
inline std::vector<int> parse_numbers(std::string_view text, std::string_view separators, std::size_t least,
                                      std::size_t most, std::string_view expected, std::string_view notation) {
  std::vector<int> numbers;
  const char* const end = text.data() + text.size();
  const char* next = text.data();
  while (next != end) {
    int number = 0;
    const auto [rest, error] = std::from_chars(next, end, number);
    if (error != std::errc() || number < 0 || number > kMaxSwizzledRowBytes) refuse_layout(expected, notation);
    numbers.push_back(number);
    next = rest;
    if (next == end) break;
    if (separators.find(*next) == std::string_view::npos || ++next == end) refuse_layout(expected, notation);
  }
  if (numbers.size() < least || numbers.size() > most) refuse_layout(expected, notation);
  return numbers;
}

}  // namespace detail

/// What a layout's notation means for a tile. `word` stands for 4 bytes:
/// - naive                    rows follow one another
/// - padded                   a pad of one word or one element, whichever is wider, after every row
/// - padded:BYTES[/ROWS]      a pad of that many bytes after every ROWS rows (1)
/// - swizzled                 the line form with the chunk that suits scalar accesses (ScalarTile)
/// - line:CHUNK               the line form with chunks of that many bytes
/// - article:CHUNK[,COLUMNS]  the article's (TC, NX): its form with chunks of sizeof(TC) bytes, NX columns
/// - cute:B,M,S               CuTe's Swizzle<B, M, S> over byte offsets
/// - cute-elements:B,M,S      the same over element offsets
/// - tma:32|64|128            TMA's swizzle mode of that many bytes; rows are at most as long
/// Throws std::invalid_argument with one sentence for a notation that has no meaning for this tile.
inline TileLayout parse_layout(std::string_view notation, const TileShape& tile) {
  const std::size_t colon = notation.find(':');
  const std::string_view name = notation.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view() : notation.substr(colon + 1);
  TileLayout layout;
  layout.row_bytes = tile.row_bytes();
  const auto numbers = [&](std::size_t least, std::size_t most, std::string_view expected,
                           std::string_view separators = ",") {
    return detail::parse_numbers(rest, separators, least, most, expected, notation);
  };
  const auto check_chunk = [&](int chunk_bytes) {
    if (!is_chunked_tile(tile.element_bytes, chunk_bytes, tile.cols)) {
      detail::refuse_layout(
          "element, chunk and columns to be powers of two, the chunk at least an element and at most "
          "a row or 128 bytes (here an element of " +
              std::to_string(tile.element_bytes) + " bytes, a chunk of " + std::to_string(chunk_bytes) + ", " +
              std::to_string(tile.cols) + " columns)",
          notation);
    }
  };
  if (name == "naive" && colon == std::string_view::npos) return layout;
  if (name == "padded") {
    const auto pad = numbers(colon == std::string_view::npos ? 0 : 1, 2, "padded:BYTES or padded:BYTES/ROWS", "/");
    layout.pad_bytes = pad.empty() ? max_of(kWordBytes, tile.element_bytes) : pad[0];
    layout.rows_per_pad = pad.size() < 2 ? 1 : pad[1];
    if (layout.pad_bytes < 1 || layout.pad_bytes % tile.element_bytes != 0 || layout.rows_per_pad < 1) {
      detail::refuse_layout(
          "a pad of whole elements (" + std::to_string(tile.element_bytes) + " bytes each) after at least one row",
          notation);
    }
    if (static_cast<std::int64_t>(tile.rows / layout.rows_per_pad) * layout.pad_bytes > kMaxPads)
      detail::refuse_layout("pads of at most " + std::to_string(kMaxPads) + " bytes in all", notation);
    return layout;
  }
  if (name == "swizzled" && colon == std::string_view::npos) {
    if (!is_power_of_two(tile.rows)) detail::refuse_layout("a power of two of rows for a picked chunk", notation);
    const int chunk_bytes = scalar_chunk_bytes(tile.element_bytes, tile.rows);
    check_chunk(chunk_bytes);
    layout.exchange = line_form(tile.row_bytes(), chunk_bytes);
    return layout;
  }
  if (name == "line") {
    const int chunk_bytes = numbers(1, 1, "line:CHUNK")[0];
    check_chunk(chunk_bytes);
    layout.exchange = line_form(tile.row_bytes(), chunk_bytes);
    return layout;
  }
  if (name == "article") {
    const auto chunk_and_cols = numbers(1, 2, "article:CHUNK or article:CHUNK,COLUMNS");
    if (chunk_and_cols.size() == 2 && chunk_and_cols[1] != tile.cols)
      detail::refuse_layout("the columns of the tile, " + std::to_string(tile.cols), notation);
    check_chunk(chunk_and_cols[0]);
    layout.exchange = row_form(tile.row_bytes(), chunk_and_cols[0]);
    return layout;
  }
  if (name == "cute" || name == "cute-elements") {
    const auto bits = numbers(3, 3, "cute:B,M,S or cute-elements:B,M,S");
    const bool is_in_elements = name == "cute-elements";
    if (is_in_elements && !is_power_of_two(tile.element_bytes))
      detail::refuse_layout("elements of a power of two of bytes", notation);
    const SwizzleBits exchange{bits[0], bits[1] + (is_in_elements ? log2_floor(tile.element_bytes) : 0), bits[2]};
    if (exchange.shift < exchange.bits || exchange.bits + exchange.base + exchange.shift > 30)
      detail::refuse_layout(
          "B <= S, so that source and target bits are apart, and B + M + S bits of an offset below 31", notation);
    layout.exchange = exchange;
    return layout;
  }
  if (name == "tma") {
    const int mode_bytes = numbers(1, 1, "tma:32, tma:64 or tma:128")[0];
    if (mode_bytes != 32 && mode_bytes != 64 && mode_bytes != 128)
      detail::refuse_layout("tma:32, tma:64 or tma:128", notation);
    if (tile.row_bytes() > mode_bytes || tile.row_bytes() % 16 != 0) {
      detail::refuse_layout("rows of whole 16-byte chunks, no longer than the mode (here " +
                                std::to_string(tile.row_bytes()) + " bytes: cut the tile into panels)",
                            notation);
    }
    layout.exchange = tma_form(mode_bytes);
    return layout;
  }
  detail::refuse_layout(
      "a layout: naive, padded[:BYTES[/ROWS]], swizzled, line:CHUNK, article:CHUNK, cute:B,M,S, cute-elements:B,M,S or "
      "tma:32|64|128",
      notation);
}

/// Whether TMA can write the tile in this layout as one box: rows of whole 16-byte chunks that follow one another, and
/// no XOR or a mode at least as long as a row.
constexpr bool is_tma_expressible(const TileLayout& layout) {
  if (layout.pad_bytes != 0 || layout.row_bytes % 16 != 0) return false;
  if (layout.exchange.bits == 0) return true;
  for (const int mode_bytes : {32, 64, 128}) {
    const SwizzleBits mode = tma_form(mode_bytes);
    if (layout.row_bytes <= mode_bytes && layout.exchange.bits == mode.bits && layout.exchange.base == mode.base &&
        layout.exchange.shift == mode.shift)
      return true;
  }
  return false;
}

}  // namespace swizzle
