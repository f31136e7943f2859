// The flat program: the body of the transpose kernel for sides too short for a tile.
//
// A run of rows of a narrow matrix is one flat run of bytes, whatever the row's length, and so is a run of columns of
// its transpose. A block takes as much of a matrix as fits into an image in shared memory, or several whole matrices:
// - kRows:     few columns. Rows come in as one flat run; each output row receives a segment.
// - kColumns:  few rows. A segment of each input row comes in; the columns leave as one flat run.
// - kMatrices: small matrices. Whole ones come in and leave as flat runs.
// Nothing but packed rows (kRows, kMatrices) and packed columns (kColumns, kMatrices) is asked for. The input comes as
// the whole 16-byte chunks that cover it, by asynchronous copies, and keeps its misalignment in the image; the output
// leaves in 16-byte vectors of memory, each gathered element by element from the image. A vector that two blocks share
// is written element by element, each block its own; so are the ends of the output. Segments of output rows (kRows)
// are cut at sectors instead, as in the window program, where they do not begin at chunks: a block then loads up to one
// sector's worth of rows before its own (the halo).
//
// The image is skewed by one chunk after every 2^skew_shift bytes where lanes along an output row, 16 * columns bytes
// apart, would meet in few banks.
#pragma once

#include "bank_model.hpp"
#include "chunk_skew.hpp"
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

/// Bytes of a block's image; a single matrix may take more. 24 KiB still let eight blocks share an SM. Share of a copy
/// with 8 / 16 / 24 / 32 / 48 KiB (H200, 2026-11-29): 24 columns of bytes .77 / .94 / .93 / .96 / .92, 24 rows of bytes
/// .64 / .83 / .91 / .87 / .87, 49 x 49 halves .73 / .90 / .93 / .89 / .85.
inline constexpr std::int64_t kFlatImageBytes = 24 * 1024;
inline constexpr std::int64_t kMaxFlatImageBytes = 32 * 1024;

/// Most rows that are taken as few: of 129 a window fills one of its tiles and next to nothing of another.
inline constexpr std::int64_t kMaxFlatRows = 192;

/// The shape for a transposition, or rows == 0 where a block cannot take a useful part of it: columns are more than
/// 128, rows more than `most_rows`, or not packed. Runs of a matrix are of equal length, and shorter where blocks would
/// be too few. Tall matrices are cut into runs even if they fit as a whole, unless they are small or can be scattered:
/// (3072, 1024, 24) bytes .93, gathered as a whole .61, scattered .98; (3423, 700, 7) of 2 bytes .75, as a whole .98
/// (H200, 2026-11-30).
inline FlatShape find_flat_shape(const Transposition& problem, std::int64_t most_image_bytes = kFlatImageBytes,
                                 std::int64_t most_rows = kMaxFlatRows) {
  constexpr std::int64_t kMaxCols = 128;
  constexpr std::int64_t kMinBlocks = 256;
  constexpr std::int64_t kMinImageBytes = 4 * 1024;
  constexpr std::int64_t kMinTallBytes = 16 * 1024;
  const std::int64_t chunk = 16 / problem.element_bytes;
  const std::int64_t matrix_bytes = problem.rows * problem.cols * problem.element_bytes;
  const std::int64_t image_bytes = max_of(kMinImageBytes, min_of(most_image_bytes, problem.byte_count() / kMinBlocks));
  if (problem.src_col_stride != 1) return {};
  const bool rows_are_packed = problem.src_row_stride == problem.cols;
  const bool cols_are_packed = problem.dst_col_stride == problem.rows;

  const bool matrices_are_packed = problem.outer_rank == 1 &&
                                   problem.outer_src_stride[0] == problem.rows * problem.cols &&
                                   problem.outer_dst_stride[0] == problem.rows * problem.cols;
  const std::int64_t rows_unit = 8 * chunk;
  const int piece_bytes = problem.element_bytes == 1 ? 4 : 16;
  const bool has_words = problem.element_bytes <= 4 && problem.rows * problem.element_bytes % 4 == 0 &&
                         problem.cols * problem.element_bytes % piece_bytes == 0;
  const bool is_tall =
      !has_words && problem.cols <= kMaxCols && problem.rows >= 4 * rows_unit && matrix_bytes >= kMinTallBytes;
  if (rows_are_packed && cols_are_packed && matrices_are_packed && matrix_bytes <= kMaxFlatImageBytes && !is_tall) {
    return {FlatRun::kMatrices, problem.rows, problem.cols,
            max_of<std::int64_t>(1, min_of(image_bytes / matrix_bytes, problem.outer_count()))};
  }

  // As few runs as fit the image, of equal length, each a multiple of `unit`.
  const auto split = [&](std::int64_t length, std::int64_t unit_bytes, std::int64_t unit) {
    const std::int64_t longest = max_of(image_bytes / unit_bytes / unit * unit, unit);
    const std::int64_t runs = ceil_div(length, longest);
    return ceil_div(ceil_div(length, runs), unit) * unit;
  };
  if (rows_are_packed && problem.cols <= kMaxCols) {
    return {FlatRun::kRows, split(problem.rows, problem.cols * problem.element_bytes, rows_unit), problem.cols, 1};
  }
  if (cols_are_packed && problem.rows <= most_rows) {
    return {FlatRun::kColumns, problem.rows, split(problem.cols, problem.rows * problem.element_bytes, 2 * chunk), 1};
  }
  return {};
}

/// The same for the scatter programs, which take more rows of bytes: windows are mostly empty there. Share of a copy,
/// 48 MiB, scattered / the best of windows, boxes and flat runs (H200, 2026-11-30): 231 rows .90 / .79, 265 rows .85 /
/// .58, 301 rows .83 / .58, 373 rows .75 / .65, 501 rows .69 / .64, 770 rows level; in words, 280 rows .85 / .60.
inline FlatShape find_scatter_shape(const Transposition& problem, std::int64_t most_image_bytes = kFlatImageBytes) {
  constexpr std::int64_t kMaxByteRows = 512;
  return find_flat_shape(problem, most_image_bytes, problem.element_bytes == 1 ? kMaxByteRows : kMaxFlatRows);
}

/// Whether every output row, and so every vector of it, begins at a multiple of 16 bytes.
inline bool begins_at_chunks(const Transposition& problem, std::uint64_t dst_address) {
  const std::int64_t chunk = 16 / problem.element_bytes;
  bool result = dst_address % 16 == 0 && problem.rows % chunk == 0 && problem.dst_col_stride % chunk == 0;
  for (int i = 0; i < problem.outer_rank; ++i) result = result && problem.outer_dst_stride[i] % chunk == 0;
  return result;
}

struct FlatArguments : TileArguments {
  std::int64_t matrices = 1;  // in all, where a block takes whole ones
  int tile_rows = 0;          // of a matrix that a block takes
  int tile_cols = 0;
  int tile_matrices = 1;
  int halo = 0;           // rows before a block's own that it loads as well
  int segment_bytes = 0;  // from one input row to the next in the image of few rows: an odd number of chunks
  int skew_shift = kNoSkew;
  // A thread's vectors of a flat output are `step` vectors apart. Where these are whole columns or matrices, all lie
  // alike in the image, step_offset bytes apart; elsewhere step_offset is 0.
  int step = 0;
  int step_offset = 0;
  FastDivision rows_division;     // by the rows of a column of the image
  FastDivision matrix_division;   // by the elements of a matrix
  FastDivision segment_division;  // by groups of eight vectors of an output segment
};

template <int kElementBytes_, FlatRun kRun>
struct FlatProgram {
  using Arguments = FlatArguments;
  using Element = Opaque<kElementBytes_>;

  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kThreads = 256;
  static constexpr int kChunkElements = 16 / kElementBytes;
  static constexpr int kSectorElements = 32 / kElementBytes;
  static constexpr int kSharedBytes = kMaxFlatImageBytes + kMaxFlatImageBytes / 8 + 64;
  static constexpr std::int64_t kMinKeptBytes = std::int64_t{160} << 20;
  static constexpr int kLanesAlong = 8;
  static constexpr int kColumnLanes = kLanes / kLanesAlong;

  static FlatArguments make_arguments(const Transposition& problem, const void* src, void* dst) {
    const FlatShape shape = find_flat_shape(problem);
    const int halo = kRun == FlatRun::kRows && !begins_at_chunks(problem, reinterpret_cast<std::uintptr_t>(dst))
                         ? kSectorElements
                         : 0;
    // One more segment than the rows fill where the first may begin before them.
    const std::int64_t row_tiles = ceil_div(problem.rows + max_of(halo - 1, 0), shape.rows);
    FlatArguments args;
    static_cast<TileArguments&>(args) =
        make_tile_arguments(problem, src, dst, row_tiles, ceil_div(problem.cols, shape.cols));
    if (kRun == FlatRun::kMatrices) {
      args.outer_rank = 0;
      args.block_count = ceil_div(problem.outer_count(), shape.matrices);
    }
    args.matrices = problem.outer_count();
    args.tile_rows = static_cast<int>(shape.rows);
    args.tile_cols = static_cast<int>(shape.cols);
    args.tile_matrices = static_cast<int>(shape.matrices);
    args.halo = halo;
    args.rows_division = FastDivision(static_cast<std::uint32_t>(shape.rows));
    args.matrix_division = FastDivision(static_cast<std::uint32_t>(shape.rows * shape.cols));
    if (kRun == FlatRun::kColumns) {
      choose_segments(args);
    } else {
      if (kRun == FlatRun::kRows) {
        args.segment_division = FastDivision(static_cast<std::uint32_t>(shape.rows / (kLanesAlong * kChunkElements)));
      }
      // Lanes of a column are 16 * cols bytes apart: they meet 8 or 4 to a bank without a skew, but 2 where `cols` is
      // twice an odd number, which a skew can make 4 (14, 50 and 78 columns).
      if (shape.cols % 4 == 0) args.skew_shift = skew_shift_for(16 * shape.cols);
    }
    set_step(args);
    return args;
  }

  /// Bytes of shared memory that a block uses, at most kSharedBytes.
  static int shared_bytes(const FlatArguments& args) {
    if (kRun == FlatRun::kColumns) return segment_offset(args, args.tile_rows) + 16;
    const int bytes = args.tile_matrices * (args.tile_rows + args.halo) * args.tile_cols * kElementBytes;
    return skewed(bytes + 15, args.skew_shift) / 16 * 16 + 16;
  }

  /// What one block works on: its first element on both sides (row -halo in the image's row 0), how far behind a chunk
  /// the input begins, and how much of the full shape exists.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    std::int64_t first_row = 0;
    int misalignment = 0;
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
      const std::int64_t col = std::int64_t{position.col_tile} * args.tile_cols;
      tile.first_row = std::int64_t{position.row_tile} * args.tile_rows - args.halo;
      tile.src = position.src + tile.first_row * args.src_row_pitch + col * kElementBytes;
      tile.dst = position.dst + col * args.dst_col_pitch + tile.first_row * kElementBytes;
      tile.rows = static_cast<int>(min_of<std::int64_t>(args.rows - tile.first_row, args.tile_rows + args.halo));
      tile.cols = static_cast<int>(min_of<std::int64_t>(args.cols - col, args.tile_cols));
      tile.elements = tile.rows * tile.cols;
    }
    tile.misalignment = misalignment_of(tile.src);
    return tile;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const FlatArguments& args, const Origin& tile, int thread) {
    int step = 0;
    if constexpr (kRun == FlatRun::kColumns) {
      const int chunks = (args.segment_bytes / 16 + 7) / 8 * 8;
      for (int i = thread; i < tile.rows * chunks; i += kThreads, ++step) {
        const auto group = static_cast<int>(args.rows_division.quotient(static_cast<std::uint32_t>(i / 8)));
        const int row = i / 8 - group * tile.rows;
        const int chunk = group * 8 + i % 8;
        const unsigned char* src = tile.src + row * args.src_row_pitch;
        const int misalignment = misalignment_of(src);
        if (chunk * 16 < misalignment + tile.cols * kElementBytes) {
          copy_chunk(memory, args, step, segment_offset(args, row) + chunk * 16, src - misalignment + chunk * 16);
        }
      }
    } else {
      const int bytes = tile.misalignment + tile.elements * kElementBytes;
      const unsigned char* src = tile.src - tile.misalignment;
      for (int i = thread; i * 16 < bytes; i += kThreads, ++step) {
        copy_chunk(memory, args, step, skewed(i * 16, args.skew_shift), src + i * 16);
      }
    }
    memory.await_copies();
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const FlatArguments& args, const Origin& tile, int thread) {
    if constexpr (kRun == FlatRun::kRows) {
      store_segments(memory, args, tile, thread);
    } else {
      store_flat(memory, args, tile, thread);
    }
  }

 private:
  static void set_step(FlatArguments& args) {
    args.step = kThreads;
    if (kRun == FlatRun::kRows) return;
    // Vectors after which a column or matrix begins anew at a vector's begin, and the skew at its period's.
    const int unit = kRun == FlatRun::kColumns ? args.tile_rows : args.tile_rows * args.tile_cols;
    int vectors = unit >> min_of(log2_of_factor(unit), log2_floor(kChunkElements));
    while (args.skew_shift < kNoSkew && vectors % (1 << (args.skew_shift - 4)) != 0) vectors *= 2;
    if (vectors > kThreads) return;
    args.step = kThreads / vectors * vectors;
    const int units = args.step * kChunkElements / unit;
    args.step_offset = skewed(units * (kRun == FlatRun::kColumns ? 1 : unit) * kElementBytes, args.skew_shift);
  }

  // kColumns: how far segments lie apart in the image. An odd number of chunks suits most; how many more are best
  // depends on where the input's rows begin, and a few requests of the first warp tell (1 to 3 us of host time).
  // Wavefronts of a load and us for 32 MiB of bytes, odd number / chosen: 9 rows 3.1 / 2.0, 29.0 / 25.4, 13 rows 3.2 /
  // 2.0, 29.0 / 25.8, 17 rows 3.4 / 2.0, 28.4 / 26.1, 31 rows 3.6 / 2.1, 28.5 / 26.6 (H200, 2026-11-30).
  static void choose_segments(FlatArguments& args) {
    constexpr int kMostSpareBytes = 2048;
    constexpr int kMostSpareChunks = 8;
    constexpr int kRequests = 4;
    const int least_chunks = static_cast<int>(ceil_div(args.tile_cols, kChunkElements) + 1) | 1;
    args.segment_bytes = least_chunks * 16;
    if (kElementBytes > 2) return;
    const Origin tile = locate(args, 0);
    int offset[kRequests * kLanes];
    int row[kRequests * kLanes];
    for (int i = 0; i < kRequests * kLanes; ++i) {
      const int element = i % kLanes * kChunkElements + i / kLanes * 5 % kChunkElements;
      const Cursor cursor = find(args, element < tile.elements ? element : 0);
      offset[i] = image_offset(args, tile, cursor);
      row[i] = cursor.row;
    }
    int least = INT32_MAX;
    for (int spare = 0; spare <= kMostSpareChunks && spare * 16 * args.tile_rows <= kMostSpareBytes; ++spare) {
      int wavefronts = 0;
      for (int first = 0; first < kRequests * kLanes && wavefronts < least; first += kLanes) {
        BankTally tally;
        for (int i = first; i < first + kLanes; ++i) tally.add((offset[i] + row[i] * spare * 16) / kWordBytes);
        wavefronts += tally.busiest();
      }
      if (wavefronts >= least) continue;
      least = wavefronts;
      args.segment_bytes = (least_chunks + spare) * 16;
      if (least <= 2 * kRequests) break;
    }
  }

  // kColumns: where an input row's segment begins in the image. Segments are an odd number of chunks apart, and eight
  // of them one more, so that 64 rows eight apart begin in all eight groups of four banks.
  SWIZZLE_HOST_DEVICE static int segment_offset(const FlatArguments& args, int row) {
    return row * args.segment_bytes + row / 8 * 16;
  }

  // A chunk that covers some of a tile's input: nothing before the chunk in which the input begins, nothing behind its
  // end. The chunk that the end cuts comes byte by byte.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void copy_chunk(Memory& memory, const FlatArguments& args, int step, int offset,
                                             const unsigned char* src) {
    if (src + 16 <= args.src) return;
    if (src + 16 <= args.src_end) {
      memory.copy_window_to_shared(step, offset, src);
      return;
    }
    SWIZZLE_NO_UNROLL
    for (int i = src < args.src ? static_cast<int>(args.src - src) : 0; src + i < args.src_end; ++i) {
      memory.store_shared(step, offset + i, memory.template load_global<Opaque<1>>(src + i));
    }
  }

  // A vector of the output from the image. Offsets are of its elements; `base` is added to each.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static Opaque<16> gather(Memory& memory, int step, const int (&offset)[kChunkElements],
                                               int base) {
    Element element[kChunkElements];
    SWIZZLE_UNROLL
    for (int k = 0; k < kChunkElements; ++k) {
      element[k] = memory.template load_shared<Element>(step * kChunkElements + k, offset[k] + base);
    }
    return pack<kElementBytes>(element);
  }

  // kRows. Eight lanes along an output row, four on adjacent columns, which mostly share words. A warp walks along its
  // columns in groups of eight vectors, 128 * cols bytes apart in the image, which the skew's period divides.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store_segments(Memory& memory, const FlatArguments& args, const Origin& tile,
                                                 int thread) {
    const auto groups = static_cast<int>(args.segment_division.divisor);
    const int items = (tile.cols + kColumnLanes - 1) / kColumnLanes * groups;
    const int share = (items + kThreads / kLanes - 1) / (kThreads / kLanes);
    int item = thread / kLanes * share;
    const int end = min_of(item + share, items);
    const int group_offset = skewed(kLanesAlong * 16 * tile.cols, args.skew_shift);
    int set = static_cast<int>(args.segment_division.quotient(static_cast<std::uint32_t>(item)));
    int group = item - set * groups;
    for (int step = 0; item < end; ++set, group = 0) {
      const int col = set * kColumnLanes + thread / kLanesAlong % kColumnLanes;
      unsigned char* dst = tile.dst + col * args.dst_col_pitch;
      keep_in_register(dst);
      // How many elements of a sector lie before the column's first vector; none where vectors begin at chunks.
      const int shift =
          args.halo > 0 ? static_cast<int>(reinterpret_cast<std::uintptr_t>(dst) / kElementBytes % kSectorElements) : 0;
      int row = args.halo - shift + (group * kLanesAlong + thread % kLanesAlong) * kChunkElements;
      int offset[kChunkElements];
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) {
        offset[k] = skewed(tile.misalignment + ((row + k) * tile.cols + col) * kElementBytes, args.skew_shift);
      }
      const auto first = static_cast<int>(max_of<std::int64_t>(-tile.first_row, 0));
      const int stop = min_of(groups, group + end - item);
      item += stop - group;
      SWIZZLE_UNROLL_TWICE
      for (int base = 0; group < stop; ++group, ++step, base += group_offset) {
        if (col < tile.cols && row >= first && row + kChunkElements <= tile.rows) {
          memory.store_global(dst + row * kElementBytes, gather(memory, step, offset, base));
        } else if (col < tile.cols) {
          SWIZZLE_NO_UNROLL
          for (int k = max_of(0, first - row); k < kChunkElements && row + k < tile.rows; ++k) {
            const int at = skewed(tile.misalignment + ((row + k) * tile.cols + col) * kElementBytes, args.skew_shift);
            memory.store_global(dst + (row + k) * kElementBytes, memory.template load_shared<Element>(-1, at));
          }
        }
        row += kLanesAlong * kChunkElements;
      }
    }
  }

  // Where element `index` of a block's flat output lies.
  struct Cursor {
    int matrix = 0;
    int col = 0;
    int row = 0;
  };
  SWIZZLE_HOST_DEVICE static Cursor find(const FlatArguments& args, int index) {
    Cursor cursor;
    if constexpr (kRun == FlatRun::kMatrices) {
      cursor.matrix = static_cast<int>(args.matrix_division.quotient(static_cast<std::uint32_t>(index)));
      index -= cursor.matrix * (args.tile_rows * args.tile_cols);
    }
    cursor.col = static_cast<int>(args.rows_division.quotient(static_cast<std::uint32_t>(index)));
    cursor.row = index - cursor.col * args.tile_rows;
    return cursor;
  }
  SWIZZLE_HOST_DEVICE static int image_offset(const FlatArguments& args, const Origin& tile, const Cursor& cursor) {
    if constexpr (kRun == FlatRun::kColumns) {
      return segment_offset(args, cursor.row) + misalignment_of(tile.src + cursor.row * args.src_row_pitch) +
             cursor.col * kElementBytes;
    } else {
      const int index = (cursor.matrix * args.tile_rows + cursor.row) * args.tile_cols + cursor.col;
      return skewed(tile.misalignment + index * kElementBytes, args.skew_shift);
    }
  }

  // The image offsets of the kChunkElements elements of the flat output from `first` on.
  SWIZZLE_HOST_DEVICE static void find_offsets(const FlatArguments& args, const Origin& tile, int first,
                                               int (&offset)[kChunkElements]) {
    Cursor cursor = find(args, first);
    if (kRun == FlatRun::kMatrices && args.tile_rows >= kChunkElements) {
      // At most one column ends among the elements. The one behind a matrix's last is also the next in the image.
      const int wrap = args.tile_rows - cursor.row;
      const int jump = cursor.col + 1 < args.tile_cols ? 1 - args.tile_rows * args.tile_cols : 1 - args.tile_cols;
      const int index = (cursor.matrix * args.tile_rows + cursor.row) * args.tile_cols + cursor.col;
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) {
        const int at = index + k * args.tile_cols + (k >= wrap ? jump : 0);
        offset[k] = skewed(tile.misalignment + at * kElementBytes, args.skew_shift);
      }
      return;
    }
    SWIZZLE_UNROLL
    for (int k = 0; k < kChunkElements; ++k) {
      offset[k] = image_offset(args, tile, cursor);
      if (++cursor.row < args.tile_rows) continue;
      cursor.row = 0;
      ++cursor.col;
      if (kRun == FlatRun::kMatrices && cursor.col == args.tile_cols) {
        cursor.col = 0;
        ++cursor.matrix;
      }
    }
  }

  // kColumns, kMatrices: a thread takes every step-th vector of the flat output.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store_flat(Memory& memory, const FlatArguments& args, const Origin& tile,
                                             int thread) {
    if (thread >= args.step) return;
    const int shift = misalignment_of(tile.dst) / kElementBytes;
    int offset[kChunkElements];
    bool is_known = false;
    int base = 0;
    int step = 0;
    unsigned char* dst = tile.dst + (thread * kChunkElements - shift) * kElementBytes;
    keep_in_register(dst);
    SWIZZLE_UNROLL_TWICE
    for (int first = thread * kChunkElements - shift; first < tile.elements; first += args.step * kChunkElements) {
      if (first >= 0 && first + kChunkElements <= tile.elements) {
        if (!is_known) {
          base = 0;
          find_offsets(args, tile, first, offset);
          is_known = args.step_offset > 0;
        }
        memory.store_global(dst, gather(memory, step, offset, base));
      } else {
        store_part(memory, args, tile, first, dst);
      }
      base += args.step_offset;
      dst += args.step * 16;
      ++step;
    }
  }

  // A vector that two blocks share, or that an end of the output cuts: element by element.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store_part(Memory& memory, const FlatArguments& args, const Origin& tile, int first,
                                             unsigned char* dst) {
    SWIZZLE_NO_UNROLL
    for (int k = max_of(0, -first); k < kChunkElements && first + k < tile.elements; ++k) {
      const int at = image_offset(args, tile, find(args, first + k));
      memory.store_global(dst + k * kElementBytes, memory.template load_shared<Element>(-1, at));
    }
  }
};

}  // namespace swizzle
