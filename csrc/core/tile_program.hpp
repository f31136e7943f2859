// The tile program: the body of every tiled transpose kernel, as host + device functions of (block, thread).
//
// A block moves one tile. Phase `load` brings the tile's chunks, row by row, from global into shared memory; after a
// barrier, phase `store` reads square register blocks down the tile's columns, transposes them in registers and writes
// chunks of output rows. Lanes run along an input row in the first phase and along an output row in the second:
//
//     input tile           shared memory, by Layout        output tile
//     row    ->->->->      row    ->->->-> (written)        |  each thread: kChunkElements
//     row    ->->->->      row    |  |  |   (read, a        |  rows of one chunk, transposed
//     row    ->->->->      row    v  v  v   column)         v
#pragma once

#include <type_traits>

#include "layout.hpp"
#include "policy.hpp"
#include "register_transpose.hpp"
#include "tile_grid.hpp"

namespace swizzle {

/// What one block works on: its matrix and the tile's first element there, on both sides, and which of the tile's rows
/// and columns exist: rows from 0, columns from col_begin, which is 0 unless rows cut chunks. (Offsets stay apart from
/// the addresses, so that a thread's sums are in the offsets' width.)
template <class Offset>
struct TileOrigin {
  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  Offset src_offset = 0;
  Offset dst_offset = 0;
  int rows = 0;
  int cols = 0;
  int col_begin = 0;
};

template <class Policy_, class Layout_, class Arguments_ = TileArguments>
struct TileProgram : TiledProgram<TileProgram<Policy_, Layout_, Arguments_>, Arguments_> {
  using Base = TiledProgram<TileProgram, Arguments_>;
  using Policy = Policy_;
  using Layout = Layout_;
  using Arguments = Arguments_;
  using Offset = typename Arguments::Offset;
  using Origin = TileOrigin<Offset>;
  using Chunk = Opaque<Policy::kChunkBytes>;
  using Element = Opaque<Policy::kElementBytes>;

  /// Rows that begin and end within chunks: these are loaded whole, and a column is stored if it exists.
  static constexpr bool kCutsRows = Arguments::kRowChunks == RowChunks::kCut;
  static_assert(!kCutsRows || (Policy::kIsAsync && Policy::kRows <= Policy::kThreads),
                "TileProgram: cut chunks are loaded by asynchronous copies, the last one of each row in one step");
  static constexpr bool kGathersChunks = Arguments::kRowChunks == RowChunks::kGathered;
  static_assert(!kGathersChunks || !Policy::kIsAsync, "TileProgram: chunks are gathered in registers");

  static constexpr int kThreads = Policy::kThreads;
  static constexpr int kRowsPerStep = kThreads / Policy::kChunksPerRow;
  static constexpr int kChunksPerStep = kThreads / Policy::kChunksPerColumn;
  static constexpr int kSharedBytes = Layout::span_bytes(Policy::kRows);

  /// Inputs from this size on are loaded with the evict-last hint: it costs up to 6 % at 64 MiB and gains 1 to 2 % from
  /// 160 MiB on (H200, 2026-11-29).
  static constexpr std::int64_t kMinKeptBytes = Policy::kIsAsync ? std::int64_t{160} << 20 : INT64_MAX;

  static constexpr std::int64_t row_tiles(const Transposition& problem) {
    return ceil_div(problem.rows, Policy::kRows);
  }
  static constexpr std::int64_t col_tiles(const Transposition& problem) {
    return ceil_div(problem.cols, Policy::kCols);
  }

  static Arguments make_arguments(const Transposition& problem, const void* src, void* dst) {
    if constexpr (kCutsRows) {
      const int before =
          CutRowsArguments::find_cols_before(reinterpret_cast<std::uintptr_t>(src), Policy::kElementBytes);
      const std::int64_t tiles = ceil_div(problem.cols + before, Policy::kCols);
      return Arguments(make_tile_arguments(problem, src, dst, row_tiles(problem), tiles), before);
    } else {
      return Base::make_arguments(problem, src, dst);
    }
  }

  SWIZZLE_HOST_DEVICE static Origin locate(const Arguments& args, std::uint32_t block) {
    return locate(args, locate_tile(args, block));
  }
  SWIZZLE_HOST_DEVICE static Origin locate(const Arguments& args, const TilePosition& position) {
    const Offset row = static_cast<Offset>(position.row_tile) * Policy::kRows;
    Offset col = static_cast<Offset>(position.col_tile) * Policy::kCols;
    if constexpr (kCutsRows) col -= args.cols_before;
    Origin tile;
    tile.src = position.src;
    tile.dst = position.dst;
    tile.src_offset = row * args.src_row_pitch + col * args.src_col_pitch;
    tile.dst_offset = col * args.dst_col_pitch + row * Policy::kElementBytes;
    tile.rows = static_cast<int>(min_of<Offset>(args.rows - row, Policy::kRows));
    tile.cols = static_cast<int>(min_of<Offset>(args.cols - col, Policy::kCols));
    if constexpr (kCutsRows) tile.col_begin = static_cast<int>(max_of<Offset>(-col, 0));
    return tile;
  }

  /// Phase load: the chunk (row of the tile, chunk of the row) that a thread moves at a step.
  SWIZZLE_HOST_DEVICE static constexpr int load_row(int thread, int step) {
    return thread / Policy::kChunksPerRow + step * kRowsPerStep;
  }
  SWIZZLE_HOST_DEVICE static constexpr int load_chunk(int thread) { return thread % Policy::kChunksPerRow; }
  /// Phase store: the register block (its first row, chunk of the row) that a thread transposes at a step.
  SWIZZLE_HOST_DEVICE static constexpr int block_row(int thread) {
    return thread % Policy::kChunksPerColumn * Policy::kChunkElements;
  }
  SWIZZLE_HOST_DEVICE static constexpr int block_chunk(int thread, int step) {
    return thread / Policy::kChunksPerColumn + step * kChunksPerStep;
  }
  /// Shared-memory offset of a chunk, for both phases.
  SWIZZLE_HOST_DEVICE static constexpr int shared_offset(int row, int chunk) {
    return Layout::offset(row, chunk * Policy::kChunkBytes);
  }
  /// The same for a step of phase load, and for row k of a step's register block, from the thread's first offset of the
  /// phase: a constant apart (Layout::join), because a thread's bits and a step's bits of rows and chunks are disjoint.
  SWIZZLE_HOST_DEVICE static constexpr int load_place(int first, int step) {
    return Layout::join(first, shared_offset(step * kRowsPerStep, 0));
  }
  SWIZZLE_HOST_DEVICE static constexpr int block_place(int first, int step, int k) {
    return Layout::join(first, shared_offset(k, step * kChunksPerStep));
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const Arguments& args, const Origin& tile, int thread) {
    constexpr int kSteps = Policy::kLoadsPerThread;
    const int chunk = load_chunk(thread);
    // A chunk counts as inside if an element of it is: rows, and columns unless rows are cut, are multiples of
    // kChunkElements.
    const bool is_inside = chunk * Policy::kChunkElements < tile.cols &&
                           (!kCutsRows || (chunk + 1) * Policy::kChunkElements > tile.col_begin);
    const int rows = (is_inside ? tile.rows : 0) - load_row(thread, 0);
    // The stride of the input's columns is free where a chunk is gathered, or a single element.
    const Offset chunk_pitch = Policy::kChunkElements == 1 || kGathersChunks
                                   ? args.src_col_pitch * Policy::kChunkElements
                                   : Policy::kChunkBytes;
    const unsigned char* src =
        tile.src + (tile.src_offset + load_row(thread, 0) * args.src_row_pitch + chunk * chunk_pitch);
    const int place = shared_offset(load_row(thread, 0), chunk);
    const Offset step_pitch = kRowsPerStep * args.src_row_pitch;
    if constexpr (Policy::kIsAsync) {
      SWIZZLE_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        if (i * kRowsPerStep < rows) {
          if constexpr (kCutsRows) {
            if (src + Policy::kChunkBytes <= args.src_end) memory.copy_window_to_shared(i, load_place(place, i), src);
          } else {
            memory.template copy_to_shared<Chunk>(i, load_place(place, i), src);
          }
        }
        src += step_pitch;
      }
      if constexpr (kCutsRows) {
        if (thread < tile.rows) load_cut_chunk(memory, args, tile, thread);
      }
      memory.await_copies();
    } else {
      // All loads before the first store: as many bytes in flight as the thread will ever hold.
      Chunk value[kSteps];
      SWIZZLE_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        if (i * kRowsPerStep < rows) value[i] = fetch_chunk(memory, args, src);
        src += step_pitch;
      }
      memory.issue_loads();
      SWIZZLE_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        if (i * kRowsPerStep < rows) memory.store_shared(i, load_place(place, i), value[i]);
      }
    }
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const Arguments& args, const Origin& tile, int thread) {
    constexpr int n = Policy::kChunkElements;
    const int row = block_row(thread);
    const int cols = (row < tile.rows ? tile.cols : 0) - block_chunk(thread, 0) * n;
    const int begin = tile.col_begin - block_chunk(thread, 0) * n;
    unsigned char* dst =
        tile.dst + (tile.dst_offset + static_cast<Offset>(block_chunk(thread, 0)) * n * args.dst_col_pitch +
                    row * Policy::kElementBytes);
    const int place = shared_offset(row, block_chunk(thread, 0));
    SWIZZLE_UNROLL
    for (int i = 0; i < Policy::kBlocksPerThread; ++i) {
      if (i * kChunksPerStep * n < cols) {
        Chunk block[n];
        SWIZZLE_UNROLL
        for (int k = 0; k < n; ++k) {
          block[k] = memory.template load_shared<Chunk>(i * n + k, block_place(place, i, k));
        }
        transpose_block<Policy::kElementBytes, Policy::kChunkBytes>(block);
        unsigned char* column = dst;
        SWIZZLE_UNROLL
        for (int k = 0; k < n; ++k) {
          if (!kCutsRows || (i * kChunksPerStep * n + k >= begin && i * kChunksPerStep * n + k < cols)) {
            memory.store_global(column, block[k]);
          }
          column += args.dst_col_pitch;
        }
      }
      dst += kChunksPerStep * n * args.dst_col_pitch;
    }
  }

 private:
  template <class Memory>
  SWIZZLE_HOST_DEVICE static Chunk fetch_chunk(Memory& memory, const Arguments& args, const unsigned char* src) {
    if constexpr (kGathersChunks) {
      Element element[Policy::kChunkElements];
      SWIZZLE_UNROLL
      for (int k = 0; k < Policy::kChunkElements; ++k) {
        element[k] = memory.template load_global<Element>(src + k * args.src_col_pitch);
      }
      return pack<Policy::kElementBytes>(element);
    } else {
      return memory.template load_global<Chunk>(src);
    }
  }

  // Nothing is read behind the input's end: of the chunk that it cuts, if that is a row's last one, what exists.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load_cut_chunk(Memory& memory, const Arguments& args, const Origin& tile, int row) {
    const int chunk = tile.cols / Policy::kChunkElements;
    const int first = chunk * Policy::kChunkElements;
    const unsigned char* src = tile.src + (tile.src_offset + row * args.src_row_pitch + chunk * Policy::kChunkBytes);
    if (first == tile.cols || src + Policy::kChunkBytes <= args.src_end) return;
    SWIZZLE_NO_UNROLL
    for (int k = max_of(tile.col_begin - first, 0); k < tile.cols - first; ++k) {
      memory.store_shared(Policy::kLoadsPerThread + k, shared_offset(row, chunk) + k * Policy::kElementBytes,
                          memory.template load_global<Element>(src + k * Policy::kElementBytes));
    }
  }
};

}  // namespace swizzle
