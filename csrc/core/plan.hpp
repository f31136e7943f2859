// The plan: which program moves a problem, with which tile and layout. Pure functions of the problem and the device.
//
// Note [Measured shares]
// Every threshold below was read off sweeps on one NVIDIA H200 on 2026-11-29. Figures are shares of the speed of a copy
// of the same bytes, kernel time with a cold L2 cache; columns are element sizes of 1, 2, 4 and 8 bytes unless said.
#pragma once

#include "box.hpp"
#include "gather_program.hpp"
#include "tiles.hpp"

namespace swizzle {

/// What the choice depends on besides the problem.
struct DeviceTraits {
  int multiprocessors = 132;
};

/// How a problem is moved.
enum class Route { kNothing, kCopy, kGather, kTile, kBox };
struct Plan {
  Route route = Route::kNothing;
  Tile tile = Tile::kDirect;
  Method layout = Method::kSwizzled;
  Transposition matrices;
  Box box;
};

/// Whether tiles of chunks would move many halves of 32-byte sectors: at an address or a pitch that is an odd multiple of
/// 16 bytes, on all but short sides.
inline bool halves_sectors(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  constexpr std::int64_t kMinBytes = 128;
  return min_of(matrices.rows, matrices.cols) * matrices.element_bytes >= kMinBytes &&
         !are_aligned(matrices, src_address, dst_address, 32);
}

/// Whether rows of 4-byte elements begin within lines of 128 bytes in a large input. Windows of 512 bytes split fewer lines
/// than tiles of 256: us, H200, 2026-12-01, window / vector, 5000 x 50000 500 / 507, 8192 x 8208 137.0 / 137.5, 16384 x
/// 16400 535 / 537, but 4096 x 4112 38.9 / 37.8; 8 bytes 8192 x 8200 270 / 269, 2 bytes 8192 x 8208 72.9 / 72.0.
inline bool splits_lines(const Transposition& matrices, std::uint64_t src_address) {
  constexpr std::int64_t kMinBytes = std::int64_t{256} << 20;
  return matrices.element_bytes == 4 && matrices.byte_count() >= kMinBytes &&
         !is_input_aligned(matrices, src_address, 128);
}

/// Whether `vector` with rows that cut chunks beats the other tiles: from some rows and size on, and unless it takes two
/// tiles a row for what would fill one. Note [Measured shares], 2026-12-01, rows that begin one element behind a line,
/// `vector` / the best of the others:
///   8192^2          .96 / .86   .97 / .92   .98 / .93   1.00 / .94
///   1536^2          .87 / .81   .89 / .87  1.13 / 1.01  1.11 / .95
///   32 MiB, 32 rows .85 / .84   .90 / .88   .94 / .89   .93 / .87
///          128 rows .93 / .76   .96 / .80   .96 / .80   .96 / .82
///          48 cols  .79 / .67   .94 / .78   .84 / .82   .92 / .86
///          64 cols  .64 / .57   .78 / .71   .76 / .81   .88 / .85
inline bool cut_rows_pay(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  constexpr std::int64_t kMinBytes = std::int64_t{2} << 20;
  constexpr std::int64_t kMinRows = 32;
  if (!allows_cut_rows(matrices, dst_address) || matrices.rows < kMinRows || matrices.byte_count() < kMinBytes) {
    return false;
  }
  if (halves_sectors(matrices, 0, dst_address)) return false;
  const std::int64_t tile_cols = 256 / matrices.element_bytes;
  const int cols_before = CutRowsArguments::find_cols_before(src_address, matrices.element_bytes);
  const std::int64_t tiles = ceil_div(matrices.cols + cols_before, tile_cols);
  return tiles == 1 || 2 * matrices.cols > tiles * tile_cols;
}

/// The tile for a transposition when a layout was named: chunks where they fit, one element a lane elsewhere.
///
/// 128-byte edges instead of 256-byte ones where these make few tiles an SM, where a matrix fits into one tile, and on
/// the narrowest sides of small elements. Note [Measured shares], 128 / 256:
///   1 byte  3072^2 (144 tiles) .96 / .94   4096^2 (256 tiles) 1.02 / 1.03
///   2 bytes (8, 3276800) .67 / .46
///   (65536, 16, 16): 2 bytes .40 / .21, 4 bytes .79 / .49
///   us, 2026-12-01: 2 bytes 2048^2 (256 tiles) 8.61 / 8.75, 512 x 14336 (448) 11.3 / 11.8, 2880^2 (529) 12.7 / 12.6;
///   4 bytes 1024^2 (256) 6.76 / 7.12, 1536^2 (576) 9.26 / 9.23; 8 bytes 512^2 (256) 5.62 / 5.82; but 16 bytes 512^2
///   (1024) 7.49 / 7.04
inline Tile select_shared_tile(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address,
                               const DeviceTraits& device) {
  if (!allows_chunks(matrices, src_address, dst_address)) {
    return cut_rows_pay(matrices, src_address, dst_address) ? Tile::kVector : Tile::kScalar32;
  }
  if (count_tiles(matrices, 128) <= 1) return Tile::kScalar32;
  const std::int64_t bytes = matrices.element_bytes;
  const std::int64_t shorter_bytes = min_of(matrices.rows, matrices.cols) * bytes;
  const std::int64_t longer_bytes = max_of(matrices.rows, matrices.cols) * bytes;
  const bool is_narrow = longer_bytes <= 128 || (bytes <= 2 && shorter_bytes <= 32);
  const int half_tiles_per_sm = bytes == 1 || bytes == 16 ? 3 : 7;
  const bool leaves_idle_sms = 2 * count_tiles(matrices, 256) < half_tiles_per_sm * device.multiprocessors;
  return is_narrow || leaves_idle_sms ? Tile::kVector128 : Tile::kVector;
}

/// Whether short vectors beat the tile that was selected: one element a lane always, 16 bytes a lane on small problems,
/// of 8 bytes on all but the largest (whose tiles ask the L2 cache to keep the input). us, H200, 2026-12-01, short
/// vectors / one element / 16 bytes a lane:
///   1 byte   64^2 4.17 / 4.20 / -, 512^2 4.73 / 4.76 / 4.84, 1024^2 5.22 / 5.51 / 5.27, 1536^2 6.03 / 7.23 / 6.14
///   2 bytes  64^2 4.26 / 4.27 / -, 256^2 4.54 / 4.54 / 4.58, 462 x 1024 4.60 / 4.70 / -, but 512^2 4.83 / 4.91 / 4.80,
///            1024^2 5.73 / 5.98 / 5.58
///   4 bytes  256^2 4.57 / 4.61 / 4.64, 1024^2 6.56 / 6.62 / 6.88, but 1536^2 9.23 / 9.30 / 9.13
///   8 bytes  32 x 4096 4.40 / 4.38 / 4.53, 120 x 2080 4.90 / 4.91 / 5.12, 512^2 5.57 / 5.58 / 5.62, 1024^2 8.43 / 8.42 /
///            8.77, 2048^2 20.7 / - / 21.1, 4096^2 69.6 / - / 70.0
/// Columns a stride apart, gathered / one element, every third: 1 byte 64^2 5.65 / 4.45, 1024^2 7.23 / 6.70, 2048^2 10.5 /
/// 11.2, 8192^2 74.0 / 83.4; 2 bytes 8.00 / 7.82 at 1024^2, 15.0 / 15.3, 133.5 / 140.8; 8192^2 of bytes every second 60.6 /
/// 76.6, fifth 103.6 / 111.6, eighth 148.9 / 148.9, 1024^2 every 64th 32.6 / 25.5.
inline bool short_vectors_pay(const Transposition& matrices, Tile tile, std::uint64_t src_address,
                              std::uint64_t dst_address, const DeviceTraits& device) {
  constexpr std::int64_t kMostBytes = std::int64_t{160} << 20;
  const std::int64_t bytes = matrices.element_bytes;
  if (bytes == 16 || !can_serve(Tile::kShortVector, matrices, src_address, dst_address)) return false;
  if (matrices.src_col_stride > 1) {
    constexpr std::int64_t kMinGatheredBytes = std::int64_t{4} << 20;
    constexpr std::int64_t kMostStride = 7;
    return matrices.src_col_stride <= kMostStride && matrices.byte_count() >= kMinGatheredBytes;
  }
  if (tile == Tile::kScalar32) return true;
  if (tile == Tile::kVector) return bytes == 8 && matrices.byte_count() < kMostBytes;
  if (tile != Tile::kVector128) return false;
  const int quarter_tiles_per_sm = bytes == 1 ? 6 : bytes == 2 ? 1 : 32;
  return 4 * count_tiles(matrices, 128) < quarter_tiles_per_sm * device.multiprocessors;
}

/// The rows that fill a window's tile, as the thresholds below were measured. (Those of 4 and 8 bytes have half as many
/// by now.)
inline constexpr std::int64_t kFullWindowRows = 128;

/// Whether windows beat one element a lane: not on small problems, and not where a tile of 128 output elements by 256
/// or 512 bytes would be mostly empty. Note [Measured shares], window / scalar32:
///   8191 x 8193        .87 / .47    .94 / .66    .95 / .61    .96 / .80
///   2001 x 1999        .94 / .91    .99 / .92   1.01 / .95    .91 / .94
///   301 x 299          .60 / .97    .58 / .94    .63 / .89    .67 / .92
///   50 MiB, 49 columns .59 / .45    .72 / .64    .96 / .82    .97 / .94
///   50 MiB, 49 rows    .14 / .43    .43 / .67    .82 / .72    .91 / .80
///   (20000, 49, 49)    .16 / .31    .21 / .49    .43 / .72    .73 / .74
inline bool windows_pay(const Transposition& matrices) {
  constexpr std::int64_t kMinBytes = std::int64_t{6} << 20;
  if (!windows_fit(matrices) || matrices.byte_count() < kMinBytes) return false;
  if (matrices.element_bytes <= 2) return matrices.rows >= 128 && matrices.cols >= 40;
  const std::int64_t tile_cols = window_row_bytes(matrices.element_bytes) / matrices.element_bytes;
  return 10 * min_of(matrices.rows, kFullWindowRows) * min_of(matrices.cols, tile_cols) >=
         3 * kFullWindowRows * tile_cols;
}

/// Whether windows of folded rows beat windows of the rows as they are, and boxes: on problems of some size, where they
/// fill their tiles. Note [Measured shares], 2026-11-30, folded windows / the best of the others:
///   1 byte   (31, 29, 137, 78, 13) .74 / .58, (131, 6, 19, 158, 11) .69 / .66
///   2 bytes  (8, 179, 6, 15, 887) .79 / .63, (238, 5, 78, 466) .85 / .72; 51 % filled (891, 11, 8, 135) .71 / .86
///   4 bytes  (9, 84, 20, 11, 122) .93 / .86
///   8 bytes  (39, 71, 12, 163) .92 / .81; 75 % filled (10, 10, 181, 207) .87 / .96, 50 % (12, 6, 427, 27, 33) .83 /
///            .89
inline bool folded_windows_pay(const Transposition& matrices) {
  constexpr std::int64_t kMinBytes = std::int64_t{6} << 20;
  if (!windows_fold_rows(matrices) || matrices.byte_count() < kMinBytes) return false;
  constexpr std::int64_t kLeastFilled = 80;
  const Transposition folded = fold_rows(matrices).matrices;
  return window_rows_filled(folded) * window_cols_filled(folded) / 100 >= kLeastFilled;
}

/// Whether a run of a matrix between other dimensions fills a good part of an image, and its vectors a warp.
inline bool is_long_run(const Transposition& matrices, std::int64_t length_bytes) {
  constexpr std::int64_t kMinMatrixBytes = 8 * 1024;
  return matrices.rows * matrices.cols * matrices.element_bytes >= kMinMatrixBytes && length_bytes >= 8 * 16;
}

/// Whether flat runs, which fit, beat the tiles: wherever chunks do not fit, unless the problem is small, and while a
/// tile would be mostly empty. Note [Measured shares], 64 MiB, flat / the best of the others:
///   8 columns          .92 / .26    .94 / .70    .94 / .88    .93 / .96
///   16 columns         .91 / .68    .93 / .87    .94 / .95    .92 / .98
///   24 columns         .93 / .43    .97 / .86    .93 / .95    .93 / .95
///   32 columns         .89 / .85    .90 / .94    .91 / .97    .90 / .98
///   49 columns         .94 / .59    .98 / .77    .97 / .97   1.02 / .99
///   8 rows             .86 / .40    .91 / .68    .91 / .89    .90 / .92
///   16 rows            .86 / .68    .89 / .90    .89 / .95    .88 / .95
///   32 rows            .87 / .92    .93 / .94    .93 / .97    .90 / .95
///   49 rows            .84 / .42    .94 / .66    .96 / .84    .94 / .95
///   (40000, 8, 8)      .89 / .71    .91 / .80   1.01 / .97    .90 / .45
///   (65536, 16, 16)    .88 / .43    .92 / .69    .95 / .80    .95 / 1.0
///   (20000, 32, 32)    .89 / .50    .89 / .89    .95 / .99    .96 / .99
///   (20000, 49, 49)    .63 / .42    .89 / .62    .98 / .78    .98 / .87
///   (12000, 64, 64)    .91 / .94    .92 / 1.0    .97 / .98    .98 / 1.0
///   (120, 2080), 240 KiB: .76 / .86 of bytes
inline bool flat_pays(const Transposition& matrices, bool chunks_fit) {
  constexpr std::int64_t kMinBytes = std::int64_t{1} << 20;
  const FlatRun run = find_flat_shape(matrices).run;
  const std::int64_t row_bytes = matrices.cols * matrices.element_bytes;
  const std::int64_t column_bytes = matrices.rows * matrices.element_bytes;
  if (run == FlatRun::kMatrices) {
    return !chunks_fit || matrices.rows * matrices.cols <= 64 || min_of(row_bytes, column_bytes) <= 32 ||
           max_of(row_bytes, column_bytes) <= 64;
  }
  if (!is_long_run(matrices, run == FlatRun::kRows ? column_bytes : row_bytes)) return false;
  if (!chunks_fit) return matrices.byte_count() >= kMinBytes;
  if (run == FlatRun::kRows) return row_bytes <= 48;
  return matrices.rows <= 16 && column_bytes <= (matrices.element_bytes == 16 ? 48 : 32);
}

/// Whether the scatter programs, where they serve, beat the tiles and flat runs: on few rows and on small matrices.
/// Note [Measured shares], 2026-11-30, 64 MiB, scatter / flat / vector tiles:
///   8 rows             1.03 / .93 / -     1.02 / .96 / .70     .99 / .95 / .82
///   24 rows            1.04 / .92 / -     1.04 / .97 / 1.01    .98 / 1.00 / 1.08
///   48 rows            1.02 / .93 / .96    .98 / .94 / 1.03   1.03 / 1.01 / 1.06
///   (65536, 16, 16)    1.03 / .96 / -     1.01 / .96 / .39    1.02 / .97 / .84
///   (7281, 48, 48)     1.06 / .97 / .81   1.07 / 1.04 / 1.11  1.10 / 1.05 / 1.09
///   (10699, 56, 56)    1.08 / .82 / -     1.09 / 1.00 / 1.02  1.08 / 1.02 / 1.06
///   (4096, 128, 128)   1.02 / .76 / 1.01   .97 / .89 / 1.00
///   (6710, 100, 100)   1.05 / .74 of bytes, (4660, 300, 12) of 4 bytes 1.04 / .98 / .89
///   144 rows of bytes  1.02 / .81 / .68
///   byte by byte, 32 MiB, scatter / flat: 23 rows .94 / .93, 25 rows .95 / .81, 33 rows 1.03 / .87, 49 rows
///     1.07 / .88;
///     matrices of 9 x 25 .74 / .80, 9 x 49 .76 / .66, 13 x 49 .87 / .67, 17 x 9 .77 / .83, 17 x 16 .89 / .88,
///     25 x 25 .95 / .71, 33 x 35 .94 / .82, 49 x 49 .93 / .67, 97 x 128 .99 / .76
///   4 MiB, 32 rows of bytes 1.06 / .93 / 1.11
inline bool scatter_pays(const Transposition& matrices, int piece_bytes, bool chunks_fit) {
  constexpr std::int64_t kMinByteRows = 25;
  constexpr std::int64_t kMinBytes = std::int64_t{1} << 20;
  constexpr std::int64_t kLargeBytes = std::int64_t{8} << 20;
  const std::int64_t row_bytes = matrices.cols * matrices.element_bytes;
  const std::int64_t column_bytes = matrices.rows * matrices.element_bytes;
  const bool are_small = find_scatter_shape(matrices).run == FlatRun::kMatrices;
  if (piece_bytes == 1) {
    // Short rows leave much of their words unused, few rows most of a lane's work.
    const bool has_work = matrices.rows >= (matrices.cols >= 25 ? 9 : 17) && matrices.cols >= 16;
    if (are_small ? !has_work : matrices.rows < kMinByteRows) return false;
  }
  if (are_small) {
    return !chunks_fit || min_of(row_bytes, column_bytes) <= 48 || max_of(row_bytes, column_bytes) <= 112;
  }
  if (matrices.byte_count() < kMinBytes || !is_long_run(matrices, row_bytes)) return false;
  const bool halves_a_tile = matrices.element_bytes == 1 && matrices.rows > 128 && matrices.rows <= kMaxFlatRows;
  return !chunks_fit || halves_a_tile || column_bytes <= (matrices.byte_count() >= kLargeBytes ? 48 : 16);
}

/// Whether matrices fill at least 45 % of their tiles of 32 x 32 elements, and half of such a tile's rows and columns.
inline bool fills_scalar32(const Transposition& matrices) {
  const std::int64_t elements = ceil_div(matrices.rows, 32) * ceil_div(matrices.cols, 32) * 32 * 32;
  return min_of(matrices.rows, matrices.cols) >= 16 && 100 * matrices.rows * matrices.cols >= 45 * elements;
}

/// Whether all rows are one, and an output row repeats an element in vectors or in elements of a word.
inline bool repeats_vectors(const Transposition& matrices, std::uint64_t dst_address) {
  if (matrices.src_row_stride == 0 && matrices.element_bytes >= 4) return true;
  return repeats_in_vectors(matrices.src_row_stride, matrices.rows, matrices.element_bytes, dst_address);
}

/// Whether columns of few elements of 4 bytes or more lie side by side, and rows are long: the direct kernel then reads
/// a stream a row. Note [Measured shares], direct / the best of the others, 24 and 64 MiB, 2026-11-30:
///   4 bytes   2 rows .94 / .95 and .99 / .97, 3 rows .97 / .93 and 1.05 / 1.02, 5 rows 1.05 / 1.05 and 1.02 / 1.00
///   8 bytes   2 rows .94 / .97 and 1.01 / .98, 4 rows 1.00 / .97 and .97 / .93, 5 rows 1.12 / 1.06 and 1.05 / .99,
///             8 rows, 256 MiB, .98 / .97
///   16 bytes  2 rows .95 / .96 and 1.01 / .99, 4 rows 1.01 / .98 and .98 / .95, 8 rows, 512 MiB, .99 / 1.03
///   4 MiB, 2 rows .97 / .93, 1.00 / .89, .99 / .92; (3, 15, 9, 121, 5, 8) of 16 bytes, rows of 40, 1.06 / 1.02; but
///   (47, 110, 15, 4, 3, 52) of 4 bytes, whose columns lie apart, .27 / .85; 2 bytes, 2 and 4 rows, .87 / .95, .88 /
///   1.00
inline bool reads_streams(const Transposition& matrices) {
  constexpr std::int64_t kMinRowBytes = 512;
  const std::int64_t most_rows = matrices.element_bytes == 8 ? 8 : 5;
  return matrices.element_bytes >= 4 && matrices.rows >= 2 && matrices.rows <= most_rows &&
         matrices.dst_col_stride == matrices.rows && matrices.src_col_stride == 1 &&
         matrices.cols * matrices.element_bytes >= kMinRowBytes;
}

/// The tile that is fastest for a transposition. Note [Measured shares]:
///   two to four columns    deinterleave / flat, 1 byte, 3 columns 1.07 / .99
///   fewer than 16 elements direct / flat, 1 byte, (99999, 2, 2) .89 / .73, (20000, 4, 4) .90 / .96
///   short sides, odd       direct / scalar32, 2 bytes, (12, 2184528) .54 / .37, (2184528, 12) .21 / .39
///   halves of sectors      window / vector, 2 bytes, (5000, 50000), whose output rows begin at odd multiples of 16
///                          bytes, .92 / .77; 4 bytes, (5000, 100, 100) .95 / .82; but short sides, 80 columns of bytes
///                          .70 / .92, 40 columns of 2 bytes .87 / .92
///                          scalar32 / vector, 16 bytes, whose runs are twice as long as vector's: 1593 x 3465
///                          1.00 / .91, 2121 x 2496 1.03 / .98; but (1048576, 64), whose sectors are whole, .94 / .97
///   short sides, odd       scalar32 / window, 8 bytes, 16 x 1431 1.01 / .87, 22 x 403 1.07 / .99, 32 x 61 .99 / .83
///   one row, expanded      direct / the best of the others, 8192 x 8192, of 1 byte 19.1 / 43.4 us, of 4 bytes
///                          61.5 / 139 us
inline Tile select_tile(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address,
                        const DeviceTraits& device) {
  const bool chunks_fit = allows_chunks(matrices, src_address, dst_address);
  if (deinterleave_fits(matrices, src_address, dst_address)) return Tile::kDeinterleave;
  if (matrices.rows * matrices.cols < 16 || repeats_vectors(matrices, dst_address)) return Tile::kDirect;
  if (!chunks_fit && cut_rows_pay(matrices, src_address, dst_address)) return Tile::kVector;
  const int piece_bytes = scatter_piece_bytes(matrices, src_address, dst_address);
  if (piece_bytes > 0 && scatter_pays(matrices, piece_bytes, chunks_fit)) return Tile::kScatter;
  if (flat_fits(matrices) && flat_pays(matrices, chunks_fit)) return Tile::kFlat;
  if (!chunks_fit && folded_windows_pay(matrices)) return Tile::kWindow;
  if (matrices.rows <= (chunks_fit ? 4 : 15) || matrices.cols <= (chunks_fit ? 2 : 11)) return Tile::kDirect;
  const std::int64_t shorter_bytes = min_of(matrices.rows, matrices.cols) * matrices.element_bytes;
  const bool wants_windows =
      !chunks_fit || halves_sectors(matrices, src_address, dst_address) || splits_lines(matrices, src_address);
  if (!chunks_fit && matrices.element_bytes == 8 && shorter_bytes <= 32 * 8 && fills_scalar32(matrices)) {
    return Tile::kScalar32;
  }
  if (wants_windows && windows_pay(matrices)) return Tile::kWindow;
  constexpr std::int64_t kMinBytes = std::int64_t{16} << 20;
  if (halves_sectors(matrices, src_address, dst_address) && matrices.element_bytes == 16 &&
      min_of(matrices.rows, matrices.cols) > 16 && matrices.byte_count() >= kMinBytes) {
    return Tile::kScalar32;
  }
  return select_shared_tile(matrices, src_address, dst_address, device);
}

/// Whether matrices of bytes fill less than 40 % of the windows' tiles, or have so few rows, between packed columns,
/// that boxes hold them whole: boxes are faster even if their runs are no longer. Note [Measured shares], 2026-11-30,
/// window / box: 89 columns .69 / .82, 276 x 275 .56 / .59, (18, 216, 39213) .61 / .77, but 119 columns, 46 % filled,
/// .70 / .43.
inline bool leaves_windows_empty(const Transposition& matrices) {
  if (matrices.element_bytes != 1) return false;
  const std::int64_t tile_cols = window_row_bytes(1);
  const std::int64_t places =
      ceil_div(matrices.rows, kFullWindowRows) * ceil_div(matrices.cols, tile_cols) * kFullWindowRows * tile_cols;
  const bool are_few_rows = matrices.dst_col_stride == matrices.rows && matrices.rows <= 256;
  return are_few_rows || 10 * matrices.rows * matrices.cols < 4 * places;
}

/// Whether a box may serve better than the tile that was selected for a transposition, because that tile's blocks would
/// be mostly empty, or its runs short although other dimensions lie between the rows (or columns) that it takes.
/// Packed matrices of up to 64 elements stay with the direct kernel, short packed sides with flat runs. Long elements
/// need no box early on (Note [Measured shares], 2026-11-30, tile / box):
///   4 bytes   16 x 48 .93 / .75, 16 x 364 .92 / .86
///   8 bytes   24 x 42 .96 / .68, 16 x 1431 1.01 / .75, 23 x 114 1.15 / .93, but 27 x 33 .72 / .85, 11 x 34 .64 / .86
///   16 bytes  7 x 32 1.05 / .74, 6 x 14 1.02 / .80, 10 x 22 .99 / .96, but 3 x 49 .48 / .82
inline bool wants_box(const Transposition& matrices, Tile tile) {
  constexpr std::int64_t kShortBytes = 256;
  const std::int64_t bytes = matrices.element_bytes;
  const bool rows_are_packed = matrices.src_row_stride == matrices.cols;
  const bool columns_are_packed = matrices.dst_col_stride == matrices.rows;
  const std::int64_t shorter = min_of(matrices.rows, matrices.cols);
  const bool has_chunks = tile == Tile::kVector || tile == Tile::kVector128;
  if (bytes == 16 && shorter >= 6) return false;
  if (bytes >= 4 && has_chunks && shorter >= 16) return false;
  if (bytes == 8 && tile == Tile::kScalar32 && fills_scalar32(matrices)) return false;
  switch (tile) {
    case Tile::kDeinterleave:
    case Tile::kFlat:
    case Tile::kScatter:
      return false;
    case Tile::kScalar32:
      return bytes < 16 || min_of(matrices.rows, matrices.cols) <= 16;
    case Tile::kDirect:
      if (reads_streams(matrices)) return false;
      return matrices.rows * matrices.cols > 64 || !rows_are_packed || !columns_are_packed;
    case Tile::kWindow: {
      if (folded_windows_pay(matrices)) return false;
      if (leaves_windows_empty(matrices)) return true;
      const std::int64_t tile_cols = window_row_bytes(matrices.element_bytes) / bytes;
      if (20 * min_of(matrices.rows, kFullWindowRows) * min_of(matrices.cols, tile_cols) <
          7 * kFullWindowRows * tile_cols) {
        return true;
      }
      break;
    }
    default:
      if (min_of<std::int64_t>(matrices.rows * bytes, 256) * min_of<std::int64_t>(matrices.cols * bytes, 256) / bytes <
          2048) {
        return true;
      }
      break;
  }
  return (matrices.cols * bytes < kShortBytes && !rows_are_packed) ||
         (matrices.rows * bytes < kShortBytes && !columns_are_packed);
}

/// Whether a box has longer runs than any tile of these matrices could have, or the tile has little to do; on large
/// problems, twice as long ones as the tile of 32 x 32 elements.
inline bool has_longer_runs(const Box& box, const Transposition& matrices, Tile tile) {
  constexpr std::int64_t kLargeBytes = std::int64_t{6} << 20;
  if (tile == Tile::kScalar32 && matrices.byte_count() >= kLargeBytes && min_of(box.input_run, box.output_run) >= 64) {
    return true;
  }
  if (tile == Tile::kWindow && leaves_windows_empty(matrices)) return true;
  return box.input_run > matrices.cols || box.output_run > matrices.rows;
}

/// Boxes for a problem, smaller ones where SMs would be left without any, larger ones of bytes where these leave no
/// dimension cut. (Boxes of half size, for a shorter last wave, were slower in most cases, H200, 2026-11-30: 2 bytes,
/// (1, 4608, 24, 128) with its middle exchanged, .87 against .92.)
inline bool find_box_for(const Problem& problem, std::uint64_t src_address, const DeviceTraits& device, Box& box) {
  constexpr std::int64_t kMinBoxBytes = 4096;
  const std::int64_t share = problem.element_count() * problem.element_bytes / device.multiprocessors;
  const std::int64_t bytes = max_of<std::int64_t>(min_of<std::int64_t>(share / 2, kBoxBytes), kMinBoxBytes);
  if (problem.element_bytes == 1 && bytes == kBoxBytes && find_box(problem, src_address, kWholeBoxBytes, box) &&
      box.input_cut < 0 && box.output_cut < 0) {
    return true;
  }
  return find_box(problem, src_address, bytes, box);
}

/// Whether the innermost dimension stays in runs that the direct kernel moves as fast as any: elements of 4 bytes or
/// more (as wide as addresses and strides allow) in runs of 40 bytes, 128 where an element has 16. Note [Measured
/// shares], 2026-11-30, direct / box:
///   4 bytes   52 1.01 / .85, 124 1.01 / .95, 732 1.25 / .92, 10852 .99 / .90, but 36 .80 / .85
///   8 bytes   40 .86 / .82, 88 .95 / .87, 1000 1.08 / .74
///   16 bytes  160 1.04 / .90, 256 .99 / .96, 1760 .99 / .51, 5376 1.02 / .46, but 64 .82 / .94, 96 .92 / .98
inline bool keeps_long_runs(const Problem& problem) {
  const int innermost = problem.rank - 1;
  if (problem.rank < 1 || problem.src_stride[innermost] != 1 || problem.element_bytes < 4) return false;
  return problem.size[innermost] * problem.element_bytes >= (problem.element_bytes == 16 ? 128 : 40);
}

/// Whether boxes are to move a problem, and which. `tile` is the one selected for its matrices, if it has any. Problems
/// below 1 MiB are over before a box's two phases pay.
inline bool select_box(const Problem& problem, const Transposition* matrices, Tile tile, std::uint64_t src_address,
                       const DeviceTraits& device, Box& box) {
  constexpr std::int64_t kMinBytes = std::int64_t{1} << 20;
  const std::int64_t bytes = problem.element_count() * problem.element_bytes;
  if (bytes < kMinBytes || (matrices ? !wants_box(*matrices, tile) : keeps_long_runs(problem))) return false;
  return find_box_for(problem, src_address, device, box) && (!matrices || has_longer_runs(box, *matrices, tile));
}

/// Plans a canonical problem. Pure: depends on nothing but its arguments.
inline Plan make_plan(const Problem& problem, std::uint64_t src_address, std::uint64_t dst_address, Method method,
                      const DeviceTraits& device) {
  Plan plan;
  if (problem.is_empty) return plan;
  if (problem.is_copy()) {
    plan.route = Route::kCopy;
    return plan;
  }
  plan.route = Route::kGather;
  const bool has_matrices = find_transposition(problem, plan.matrices);
  if (has_matrices && method == Method::kAuto) {
    plan.tile =
        reads_streams(plan.matrices) ? Tile::kDirect : select_tile(plan.matrices, src_address, dst_address, device);
  }
  // A named method asks for a layout in shared memory, which matters where there are matrices to transpose.
  if ((!has_matrices || method == Method::kAuto) &&
      select_box(problem, has_matrices ? &plan.matrices : nullptr, plan.tile, src_address, device, plan.box)) {
    plan.route = Route::kBox;
    plan.tile = Tile::kBox;
    return plan;
  }
  if (!has_matrices) return plan;
  if (method != Method::kAuto) {
    plan.tile = select_shared_tile(plan.matrices, src_address, dst_address, device);
    plan.layout = method;
  }
  if (short_vectors_pay(plan.matrices, plan.tile, src_address, dst_address, device)) plan.tile = Tile::kShortVector;
  if (can_serve(plan.tile, plan.matrices, src_address, dst_address)) {
    plan.route = Route::kTile;
  } else {
    plan.tile = Tile::kDirect;
  }
  return plan;
}

/// Plans a canonical problem with a given tile. False where that tile cannot serve it. Plain copies take every tile.
inline bool make_forced_plan(const Problem& problem, std::uint64_t src_address, std::uint64_t dst_address,
                             Method method, Tile tile, Plan& plan) {
  plan = Plan{};
  plan.tile = tile;
  if (problem.is_empty) return true;
  if (problem.is_copy()) {
    plan.route = Route::kCopy;
    return true;
  }
  plan.route = Route::kGather;
  if (tile == Tile::kDirect) return true;
  if (tile == Tile::kBox) {
    plan.route = Route::kBox;
    return find_box(problem, src_address, kBoxBytes, plan.box);
  }
  if (!find_transposition(problem, plan.matrices)) return false;
  plan.route = Route::kTile;
  plan.layout = method == Method::kAuto ? Method::kSwizzled : method;
  return can_serve(tile, plan.matrices, src_address, dst_address);
}

}  // namespace swizzle
