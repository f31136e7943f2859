// The interleave program: the body of the kernel for matrices of two to four rows or columns, without shared memory.
//
// A thread reads as many 16-byte chunks as the short side has elements and writes as many, every byte permuted in
// registers. Deinterleaving (few columns: images from HWC to CHW), its chunks lie side by side in the input and one in
// each output row; interleaving (few rows: CHW to HWC), one in each input row and side by side in the output.
#pragma once

#include "register_transpose.hpp"
#include "tile_grid.hpp"

namespace swizzle {

/// - kSide:          length of the short side, 2 to 4.
/// - kHasFewColumns: whether the short side is the columns (deinterleaving) or the rows.
template <int kElementBytes_, int kSide_, bool kHasFewColumns_>
struct InterleavePolicy {
  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kSide = kSide_;
  static constexpr bool kHasFewColumns = kHasFewColumns_;
  static constexpr int kThreads = 128;
};

template <class Policy_>
struct InterleaveProgram : TiledProgram<InterleaveProgram<Policy_>> {
  using Policy = Policy_;
  using Chunk = Opaque<16>;

  static constexpr int kElementBytes = Policy::kElementBytes;
  static constexpr int kSide = Policy::kSide;
  static constexpr int kThreads = Policy::kThreads;
  static constexpr int kSharedBytes = 0;
  static constexpr int kChunkElements = 16 / kElementBytes;
  static constexpr int kElementsPerTile = kThreads * kChunkElements;
  static constexpr std::int64_t kMinKeptBytes = INT64_MAX;

  static constexpr std::int64_t row_tiles(const Transposition& problem) {
    return Policy::kHasFewColumns ? ceil_div(problem.rows, kElementsPerTile) : 1;
  }
  static constexpr std::int64_t col_tiles(const Transposition& problem) {
    return Policy::kHasFewColumns ? 1 : ceil_div(problem.cols, kElementsPerTile);
  }

  /// The matrix's first element on both sides, and where along the long side the block begins.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    std::int64_t first = 0;
  };

  SWIZZLE_HOST_DEVICE static Origin locate(const TileArguments& args, std::uint32_t block) {
    const TilePosition position = locate_tile(args, block);
    const std::uint32_t tile = Policy::kHasFewColumns ? position.row_tile : position.col_tile;
    return {position.src, position.dst, std::int64_t{tile} * kElementsPerTile};
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory&, const TileArguments&, const Origin&, int) {}

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const TileArguments& args, const Origin& tile, int thread) {
    const std::int64_t element = tile.first + thread * kChunkElements;
    if (element >= (Policy::kHasFewColumns ? args.rows : args.cols)) return;
    const std::int64_t along = element * kElementBytes;  // in the rows of the side that has few of them
    const std::int64_t packed = along * kSide;           // in the side where all of them lie side by side
    const unsigned char* src = tile.src + (Policy::kHasFewColumns ? packed : along);
    unsigned char* dst = tile.dst + (Policy::kHasFewColumns ? along : packed);
    const std::int64_t src_pitch = Policy::kHasFewColumns ? 16 : args.src_row_pitch;
    const std::int64_t dst_pitch = Policy::kHasFewColumns ? args.dst_col_pitch : 16;
    Chunk in[kSide];
    SWIZZLE_UNROLL
    for (int i = 0; i < kSide; ++i) in[i] = memory.template load_global<Chunk>(src + i * src_pitch);
    SWIZZLE_UNROLL
    for (int i = 0; i < kSide; ++i) {
      Opaque<kElementBytes> element_of_chunk[kChunkElements];
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) element_of_chunk[k] = source_of(in, i, k);
      memory.store_global(dst + i * dst_pitch, pack<kElementBytes>(element_of_chunk));
    }
  }

 private:
  // Element k of output chunk i.
  SWIZZLE_HOST_DEVICE static Opaque<kElementBytes> source_of(const Chunk (&in)[kSide], int i, int k) {
    if constexpr (Policy::kHasFewColumns) {
      const int flat = k * kSide + i;
      return element_of<kElementBytes>(in[flat / kChunkElements], flat % kChunkElements);
    } else {
      const int flat = i * kChunkElements + k;
      return element_of<kElementBytes>(in[flat % kSide], flat / kSide);
    }
  }
};

}  // namespace swizzle
