// The grid of tiles over a transposition: kernel arguments, and which tile a block works on. Shared by the tiled
// programs.
#pragma once

#include "arithmetic.hpp"
#include "transposition.hpp"

namespace swizzle {

/// How the tile program finds a lane's chunk of an input row.
/// - kWhole:    whole and aligned; rows are a number of chunks.
/// - kCut:      whole and aligned, but the first and the last one of a row may hold elements that are not the row's.
/// - kGathered: nowhere as one; its elements are a stride apart.
enum class RowChunks { kWhole, kCut, kGathered };

/// A transposition with addresses, tile counts and the launch's divisions; passed to the kernel by value. Pitches in
/// bytes. The caller checks that block_count is in 1 .. 2^31 - 1.
struct TileArguments {
  using Offset = std::int64_t;
  static constexpr RowChunks kRowChunks = RowChunks::kWhole;

  const unsigned char* src = nullptr;
  const unsigned char* src_end = nullptr;
  unsigned char* dst = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t block_count = 0;
  std::int64_t src_row_pitch = 0;
  std::int64_t src_col_pitch = 0;
  std::int64_t dst_col_pitch = 0;
  FastDivision row_tiles;
  FastDivision col_tiles;
  int outer_rank = 0;
  struct Outer {
    FastDivision size;
    std::int64_t src_pitch = 0;
    std::int64_t dst_pitch = 0;
  };
  Outer outer[kMaxOuterRank];  // innermost first
};

/// A single matrix whose farthest element is less than 2 GiB away on both sides: no dimension outside it, every sum in
/// 32 bits, and a grid of row tiles by column tiles, whose blocks divide nothing. The tiles of small calls need a third
/// fewer instructions with it: 50 cases of 4 KiB to 112 MiB take 3.3 % less time (H200, 2026-11-30).
struct MatrixArguments {
  using Offset = std::int32_t;
  static constexpr RowChunks kRowChunks = RowChunks::kWhole;

  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t block_count = 0;
  std::int32_t src_row_pitch = 0;
  std::int32_t src_col_pitch = 0;
  std::int32_t dst_col_pitch = 0;
  FastDivision row_tiles;  // for hosts, which number the blocks

  explicit MatrixArguments(const TileArguments& args)
      : src(args.src),
        dst(args.dst),
        rows(static_cast<std::int32_t>(args.rows)),
        cols(static_cast<std::int32_t>(args.cols)),
        block_count(static_cast<std::int32_t>(args.block_count)),
        src_row_pitch(static_cast<std::int32_t>(args.src_row_pitch)),
        src_col_pitch(static_cast<std::int32_t>(args.src_col_pitch)),
        dst_col_pitch(static_cast<std::int32_t>(args.dst_col_pitch)),
        row_tiles(args.row_tiles) {}
};

/// Matrices whose rows begin and end within chunks, at the same place in all of them. Tiles begin at a line of memory, so
/// many columns before the first one.
struct CutRowsArguments : TileArguments {
  static constexpr RowChunks kRowChunks = RowChunks::kCut;
  static constexpr int kLineBytes = 128;
  std::int32_t cols_before = 0;

  CutRowsArguments(const TileArguments& args, int cols_before_) : TileArguments(args), cols_before(cols_before_) {}
  static int find_cols_before(std::uint64_t src_address, int element_bytes) {
    return static_cast<int>(src_address % kLineBytes) / element_bytes;
  }
};

/// Matrices whose columns lie a stride apart.
struct StridedColumnsArguments : TileArguments {
  static constexpr RowChunks kRowChunks = RowChunks::kGathered;
  explicit StridedColumnsArguments(const TileArguments& args) : TileArguments(args) {}
};

/// Matrices of one tile along the columns and at most one dimension outside, whose farthest elements are less than 2 GiB
/// away: arguments of 48 bytes instead of 296, and sums in 32 bits. float16 (2, 3, 224, 224, 4) to (0, 4, 1, 2, 3) 5.50
/// to 5.28 us (H200, 2026-12-01).
struct BatchArguments {
  using Offset = std::int32_t;

  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  FastDivision row_tiles;
  std::int32_t rows = 0;
  std::int32_t dst_col_pitch = 0;
  std::int32_t outer_src_pitch = 0;
  std::int32_t outer_dst_pitch = 0;
  std::int32_t block_count = 0;

  explicit BatchArguments(const TileArguments& args)
      : src(args.src),
        dst(args.dst),
        row_tiles(args.row_tiles),
        rows(static_cast<std::int32_t>(args.rows)),
        dst_col_pitch(static_cast<std::int32_t>(args.dst_col_pitch)),
        outer_src_pitch(static_cast<std::int32_t>(args.outer[0].src_pitch)),
        outer_dst_pitch(static_cast<std::int32_t>(args.outer[0].dst_pitch)),
        block_count(static_cast<std::int32_t>(args.block_count)) {}
};

/// A block's place: its tile within the matrix, and the matrix's first element on both sides.
struct TilePosition {
  std::uint32_t row_tile = 0;
  std::uint32_t col_tile = 0;
  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
};

/// Arguments for `row_tiles` x `col_tiles` tiles a matrix; their number times the matrices is below 2^31.
inline TileArguments make_tile_arguments(const Transposition& problem, const void* src, void* dst,
                                         std::int64_t row_tiles, std::int64_t col_tiles) {
  const std::int64_t bytes = problem.element_bytes;
  TileArguments args;
  args.src = static_cast<const unsigned char*>(src);
  args.dst = static_cast<unsigned char*>(dst);
  args.rows = problem.rows;
  args.cols = problem.cols;
  args.block_count = row_tiles * col_tiles * problem.outer_count();
  args.src_row_pitch = problem.src_row_stride * bytes;
  args.src_col_pitch = problem.src_col_stride * bytes;
  args.dst_col_pitch = problem.dst_col_stride * bytes;
  args.row_tiles = FastDivision(static_cast<std::uint32_t>(row_tiles));
  args.col_tiles = FastDivision(static_cast<std::uint32_t>(col_tiles));
  args.outer_rank = problem.outer_rank;
  std::int64_t last = (problem.rows - 1) * args.src_row_pitch + (problem.cols - 1) * args.src_col_pitch;
  for (int i = 0; i < problem.outer_rank; ++i) {
    const int from = problem.outer_rank - 1 - i;
    TileArguments::Outer& outer = args.outer[i];
    outer.size = FastDivision(static_cast<std::uint32_t>(problem.outer_size[from]));
    outer.src_pitch = problem.outer_src_stride[from] * bytes;
    outer.dst_pitch = problem.outer_dst_stride[from] * bytes;
    last += (problem.outer_size[from] - 1) * outer.src_pitch;
  }
  args.src_end = args.src + last + bytes;
  return args;
}

/// Whether 32 bits reach every place of a transposition's tiles, which have at most so many rows and columns, on both
/// sides.
inline bool is_near(const Transposition& problem, int most_rows, int most_cols) {
  const std::int64_t rows = problem.rows + most_rows;
  const std::int64_t cols = problem.cols + most_cols;
  std::int64_t src_elements = rows * problem.src_row_stride + cols * problem.src_col_stride;
  std::int64_t dst_elements = cols * problem.dst_col_stride + rows;
  for (int i = 0; i < problem.outer_rank; ++i) {
    src_elements += problem.outer_size[i] * problem.outer_src_stride[i];
    dst_elements += problem.outer_size[i] * problem.outer_dst_stride[i];
  }
  return max_of(src_elements, dst_elements) * problem.element_bytes <= INT32_MAX;
}

/// Whether a transposition is one matrix that MatrixArguments reach. A grid has at most 65535 tiles along its second
/// side, and no tile has fewer than eight columns.
inline bool is_near_matrix(const Transposition& problem) {
  constexpr std::int64_t kMostCols = 8 * 65535;
  return problem.outer_rank == 0 && problem.cols <= kMostCols && is_near(problem, 256, 256);
}

/// Whether BatchArguments reach transpositions of a few columns: with at most one dimension outside.
inline bool is_near_batch(const Transposition& problem) { return problem.outer_rank <= 1 && is_near(problem, 2048, 4); }

/// Base of the programs whose tiles are fixed at compile time: row_tiles(problem) x col_tiles(problem) a matrix.
template <class Program, class Arguments_ = TileArguments>
struct TiledProgram {
  using Arguments = Arguments_;

  static Arguments make_arguments(const Transposition& problem, const void* src, void* dst) {
    return Arguments(make_tile_arguments(problem, src, dst, Program::row_tiles(problem), Program::col_tiles(problem)));
  }
  /// Bytes of shared memory of a launch, at most kSharedBytes.
  static constexpr int shared_bytes(const Arguments&) { return Program::kSharedBytes; }
};

/// Blocks walk down the input rows first: consecutive blocks then write one contiguous run of output rows (float32
/// 8192 x 8192, H200, 2026-11-29: 0.956 of a copy walking along the rows, 0.976 walking down).
SWIZZLE_HOST_DEVICE inline TilePosition locate_tile(const TileArguments& args, std::uint32_t block) {
  TilePosition tile;
  std::uint32_t rest = args.row_tiles.quotient(block);
  tile.row_tile = args.row_tiles.remainder(block, rest);
  std::uint32_t outer = args.col_tiles.quotient(rest);
  tile.col_tile = args.col_tiles.remainder(rest, outer);
  tile.src = args.src;
  tile.dst = args.dst;
  const auto enter = [&](const TileArguments::Outer& dimension) {
    rest = dimension.size.quotient(outer);
    const std::int64_t index = dimension.size.remainder(outer, rest);
    tile.src += index * dimension.src_pitch;
    tile.dst += index * dimension.dst_pitch;
    outer = rest;
  };
  // The first three in straight code, in which arguments are operands: a loop fetches each by an instruction of its
  // own. float32 (4, 16, 32, 64, 48), three dimensions outside tiles that are filled to a fifth, .83 to .85 (H200,
  // 2026-11-30).
  constexpr int kStraight = 3;
  SWIZZLE_UNROLL
  for (int i = 0; i < kStraight; ++i) {
    if (i >= args.outer_rank) return tile;
    enter(args.outer[i]);
  }
  SWIZZLE_NO_UNROLL
  for (int i = kStraight; i < args.outer_rank; ++i) enter(args.outer[i]);
  return tile;
}

SWIZZLE_HOST_DEVICE inline TilePosition locate_tile(const MatrixArguments& args, std::uint32_t block) {
  const std::uint32_t col_tile = args.row_tiles.quotient(block);
  return {args.row_tiles.remainder(block, col_tile), col_tile, args.src, args.dst};
}

SWIZZLE_HOST_DEVICE inline TilePosition locate_tile(const BatchArguments& args, std::uint32_t block) {
  const std::uint32_t outer = args.row_tiles.quotient(block);
  return {args.row_tiles.remainder(block, outer), 0, args.src + static_cast<std::int32_t>(outer) * args.outer_src_pitch,
          args.dst + static_cast<std::int32_t>(outer) * args.outer_dst_pitch};
}

}  // namespace swizzle
