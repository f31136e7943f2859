// The flat program: the body of the transpose kernel for sides too short for a tile.
//
// A run of rows of a narrow matrix is one flat run of bytes, whatever the row's length, and so is a run of columns of
// its transpose. A block takes as much of a matrix as fits into kImageBytes, or several whole matrices:
// - kRows:     few columns. Rows come in as one flat run; each output row receives a segment.
// - kColumns:  few rows. A segment of each input row comes in; the columns leave as one flat run.
// - kMatrices: small matrices. Whole ones come in and leave as flat runs.
// Chunks reach an image of the input in shared memory by asynchronous copies; a lane gathers the elements of a 16-byte
// vector of the output from it one by one and stores the vector.
//
// The image is skewed by one chunk after every 2^skew_shift bytes where lanes along an output row, 16 * columns bytes
// apart, would meet in few banks.
#pragma once

#include "bank_model.hpp"
#include "register_transpose.hpp"
#include "tile_grid.hpp"

namespace swizzle {

enum class FlatRun { kRows, kColumns, kMatrices };

/// How much of a transposition one block takes.
struct FlatShape {
  FlatRun run = FlatRun::kRows;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t matrices = 1;
};

inline constexpr int kFlatImageBytes = 16 * 1024;

/// The shape for a transposition, or rows == 0 where a block cannot take a useful part of it: sides are longer than
/// 128, or not packed, or not in whole chunks. Addresses are checked by the caller.
inline FlatShape find_flat_shape(const Transposition& problem) {
  constexpr std::int64_t kMaxSide = 128;
  const std::int64_t chunk = 16 / problem.element_bytes;
  const std::int64_t matrix_bytes = problem.rows * problem.cols * problem.element_bytes;
  FlatShape shape;
  if (problem.src_col_stride != 1) return shape;
  const bool rows_are_packed = problem.src_row_stride == problem.cols;
  const bool cols_are_packed = problem.dst_col_stride == problem.rows;

  const bool matrices_are_packed = problem.outer_rank == 1 &&
                                   problem.outer_src_stride[0] == problem.rows * problem.cols &&
                                   problem.outer_dst_stride[0] == problem.rows * problem.cols;
  if (rows_are_packed && cols_are_packed && matrices_are_packed) {
    std::int64_t whole_chunks = 1;  // matrices that begin and end at chunks
    while (whole_chunks * matrix_bytes % 16 != 0) whole_chunks *= 2;
    const std::int64_t matrices = kFlatImageBytes / (matrix_bytes * whole_chunks) * whole_chunks;
    if (matrices > 0) return {FlatRun::kMatrices, problem.rows, problem.cols, matrices};
  }

  for (int i = 0; i < problem.outer_rank; ++i) {
    if (problem.outer_src_stride[i] % chunk != 0 || problem.outer_dst_stride[i] % chunk != 0) return shape;
  }
  if (rows_are_packed && problem.cols <= kMaxSide && problem.rows % chunk == 0 && problem.dst_col_stride % chunk == 0) {
    const std::int64_t step = 8 * chunk;
    const std::int64_t rows = kFlatImageBytes / (problem.cols * problem.element_bytes) / step * step;
    if (rows > 0 && problem.rows >= rows) return {FlatRun::kRows, rows, problem.cols, 1};
  }
  if (cols_are_packed && problem.rows <= kMaxSide && problem.cols % chunk == 0 && problem.src_row_stride % chunk == 0) {
    const std::int64_t cols = kFlatImageBytes / (problem.rows * problem.element_bytes) / chunk * chunk;
    if (cols > 0 && problem.cols >= cols) return {FlatRun::kColumns, problem.rows, cols, 1};
  }
  return shape;
}

struct FlatArguments : TileArguments {
  std::int64_t matrices = 1;  // in all, where a block takes whole ones
  int tile_rows = 0;          // of a matrix that a block takes
  int tile_cols = 0;
  int tile_matrices = 1;
  int skew_shift = 31;
  FastDivision rows_division;     // by the rows of a column of the image
  FastDivision matrix_division;   // by the elements of a matrix
  FastDivision segment_division;  // by chunks of an input segment, or by groups of eight vectors of an output segment
};

template <int kElementBytes_, FlatRun kRun>
struct FlatProgram {
  using Arguments = FlatArguments;
  using Element = Opaque<kElementBytes_>;

  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kThreads = 256;
  static constexpr int kChunkElements = 16 / kElementBytes;
  static constexpr int kSharedBytes = kFlatImageBytes + kFlatImageBytes / 8;
  static constexpr std::int64_t kMinKeptBytes = std::int64_t{160} << 20;
  static constexpr int kLanesAlong = 8;
  static constexpr int kColumnLanes = kLanes / kLanesAlong;

  static std::int64_t block_count(const Transposition& problem) {
    const FlatShape shape = find_flat_shape(problem);
    if (kRun == FlatRun::kMatrices) return ceil_div(problem.outer_count(), shape.matrices);
    return ceil_div(problem.rows, shape.rows) * ceil_div(problem.cols, shape.cols) * problem.outer_count();
  }

  static FlatArguments make_arguments(const Transposition& problem, const void* src, void* dst) {
    const FlatShape shape = find_flat_shape(problem);
    FlatArguments args;
    static_cast<TileArguments&>(args) =
        make_tile_arguments(problem, src, dst, ceil_div(problem.rows, shape.rows), ceil_div(problem.cols, shape.cols));
    if (kRun == FlatRun::kMatrices) args.outer_rank = 0;
    args.matrices = problem.outer_count();
    args.tile_rows = static_cast<int>(shape.rows);
    args.tile_cols = static_cast<int>(shape.cols);
    args.tile_matrices = static_cast<int>(shape.matrices);
    args.rows_division = FastDivision(static_cast<std::uint32_t>(shape.rows));
    args.matrix_division = FastDivision(static_cast<std::uint32_t>(shape.rows * shape.cols));
    const std::int64_t segment =
        kRun == FlatRun::kRows ? shape.rows / (kLanesAlong * kChunkElements) : ceil_div(shape.cols, kChunkElements);
    args.segment_division = FastDivision(static_cast<std::uint32_t>(segment));
    if (kRun != FlatRun::kColumns && shape.cols % 2 == 0) {
      int shift = 4;
      while ((shape.cols >> (shift - 4)) % 2 == 0) ++shift;
      args.skew_shift = max_of(shift, 7);
    }
    return args;
  }

  /// What one block works on: its first element on both sides, and how much of the full shape exists.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    int rows = 0;
    int cols = 0;
    int elements = 0;
  };

  SWIZZLE_HOST_DEVICE static Origin locate(const FlatArguments& args, std::uint32_t block) {
    Origin tile;
    tile.rows = args.tile_rows;
    tile.cols = args.tile_cols;
    if constexpr (kRun == FlatRun::kMatrices) {
      const std::int64_t first = std::int64_t{block} * args.tile_matrices;
      const std::int64_t offset = first * (args.tile_rows * args.tile_cols * kElementBytes);
      tile.src = args.src + offset;
      tile.dst = args.dst + offset;
      const auto matrices = static_cast<int>(min_of<std::int64_t>(args.matrices - first, args.tile_matrices));
      tile.elements = matrices * args.tile_rows * args.tile_cols;
    } else {
      const TilePosition position = locate_tile(args, block);
      const std::int64_t row = std::int64_t{position.row_tile} * args.tile_rows;
      const std::int64_t col = std::int64_t{position.col_tile} * args.tile_cols;
      tile.src = position.src + row * args.src_row_pitch + col * kElementBytes;
      tile.dst = position.dst + col * args.dst_col_pitch + row * kElementBytes;
      tile.rows = static_cast<int>(min_of<std::int64_t>(args.rows - row, args.tile_rows));
      tile.cols = static_cast<int>(min_of<std::int64_t>(args.cols - col, args.tile_cols));
      tile.elements = tile.rows * tile.cols;
    }
    return tile;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const FlatArguments& args, const Origin& tile, int thread) {
    if constexpr (kRun == FlatRun::kColumns) {
      const auto segment = static_cast<int>(args.segment_division.divisor);
      for (int i = thread, step = 0; i < tile.rows * segment; i += kThreads, ++step) {
        const auto row = static_cast<int>(args.segment_division.quotient(static_cast<std::uint32_t>(i)));
        const int chunk = i - row * segment;
        if (chunk * kChunkElements >= tile.cols) continue;
        memory.template copy_to_shared<Opaque<16>>(step, i * 16, tile.src + row * args.src_row_pitch + chunk * 16);
      }
    } else {
      const int bytes = tile.elements * kElementBytes;
      int step = 0;
      for (int i = thread; i < bytes / 16; i += kThreads, ++step) {
        memory.template copy_to_shared<Opaque<16>>(step, skewed(args, i * 16), tile.src + i * 16);
      }
      // What the last of several matrices leaves of a chunk.
      const int tail = bytes % 16;
      if (kRun == FlatRun::kMatrices && thread < tail) {
        const int byte = bytes - tail + thread;
        memory.store_shared(step, skewed(args, bytes - tail) + thread,
                            memory.template load_global<Opaque<1>>(tile.src + byte));
      }
    }
    memory.await_copies();
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const FlatArguments& args, const Origin& tile, int thread) {
    if constexpr (kRun == FlatRun::kRows) {
      // Eight lanes along an output row, four on adjacent columns, which mostly share words.
      const auto groups = static_cast<int>(args.segment_division.divisor);
      const int items = (tile.cols + kColumnLanes - 1) / kColumnLanes * groups * kLanes;
      for (int i = thread, step = 0; i < items; i += kThreads, ++step) {
        const auto column_set =
            static_cast<int>(args.segment_division.quotient(static_cast<std::uint32_t>(i / kLanes)));
        const int group = i / kLanes - column_set * groups;
        const int col = column_set * kColumnLanes + i / kLanesAlong % kColumnLanes;
        const int row = (group * kLanesAlong + i % kLanesAlong) * kChunkElements;
        if (col >= tile.cols || row >= tile.rows) continue;
        const Opaque<16> value =
            gather(memory, args, step, row * tile.cols + col, [&](int index, int) { return index + tile.cols; });
        memory.store_global(tile.dst + col * args.dst_col_pitch + row * kElementBytes, value);
      }
    } else {
      for (int i = thread, step = 0; i * kChunkElements < tile.elements; i += kThreads, ++step) {
        store_flat(memory, args, tile, step, i);
      }
    }
  }

 private:
  SWIZZLE_HOST_DEVICE static int skewed(const FlatArguments& args, int byte) {
    return byte + (byte >> args.skew_shift) * 16;
  }

  // A vector of the output whose first element is element `index` of the image; next(index, k) is the one after element
  // k.
  template <class Memory, class Next>
  SWIZZLE_HOST_DEVICE static Opaque<16> gather(Memory& memory, const FlatArguments& args, int step, int index,
                                               const Next& next) {
    Element element[kChunkElements];
    SWIZZLE_UNROLL
    for (int k = 0; k < kChunkElements; ++k) {
      element[k] = memory.template load_shared<Element>(step * kChunkElements + k, skewed(args, index * kElementBytes));
      index = next(index, k);
    }
    return pack<kElementBytes>(element);
  }

  // Vector i of a flat run of output columns.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store_flat(Memory& memory, const FlatArguments& args, const Origin& tile, int step,
                                             int i) {
    const int first = i * kChunkElements;
    int matrix = 0;
    if constexpr (kRun == FlatRun::kMatrices)
      matrix = static_cast<int>(args.matrix_division.quotient(static_cast<std::uint32_t>(first)));
    const int in_matrix = first - matrix * (args.tile_rows * args.tile_cols);
    int col = static_cast<int>(args.rows_division.quotient(static_cast<std::uint32_t>(in_matrix)));
    int row = in_matrix - col * args.tile_rows;
    // In the image of few rows, every row is a segment of whole chunks.
    const int pitch =
        kRun == FlatRun::kColumns ? static_cast<int>(args.segment_division.divisor) * kChunkElements : args.tile_cols;
    const int next_column = 1 - (args.tile_rows - 1) * pitch;
    const int next_matrix = (args.tile_rows - 1) * args.tile_cols;
    const int last = kRun == FlatRun::kMatrices ? tile.elements - 1 - first : kChunkElements;
    const auto next = [&](int index, int k) {
      if (kRun == FlatRun::kMatrices && k >= last) return index;  // behind the last matrix: again, and not stored
      if (++row < args.tile_rows) return index + pitch;
      row = 0;
      index += next_column;
      if (kRun == FlatRun::kMatrices && ++col == args.tile_cols) {
        col = 0;
        index += next_matrix;
      }
      return index;
    };
    const int start = matrix * (args.tile_rows * args.tile_cols) + row * pitch + col;
    const Opaque<16> value = gather(memory, args, step, start, next);
    unsigned char* dst = tile.dst + std::int64_t{first} * kElementBytes;
    if (kRun != FlatRun::kMatrices || first + kChunkElements <= tile.elements) {
      memory.store_global(dst, value);
    } else {
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) {
        if (first + k < tile.elements)
          memory.store_global(dst + k * kElementBytes, element_of<kElementBytes>(value, k));
      }
    }
  }
};

}  // namespace swizzle
