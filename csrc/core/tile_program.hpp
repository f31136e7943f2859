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

#include "layout.hpp"
#include "policy.hpp"
#include "register_transpose.hpp"
#include "tile_grid.hpp"

namespace swizzle {

/// What one block works on: pointers to the tile's first element and how many of its rows and columns exist.
struct TileOrigin {
  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  int rows = 0;
  int cols = 0;
};

template <class Policy_, class Layout_, class Arguments_ = TileArguments>
struct TileProgram : TiledProgram<TileProgram<Policy_, Layout_, Arguments_>, Arguments_> {
  using Policy = Policy_;
  using Layout = Layout_;
  using Arguments = Arguments_;
  using Offset = typename Arguments::Offset;
  using Chunk = Opaque<Policy::kChunkBytes>;

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

  SWIZZLE_HOST_DEVICE static TileOrigin locate(const Arguments& args, std::uint32_t block) {
    const TilePosition position = locate_tile(args, block);
    const Offset row = static_cast<Offset>(position.row_tile) * Policy::kRows;
    const Offset col = static_cast<Offset>(position.col_tile) * Policy::kCols;
    TileOrigin tile;
    tile.src = position.src + row * args.src_row_pitch + col * args.src_col_pitch;
    tile.dst = position.dst + col * args.dst_col_pitch + row * Policy::kElementBytes;
    tile.rows = static_cast<int>(min_of<Offset>(args.rows - row, Policy::kRows));
    tile.cols = static_cast<int>(min_of<Offset>(args.cols - col, Policy::kCols));
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

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const Arguments& args, const TileOrigin& tile, int thread) {
    constexpr int kSteps = Policy::kLoadsPerThread;
    const int chunk = load_chunk(thread);
    // Rows and columns of the matrix are multiples of kChunkElements: a chunk is inside as a whole or not at all.
    const int rows = chunk * Policy::kChunkElements < tile.cols ? tile.rows : 0;
    // The stride of the input's columns is free where a chunk is a single element.
    const Offset chunk_pitch = Policy::kChunkElements == 1 ? args.src_col_pitch : Policy::kChunkBytes;
    const unsigned char* src = tile.src + load_row(thread, 0) * args.src_row_pitch + chunk * chunk_pitch;
    const Offset step_pitch = kRowsPerStep * args.src_row_pitch;
    if constexpr (Policy::kIsAsync) {
      SWIZZLE_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        if (load_row(thread, i) < rows) {
          memory.template copy_to_shared<Chunk>(i, shared_offset(load_row(thread, i), chunk), src);
        }
        src += step_pitch;
      }
      memory.await_copies();
    } else {
      // All loads before the first store: as many bytes in flight as the thread will ever hold.
      Chunk value[kSteps];
      SWIZZLE_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        if (load_row(thread, i) < rows) value[i] = memory.template load_global<Chunk>(src);
        src += step_pitch;
      }
      memory.issue_loads();
      SWIZZLE_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        if (load_row(thread, i) < rows) memory.store_shared(i, shared_offset(load_row(thread, i), chunk), value[i]);
      }
    }
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const Arguments& args, const TileOrigin& tile, int thread) {
    constexpr int n = Policy::kChunkElements;
    const int row = block_row(thread);
    const int cols = row < tile.rows ? tile.cols : 0;
    unsigned char* dst =
        tile.dst + static_cast<Offset>(block_chunk(thread, 0)) * n * args.dst_col_pitch + row * Policy::kElementBytes;
    SWIZZLE_UNROLL
    for (int i = 0; i < Policy::kBlocksPerThread; ++i) {
      const int chunk = block_chunk(thread, i);
      if (chunk * n < cols) {
        Chunk block[n];
        SWIZZLE_UNROLL
        for (int k = 0; k < n; ++k) {
          block[k] = memory.template load_shared<Chunk>(i * n + k, shared_offset(row + k, chunk));
        }
        transpose_block<Policy::kElementBytes, Policy::kChunkBytes>(block);
        unsigned char* column = dst;
        SWIZZLE_UNROLL
        for (int k = 0; k < n; ++k) {
          memory.store_global(column, block[k]);
          column += args.dst_col_pitch;
        }
      }
      dst += kChunksPerStep * n * args.dst_col_pitch;
    }
  }
};

}  // namespace swizzle
