// The scatter programs: the bodies of the transpose kernel for few rows, and for small matrices, that scatter what they
// load over an image of the output in shared memory. The image leaves as one flat run.
//
// They take the same parts of a transposition as the flat program (core/flat_program.hpp), which gathers every element
// of the output from an image of the input instead. Scattering asks more of the sides and addresses, and is faster:
// - WordScatterProgram: sides and addresses in multiples of a word. A lane loads a piece of as many neighbouring rows
//   as make up a word of an output row, transposes them in registers and scatters words.
// - ByteScatterProgram: bytes one by one, where rows are no multiple of 8. Neighbouring lanes write `rows` words apart,
//   an odd number, or two or four times one; then two or four lanes with the bytes of neighbouring words take the banks
//   between. (Gathering 49 x 49 bytes takes 5 wavefronts for 32 bytes.)
//
// The image is skewed by a chunk after every 2^skew_shift bytes where lanes along an input row would meet in few banks.
#pragma once

#include "flat_program.hpp"

namespace swizzle {

struct ScatterArguments : TileArguments {
  std::int64_t matrices = 1;  // in all, where a block takes whole ones
  int tile_cols = 0;          // of a matrix that a block takes
  int tile_matrices = 0;      // 0 where a block takes a part of one
  int matrix_bytes = 0;       // of a block's part of a matrix
  int lanes_shift = 3;        // lanes along the pieces of a row, the others on the next rows
  int skew_shift = kNoSkew;
  int words_at_once = 0;        // ByteScatterProgram: words that a lane loads before it scatters them
  FastDivision rows_division;   // by the groups of rows that a lane loads together
  FastDivision piece_division;  // by groups of 2^lanes_shift pieces of a row (ByteScatterProgram: by words)
};

/// What the scatter programs share: the parts of a transposition, and the way out. kUnitBytes: the least that is loaded
/// or stored.
template <int kElementBytes_, int kUnitBytes>
struct ScatterProgram {
  using Arguments = ScatterArguments;

  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kThreads = 256;
  static constexpr int kSharedBytes = kMaxFlatImageBytes + kMaxFlatImageBytes / 8 + 64;
  static constexpr std::int64_t kMinKeptBytes = INT64_MAX;

  /// Bytes of shared memory that a block uses, at most kSharedBytes.
  static int shared_bytes(const ScatterArguments& args) {
    return skewed(max_of(args.tile_matrices, 1) * args.matrix_bytes + 15, args.skew_shift) / 16 * 16 + 16;
  }

  /// What one block works on: its first element on both sides, and how much of the full shape exists.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    int cols = 0;
    int matrices = 1;
    int bytes = 0;
  };

  SWIZZLE_HOST_DEVICE static Origin locate(const ScatterArguments& args, std::uint32_t block) {
    Origin tile;
    tile.cols = args.tile_cols;
    if (args.tile_matrices > 0) {
      const std::int64_t first = std::int64_t{block} * args.tile_matrices;
      tile.src = args.src + first * args.matrix_bytes;
      tile.dst = args.dst + first * args.matrix_bytes;
      tile.matrices = static_cast<int>(min_of<std::int64_t>(args.matrices - first, args.tile_matrices));
      tile.bytes = tile.matrices * args.matrix_bytes;
    } else {
      const TilePosition position = locate_tile(args, block);
      const std::int64_t col = std::int64_t{position.col_tile} * args.tile_cols;
      tile.src = position.src + col * kElementBytes;
      tile.dst = position.dst + col * args.dst_col_pitch;
      tile.cols = static_cast<int>(min_of<std::int64_t>(args.cols - col, args.tile_cols));
      tile.bytes = tile.cols * static_cast<int>(args.dst_col_pitch);
    }
    return tile;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const ScatterArguments& args, const Origin& tile, int thread) {
    const int misalignment = misalignment_of(tile.dst);
    unsigned char* dst = tile.dst + (thread * 16 - misalignment);
    keep_in_register(dst);
    int step = 0;
    SWIZZLE_UNROLL_TWICE
    for (int first = thread * 16 - misalignment; first < tile.bytes; first += kThreads * 16, ++step) {
      const int image = skewed(misalignment + first, args.skew_shift);
      if (first >= 0 && first + 16 <= tile.bytes) {
        memory.store_global(dst, memory.template load_shared<Opaque<16>>(step, image));
      } else {
        // A vector that two blocks share, or that an end of the output cuts: each writes its own units.
        SWIZZLE_NO_UNROLL
        for (int byte = max_of(0, -first); byte < 16 && first + byte < tile.bytes; byte += kUnitBytes) {
          memory.store_global(dst + byte, memory.template load_shared<Opaque<kUnitBytes>>(-1, image + byte));
        }
      }
      dst += kThreads * 16;
    }
  }

 protected:
  static ScatterArguments make_arguments(const Transposition& problem, const FlatShape& shape, const void* src,
                                         void* dst) {
    ScatterArguments args;
    static_cast<TileArguments&>(args) = make_tile_arguments(problem, src, dst, 1, ceil_div(problem.cols, shape.cols));
    if (shape.run == FlatRun::kMatrices) {
      args.outer_rank = 0;
      args.tile_matrices = static_cast<int>(shape.matrices);
      args.matrices = problem.outer_count();
      args.block_count = ceil_div(problem.outer_count(), shape.matrices);
    }
    args.tile_cols = static_cast<int>(shape.cols);
    args.matrix_bytes = static_cast<int>(shape.rows * shape.cols * kElementBytes);
    return args;
  }
};

/// kPieceBytes, 4 or 16: what a lane loads of a row at once. Addresses, pitches and lengths of rows are multiples of
/// it.
template <int kElementBytes, int kPieceBytes>
struct WordScatterProgram : ScatterProgram<kElementBytes, 4> {
  using Base = ScatterProgram<kElementBytes, 4>;
  using Origin = typename Base::Origin;
  using Piece = Opaque<kPieceBytes>;
  using Base::kThreads;

  static constexpr int kWordRows = 4 / kElementBytes;
  static constexpr int kPieceCols = kPieceBytes / kElementBytes;
  static constexpr int kBytesInFlight = 64;  // of a thread
  static constexpr int kItemsAtOnce = kBytesInFlight / (kWordRows * kPieceBytes);

  static ScatterArguments make_arguments(const Transposition& problem, const void* src, void* dst) {
    const FlatShape shape = find_scatter_shape(problem, kThreads * kBytesInFlight);
    ScatterArguments args = Base::make_arguments(problem, shape, src, dst);
    // Lanes on neighbouring pieces of a row write so many bytes apart.
    args.skew_shift = skew_shift_for(kPieceBytes * problem.rows);
    const auto pieces = static_cast<int>(ceil_div(args.tile_cols, kPieceCols));
    args.lanes_shift = share_of(pieces, 3);
    args.piece_division = FastDivision(static_cast<std::uint32_t>(ceil_div(pieces, 1 << args.lanes_shift)));
    args.rows_division = FastDivision(static_cast<std::uint32_t>(problem.rows / kWordRows));
    return args;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const ScatterArguments& args, const Origin& tile, int thread) {
    const int misalignment = misalignment_of(tile.dst);
    const auto groups = static_cast<int>(args.rows_division.divisor);
    const int count = tile.matrices * static_cast<int>(args.piece_division.divisor) * groups << args.lanes_shift;
    int step = 0;
    SWIZZLE_NO_UNROLL
    for (int first = thread; first < count; first += kThreads * kItemsAtOnce) {
      Piece value[kItemsAtOnce][kWordRows];
      int image[kItemsAtOnce];  // -1 where there is nothing
      SWIZZLE_UNROLL
      for (int j = 0; j < kItemsAtOnce; ++j) {
        const int i = first + j * kThreads;
        const auto lanes = static_cast<std::uint32_t>(i >> args.lanes_shift);
        const std::uint32_t rest = args.rows_division.quotient(lanes);
        const auto group = static_cast<int>(args.rows_division.remainder(lanes, rest));
        const std::uint32_t matrix = args.piece_division.quotient(rest);
        const auto pieces = static_cast<int>(args.piece_division.remainder(rest, matrix));
        const int col = ((pieces << args.lanes_shift) + (i & ((1 << args.lanes_shift) - 1))) * kPieceCols;
        image[j] = -1;
        if (i < count && col < tile.cols) {
          const int first_byte = static_cast<int>(matrix) * args.matrix_bytes;
          image[j] = misalignment + first_byte + col * static_cast<int>(args.dst_col_pitch) + group * 4;
          const unsigned char* src =
              tile.src + first_byte + col * kElementBytes + std::int64_t{group} * kWordRows * args.src_row_pitch;
          SWIZZLE_UNROLL
          for (int k = 0; k < kWordRows; ++k) {
            value[j][k] = memory.template load_global<Piece>(src);
            src += args.src_row_pitch;
          }
        }
      }
      SWIZZLE_UNROLL
      for (int j = 0; j < kItemsAtOnce; ++j, ++step) {
        if (image[j] >= 0) scatter(memory, args, step, value[j], image[j]);
      }
    }
  }

 private:
  SWIZZLE_HOST_DEVICE static std::uint32_t word_of(const Opaque<4>& piece, int) { return piece.value; }
  SWIZZLE_HOST_DEVICE static std::uint32_t word_of(const Opaque<16>& piece, int i) { return piece.word[i]; }

  // Scatters the transpose of a piece of kWordRows rows: a word to each of its columns.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void scatter(Memory& memory, const ScatterArguments& args, int step,
                                          const Piece (&value)[kWordRows], int image) {
    SWIZZLE_UNROLL
    for (int i = 0; i < kPieceBytes / 4; ++i) {
      std::uint32_t block[kWordRows];
      SWIZZLE_UNROLL
      for (int k = 0; k < kWordRows; ++k) block[k] = word_of(value[k], i);
      transpose_words<kElementBytes>(block);
      SWIZZLE_UNROLL
      for (int k = 0; k < kWordRows; ++k) {
        memory.store_shared(step * kPieceCols + i * kWordRows + k, skewed(image, args.skew_shift), Opaque<4>{block[k]});
        image += static_cast<int>(args.dst_col_pitch);
      }
    }
  }
};

/// Lanes of ByteScatterProgram that share a column of `rows` bytes; 0 where it does not serve. Share of a copy, one
/// lane / two or four (H200, 2026-11-30): 66 x 49 .79 / .93, 130 x 99 .80 / .99, (669, 276, 275) .60 / .85; but slower
/// below 64 rows and for 23 columns. Rows in multiples of 8 would take eight lanes: .44 where boxes reach .83.
constexpr int byte_row_lanes(std::int64_t rows, std::int64_t cols) {
  const bool has_work = rows >= 64 && cols >= 24;
  if (rows % 2 != 0) return 1;
  if (rows % 4 != 0) return has_work ? 2 : 1;
  return rows % 8 != 0 && has_work ? 4 : 0;
}

/// Few rows, or small matrices, of bytes. Every fourth row begins at the same address modulo 4, so that a lane that
/// takes one word of such rows finds its place once: their bytes lie in the same columns, and four bytes apart in the
/// image. kRowLanes lanes take such rows in turns.
template <int kRowLanes>
struct ByteScatterProgram : ScatterProgram<1, 1> {
  using Base = ScatterProgram<1, 1>;

  static constexpr int kRowClasses = 4;
  static constexpr int kRowStep = kRowClasses * kRowLanes;  // from a lane's row to its next
  static constexpr int kMaxCols = kThreads / kRowClasses * 4 - 16;
  /// Most words that a lane has in flight: 72 rows in one turn, 144 in two. With 8 words 127 rows took 29.5 us for 32
  /// MiB, with 16 26.4 (H200, 2026-11-30).
  static constexpr int kMaxWordsAtOnce = 18;

  static ScatterArguments make_arguments(const Transposition& problem, const void* src, void* dst) {
    FlatShape shape = find_scatter_shape(problem);
    std::int64_t words = 0;  // that cover a row, at most
    if (shape.run == FlatRun::kColumns) {
      // Whole warps along a row: lanes of two classes would meet in the same banks.
      constexpr std::int64_t kWarpWords = kLanes / kRowLanes;
      shape.cols = min_of<std::int64_t>(find_scatter_shape(problem, kMaxFlatImageBytes).cols, kMaxCols);
      words = ceil_div(ceil_div(shape.cols + 3, 4), kWarpWords) * kWarpWords;
    } else {
      // As many matrices as give every thread the same number of words.
      words = ceil_div(shape.cols + 3, 4);
      const std::int64_t items = kRowStep * words;
      const std::int64_t turns = max_of<std::int64_t>(shape.matrices * items / kThreads, 1);
      shape.matrices = max_of<std::int64_t>(min_of(shape.matrices, turns * kThreads / items), 1);
    }
    ScatterArguments args = Base::make_arguments(problem, shape, src, dst);
    args.piece_division = FastDivision(static_cast<std::uint32_t>(words));
    const std::int64_t rows = ceil_div(problem.rows, kRowStep);
    args.words_at_once = static_cast<int>(ceil_div(rows, ceil_div(rows, kMaxWordsAtOnce)));
    return args;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const ScatterArguments& args, const Origin& tile, int thread) {
    const auto words = static_cast<int>(args.piece_division.divisor);
    const auto rows = static_cast<int>(args.dst_col_pitch);
    const std::int64_t pitch = kRowStep * args.src_row_pitch;
    SWIZZLE_NO_UNROLL
    for (int i = thread; i < tile.matrices * kRowStep * words; i += kThreads) {
      const int place = i / kRowLanes;
      const auto item = static_cast<int>(args.piece_division.quotient(static_cast<std::uint32_t>(place)));
      const int matrix = item / kRowClasses * args.matrix_bytes;
      const int first_row = item % kRowClasses + i % kRowLanes * kRowClasses;
      const unsigned char* src = tile.src + matrix + first_row * args.src_row_pitch;
      // Of the word's first byte; may be before 0.
      const int col = (place - item * words) * 4 - misalignment_of(src) % 4;
      if (col >= tile.cols) continue;
      src += col;
      int count = (rows - first_row + kRowStep - 1) / kRowStep;
      int image = misalignment_of(tile.dst) + matrix + col * rows + first_row;
      // Words that the input's beginning or its end cuts: one each, or all of them where rows are one, expanded.
      SWIZZLE_NO_UNROLL
      while (count > 0 && src + (count - 1) * pitch + 4 > args.src_end) {
        --count;
        scatter_bytes(memory, tile, src + count * pitch, col, image + count * kRowStep, rows);
      }
      SWIZZLE_NO_UNROLL
      while (count > 0 && src < args.src) {
        scatter_bytes(memory, tile, src, col, image, rows);
        --count;
        image += kRowStep;
        src += pitch;
      }
      int column[4];  // where the bytes of a word go
      SWIZZLE_UNROLL
      for (int k = 0; k < 4; ++k) column[k] = image + k * rows;
      SWIZZLE_NO_UNROLL
      for (int rest = count; rest > 0; rest -= args.words_at_once) {
        // Leaving the loops costs less than going through the idle turns of predicated ones: 33 rows, half of 18 words
        // idle, took 29.4 us instead of 25.3 for 32 MiB (H200, 2026-11-30).
        const int words_now = min_of(rest, args.words_at_once);
        std::uint32_t word[kMaxWordsAtOnce];
        const unsigned char* row = src;
        SWIZZLE_UNROLL
        for (int j = 0; j < kMaxWordsAtOnce; ++j) {
          if (j >= words_now) break;
          word[j] = memory.template load_global<Opaque<4>>(row).value;
          row += pitch;
        }
        SWIZZLE_UNROLL
        for (int k = 0; k < 4; ++k) keep_in_register(column[k]);
        SWIZZLE_UNROLL
        for (int j = 0; j < kMaxWordsAtOnce; ++j) {
          if (j >= words_now) break;
          SWIZZLE_UNROLL
          for (int k = 0; k < 4; ++k) {
            if (col + k < 0 || col + k >= tile.cols) continue;
            const auto byte = static_cast<std::uint8_t>(byte_permute(word[j], 0, 0x4440 + k));
            memory.store_shared(j * 4 + k, column[k] + j * kRowStep, Opaque<1>{byte});
          }
        }
        SWIZZLE_UNROLL
        for (int k = 0; k < 4; ++k) column[k] += args.words_at_once * kRowStep;
        src += args.words_at_once * pitch;
      }
    }
  }

 private:
  // The bytes of one word, of those that the tile has.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void scatter_bytes(Memory& memory, const Origin& tile, const unsigned char* src, int col,
                                                int image, int rows) {
    SWIZZLE_UNROLL
    for (int k = 0; k < 4; ++k) {
      if (col + k < 0 || col + k >= tile.cols) continue;
      memory.store_shared(kMaxWordsAtOnce * 4 + k, image + k * rows, memory.template load_global<Opaque<1>>(src + k));
    }
  }
};

}  // namespace swizzle
