// The deinterleave program: the body of the kernel for matrices of two to four columns, without shared memory.
//
// A thread reads as many consecutive 16-byte chunks as there are columns and writes one to each output row, every byte
// permuted in registers: images from HWC to CHW, for one.
#pragma once

#include "register_transpose.hpp"
#include "tile_grid.hpp"

namespace swizzle {

template <int kElementBytes_, int kColumns_, class Arguments_ = TileArguments>
struct DeinterleaveProgram : TiledProgram<DeinterleaveProgram<kElementBytes_, kColumns_, Arguments_>, Arguments_> {
  using Arguments = Arguments_;
  using Offset = typename Arguments::Offset;
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

  /// What one block works on: its matrix and its first row there, on both sides, and how many rows follow.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    Offset src_offset = 0;
    Offset dst_offset = 0;
    int rows = 0;
  };

  SWIZZLE_HOST_DEVICE static Origin locate(const Arguments& args, std::uint32_t block) {
    const TilePosition position = locate_tile(args, block);
    const Offset row = static_cast<Offset>(position.row_tile) * kRowsPerTile;
    Origin tile;
    tile.src = position.src;
    tile.dst = position.dst;
    tile.src_offset = row * kColumns * kElementBytes;
    tile.dst_offset = row * kElementBytes;
    tile.rows = static_cast<int>(min_of<Offset>(args.rows - row, kRowsPerTile));
    return tile;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory&, const Arguments&, const Origin&, int) {}

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const Arguments& args, const Origin& tile, int thread) {
    if (thread * kChunkElements >= tile.rows) return;
    const unsigned char* src = tile.src + (tile.src_offset + thread * kColumns * 16);
    unsigned char* dst = tile.dst + (tile.dst_offset + thread * 16);
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
