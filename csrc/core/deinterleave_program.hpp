// The deinterleave program: the body of the kernel for matrices of two to four columns, without shared memory.
//
// A thread reads as many consecutive 16-byte chunks as there are columns and writes one to each output row, every byte
// permuted in registers: images from HWC to CHW, for one.
#pragma once

#include "register_transpose.hpp"
#include "tile_grid.hpp"

namespace swizzle {

template <int kElementBytes_, int kColumns_>
struct DeinterleaveProgram : TiledProgram<DeinterleaveProgram<kElementBytes_, kColumns_>> {
  using Chunk = Opaque<16>;

  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kThreads = 128;
  static constexpr int kSharedBytes = 0;
  static constexpr int kChunkElements = 16 / kElementBytes;
  static constexpr int kRowsPerTile = kThreads * kChunkElements;
  static constexpr std::int64_t kMinKeptBytes = INT64_MAX;

  static constexpr std::int64_t row_tiles(const Transposition& problem) { return ceil_div(problem.rows, kRowsPerTile); }
  static constexpr std::int64_t col_tiles(const Transposition&) { return 1; }

  /// What one block works on: its first row on both sides, and how many rows follow.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    int rows = 0;
  };

  SWIZZLE_HOST_DEVICE static Origin locate(const TileArguments& args, std::uint32_t block) {
    TilePosition position;
    if (args.outer_rank <= 1) {
      // A single dimension outside, whose index is what is left, and one tile along the columns: no further division.
      const std::uint32_t outer = args.row_tiles.quotient(block);
      position.row_tile = args.row_tiles.remainder(block, outer);
      position.src = args.src + outer * args.outer[0].src_pitch;
      position.dst = args.dst + outer * args.outer[0].dst_pitch;
    } else {
      position = locate_tile(args, block);
    }
    const std::int64_t row = std::int64_t{position.row_tile} * kRowsPerTile;
    return {position.src + row * kColumns * kElementBytes, position.dst + row * kElementBytes,
            static_cast<int>(min_of<std::int64_t>(args.rows - row, kRowsPerTile))};
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory&, const TileArguments&, const Origin&, int) {}

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const TileArguments& args, const Origin& tile, int thread) {
    if (thread * kChunkElements >= tile.rows) return;
    const unsigned char* src = tile.src + thread * kColumns * 16;
    unsigned char* dst = tile.dst + thread * 16;
    Chunk in[kColumns];
    SWIZZLE_UNROLL
    for (int i = 0; i < kColumns; ++i) in[i] = memory.template load_global<Chunk>(src + i * 16);
    SWIZZLE_UNROLL
    for (int col = 0; col < kColumns; ++col) {
      Opaque<kElementBytes> element[kChunkElements];
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) {
        const int flat = k * kColumns + col;
        element[k] = element_of<kElementBytes>(in[flat / kChunkElements], flat % kChunkElements);
      }
      memory.store_global(dst, pack<kElementBytes>(element));
      dst += args.dst_col_pitch;
    }
  }
};

}  // namespace swizzle
