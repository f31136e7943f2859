// The box program: the body of the kernel that moves a problem of any rank in boxes (core/box.hpp), for every order of
// the dimensions: attention heads, several short dimensions on either side, rows that stay as they are.
//
// A block brings its box into an image in shared memory, in the input's order: every piece of the input as the chunks
// that cover it, by asynchronous copies, at the misalignment that it has. A table in shared memory holds where in the
// image the elements of an output run lie, but for the run's last dimension, so that neither the number of dimensions
// nor their lengths cost anything per element. A lane gathers the elements of a 16-byte vector of the output one by one and stores the vector.
//
// The image of elements below 16 bytes can be skewed by a chunk after every eight or sixteen, since lanes along an output
// run, several pitches apart, would meet in few banks. 16-byte elements take pitches that suit them instead.
#pragma once

#include "bank_model.hpp"
#include "box.hpp"
#include "register_transpose.hpp"

namespace swizzle {

/// A dimension of a box, innermost first in its list. Pitches in bytes.
struct BoxDimension {
  FastDivision extent;
  int cut = 0;  // 0: whole in every box, 1: the input's cut, 2: the output's
  int image_pitch = 0;
  std::int64_t src_pitch = 0;
  std::int64_t dst_pitch = 0;
};

/// A dimension of the grid of boxes, innermost in the output first.
struct BoxGridDimension {
  FastDivision tiles;
  int extent = 1;
  int cut = 0;
  std::int64_t size = 1;
  std::int64_t src_step = 0;
  std::int64_t dst_step = 0;
};

/// Boxes with addresses and divisions; passed to the kernel by value.
struct BoxArguments {
  const unsigned char* src = nullptr;
  const unsigned char* src_end = nullptr;
  unsigned char* dst = nullptr;
  std::int64_t block_count = 0;
  int input_cut_extent = 0;  // of a box that is whole
  int output_cut_extent = 0;
  int grid_rank = 0;
  BoxGridDimension grid[kMaxBoxRank];

  int pieces = 1;
  int piece_bytes = 0;  // or of one step along the cut dimension, where a piece ends there
  bool piece_is_cut = false;
  FastDivision piece_chunks;  // chunks that cover a piece
  int input_rank = 0;         // dimensions over which pieces of the input repeat
  BoxDimension input[kMaxBoxRank];

  int output_runs = 1;
  // Elements of an output run within its cut dimension, in all where there is none. The table goes on for a vector.
  FastDivision table_length;
  int run_cut = 0;
  int run_cut_pitch = 0;  // in the image
  int table_offset = 0;   // in shared memory
  int skew_shift = kNoSkew;
  int shared_bytes = 0;
  int table_rank = 0;
  FastDivision table_extent[kMaxBoxRank];
  int table_pitch[kMaxBoxRank] = {};
  int output_rank = 0;  // dimensions over which runs of the output repeat
  BoxDimension output[kMaxBoxRank];
  int vector_groups = 1;  // of 2^lanes_shift vectors, to cover an output run
  int lanes_shift = 3;    // lanes of a warp along an output run, the others on neighbouring runs
  int warps_shift = 3;    // warps of a block along an output run
};

template <int kElementBytes_>
struct BoxProgram {
  using Arguments = BoxArguments;
  using Element = Opaque<kElementBytes_>;

  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kThreads = 256;
  // Chunks, and runs of the output, whose places a thread finds at once.
  static constexpr int kLoadsAtOnce = 4;
  static constexpr int kStoresAtOnce = kElementBytes == 16 ? 4 : 2;
  static constexpr int kWarpShift = log2_floor(kThreads / kLanes);
  static constexpr int kChunkElements = 16 / kElementBytes;
  static constexpr bool kIsSkewed = kElementBytes < 16;
  static constexpr int kSharedBytes =
      kBoxImageBytes + (kIsSkewed ? kBoxImageBytes / 8 : 0) + 2 * (kMaxTableLength + kChunkElements - 1);
  static constexpr std::int64_t kMinKeptBytes = std::int64_t{160} << 20;

  /// Bytes of shared memory of a launch, at most kSharedBytes.
  static int shared_bytes(const BoxArguments& args) { return args.shared_bytes; }

  static BoxArguments make_arguments(const Box& box, const void* src, void* dst) {
    BoxArguments args;
    args.src = static_cast<const unsigned char*>(src);
    args.dst = static_cast<unsigned char*>(dst);
    args.block_count = box.block_count();
    std::int64_t last = 0;
    for (int i = box.rank - 1; i >= 0; --i) {
      last += (box.size[i] - 1) * box.src_stride[i] * kElementBytes;
      if (box.tiles(i) > 1) {
        BoxGridDimension& grid = args.grid[args.grid_rank++];
        grid.tiles = FastDivision(static_cast<std::uint32_t>(box.tiles(i)));
        grid.extent = box.extent[i];
        grid.cut = (i == box.input_cut ? 1 : 0) | (i == box.output_cut ? 2 : 0);
        grid.size = box.size[i];
        grid.src_step = box.extent[i] * box.src_stride[i] * kElementBytes;
        grid.dst_step = box.extent[i] * box.dst_stride[i] * kElementBytes;
      }
    }
    args.src_end = args.src + last + kElementBytes;
    if (box.input_cut >= 0) args.input_cut_extent = box.extent[box.input_cut];
    if (box.output_cut >= 0) args.output_cut_extent = box.extent[box.output_cut];
    describe_input(box, args);
    describe_output(box, args, dst);
    return args;
  }

  /// What one block works on: its first element on both sides, and how far it reaches along the cut dimensions.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    int input_cut = 0;
    int output_cut = 0;

    SWIZZLE_HOST_DEVICE int limit(int cut) const {
      return cut == 0 ? INT32_MAX : (cut & 1) != 0 ? input_cut : output_cut;
    }
  };
  SWIZZLE_HOST_DEVICE static Origin locate(const BoxArguments& args, std::uint32_t block) {
    Origin tile{args.src, args.dst, args.input_cut_extent, args.output_cut_extent};
    SWIZZLE_NO_UNROLL
    for (int i = 0; i < args.grid_rank; ++i) {
      const BoxGridDimension& grid = args.grid[i];
      const std::uint32_t rest = grid.tiles.quotient(block);
      const std::int64_t index = grid.tiles.remainder(block, rest);
      block = rest;
      tile.src += index * grid.src_step;
      tile.dst += index * grid.dst_step;
      const auto length = static_cast<int>(min_of<std::int64_t>(grid.size - index * grid.extent, grid.extent));
      if ((grid.cut & 1) != 0) tile.input_cut = length;
      if ((grid.cut & 2) != 0) tile.output_cut = length;
    }
    return tile;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const BoxArguments& args, const Origin& tile, int thread) {
    const int piece_bytes = args.piece_bytes * (args.piece_is_cut ? tile.input_cut : 1);
    const auto piece_chunks = static_cast<int>(args.piece_chunks.divisor);
    const int base = misalignment_of(tile.src);
    const int count = args.pieces * piece_chunks;
    SWIZZLE_NO_UNROLL
    for (int first = thread; first < count; first += kThreads * kLoadsAtOnce) {
      Places<kLoadsAtOnce> places;
      int chunk[kLoadsAtOnce];
      SWIZZLE_UNROLL
      for (int k = 0; k < kLoadsAtOnce; ++k) {
        const auto i = static_cast<std::uint32_t>(first + k * kThreads);
        places.run[k] = args.piece_chunks.quotient(i);
        places.is_inside[k] = static_cast<int>(i) < count;
        chunk[k] = static_cast<int>(args.piece_chunks.remainder(i, places.run[k]));
      }
      find_places<true>(args.input, args.input_rank, tile, places);
      SWIZZLE_UNROLL
      for (int k = 0; k < kLoadsAtOnce; ++k) {
        const unsigned char* src = tile.src + places.offset[k];
        const int misalignment = misalignment_of(src);
        const int end = misalignment + piece_bytes - chunk[k] * 16;  // from the chunk on
        if (!places.is_inside[k] || end <= 0) continue;
        src += chunk[k] * 16 - misalignment;
        const int image = place_of(args, base + places.image[k] + chunk[k] * 16 - misalignment);
        if (src + 16 <= args.src_end) {
          memory.copy_window_to_shared(k, image, src);
        } else {
          // The chunk that the input's end cuts: nothing is read behind it.
          SWIZZLE_NO_UNROLL
          for (int byte = chunk[k] == 0 ? misalignment : 0; byte < min_of(16, end); ++byte) {
            memory.store_shared(kLoadsAtOnce, image + byte, memory.template load_global<Opaque<1>>(src + byte));
          }
        }
      }
    }
    for (int i = thread; i < static_cast<int>(args.table_length.divisor) + kChunkElements - 1; i += kThreads) {
      const std::uint32_t step = args.table_length.quotient(static_cast<std::uint32_t>(i));
      std::uint32_t rest = args.table_length.remainder(static_cast<std::uint32_t>(i), step);
      std::uint32_t image = step * static_cast<std::uint32_t>(args.run_cut_pitch);
      SWIZZLE_NO_UNROLL
      for (int d = 0; d < args.table_rank; ++d) {
        const std::uint32_t quotient = args.table_extent[d].quotient(rest);
        image += args.table_extent[d].remainder(rest, quotient) * static_cast<std::uint32_t>(args.table_pitch[d]);
        rest = quotient;
      }
      memory.store_shared(2, args.table_offset + 2 * i, Opaque<2>{static_cast<std::uint16_t>(image)});
    }
    memory.await_copies();
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const BoxArguments& args, const Origin& tile, int thread) {
    const int lane = thread % kLanes;
    const int warp = thread / kLanes;
    const int length = static_cast<int>(args.table_length.divisor) * (args.run_cut ? tile.limit(args.run_cut) : 1);
    const int base = misalignment_of(tile.src);
    const int first_run = (warp >> args.warps_shift << (kLaneShift - args.lanes_shift)) + (lane >> args.lanes_shift);
    const int runs_shift = kWarpShift - args.warps_shift + kLaneShift - args.lanes_shift;
    for (int group = warp & ((1 << args.warps_shift) - 1); group < args.vector_groups; group += 1 << args.warps_shift) {
      const int vector = (group << args.lanes_shift) + (lane & ((1 << args.lanes_shift) - 1));
      int known_shift = -1;
      int offset[kChunkElements];
      SWIZZLE_NO_UNROLL
      for (int run = first_run; run < args.output_runs; run += kStoresAtOnce << runs_shift) {
        Places<kStoresAtOnce> places;
        SWIZZLE_UNROLL
        for (int k = 0; k < kStoresAtOnce; ++k) {
          places.run[k] = static_cast<std::uint32_t>(run + (k << runs_shift));
          places.is_inside[k] = static_cast<int>(places.run[k]) < args.output_runs;
        }
        find_places<false>(args.output, args.output_rank, tile, places);
        SWIZZLE_UNROLL
        for (int k = 0; k < kStoresAtOnce; ++k) {
          unsigned char* dst = tile.dst + places.offset[k];
          // The run begins `shift` elements into a chunk of the output, so its vectors begin that much before.
          const int shift = misalignment_of(dst) / kElementBytes;
          const int first = vector * kChunkElements - shift;
          if (!places.is_inside[k] || first >= length) continue;
          if (shift != known_shift) {
            find_elements(memory, args, first, length, offset);
            known_shift = shift;
          }
          store_vector(memory, args, base + places.image[k], offset, first, length, dst + first * kElementBytes);
        }
      }
    }
  }

 private:
  static constexpr int kLaneShift = log2_floor(kLanes);

  template <class Byte>
  SWIZZLE_HOST_DEVICE static int misalignment_of(Byte* address) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % 16);
  }

  SWIZZLE_HOST_DEVICE static int place_of(const BoxArguments& args, int byte) {
    return kIsSkewed ? skewed(byte, args.skew_shift) : byte;
  }

  // Where in the image the elements of a vector of an output run lie; those outside the run are its nearest one.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void find_elements(Memory& memory, const BoxArguments& args, int first, int length,
                                                int (&offset)[kChunkElements]) {
    const auto begin = static_cast<std::uint32_t>(max_of(first, 0));
    const std::uint32_t step = args.table_length.quotient(begin);
    const int image = static_cast<int>(step) * args.run_cut_pitch;
    const int entry = args.table_offset + 2 * static_cast<int>(args.table_length.remainder(begin, step));
    if (first >= 0 && first + kChunkElements <= length) {
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) {
        offset[k] = image + memory.template load_shared<Opaque<2>>(k, entry + 2 * k).value;
      }
    } else {
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) {
        const int nearest = min_of(max_of(first + k, 0), length - 1) - static_cast<int>(begin);
        offset[k] = image + memory.template load_shared<Opaque<2>>(k, entry + 2 * nearest).value;
      }
    }
  }

  // Gathers a vector of the output, whose first element is number `first` of its run, and stores what is of the run.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store_vector(Memory& memory, const BoxArguments& args, int image,
                                               const int (&offset)[kChunkElements], int first, int length,
                                               unsigned char* dst) {
    Element element[kChunkElements];
    SWIZZLE_UNROLL
    for (int k = 0; k < kChunkElements; ++k) {
      element[k] = memory.template load_shared<Element>(kChunkElements + k, place_of(args, image + offset[k]));
    }
    const Opaque<16> value = pack<kElementBytes>(element);
    if (first >= 0 && first + kChunkElements <= length) {
      memory.store_global(dst, value);
    } else {
      SWIZZLE_UNROLL
      for (int k = 0; k < kChunkElements; ++k) {
        if (first + k >= 0 && first + k < length) {
          memory.store_global(dst + k * kElementBytes, element_of<kElementBytes>(value, k));
        }
      }
    }
  }

  // Several pieces or runs of a box by number, and where they lie: whether inside the problem, in the image, and their bytes from
  // the box's first element on one side.
  template <int kCount>
  struct Places {
    std::uint32_t run[kCount];
    bool is_inside[kCount];
    int image[kCount];
    std::int64_t offset[kCount];
  };

  // Dimension by dimension for all runs at once: its numbers are fetched once, and the divisions overlap.
  template <bool kIsInput, int kCount>
  SWIZZLE_HOST_DEVICE static void find_places(const BoxDimension (&dimensions)[kMaxBoxRank], int rank,
                                              const Origin& tile, Places<kCount>& places) {
    SWIZZLE_UNROLL
    for (int k = 0; k < kCount; ++k) {
      places.image[k] = 0;
      places.offset[k] = 0;
    }
    SWIZZLE_NO_UNROLL
    for (int i = 0; i < rank; ++i) {
      const BoxDimension& dimension = dimensions[i];
      const int limit = tile.limit(dimension.cut);
      const std::int64_t pitch = kIsInput ? dimension.src_pitch : dimension.dst_pitch;
      SWIZZLE_UNROLL
      for (int k = 0; k < kCount; ++k) {
        const std::uint32_t rest = dimension.extent.quotient(places.run[k]);
        const auto index = static_cast<int>(dimension.extent.remainder(places.run[k], rest));
        places.run[k] = rest;
        places.is_inside[k] = places.is_inside[k] && index < limit;
        places.image[k] += index * dimension.image_pitch;
        places.offset[k] += index * pitch;
      }
    }
  }

  static BoxDimension make_dimension(const Box& box, int dim) {
    BoxDimension dimension;
    dimension.extent = FastDivision(static_cast<std::uint32_t>(box.extent[dim]));
    dimension.cut = cut_of(box, dim);
    dimension.image_pitch = box.image_pitch[dim];
    dimension.src_pitch = box.src_stride[dim] * kElementBytes;
    dimension.dst_pitch = box.dst_stride[dim] * kElementBytes;
    return dimension;
  }

  static int cut_of(const Box& box, int dim) { return dim == box.input_cut ? 1 : dim == box.output_cut ? 2 : 0; }

  static void describe_input(const Box& box, BoxArguments& args) {
    args.piece_bytes = box.input_piece() * kElementBytes;
    args.piece_is_cut = box.input_cut >= 0 && box.is_in_input_piece(box.input_cut);
    if (args.piece_is_cut) args.piece_bytes /= box.extent[box.input_cut];
    const int overhang = box.is_aligned ? 0 : 15;
    args.piece_chunks =
        FastDivision(static_cast<std::uint32_t>((box.input_piece() * kElementBytes + overhang + 15) / 16));
    // From the output's innermost dimension on: neighbouring threads then read rows that lie close together.
    for (int i = box.rank - 1; i >= 0; --i) {
      if (box.extent[i] == 1 || box.is_in_input_piece(i)) continue;
      args.input[args.input_rank++] = make_dimension(box, i);
      args.pieces *= box.extent[i];
    }
  }

  static void describe_output(const Box& box, BoxArguments& args, const void* dst) {
    int table_length = box.output_run;
    if (box.output_cut >= 0) {
      table_length /= box.extent[box.output_cut];
      args.run_cut = cut_of(box, box.output_cut);
      args.run_cut_pitch = box.image_pitch[box.output_cut];
    }
    args.table_length = FastDivision(static_cast<std::uint32_t>(table_length));
    args.skew_shift = box.skew_shift;
    args.table_offset = skewed(box.image_bytes, box.skew_shift);
    args.shared_bytes = args.table_offset + 2 * (table_length + kChunkElements - 1);
    bool is_aligned = reinterpret_cast<std::uintptr_t>(dst) % 16 == 0;
    const int first_outside = box.rank - box.output_dims;
    for (int i = box.rank - 1; i >= first_outside; --i) {
      if (box.extent[i] == 1 || i == box.output_cut) continue;
      args.table_extent[args.table_rank] = FastDivision(static_cast<std::uint32_t>(box.extent[i]));
      args.table_pitch[args.table_rank++] = box.image_pitch[i];
    }
    // From the input's densest dimension on: neighbouring lanes then read neighbouring elements of the image.
    for (int k = 0; k < box.rank; ++k) {
      const int i = box.input_order[k];
      const bool is_outside = i < first_outside;
      const std::int64_t step = is_outside ? 1 : box.tiles(i) > 1 ? box.extent[i] : 0;
      is_aligned = is_aligned && step * box.dst_stride[i] * kElementBytes % 16 == 0;
      if (box.extent[i] == 1 || !is_outside) continue;
      args.output[args.output_rank++] = make_dimension(box, i);
      args.output_runs *= box.extent[i];
    }
    const int vectors = (box.output_run + (is_aligned ? 0 : kChunkElements - 1) + kChunkElements - 1) / kChunkElements;
    args.lanes_shift = share_of(vectors, detail::most_lanes_shift(args.output_runs));
    args.vector_groups = (vectors + (1 << args.lanes_shift) - 1) >> args.lanes_shift;
    args.warps_shift = share_of(args.vector_groups, kWarpShift);
  }
};

}  // namespace swizzle
