// From run-time names to program types: the one switch over element size, tile and layout that kernels, the host runner
// and the bank report share.
#pragma once

#include <type_traits>

#include "box_program.hpp"
#include "deinterleave_program.hpp"
#include "flat_program.hpp"
#include "plan.hpp"
#include "proof.hpp"
#include "scatter_program.hpp"
#include "window_program.hpp"

namespace swizzle {

/// Calls visitor(std::integral_constant<int, bytes>) for an element size of 1, 2, 4, 8 or 16 bytes and returns its
/// result.
template <class Visitor>
auto dispatch_element_bytes(int element_bytes, const Visitor& visitor) {
  switch (element_bytes) {
    case 1:
      return visitor(std::integral_constant<int, 1>{});
    case 2:
      return visitor(std::integral_constant<int, 2>{});
    case 4:
      return visitor(std::integral_constant<int, 4>{});
    case 8:
      return visitor(std::integral_constant<int, 8>{});
    default:
      return visitor(std::integral_constant<int, 16>{});
  }
}

/// The same for one policy's tile program.
template <class Policy, class Arguments = TileArguments, class Visitor>
auto dispatch_layout(Method layout, const Visitor& visitor) {
  using Layouts = LayoutsFor<Policy>;
  switch (layout) {
    case Method::kNaive:
      return visitor(ProvenProgram<TileProgram<Policy, typename Layouts::Naive, Arguments>>{});
    case Method::kPadded:
      return visitor(ProvenProgram<TileProgram<Policy, typename Layouts::Pad, Arguments>>{});
    default:
      return visitor(ProvenProgram<TileProgram<Policy, typename Layouts::Xor, Arguments>>{});
  }
}

/// The same for a tile that has a layout (has_layout).
template <int kElementBytes, class Arguments = TileArguments, class Visitor>
auto dispatch_tile_program(Tile tile, Method layout, const Visitor& visitor) {
  switch (tile) {
    case Tile::kVector:
      return dispatch_layout<VectorPolicy<kElementBytes>>(layout, visitor);
    case Tile::kVector128:
      return dispatch_layout<Vector128Policy<kElementBytes>, Arguments>(layout, visitor);
    case Tile::kShortVector:
      return dispatch_layout<ShortVectorPolicy<kElementBytes>, Arguments>(layout, visitor);
    default:
      return dispatch_layout<Scalar32Policy<kElementBytes>, Arguments>(layout, visitor);
  }
}

/// The same for the deinterleave programs, of matrices with two to four columns.
template <int kElementBytes, class Arguments, class Visitor>
auto dispatch_deinterleave(const Transposition& matrices, const Visitor& visitor) {
  switch (matrices.cols) {
    case 2:
      return visitor(DeinterleaveProgram<kElementBytes, 2, Arguments>{});
    case 3:
      return visitor(DeinterleaveProgram<kElementBytes, 3, Arguments>{});
    default:
      return visitor(DeinterleaveProgram<kElementBytes, 4, Arguments>{});
  }
}

/// The same for the flat programs.
template <int kElementBytes, class Visitor>
auto dispatch_flat(const Transposition& matrices, const Visitor& visitor) {
  switch (find_flat_shape(matrices).run) {
    case FlatRun::kRows:
      return visitor(FlatProgram<kElementBytes, FlatRun::kRows>{});
    case FlatRun::kColumns:
      return visitor(FlatProgram<kElementBytes, FlatRun::kColumns>{});
    default:
      return visitor(FlatProgram<kElementBytes, FlatRun::kMatrices>{});
  }
}

/// The same for the scatter programs of single bytes.
template <class Visitor>
auto dispatch_byte_scatter(const Transposition& matrices, const Visitor& visitor) {
  switch (byte_row_lanes(matrices.rows, matrices.cols)) {
    case 2:
      return visitor(ByteScatterProgram<2>{});
    case 4:
      return visitor(ByteScatterProgram<4>{});
    default:
      return visitor(ByteScatterProgram<1>{});
  }
}

/// The same for the scatter programs.
template <int kElementBytes, class Visitor>
auto dispatch_scatter(const Transposition& matrices, const void* src, const void* dst, const Visitor& visitor) {
  if constexpr (kElementBytes == 1) {
    switch (
        scatter_piece_bytes(matrices, reinterpret_cast<std::uintptr_t>(src), reinterpret_cast<std::uintptr_t>(dst))) {
      case 1:
        return dispatch_byte_scatter(matrices, visitor);
      case 4:
        return visitor(WordScatterProgram<1, 4>{});
      default:
        break;
    }
  }
  return visitor(WordScatterProgram<kElementBytes, 16>{});
}

/// The same for the window programs.
template <int kElementBytes, class Visitor>
auto dispatch_window(const Transposition& matrices, const Visitor& visitor) {
  using Policy = WindowPolicy<kElementBytes>;
  if (windows_fold_rows(matrices)) return visitor(WindowProgram<Policy, FoldedWindowRows>{});
  return visitor(WindowProgram<Policy>{});
}

/// Calls visitor(program) with an object of the planned program's type and returns its result. `tile` is one that
/// can_serve accepts for the matrices and the addresses.
template <int kElementBytes, class Visitor>
auto dispatch_program(Tile tile, Method layout, const Transposition& matrices, const void* src, const void* dst,
                      const Visitor& visitor) {
  if (tile == Tile::kFlat) return dispatch_flat<kElementBytes>(matrices, visitor);
  if constexpr (kElementBytes <= 4) {
    if (tile == Tile::kScatter) return dispatch_scatter<kElementBytes>(matrices, src, dst, visitor);
  }
  if constexpr (kElementBytes <= 8) {
    if (tile == Tile::kDeinterleave) {
      return is_near_batch(matrices) ? dispatch_deinterleave<kElementBytes, BatchArguments>(matrices, visitor)
                                     : dispatch_deinterleave<kElementBytes, TileArguments>(matrices, visitor);
    }
    if (tile == Tile::kWindow) return dispatch_window<kElementBytes>(matrices, visitor);
  }
  if constexpr (kElementBytes <= 2) {
    if (tile == Tile::kShortVector && matrices.src_col_stride != 1) {
      return dispatch_layout<ShortVectorPolicy<kElementBytes>, StridedColumnsArguments>(layout, visitor);
    }
  }
  if constexpr (kElementBytes <= 8) {
    if (tile == Tile::kVector &&
        !allows_chunks(matrices, reinterpret_cast<std::uintptr_t>(src), reinterpret_cast<std::uintptr_t>(dst))) {
      return dispatch_layout<VectorPolicy<kElementBytes>, CutRowsArguments>(layout, visitor);
    }
  }
  // (Tiles of 256 bytes are for large problems, where a shorter prologue gains nothing.)
  if (tile != Tile::kVector && is_near_matrix(matrices)) {
    return dispatch_tile_program<kElementBytes, MatrixArguments>(tile, layout, visitor);
  }
  return dispatch_tile_program<kElementBytes>(tile, layout, visitor);
}

/// What every supported GPU grants a block that asks for it, in bytes: compute capability 8.6, 8.9 and 12.0 allow
/// 99 KiB, 8.0 163 KiB, 9.0 and 10.0 227 KiB.
inline constexpr int kGrantedSharedBytes = 99 * 1024;

/// Shared memory that a block of the planned kernel asks for, in bytes. Addresses are those that the plan was made for.
inline int shared_bytes_of(const Plan& plan, int element_bytes, const void* src, void* dst) {
  return dispatch_element_bytes(element_bytes, [&](auto bytes) -> int {
    constexpr int kElementBytes = decltype(bytes)::value;
    if (plan.route == Route::kBox) {
      using Program = BoxProgram<kElementBytes>;
      return Program::shared_bytes(Program::make_arguments(plan.box, src, dst));
    }
    if (plan.route != Route::kTile) return 0;
    return dispatch_program<kElementBytes>(plan.tile, plan.layout, plan.matrices, src, dst, [&](auto program) -> int {
      return program.shared_bytes(program.make_arguments(plan.matrices, src, dst));
    });
  });
}

}  // namespace swizzle
