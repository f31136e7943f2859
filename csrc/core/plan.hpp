// The plan: which program moves a problem, with which tile and layout. Pure functions of the problem and the device.
//
// Note [Measured shares]
// Every threshold below was read off sweeps on one NVIDIA H200 on 2026-11-29. Figures are shares of the speed of a copy
// of the same bytes, kernel time with a cold L2 cache; columns are element sizes of 1, 2, 4 and 8 bytes unless said.
#pragma once

#include "box.hpp"
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

/// The tile for a transposition when a layout was named: chunks where they fit, one element a lane elsewhere.
///
/// 128-byte edges instead of 256-byte ones where these make fewer than 1.5 tiles an SM, where a matrix fits into one
/// tile, and on the narrowest sides of small elements. Note [Measured shares], 128 / 256:
///   1 byte  3072^2 (144 tiles) .96 / .94   4096^2 (256 tiles) 1.02 / 1.03
///   2 bytes 1536^2 (144 tiles) .98 / .91   2048^2 (256 tiles)  .97 / .98   (8, 3276800) .67 / .46
///   (65536, 16, 16): 2 bytes .40 / .21, 4 bytes .79 / .49
inline Tile select_shared_tile(const Transposition& matrices, bool chunks_fit, const DeviceTraits& device) {
  if (!chunks_fit) return Tile::kScalar32;
  const std::int64_t shorter_bytes = min_of(matrices.rows, matrices.cols) * matrices.element_bytes;
  const std::int64_t longer_bytes = max_of(matrices.rows, matrices.cols) * matrices.element_bytes;
  const bool is_narrow = longer_bytes <= 128 || (matrices.element_bytes <= 2 && shorter_bytes <= 32);
  const bool leaves_idle_sms = 2 * count_tiles(matrices, 256) < 3 * device.multiprocessors;
  return is_narrow || leaves_idle_sms ? Tile::kVector128 : Tile::kVector;
}

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
  const std::int64_t tile_cols = 512 / matrices.element_bytes;
  return 10 * min_of<std::int64_t>(matrices.rows, 128) * min_of(matrices.cols, tile_cols) >= 3 * 128 * tile_cols;
}

/// Whether flat runs, which fit, beat the tiles: while a tile would be mostly empty, or its chunks do not fit. Fewer
/// than four runs a matrix leave the last one too empty. Note [Measured shares], 32 MiB, flat / the best of the others:
///   8 columns          .87 / .39    .89 / .72    .91 / .85    .91 / .91
///   16 columns         .88 / .72    .90 / .85    .92 / .93    .92 / .97
///   32 columns         .87 / .85    .90 / .93    .92 / .98    .92 / .99
///   49 columns        1.01 / .59   1.05 / .71   1.05 / .97   1.09 / .99
///   8 rows             .84 / .45    .90 / .71    .96 / .89    .94 / .91
///   16 rows            .84 / .73    .92 / .89    .95 / .93    .89 / .96
///   32 rows            .86 / .93    .88 / .94    .89 / .96    .75 / .99
///   49 rows            .58 / .49    .86 / .75    .86 / .82    .83 / .91
///   (65536, 16, 16)    .66 / .48    .87 / .72    .93 / .92    .95 / .99
///   (12000, 64, 64)    .68 / .97    .92 / .96    .98 / .99    .98 / 1.0
///   (5000, 100, 100) of 4 bytes, 3.1 runs a matrix: .69 / .95
inline bool flat_pays(const Transposition& matrices, bool chunks_fit) {
  const FlatShape shape = find_flat_shape(matrices);
  const std::int64_t row_bytes = matrices.cols * matrices.element_bytes;
  const std::int64_t column_bytes = matrices.rows * matrices.element_bytes;
  switch (shape.run) {
    case FlatRun::kRows:
      return matrices.rows >= 4 * shape.rows && (!chunks_fit || row_bytes <= 48);
    case FlatRun::kColumns:
      return matrices.cols >= 4 * shape.cols &&
             (chunks_fit ? matrices.rows <= 16 && column_bytes <= 64 : column_bytes <= 200);
    default:
      return !chunks_fit || min_of(row_bytes, column_bytes) <= 64;
  }
}

/// The tile that is fastest for a transposition. Note [Measured shares]:
///   two to four columns    deinterleave / flat, 1 byte, 3 columns 1.07 / .99
///   up to 64 elements      direct / flat, 1 byte, (99999, 2, 2) .89 / .56, (40000, 8, 8) .69 / .63
///   short sides, odd       direct / scalar32, 2 bytes, (12, 2184528) .54 / .37, (2184528, 12) .21 / .39
///   halves of sectors      window / vector, 2 bytes, (5000, 50000), whose output rows begin at odd multiples of 16
///                          bytes, .92 / .77; 4 bytes, (5000, 100, 100) .95 / .82
inline Tile select_tile(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address,
                        const DeviceTraits& device) {
  const bool chunks_fit = allows_chunks(matrices, src_address, dst_address);
  if (deinterleave_fits(matrices, src_address, dst_address)) return Tile::kDeinterleave;
  if (matrices.rows * matrices.cols <= 64) return Tile::kDirect;
  if (flat_fits(matrices, src_address, dst_address) && flat_pays(matrices, chunks_fit)) return Tile::kFlat;
  if (matrices.rows <= (chunks_fit ? 4 : 15) || matrices.cols <= (chunks_fit ? 2 : 11)) return Tile::kDirect;
  const bool sectors_fit = chunks_fit && are_aligned(matrices, src_address, dst_address, 32);
  if (!sectors_fit && windows_pay(matrices)) return Tile::kWindow;
  return select_shared_tile(matrices, chunks_fit, device);
}

/// Whether a box may serve better than the tile that was selected for a transposition, because that tile's blocks would
/// be mostly empty, or its runs short although other dimensions lie between the rows (or columns) that it takes.
/// Packed matrices of up to 64 elements stay with the direct kernel, short packed sides with flat runs.
inline bool wants_box(const Transposition& matrices, Tile tile) {
  constexpr std::int64_t kShortBytes = 256;
  const std::int64_t bytes = matrices.element_bytes;
  const bool rows_are_packed = matrices.src_row_stride == matrices.cols;
  const bool columns_are_packed = matrices.dst_col_stride == matrices.rows;
  switch (tile) {
    case Tile::kDeinterleave:
    case Tile::kFlat:
      return false;
    case Tile::kScalar32:
      return true;
    case Tile::kDirect:
      return matrices.rows * matrices.cols > 64 || !rows_are_packed || !columns_are_packed;
    case Tile::kWindow: {
      const std::int64_t tile_cols = bytes == 1 ? 256 : 512 / bytes;
      if (20 * min_of<std::int64_t>(matrices.rows, 128) * min_of(matrices.cols, tile_cols) < 7 * 128 * tile_cols) {
        return true;
      }
      break;
    }
    default:
      if (min_of<std::int64_t>(matrices.rows * bytes, 256) * min_of<std::int64_t>(matrices.cols * bytes, 256) / bytes <
          4096) {
        return true;
      }
      break;
  }
  return (matrices.cols * bytes < kShortBytes && !rows_are_packed) ||
         (matrices.rows * bytes < kShortBytes && !columns_are_packed);
}

/// Whether a box has longer runs than any tile of these matrices could have; on large problems, twice as long ones as the
/// tile of 32 x 32 elements.
inline bool has_longer_runs(const Box& box, const Transposition& matrices, Tile tile) {
  constexpr std::int64_t kLargeBytes = std::int64_t{6} << 20;
  if (tile == Tile::kScalar32 && matrices.byte_count() >= kLargeBytes && min_of(box.input_run, box.output_run) >= 64) {
    return true;
  }
  return box.input_run > matrices.cols || box.output_run > matrices.rows;
}

/// Boxes for a problem: of half size where that leaves the runs long and the problem is of few waves of blocks, whose last
/// one should be short; smaller still where SMs would be left without any.
inline bool find_box_for(const Problem& problem, std::uint64_t src_address, const DeviceTraits& device, Box& box) {
  constexpr std::int64_t kFewWaves = 16;
  constexpr std::int64_t kLongRunBytes = 512;
  const std::int64_t share = problem.element_count() * problem.element_bytes / device.multiprocessors;
  if (share < kFewWaves * kBoxBytes) {
    const std::int64_t bytes = max_of<std::int64_t>(min_of<std::int64_t>(share / 2, kBoxBytes / 2), 4096);
    if (!find_box(problem, src_address, bytes, box)) return false;
    if (share / 2 < kBoxBytes || min_of(box.input_run, box.output_run) * box.element_bytes >= kLongRunBytes)
      return true;
  }
  return find_box(problem, src_address, kBoxBytes, box);
}

/// Whether boxes are to move a problem, and which. `tile` is the one selected for its matrices, if it has any. Problems
/// below 1 MiB are over before a box's two phases pay.
inline bool select_box(const Problem& problem, const Transposition* matrices, Tile tile, std::uint64_t src_address,
                       const DeviceTraits& device, Box& box) {
  constexpr std::int64_t kMinBytes = std::int64_t{1} << 20;
  const std::int64_t bytes = problem.element_count() * problem.element_bytes;
  if (bytes < kMinBytes || (matrices && !wants_box(*matrices, tile))) return false;
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
    plan.tile = select_tile(plan.matrices, src_address, dst_address, device);
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
    plan.tile = select_shared_tile(plan.matrices, allows_chunks(plan.matrices, src_address, dst_address), device);
    plan.layout = method;
  }
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
