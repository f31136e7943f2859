// The tiles: their names, and what each can serve.
#pragma once

#include <cstddef>
#include <string_view>

#include "policy.hpp"
#include "scatter_program.hpp"
#include "transposition.hpp"

namespace swizzle {

/// What a caller may ask for: a shared-memory layout by name, or whatever is fastest.
enum class Method { kAuto, kNaive, kPadded, kSwizzled };

/// Tile policies by name.
/// - kScalar32:  32 x 32 elements, one element a lane; serves every transposition.
/// - kWindow:    rows as windows of chunks, output in 32-byte segments; contiguous rows of elements of up to 8 bytes at
///               any pitch and address.
/// - kVector:    16 bytes a lane on both global sides, 256-byte edges. Input rows may begin and end within a chunk, all at
///               the same place of it.
/// - kVector128: 16 bytes a lane, 128-byte edges.
/// - kShortVector: two elements a lane (four of bytes), 32 rows of 128 bytes, from 8-byte elements on of 256. Columns may
///               lie a stride apart where elements have 1 or 2 bytes.
/// - kDeinterleave: two to four columns, permuted in registers, whole 16-byte chunks on both sides.
/// - kFlat:      a flat run of short rows, of short columns, or of small matrices, gathered from shared memory.
/// - kScatter:   few rows, or small matrices, scattered over an image of the output in words, bytes also one by one.
/// - kBox:       a box over any dimensions, gathered from shared memory; not expanded, contiguous innermost in the
///   input.
/// - kDirect:    no tile: element by element, in output order.
enum class Tile {
  kScalar32,
  kVector,
  kVector128,
  kShortVector,
  kWindow,
  kDeinterleave,
  kFlat,
  kScatter,
  kBox,
  kDirect
};

/// A value and the name that callers know it by.
template <class Value>
struct Named {
  Value value;
  std::string_view name;
};

inline constexpr Named<Method> kMethodNames[] = {
    {Method::kAuto, "auto"}, {Method::kNaive, "naive"}, {Method::kPadded, "padded"}, {Method::kSwizzled, "swizzled"}};
inline constexpr Named<Tile> kTileNames[] = {{Tile::kScalar32, "scalar32"},
                                             {Tile::kVector, "vector"},
                                             {Tile::kVector128, "vector128"},
                                             {Tile::kShortVector, "short_vector"},
                                             {Tile::kWindow, "window"},
                                             {Tile::kDeinterleave, "deinterleave"},
                                             {Tile::kFlat, "flat"},
                                             {Tile::kScatter, "scatter"},
                                             {Tile::kBox, "box"},
                                             {Tile::kDirect, "direct"}};

/// Sets `value` to what `name` stands for in a table of names; false for a name that is not there.
template <class Value, std::size_t kCount>
constexpr bool parse_name(const Named<Value> (&names)[kCount], std::string_view name, Value& value) {
  for (const Named<Value>& entry : names) {
    if (entry.name == name) {
      value = entry.value;
      return true;
    }
  }
  return false;
}

/// The name of a value in a table of names; empty for a value that is not there.
template <class Value, std::size_t kCount>
constexpr std::string_view find_name(const Named<Value> (&names)[kCount], Value value) {
  for (const Named<Value>& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return {};
}
constexpr std::string_view name_of(Method method) { return find_name(kMethodNames, method); }
constexpr std::string_view name_of(Tile tile) { return find_name(kTileNames, tile); }

/// Whether a tile leaves the layout in shared memory open, so that a method other than auto means something.
constexpr bool has_layout(Tile tile) {
  return tile == Tile::kScalar32 || tile == Tile::kVector || tile == Tile::kVector128 || tile == Tile::kShortVector;
}

/// Whether the address and every pitch of the input's rows is a multiple of `bytes`.
inline bool is_input_aligned(const Transposition& matrices, std::uint64_t src_address, int bytes) {
  const auto is_whole = [&](std::int64_t elements) { return elements * matrices.element_bytes % bytes == 0; };
  bool result = src_address % bytes == 0 && is_whole(matrices.src_row_stride);
  for (int i = 0; i < matrices.outer_rank; ++i) result = result && is_whole(matrices.outer_src_stride[i]);
  return result;
}

/// The same for the output's rows.
inline bool is_output_aligned(const Transposition& matrices, std::uint64_t dst_address, int bytes) {
  const auto is_whole = [&](std::int64_t elements) { return elements * matrices.element_bytes % bytes == 0; };
  bool result = dst_address % bytes == 0 && is_whole(matrices.dst_col_stride);
  for (int i = 0; i < matrices.outer_rank; ++i) result = result && is_whole(matrices.outer_dst_stride[i]);
  return result;
}

/// The same for both.
inline bool are_aligned(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address,
                        int bytes) {
  return is_input_aligned(matrices, src_address, bytes) && is_output_aligned(matrices, dst_address, bytes);
}

/// Whether both sides are in multiples of so many bytes.
inline bool are_sides_whole(const Transposition& matrices, int bytes) {
  return matrices.rows * matrices.element_bytes % bytes == 0 && matrices.cols * matrices.element_bytes % bytes == 0;
}

/// Whether chunks of so many bytes fit both sides: contiguous input rows, and every address, pitch and side a multiple
/// of them.
inline bool allows_chunks(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address,
                          int chunk_bytes = 16) {
  return matrices.src_col_stride == 1 && are_sides_whole(matrices, chunk_bytes) &&
         are_aligned(matrices, src_address, dst_address, chunk_bytes);
}

/// Whether chunks fit both sides but for input rows that begin, and end, within a chunk, all at the same place of it:
/// columns of a matrix whose pitch is a multiple of 16 bytes, cut out anywhere.
inline bool allows_cut_rows(const Transposition& matrices, std::uint64_t dst_address) {
  return matrices.element_bytes < 16 && matrices.src_col_stride == 1 &&
         matrices.rows * matrices.element_bytes % 16 == 0 && is_input_aligned(matrices, 0, 16) &&
         is_output_aligned(matrices, dst_address, 16);
}

/// Whether short vectors of elements a stride apart fit: of elements of 1 and 2 bytes, sides and output in multiples of
/// such a vector.
inline bool allows_gathered_chunks(const Transposition& matrices, std::uint64_t dst_address) {
  const int chunk_bytes = short_vector_bytes(matrices.element_bytes);
  return matrices.element_bytes <= 2 && matrices.src_col_stride > 1 && are_sides_whole(matrices, chunk_bytes) &&
         is_output_aligned(matrices, dst_address, chunk_bytes);
}

/// Whether rows of two to four elements lie side by side, everything else is in multiples of 16 bytes, and a matrix
/// gives a block at least its work.
inline bool deinterleave_fits(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  constexpr std::int64_t kMinColumnBytes = 2048;
  const std::int64_t chunk = 16 / matrices.element_bytes;
  bool result = matrices.element_bytes <= 8 && matrices.cols >= 2 && matrices.cols <= 4 && matrices.src_col_stride == 1;
  result =
      result && matrices.src_row_stride == matrices.cols && matrices.rows * matrices.element_bytes >= kMinColumnBytes;
  result = result && matrices.rows % chunk == 0 && matrices.dst_col_stride % chunk == 0;
  result = result && src_address % 16 == 0 && dst_address % 16 == 0;
  for (int i = 0; i < matrices.outer_rank; ++i) {
    result = result && matrices.outer_src_stride[i] % chunk == 0 && matrices.outer_dst_stride[i] % chunk == 0;
  }
  return result;
}

/// Whether flat runs fit: short sides, packed.
inline bool flat_fits(const Transposition& matrices) { return find_flat_shape(matrices).rows > 0; }

/// What a lane of a scatter program loads of a row at once, in bytes: 16 where every pitch, length and address of rows
/// is a multiple of it, else 4 of elements of a byte; 1 where it scatters bytes one by one; 0 where no scatter program
/// serves. Pieces of 4 bytes were slower than gathering elements of 2 and 4 bytes: (5000, 100, 100) of 2 bytes .89 to
/// .96 of a copy, (6987, 49, 49) of 4 bytes .75 to 1.02 (H200, 2026-11-30).
inline int scatter_piece_bytes(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  const FlatShape shape = find_scatter_shape(matrices);
  const std::int64_t bytes = matrices.element_bytes;
  if (shape.rows == 0 || shape.run == FlatRun::kRows || bytes > 4) return 0;
  const bool has_words = are_aligned(matrices, src_address, dst_address, 4) && matrices.rows * bytes % 4 == 0;
  if (has_words && matrices.cols * bytes % 16 == 0 && is_input_aligned(matrices, src_address, 16)) return 16;
  if (bytes > 1) return 0;
  if (has_words && matrices.cols % 4 == 0) return 4;
  return byte_row_lanes(matrices.rows, matrices.cols) > 0 ? 1 : 0;
}

/// Whether rows can be fetched as windows: contiguous ones. (16-byte elements are chunks themselves.)
inline bool windows_fit(const Transposition& matrices) {
  return matrices.src_col_stride == 1 && matrices.element_bytes <= 8;
}

/// Per cent of the places in the windows' tiles that hold rows of a matrix, or columns. The first and the last tile of
/// rows share a segment.
inline std::int64_t window_rows_filled(const Transposition& matrices) {
  const std::int64_t halo = 32 / matrices.element_bytes - 1;
  const std::int64_t tile_rows = window_rows(matrices.element_bytes);
  return 100 * matrices.rows / (ceil_div(matrices.rows + halo, tile_rows) * tile_rows);
}
inline std::int64_t window_cols_filled(const Transposition& matrices) {
  const std::int64_t tile_cols = window_row_bytes(matrices.element_bytes) / matrices.element_bytes;
  return 100 * matrices.cols / (ceil_div(matrices.cols, tile_cols) * tile_cols);
}

/// Whether the window program folds rows over the dimensions that follow them in the output: where they leave a good
/// part of its tiles empty, and there are such dimensions.
inline bool windows_fold_rows(const Transposition& matrices) {
  constexpr std::int64_t kMostFilled = 75;
  return windows_fit(matrices) && matrices.outer_rank > 0 && window_rows_filled(matrices) < kMostFilled &&
         fold_rows(matrices).dims > 0;
}

/// Tiles of a given edge (bytes, both ways) that the matrices fall into.
inline std::int64_t count_tiles(const Transposition& matrices, std::int64_t edge_bytes) {
  const std::int64_t edge = edge_bytes / matrices.element_bytes;
  return ceil_div(matrices.rows, edge) * ceil_div(matrices.cols, edge) * matrices.outer_count();
}

/// Whether a tile can move these matrices.
inline bool can_serve(Tile tile, const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  // A launch has at most 2^31 - 1 blocks, and no tile has shorter edges than 128 bytes or 32 elements.
  if (count_tiles(matrices, min_of(128, 32 * matrices.element_bytes)) > INT32_MAX) return false;
  switch (tile) {
    case Tile::kScalar32:
      return true;
    case Tile::kShortVector:
      return allows_gathered_chunks(matrices, dst_address) ||
             allows_chunks(matrices, src_address, dst_address, short_vector_bytes(matrices.element_bytes));
    case Tile::kWindow:
      return windows_fit(matrices);
    case Tile::kDeinterleave:
      return deinterleave_fits(matrices, src_address, dst_address);
    case Tile::kFlat:
      return flat_fits(matrices);
    case Tile::kScatter:
      return scatter_piece_bytes(matrices, src_address, dst_address) > 0;
    case Tile::kBox:
    case Tile::kDirect:
      return false;
    case Tile::kVector:
      return allows_chunks(matrices, src_address, dst_address) || allows_cut_rows(matrices, dst_address);
    default:
      return allows_chunks(matrices, src_address, dst_address);
  }
}

}  // namespace swizzle
