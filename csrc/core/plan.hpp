// The plan: which program moves a problem, with which tile and layout. Pure functions; each number says where it comes
// from.
#pragma once

#include <string_view>

#include "flat_program.hpp"
#include "policy.hpp"
#include "transposition.hpp"

namespace swizzle {

/// What a caller may ask for: a shared-memory layout by name, or whatever is fastest.
enum class Method { kAuto, kNaive, kPadded, kSwizzled };

/// Tile policies by name.
/// - kScalar32:  32 x 32 elements, one element a lane; serves every transposition.
/// - kWindow:    rows as windows of chunks, output in 32-byte segments; contiguous rows of elements of up to 8 bytes at
///               any pitch and address.
/// - kVector:    16 bytes a lane on both global sides, 256-byte edges.
/// - kVector128: the same with 128-byte edges.
/// - kInterleave: two to four rows or columns, permuted in registers, whole 16-byte chunks on both sides.
/// - kFlat:      a flat run of short rows, of short columns, or of small matrices, gathered from shared memory.
/// - kDirect:    no tile: element by element, in output order.
enum class Tile { kScalar32, kVector, kVector128, kWindow, kInterleave, kFlat, kDirect };

struct MethodName {
  Method method;
  std::string_view name;
};
struct TileName {
  Tile tile;
  std::string_view name;
};

inline constexpr MethodName kMethodNames[] = {
    {Method::kAuto, "auto"}, {Method::kNaive, "naive"}, {Method::kPadded, "padded"}, {Method::kSwizzled, "swizzled"}};
inline constexpr TileName kTileNames[] = {{Tile::kScalar32, "scalar32"},     {Tile::kVector, "vector"},
                                          {Tile::kVector128, "vector128"},   {Tile::kWindow, "window"},
                                          {Tile::kInterleave, "interleave"}, {Tile::kFlat, "flat"},
                                          {Tile::kDirect, "direct"}};

/// Sets `method` to the method of that name; false for an unknown name. parse_tile does the same for tiles.
constexpr bool parse_method(std::string_view name, Method& method) {
  for (const MethodName& entry : kMethodNames) {
    if (entry.name == name) {
      method = entry.method;
      return true;
    }
  }
  return false;
}
constexpr bool parse_tile(std::string_view name, Tile& tile) {
  for (const TileName& entry : kTileNames) {
    if (entry.name == name) {
      tile = entry.tile;
      return true;
    }
  }
  return false;
}
constexpr std::string_view name_of(Method method) {
  for (const MethodName& entry : kMethodNames) {
    if (entry.method == method) return entry.name;
  }
  return {};
}
constexpr std::string_view name_of(Tile tile) {
  for (const TileName& entry : kTileNames) {
    if (entry.tile == tile) return entry.name;
  }
  return {};
}

/// Whether a tile leaves the layout in shared memory open, so that a method other than auto means something.
constexpr bool has_layout(Tile tile) {
  return tile == Tile::kScalar32 || tile == Tile::kVector || tile == Tile::kVector128;
}

/// What the choice depends on besides the problem.
struct DeviceTraits {
  int multiprocessors = 132;
};

/// How a problem is moved.
enum class Route { kNothing, kCopy, kGather, kTile };
struct Plan {
  Route route = Route::kNothing;
  Tile tile = Tile::kDirect;
  Method layout = Method::kSwizzled;
  Transposition matrices;
};

/// Whether 16-byte chunks fit both sides: contiguous input rows, and every address, pitch and side a multiple of 16
/// bytes.
inline bool allows_chunks(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  const auto is_whole = [&](std::int64_t elements) { return elements * matrices.element_bytes % 16 == 0; };
  bool result = src_address % 16 == 0 && dst_address % 16 == 0 && matrices.src_col_stride == 1;
  result = result && is_whole(matrices.rows) && is_whole(matrices.cols);
  result = result && is_whole(matrices.src_row_stride) && is_whole(matrices.dst_col_stride);
  for (int i = 0; i < matrices.outer_rank; ++i) {
    result = result && is_whole(matrices.outer_src_stride[i]) && is_whole(matrices.outer_dst_stride[i]);
  }
  return result;
}

/// Which of the two sides an interleave works along.
inline bool has_few_columns(const Transposition& matrices) { return matrices.cols <= matrices.rows; }

/// Whether whole chunks can be interleaved: one side of two to four that is packed on one side of the transpose,
/// everything else in multiples of 16 bytes, and at least a block's worth of it in each matrix.
inline bool interleave_fits(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  constexpr std::int64_t kMinBytes = 2048;
  const bool is_tall = has_few_columns(matrices);
  const std::int64_t side = is_tall ? matrices.cols : matrices.rows;
  const std::int64_t length = is_tall ? matrices.rows : matrices.cols;
  const std::int64_t packed_stride = is_tall ? matrices.src_row_stride : matrices.dst_col_stride;
  const std::int64_t chunk = 16 / matrices.element_bytes;
  bool result = matrices.element_bytes <= 8 && side >= 2 && side <= 4 && length * matrices.element_bytes >= kMinBytes;
  result =
      result && matrices.src_col_stride == 1 && packed_stride == side && src_address % 16 == 0 && dst_address % 16 == 0;
  result = result && length % chunk == 0 && (is_tall ? matrices.dst_col_stride : matrices.src_row_stride) % chunk == 0;
  for (int i = 0; i < matrices.outer_rank; ++i) {
    result = result && matrices.outer_src_stride[i] % chunk == 0 && matrices.outer_dst_stride[i] % chunk == 0;
  }
  return result;
}

/// Whether rows can be fetched as windows: contiguous ones. (16-byte elements are chunks themselves.)
inline bool windows_fit(const Transposition& matrices) {
  return matrices.src_col_stride == 1 && matrices.element_bytes <= 8;
}

/// Tiles of a given edge (bytes, both ways) that the matrices fall into.
inline std::int64_t count_tiles(const Transposition& matrices, std::int64_t edge_bytes) {
  const std::int64_t edge = edge_bytes / matrices.element_bytes;
  return ceil_div(matrices.rows, edge) * ceil_div(matrices.cols, edge) * matrices.outer_count();
}

/// Whether a tile can move these matrices.
inline bool can_serve(Tile tile, const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address) {
  // A launch has at most 2^31 - 1 blocks, and no tile has fewer elements than 32 x 32.
  if (count_tiles(matrices, 32 * matrices.element_bytes) > INT32_MAX) return false;
  switch (tile) {
    case Tile::kScalar32:
      return true;
    case Tile::kWindow:
      return windows_fit(matrices);
    case Tile::kInterleave:
      return interleave_fits(matrices, src_address, dst_address);
    case Tile::kFlat:
      return src_address % 16 == 0 && dst_address % 16 == 0 && find_flat_shape(matrices).rows > 0;
    case Tile::kDirect:
      return false;
    default:
      return allows_chunks(matrices, src_address, dst_address);
  }
}

/// The tile for a transposition when a layout was named: chunks where they fit, one element a lane elsewhere. 128-byte
/// edges win while 256-byte ones make fewer than 1.5 tiles an SM (H200, 2026-11-29: bytes 3072^2, 144 tiles, 0.96
/// against 0.94 of a copy; bytes 4096^2, 256 tiles, 1.02 against 1.03; halves 1536^2 0.98 against 0.91, 2048^2 0.97
/// against 0.98), where matrices fit into one (halves (65536, 16, 16) 0.40 against 0.21, words 0.79 against 0.49), and
/// on the narrowest sides of small elements (halves (8, 3276800) 0.67 against 0.46).
inline Tile select_shared_tile(const Transposition& matrices, bool chunks_fit, const DeviceTraits& device) {
  if (!chunks_fit) return Tile::kScalar32;
  const std::int64_t shorter_bytes = min_of(matrices.rows, matrices.cols) * matrices.element_bytes;
  const std::int64_t longer_bytes = max_of(matrices.rows, matrices.cols) * matrices.element_bytes;
  const bool is_narrow = longer_bytes <= 128 || (matrices.element_bytes <= 2 && shorter_bytes <= 32);
  const bool leaves_idle_sms = 2 * count_tiles(matrices, 256) < 3 * device.multiprocessors;
  return is_narrow || leaves_idle_sms ? Tile::kVector128 : Tile::kVector;
}

/// Whether windows beat one element a lane: not on small problems, and not where a tile of 128 output elements by 256
/// or 512 bytes would be mostly empty. Share of a copy on an H200, 2026-11-29, window against scalar32: 8191 x 8193 of
/// 1 / 2 / 4 / 8 bytes 0.87 / 0.94 / 0.95 / 0.96 against 0.47 / 0.66 / 0.61 / 0.80; 2001 x 1999 0.94 / 0.99 / 1.01 /
/// 0.91 against 0.91 / 0.92 / 0.95 / 0.94; 301 x 299 0.60 / 0.58 / 0.63 / 0.67 against 0.97 / 0.94 / 0.89 / 0.92; 50
/// MiB with 49 columns 0.59 / 0.72 / 0.96 / 0.97 against 0.45 / 0.64 / 0.82 / 0.94, with 49 rows 0.14 / 0.43 / 0.82 /
/// 0.91 against 0.43 / 0.67 / 0.72 / 0.80; (20000, 49, 49) 0.16 / 0.21 / 0.43 / 0.73 against 0.31 / 0.49 / 0.72 / 0.74.
inline bool windows_pay(const Transposition& matrices) {
  constexpr std::int64_t kMinBytes = std::int64_t{6} << 20;
  if (!windows_fit(matrices) || matrices.byte_count() < kMinBytes) return false;
  if (matrices.element_bytes <= 2) return matrices.rows >= 128 && matrices.cols >= 40;
  const std::int64_t tile_cols = 512 / matrices.element_bytes;
  return 10 * min_of<std::int64_t>(matrices.rows, 128) * min_of(matrices.cols, tile_cols) >= 3 * 128 * tile_cols;
}

/// The tile that is fastest for a transposition. The direct kernel takes the narrowest sides (50 MiB, H200, 2026-11-29:
/// 8-byte (2, 3276800) 0.96 against 0.33 of a copy with the vector tile, (3276800, 2) 0.71 against 0.40; halves (12,
/// 2184528) 0.54 against 0.37 with scalar32, (2184528, 12) 0.21 against 0.39).
inline Tile select_tile(const Transposition& matrices, std::uint64_t src_address, std::uint64_t dst_address,
                        const DeviceTraits& device) {
  if (interleave_fits(matrices, src_address, dst_address)) return Tile::kInterleave;
  const bool chunks_fit = allows_chunks(matrices, src_address, dst_address);
  if (matrices.rows <= (chunks_fit ? 4 : 15) || matrices.cols <= (chunks_fit ? 2 : 11)) return Tile::kDirect;
  if (!chunks_fit && windows_pay(matrices)) return Tile::kWindow;
  return select_shared_tile(matrices, chunks_fit, device);
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
  if (!find_transposition(problem, plan.matrices)) return plan;
  if (method == Method::kAuto) {
    plan.tile = select_tile(plan.matrices, src_address, dst_address, device);
  } else {
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
  if (problem.is_empty) return true;
  if (problem.is_copy()) {
    plan.route = Route::kCopy;
    return true;
  }
  plan.route = Route::kGather;
  if (tile == Tile::kDirect) return true;
  if (!find_transposition(problem, plan.matrices)) return false;
  plan.route = Route::kTile;
  plan.tile = tile;
  plan.layout = method == Method::kAuto ? Method::kSwizzled : method;
  return can_serve(tile, plan.matrices, src_address, dst_address);
}

}  // namespace swizzle
