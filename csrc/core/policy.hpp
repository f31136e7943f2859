// Tile policies: the numbers that shape a tile program, as a type. No policy knows a layout.
#pragma once

#include "arithmetic.hpp"

namespace swizzle {

/// A tile of an input matrix, how wide its accesses are, and how many threads share it.
///
/// - kElementBytes: size of an element; dtype is opaque.
/// - kChunkBytes:   width of every global and shared access of a lane; a multiple of the element.
/// - kRowBytes:     edge along an input row.
/// - kColumnBytes:  edge along an output row, that is down an input column.
/// - kThreads:      threads of a block.
/// - kIsAsync:      chunks reach shared memory by asynchronous copies (cp.async, sm_80) instead of through registers.
template <int kElementBytes_, int kChunkBytes_, int kRowBytes_, int kColumnBytes_, int kThreads_,
          bool kIsAsync_ = false>
struct TilePolicy {
  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kChunkBytes = kChunkBytes_;
  static constexpr int kRowBytes = kRowBytes_;
  static constexpr int kColumnBytes = kColumnBytes_;
  static constexpr int kThreads = kThreads_;
  static constexpr bool kIsAsync = kIsAsync_;

  static constexpr int kChunkElements = kChunkBytes / kElementBytes;
  static constexpr int kCols = kRowBytes / kElementBytes;
  static constexpr int kRows = kColumnBytes / kElementBytes;
  static constexpr int kChunksPerRow = kRowBytes / kChunkBytes;
  static constexpr int kChunksPerColumn = kColumnBytes / kChunkBytes;
  static constexpr int kLoadsPerThread = kRows * kChunksPerRow / kThreads;
  static constexpr int kBlocksPerThread = kChunksPerColumn * kChunksPerRow / kThreads;

  static_assert(is_power_of_two(kElementBytes) && kElementBytes <= 16,
                "TilePolicy: elements have 1, 2, 4, 8 or 16 bytes");
  static_assert(is_power_of_two(kChunkBytes) && kChunkBytes >= kElementBytes && kChunkBytes <= 16,
                "TilePolicy: a chunk is one element or a vector of at most 16 bytes");
  static_assert(is_power_of_two(kRowBytes) && is_power_of_two(kColumnBytes),
                "TilePolicy: tile edges are powers of two");
  static_assert(kBlocksPerThread * kThreads == kChunksPerColumn * kChunksPerRow,
                "TilePolicy: the threads must divide the register blocks of the tile evenly");
  static_assert(
      kThreads % kChunksPerRow == 0 && kThreads % kChunksPerColumn == 0,
      "TilePolicy: the threads must cover whole rows of chunks both ways, so that a step moves by rows alone");
  static_assert(!kIsAsync || kChunkBytes == 16, "TilePolicy: asynchronous copies move 16 bytes");
};

/// The article's tile: 32 x 32 elements, one element a lane. 128 threads of eight elements rather than the article's
/// 1024 of one: the shared-memory requests are the same. Share of a copy for float32 8192 x 8192 (H200, 2026-11-29),
/// naive / padded / swizzled: 0.25 / 0.34 / 0.33 with 1024 threads, 0.39 / 0.90 / 0.87 with 256, 0.39 / 0.87 / 0.90
/// with 128.
template <int kElementBytes>
using Scalar32Policy = TilePolicy<kElementBytes, kElementBytes, 32 * kElementBytes, 32 * kElementBytes, 128>;

/// 16 bytes a lane on both global sides, 256-byte edges: the longest runs that pay (128-byte edges stay 3 to 6 % behind
/// on large matrices, 512-byte ones gain nothing; H200, 2026-11-29). Bytes take 87 registers a thread for their 16 x 16
/// blocks, so 128-byte columns leave more blocks on an SM. 16-byte elements leave 16 bytes a register block, hence
/// fewer threads with four blocks each.
template <int kElementBytes>
using VectorPolicy =
    TilePolicy<kElementBytes, 16, 256, kElementBytes == 1 ? 128 : 256, kElementBytes == 16 ? 64 : 128, true>;

/// What a tile of the window program owns: so many rows, and so many bytes of each. 32 KiB: a sweep on large matrices
/// found up to 64 KiB as good (H200, 2026-11-29), but problems of few tiles want short ones. us, H200, 2026-12-01, 64 rows
/// and 256 threads / 128 rows and 512 threads: 4 bytes 1223 x 1583 9.42 / 10.22, 2447 x 3167 22.7 / 23.8, 8191 x 8193
/// 137.7 / 138.8, 12345 x 6789 177.6 / 176.1; 8 bytes 12.85 / 13.63, 37.9 / 37.9, 270.8 / 270.2, 337.2 / 336.4.
constexpr int window_rows(int element_bytes) { return element_bytes <= 2 ? 128 : 64; }
constexpr int window_row_bytes(int element_bytes) { return element_bytes == 1 ? 256 : 512; }

/// As VectorPolicy with 128-byte edges, for problems that would leave SMs idle.
template <int kElementBytes>
using Vector128Policy = TilePolicy<kElementBytes, 16, 128, 128, 64, true>;

/// What a lane moves where 16 bytes are too many: two elements, four of bytes (CUDA's short vectors: char4, short2,
/// float2, double2).
constexpr int short_vector_bytes(int element_bytes) { return min_of(16, max_of(4, 2 * element_bytes)); }

/// Short vectors through registers: 32 rows of 128 bytes (256 of the longest elements), two register blocks to a thread.
/// A small call waits for its first loads: a thread has half as many as in Scalar32Policy (of bytes as many, for four
/// times the elements), and the last of them is instruction 45 instead of 61 (2 bytes).
template <int kElementBytes, int kChunkBytes = short_vector_bytes(kElementBytes),
          int kRowBytes = max_of(128, 16 * kChunkBytes), int kColumnBytes = 32 * kElementBytes>
using ShortVectorPolicy = TilePolicy<kElementBytes, kChunkBytes, kRowBytes, kColumnBytes,
                                     kRowBytes / kChunkBytes*(kColumnBytes / kChunkBytes) / 2>;

}  // namespace swizzle
