// The plan: which program moves a problem, with which tile and layout. Pure functions; each number says where it comes
// from.
#pragma once

#include <string_view>

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
/// - kDirect:    no tile: element by element, in output order.
enum class Tile { kScalar32, kVector, kVector128, kWindow, kDirect };

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
inline constexpr TileName kTileNames[] = {{Tile::kScalar32, "scalar32"},
                                          {Tile::kVector, "vector"},
                                          {Tile::kVector128, "vector128"},
                                          {Tile::kWindow, "window"},
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
constexpr bool has_layout(Tile tile) { return tile != Tile::kWindow && tile != Tile::kDirect; }

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
      return matrices.src_col_stride == 1 && matrices.element_bytes <= 8;
    case Tile::kDirect:
      return false;
    default:
      return allows_chunks(matrices, src_address, dst_address);
  }
}

/// The tile for a transposition when a layout was named: chunks where they fit, one element a lane elsewhere. 128-byte
/// edges win while 256-byte ones make fewer than 1.5 tiles an SM (H200, 2026-11-29: bytes 3072^2, 144 tiles, 0.96
/// against 0.94 of a copy; bytes 4096^2, 256 tiles, 1.02 against 1.03; halves 1536^2 0.98 against 0.91, 2048^2 0.97
/// against 0.98).
inline Tile select_shared_tile(const Transposition& matrices, bool chunks_fit, const DeviceTraits& device) {
  if (!chunks_fit) return Tile::kScalar32;
  return 2 * count_tiles(matrices, 256) >= 3 * device.multiprocessors ? Tile::kVector : Tile::kVector128;
}

/// The tile that is fastest for a transposition.
inline Tile select_tile(const Transposition& matrices, bool chunks_fit, const DeviceTraits& device) {
  if (chunks_fit) return select_shared_tile(matrices, chunks_fit, device);
  if (min_of(matrices.rows, matrices.cols) < 8) return Tile::kDirect;
  if (matrices.src_col_stride == 1 && matrices.element_bytes <= 8) return Tile::kWindow;
  return Tile::kScalar32;
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
  const bool chunks_fit = allows_chunks(plan.matrices, src_address, dst_address);
  if (method == Method::kAuto) {
    plan.tile = select_tile(plan.matrices, chunks_fit, device);
  } else {
    plan.tile = select_shared_tile(plan.matrices, chunks_fit, device);
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
