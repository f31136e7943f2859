// The window program: the body of the transpose kernel for pitches and addresses that 16-byte vectors do not fit.
//
// Nothing but the element size is assumed of either side's alignment. What makes wide accesses possible all the same:
// - In: a row's bytes are fetched as the window of whole 16-byte chunks that covers them, by asynchronous copies, and
//   kept at the misalignment that they had. Rows a pitch apart whose numbers differ by a chunk's elements have the
//   same.
// - Out: an output row is cut at 32-byte boundaries of memory, not at tile boundaries. A tile owns the segments that
//   begin in its range, so each is written whole and no element twice; to fill them it loads up to one segment's worth
//   of rows before its own (the halo).
// - Between: a lane gathers the elements of a 16-byte vector of an output row one by one from shared memory, in an
//   order in which all lanes read rows of equal misalignment at the same time, and rotates the packed vector into
//   place.
//
// Shared memory: rows of equal residue modulo a chunk's elements form a plane; within it they are one window apart,
// which is an odd number of chunks. Eight lanes along an output row then hit eight different groups of four banks, and
// four lanes on columns one word apart hit the four banks of a group: no conflicts.
//
// Short rows of the output that follow one another without columns between them are one long row (fold_rows). Its rows
// of the input have any misalignments, so that lanes along it meet in a bank by twos.
#pragma once

#include "bank_model.hpp"
#include "policy.hpp"
#include "register_transpose.hpp"
#include "tile_grid.hpp"

namespace swizzle {

/// - kRowBytes:    bytes of an input row that a tile owns.
/// - kColumnBytes: bytes of an output row that a tile owns.
template <int kElementBytes_, int kRowBytes_, int kColumnBytes_, int kThreads_>
struct WindowTile {
  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kRowBytes = kRowBytes_;
  static constexpr int kColumnBytes = kColumnBytes_;
  static constexpr int kThreads = kThreads_;
  static_assert(kElementBytes <= 8, "WindowTile: 16-byte elements are always aligned to a chunk");
};

/// Rows of a matrix a pitch apart.
struct PitchedRows {
  using Arguments = TileArguments;
  static constexpr bool kAreFolded = false;
};

/// Rows that run over several dimensions (transposition.hpp): a row is found by a division for each.
struct FoldedWindowRows {
  struct Arguments : TileArguments {
    FastDivision size[kMaxFoldedDims];
    std::int64_t pitch[kMaxFoldedDims] = {};  // along the dimensions beyond the first
  };
  static constexpr bool kAreFolded = true;

  SWIZZLE_HOST_DEVICE static std::int64_t offset(const Arguments& args, std::uint32_t row) {
    const std::uint32_t first = args.size[0].quotient(row);
    const std::uint32_t second = args.size[1].quotient(first);
    return args.size[0].remainder(row, first) * args.src_row_pitch +
           args.size[1].remainder(first, second) * args.pitch[0] + second * args.pitch[1];
  }
};

template <class Policy_, class Rows = PitchedRows>
struct WindowProgram {
  using Policy = Policy_;
  using Arguments = typename Rows::Arguments;
  using Element = Opaque<Policy::kElementBytes>;

  static constexpr int kElementBytes = Policy::kElementBytes;
  static constexpr int kThreads = Policy::kThreads;
  static constexpr int kChunkBytes = 16;
  static constexpr int kChunkElements = kChunkBytes / kElementBytes;
  // 32-byte segments: whole sectors. 16-byte ones cost 8 to 9 % (H200, 2026-11-29).
  static constexpr int kSegmentElements = 32 / kElementBytes;
  static constexpr int kCols = Policy::kRowBytes / kElementBytes;
  static constexpr int kOwnedRows = Policy::kColumnBytes / kElementBytes;
  static constexpr int kRows = kOwnedRows + kSegmentElements;

  static constexpr int kWindowBytes = Policy::kRowBytes + kChunkBytes;
  static constexpr int kPlaneBytes = kRows / kChunkElements * kWindowBytes;
  static constexpr int kSharedBytes = kPlaneBytes * kChunkElements;
  static_assert(kWindowBytes / kChunkBytes % 2 == 1, "WindowProgram: windows are an odd number of chunks apart");

  // Phase load: threads cover whole rows of chunks; what a window has beyond its row's bytes is a step of its own.
  static constexpr int kRowChunks = Policy::kRowBytes / kChunkBytes;
  static constexpr int kRowsPerStep = kThreads / kRowChunks;
  static constexpr int kLoadSteps = (kRows + kRowsPerStep - 1) / kRowsPerStep;
  static_assert(kRowsPerStep % kChunkElements == 0, "WindowProgram: a thread's rows must have one misalignment");
  static_assert(kRows <= kThreads, "WindowProgram: the last chunks of all windows are loaded in one step");

  // Phase store: a warp is 8 lanes along an output row by 4 lanes on columns a word apart; it walks over columns 32
  // bytes apart, between which neither misalignment changes.
  static constexpr int kLanesAlong = 8;
  static constexpr int kColumnLanes = kLanes / kLanesAlong;
  static constexpr int kWordColumns = kElementBytes < kWordBytes ? kWordBytes / kElementBytes : 1;
  static constexpr int kColumnSets = kSegmentElements / kColumnLanes;
  static constexpr int kVectorSets = Policy::kColumnBytes / (kLanesAlong * kChunkBytes);
  static constexpr int kWalk = Policy::kRowBytes / 32 * kColumnSets * kVectorSets * kLanes / kThreads;
  static_assert(kWalk * kThreads == Policy::kRowBytes / 32 * kColumnSets * kVectorSets * kLanes,
                "WindowProgram: the warps must divide the tile's columns evenly");

  /// The evict-last hint pays at every size here: neighbouring tiles share the halo and the windows' ends.
  static constexpr std::int64_t kMinKeptBytes = 0;

  /// One more segment than the rows fill, since the first one may begin before them.
  static constexpr std::int64_t row_tiles(const Transposition& problem) {
    return ceil_div(problem.rows + kSegmentElements - 1, kOwnedRows);
  }
  static constexpr std::int64_t col_tiles(const Transposition& problem) { return ceil_div(problem.cols, kCols); }

  static Arguments make_arguments(const Transposition& problem, const void* src, void* dst) {
    if constexpr (Rows::kAreFolded) {
      const FoldedRows folded = fold_rows(problem);
      Arguments args;
      static_cast<TileArguments&>(args) =
          make_tile_arguments(folded.matrices, src, dst, row_tiles(folded.matrices), col_tiles(problem));
      args.src_end = make_tile_arguments(problem, src, dst, 1, 1).src_end;
      for (int i = 0; i < kMaxFoldedDims; ++i) {
        // A dimension that is missing never ends.
        args.size[i] = FastDivision(i < folded.dims ? static_cast<std::uint32_t>(folded.size[i]) : INT32_MAX);
        if (i < folded.dims) args.pitch[i] = folded.src_stride[i + 1] * kElementBytes;
      }
      return args;
    } else {
      return make_tile_arguments(problem, src, dst, row_tiles(problem), col_tiles(problem));
    }
  }
  /// Bytes of shared memory of a launch, at most kSharedBytes.
  static constexpr int shared_bytes(const TileArguments&) { return kSharedBytes; }

  /// What one block works on. Tile row R is matrix row first_row + R, which exists for R in [row_begin, row_end).
  struct Origin {
    // Of the tile's first column, in tile row 0, inside the matrix or not; in matrix row 0 where rows are folded.
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;  // of the output row of the tile's first column
    std::int64_t first_row = 0;
    int row_begin = 0;
    int row_end = 0;
    int cols = 0;
  };

  SWIZZLE_HOST_DEVICE static Origin locate(const Arguments& args, std::uint32_t block) {
    const TilePosition position = locate_tile(args, block);
    const std::int64_t col = std::int64_t{position.col_tile} * kCols;
    Origin tile;
    tile.first_row = std::int64_t{position.row_tile} * kOwnedRows - kSegmentElements;
    tile.src = position.src + (Rows::kAreFolded ? 0 : tile.first_row * args.src_row_pitch) + col * kElementBytes;
    tile.dst = position.dst + col * args.dst_col_pitch;
    // No halo where all output rows begin with a segment.
    const bool has_whole_segments =
        (reinterpret_cast<std::uintptr_t>(position.dst) | static_cast<std::uintptr_t>(args.dst_col_pitch)) % 32 == 0;
    tile.row_begin = has_whole_segments || tile.first_row < 0 ? kSegmentElements : 0;
    tile.row_end = static_cast<int>(min_of<std::int64_t>(args.rows - tile.first_row, kRows));
    tile.cols = static_cast<int>(min_of<std::int64_t>(args.cols - col, kCols));
    return tile;
  }

  /// Where the window of a tile row begins in shared memory.
  SWIZZLE_HOST_DEVICE static constexpr int window_offset(int row) {
    return row % kChunkElements * kPlaneBytes + row / kChunkElements * kWindowBytes;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const Arguments& args, const Origin& tile, int thread) {
    if constexpr (Rows::kAreFolded) {
      load_folded_rows(memory, args, tile, thread);
    } else {
      load_pitched_rows(memory, args, tile, thread);
    }
    if (thread >= tile.row_begin && thread < tile.row_end) load_window_end(memory, args, tile, thread);
    memory.await_copies();
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const Arguments& args, const Origin& tile, int thread) {
    const int lane = thread % kLanes;
    const int warp = thread / kLanes;
    const int set = warp % kColumnSets;
    const int vector_set = warp / kColumnSets % kVectorSets;
    const int part = warp / (kColumnSets * kVectorSets);
    const int column = part * kWalk * kSegmentElements + set / kWordColumns * (kColumnLanes * kWordColumns) +
                       set % kWordColumns + lane / kLanesAlong * kWordColumns;
    unsigned char* dst = tile.dst + column * args.dst_col_pitch;

    // The output row begins `shift` elements into a segment, so its vectors begin that much before multiples of one.
    const int shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(dst) / kElementBytes % kSegmentElements);
    const int vector = vector_set * kLanesAlong + lane % kLanesAlong;
    const int row = kSegmentElements - shift + vector * kChunkElements;
    const int first = row % kChunkElements;
    int offset[kChunkElements];
    SWIZZLE_UNROLL
    for (int residue = 0; residue < kChunkElements; ++residue) {
      const int residue_row = row - first + residue + (residue < first ? kChunkElements : 0);
      // Rows a pitch apart have the misalignment of their residue.
      const unsigned char* src = Rows::kAreFolded ? row_address(args, tile, clamp_row(tile, residue_row))
                                                  : tile.src + residue * args.src_row_pitch;
      offset[residue] = window_offset(residue_row) + misalignment_of(src) + column * kElementBytes;
    }

    const std::int64_t matrix_row = tile.first_row + row;
    const bool is_whole = matrix_row >= 0 && matrix_row + kChunkElements <= args.rows;
    dst += matrix_row * kElementBytes;
    SWIZZLE_UNROLL_TWICE
    for (int i = 0; i < kWalk; ++i) {
      if (column + i * kSegmentElements >= tile.cols) break;
      Element element[kChunkElements];
      SWIZZLE_UNROLL
      for (int residue = 0; residue < kChunkElements; ++residue) {
        element[residue] = memory.template load_shared<Element>(i * kChunkElements + residue, offset[residue] + i * 32);
      }
      const Opaque<16> value = rotate<kElementBytes>(pack<kElementBytes>(element), first);
      if (is_whole) {
        memory.store_global(dst, value);
      } else {
        store_part(memory, args, dst, matrix_row, value);
      }
      dst += kSegmentElements * args.dst_col_pitch;
    }
  }

 private:
  SWIZZLE_HOST_DEVICE static int misalignment_of(const unsigned char* address) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % kChunkBytes);
  }

  // Where a row that exists begins in the input.
  SWIZZLE_HOST_DEVICE static const unsigned char* row_address(const Arguments& args, const Origin& tile, int row) {
    if constexpr (Rows::kAreFolded) {
      return tile.src + Rows::offset(args, static_cast<std::uint32_t>(tile.first_row) + row);
    } else {
      return tile.src + row * args.src_row_pitch;
    }
  }
  SWIZZLE_HOST_DEVICE static int clamp_row(const Origin& tile, int row) {
    return max_of(tile.row_begin, min_of(row, tile.row_end - 1));
  }

  // The order of statements is kept: in another one, with the same work, bytes take 64 registers a thread instead of
  // 76, and large odd matrices of bytes are 1.5 to 2.5 % slower (H200, 2026-11-30).
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load_pitched_rows(Memory& memory, const Arguments& args, const Origin& tile,
                                                    int thread) {
    const int chunk = thread % kRowChunks;
    const int first = thread / kRowChunks;
    const unsigned char* src = tile.src + first * args.src_row_pitch;
    const int misalignment = misalignment_of(src);
    src += chunk * kChunkBytes - misalignment;
    const int rows = chunk * kChunkBytes < misalignment + tile.cols * kElementBytes ? tile.row_end : 0;
    SWIZZLE_UNROLL
    for (int i = 0; i < kLoadSteps; ++i) {
      const int row = first + i * kRowsPerStep;
      if (row >= tile.row_begin && row < rows)
        copy_whole(memory, args, i, window_offset(row) + chunk * kChunkBytes, src);
      src += kRowsPerStep * args.src_row_pitch;
    }
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load_folded_rows(Memory& memory, const Arguments& args, const Origin& tile,
                                                   int thread) {
    const int byte = thread % kRowChunks * kChunkBytes;
    SWIZZLE_UNROLL
    for (int i = 0; i < kLoadSteps; ++i) {
      const int row = thread / kRowChunks + i * kRowsPerStep;
      if (row < tile.row_begin || row >= tile.row_end) continue;
      const unsigned char* src = row_address(args, tile, row);
      const int misalignment = misalignment_of(src);
      if (byte < misalignment + tile.cols * kElementBytes) {
        copy_whole(memory, args, i, window_offset(row) + byte, src + byte - misalignment);
      }
    }
  }

  // Nothing is read behind the input's end: the chunk that it cuts is left out here.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void copy_whole(Memory& memory, const TileArguments& args, int step, int offset,
                                             const unsigned char* src) {
    if (src + kChunkBytes <= args.src_end) memory.copy_window_to_shared(step, offset, src);
  }

  // The chunk of a row's window that follows its kRowBytes, and, byte by byte, the chunk that the input's end cuts.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load_window_end(Memory& memory, const Arguments& args, const Origin& tile, int row) {
    const unsigned char* src = row_address(args, tile, row);
    const int misalignment = misalignment_of(src);
    const int needed = misalignment + tile.cols * kElementBytes;
    src -= misalignment;
    if (Policy::kRowBytes < needed) {
      copy_whole(memory, args, kLoadSteps, window_offset(row) + Policy::kRowBytes, src + Policy::kRowBytes);
    }
    const std::int64_t cut = args.src_end - misalignment_of(args.src_end) - src;
    const auto end = static_cast<int>(min_of<std::int64_t>(args.src_end - src, needed));
    if (cut >= end) return;
    SWIZZLE_NO_UNROLL
    for (int i = max_of(static_cast<int>(cut), misalignment); i < end; ++i) {
      memory.store_shared(kLoadSteps + 1 + i % kChunkBytes, window_offset(row) + i,
                          memory.template load_global<Opaque<1>>(src + i));
    }
  }

  // A vector at an end of the output row: element by element, those that exist.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store_part(Memory& memory, const TileArguments& args, unsigned char* dst,
                                             std::int64_t matrix_row, const Opaque<16>& value) {
    SWIZZLE_UNROLL
    for (int k = 0; k < kChunkElements; ++k) {
      if (matrix_row + k >= 0 && matrix_row + k < args.rows) {
        memory.store_global(dst + k * kElementBytes, element_of<kElementBytes>(value, k));
      }
    }
  }
};

template <int kElementBytes>
using WindowPolicy = WindowTile<kElementBytes, window_row_bytes(kElementBytes),
                                window_rows(kElementBytes) * kElementBytes, kElementBytes == 2 ? 512 : 256>;

}  // namespace swizzle
