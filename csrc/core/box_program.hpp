// The box program: the body of the kernel that moves a problem of any rank in boxes (core/box.hpp), for every order of
// the dimensions: attention heads, several short dimensions on either side, rows that stay as they are.
//
// A block brings its box into an image in shared memory, in the input's order: every piece of the input as the chunks
// that cover it, by asynchronous copies, at the misalignment that it has. A lane gathers the elements of a 16-byte
// vector of the output one by one and stores the vector.
//
// Three tables in shared memory hold where things lie, so that neither the number of dimensions nor their lengths cost
// anything per chunk, vector or element: pieces of the input, runs of the output (in the parts that a box chose), and
// the elements of such a part. (Decomposing chunk and vector numbers by division instead took 17 to 35 instructions a
// byte: random permutes of bytes .52 of a copy, issue slots 85 % busy; H200, 2026-11-30.)
#pragma once

#include "bank_model.hpp"
#include "box.hpp"
#include "partial_chunk.hpp"

namespace swizzle {

/// A dimension over which something repeats in a box, innermost first in its list; pitches in bytes.
struct BoxDimension {
  FastDivision extent;
  int limit_kind = 0;  // 0: whole in every box, 1: the input's cut, 2: the output's
  int steps = 1;       // of the dimension that one index stands for
  int image_pitch = 0;
  int skew_shift = kNoSkew;
  std::int64_t pitch = 0;  // on the side that the list is of

  SWIZZLE_HOST_DEVICE int image_offset(int index) const { return index * image_pitch + (index >> skew_shift) * 16; }
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
  int piece_rank = 0;
  BoxDimension piece[kMaxBoxRank];

  int runs = 1;
  int run_elements = 1;
  int run_step = 1;    // elements of one step of the last dimension of a run
  int run_extent = 1;  // steps of that dimension in a box
  int run_limit_kind = 0;
  int run_rank = 0;
  BoxDimension run[kMaxBoxRank];  // the parts of a run, where there are several, last
  FastDivision runs_per_part;     // by runs that differ in other dimensions
  int part_steps = 0;             // 0 where runs have one part

  int element_rank = 0;
  BoxDimension element[kMaxBoxRank];  // the last one has no end
  int alignment = 16;                 // in bytes, of the first lane along a run
  int vector_groups = 1;              // of 2^lanes_shift vectors, to cover a run
  int lanes_shift = 3;                // lanes of a warp along a run, the others on neighbouring runs
  int warps_shift = 3;                // warps of a block along a run

  int run_table = 0;  // in shared memory
  int piece_table = 0;
  int element_table = 0;
  int shared_bytes = 0;
};

template <int kElementBytes_>
struct BoxProgram {
  using Arguments = BoxArguments;
  using Element = Opaque<kElementBytes_>;

  static constexpr int kElementBytes = kElementBytes_;
  static constexpr int kThreads = 256;
  static constexpr int kWarpShift = log2_floor(kThreads / kLanes);
  static constexpr int kChunkElements = 16 / kElementBytes;
  static constexpr int kSharedBytes = kMaxBoxSharedBytes;
  static constexpr std::int64_t kMinKeptBytes = std::int64_t{160} << 20;
  static constexpr bool kHasPreparation = true;

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
    describe_pieces(box, args);
    describe_runs(box, args, dst);
    args.run_table = box.image_bytes;
    args.piece_table = args.run_table + 16 * args.runs;
    args.element_table = args.piece_table + 8 * args.pieces;
    args.shared_bytes = box.shared_bytes();
    return args;
  }

  /// What one block works on: its first element on both sides, and how far it reaches along the cut dimensions.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    int input_cut = 0;
    int output_cut = 0;

    SWIZZLE_HOST_DEVICE int limit(int kind) const { return kind == 0 ? INT32_MAX : kind == 1 ? input_cut : output_cut; }
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

  /// The table of pieces, which loading needs.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void prepare(Memory& memory, const BoxArguments& args, const Origin& tile, int thread) {
    const int base = misalignment_of(tile.src);
    SWIZZLE_NO_UNROLL
    for (int i = thread; i < args.pieces; i += kThreads) {
      const Place place = find_place(args.piece, args.piece_rank, tile, static_cast<std::uint32_t>(i));
      Piece piece;
      piece.is_inside = place.is_inside;
      piece.misalignment = misalignment_of(tile.src + place.offset);
      piece.offset = base + place.offset - piece.misalignment;
      piece.image = base + place.image - piece.misalignment;
      const int covered = (piece.misalignment + piece_bytes(args, tile) + 15) / 16 * 16;
      piece.reaches_end = tile.src - base + piece.offset + covered > args.src_end;
      memory.store_shared(0, args.piece_table + 8 * i, pack_piece(piece));
    }
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const BoxArguments& args, const Origin& tile, int thread) {
    const int bytes = piece_bytes(args, tile);
    const unsigned char* const chunks = tile.src - misalignment_of(tile.src);
    const int count = args.pieces * static_cast<int>(args.piece_chunks.divisor);
    SWIZZLE_UNROLL_TWICE
    for (int i = thread; i < count; i += kThreads) {
      const std::uint32_t number = args.piece_chunks.quotient(static_cast<std::uint32_t>(i));
      const auto chunk = static_cast<int>(args.piece_chunks.remainder(static_cast<std::uint32_t>(i), number)) * 16;
      const Piece piece =
          unpack_piece(memory.template load_shared<Opaque<8>>(0, args.piece_table + 8 * static_cast<int>(number)));
      const int end = piece.misalignment + bytes - chunk;  // from the chunk on
      if (!piece.is_inside || end <= 0) continue;
      const unsigned char* src = chunks + piece.offset + chunk;
      const int image = piece.image + chunk;
      if (!piece.reaches_end || src + 16 <= args.src_end) {
        memory.copy_window_to_shared(0, image, src);
      } else {
        // The chunk that the input's end cuts: nothing is read behind it.
        SWIZZLE_NO_UNROLL
        for (int byte = chunk == 0 ? piece.misalignment : 0; byte < min_of(16, end); ++byte) {
          memory.store_shared(1, image + byte, memory.template load_global<Opaque<1>>(src + byte));
        }
      }
    }
    make_tables(memory, args, tile, thread);
    memory.await_copies();
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const BoxArguments& args, const Origin& tile, int thread) {
    const int lane = thread % kLanes;
    const int warp = thread / kLanes;
    const int base = misalignment_of(tile.src);
    const int first_run = (warp >> args.warps_shift << (kLaneShift - args.lanes_shift)) + (lane >> args.lanes_shift);
    const int last_entry = args.run_table + 16 * (args.runs - 1);
    int first_entry = args.run_table + 16 * first_run;
    int entry_step = 16 << (kWarpShift - args.warps_shift + kLaneShift - args.lanes_shift);
    keep_in_register(first_entry);
    keep_in_register(entry_step);
    SWIZZLE_NO_UNROLL
    for (int group = warp & ((1 << args.warps_shift) - 1); group < args.vector_groups; group += 1 << args.warps_shift) {
      int element = ((group << args.lanes_shift) + (lane & ((1 << args.lanes_shift) - 1))) * kChunkElements;
      keep_in_register(element);
      // The places of a vector's elements are looked up again where it begins or ends elsewhere than the one before.
      int known_first = INT32_MIN;
      int known_end = 0;
      int offset[kChunkElements] = {};
      SWIZZLE_NO_UNROLL
      for (int entry = first_entry; entry <= last_entry; entry += entry_step) {
        const Run run = unpack_run(memory.template load_shared<Opaque<16>>(2, entry));
        unsigned char* dst = tile.dst + run.offset;
        // The first lane's vector begins so many elements before the run, all of it if it is a whole one. The vector
        // that the run's beginning cuts belongs to the part before if there is one.
        const int first = element - misalignment_of(dst, args.alignment) / kElementBytes;
        if (first >= min_of(args.run_elements, run.length) || first <= (run.continues ? -1 : -kChunkElements)) continue;
        const int end = min_of(first + kChunkElements, run.length);
        if (first != known_first || end != known_end) {
          find_elements(memory, args, first, end, offset);
          known_first = first;
          known_end = end;
        }
        Element value[kChunkElements];
        SWIZZLE_UNROLL
        for (int k = 0; k < kChunkElements; ++k) {
          value[k] = memory.template load_shared<Element>(kFirstGather + k, base + run.image + offset[k]);
        }
        store_chunk<kElementBytes>(memory, dst + first * kElementBytes, pack<kElementBytes>(value), max_of(-first, 0),
                                   end - first);
      }
    }
  }

 private:
  static constexpr int kLaneShift = log2_floor(kLanes);
  // Numbers of the shared-memory loads, after those of pieces and runs.
  static constexpr int kFirstLookup = 3;
  static constexpr int kFirstGather = kFirstLookup + kChunkElements;

  // Where something lies: in the image, and in bytes from the box's first element on its side.
  struct Place {
    std::int64_t offset = 0;
    int image = 0;
    bool is_inside = true;  // of the problem
  };

  // A piece of the input: the chunk in which it begins, in bytes from the one in which the box begins, and in the
  // image; how far into that chunk; whether the input's end may cut its last one.
  struct Piece {
    std::int64_t offset = 0;
    int image = 0;
    int misalignment = 0;
    bool is_inside = true;
    bool reaches_end = false;
  };

  // A part of a run of the output. `length`: elements to the run's end, 0 outside of the problem; `continues`: its
  // first vector is not its own if it begins before it.
  struct Run {
    std::int64_t offset = 0;
    int image = 0;
    int length = 0;
    bool continues = false;
  };

  // A piece in 8 bytes: 47 bits of offset, whether it reaches the end, and 16 bits of image and misalignment, all of
  // them set outside of the problem.
  static constexpr std::uint32_t kOutside = 0xffff;
  static constexpr std::uint32_t kReachesEnd = 0x8000;
  static_assert(kMaxBoxImageBytes < 0xfff0);
  SWIZZLE_HOST_DEVICE static Opaque<8> pack_piece(const Piece& piece) {
    const std::uint32_t place =
        piece.is_inside ? static_cast<std::uint32_t>(piece.image + piece.misalignment) : kOutside;
    return {{static_cast<std::uint32_t>(piece.offset),
             static_cast<std::uint32_t>(piece.offset >> 32) | (piece.reaches_end ? kReachesEnd : 0) | place << 16}};
  }
  SWIZZLE_HOST_DEVICE static Piece unpack_piece(const Opaque<8>& entry) {
    const std::uint32_t place = entry.word[1] >> 16;
    Piece piece;
    piece.offset = static_cast<std::int64_t>(std::uint64_t{entry.word[1] & (kReachesEnd - 1)} << 32 | entry.word[0]);
    piece.image = static_cast<int>(place & ~15U);
    piece.misalignment = static_cast<int>(place & 15);
    piece.is_inside = place != kOutside;
    piece.reaches_end = (entry.word[1] & kReachesEnd) != 0;
    return piece;
  }

  // A run in 16 bytes; `continues` is the highest bit.
  SWIZZLE_HOST_DEVICE static Opaque<16> pack_run(const Run& run) {
    return {{static_cast<std::uint32_t>(run.offset), static_cast<std::uint32_t>(run.offset >> 32),
             static_cast<std::uint32_t>(run.image),
             static_cast<std::uint32_t>(run.length) | (run.continues ? std::uint32_t{1} << 31 : 0)}};
  }
  SWIZZLE_HOST_DEVICE static Run unpack_run(const Opaque<16>& entry) {
    return {static_cast<std::int64_t>(std::uint64_t{entry.word[1]} << 32 | entry.word[0]),
            static_cast<int>(entry.word[2]), static_cast<int>(entry.word[3] & ~(std::uint32_t{1} << 31)),
            entry.word[3] >> 31 != 0};
  }

  SWIZZLE_HOST_DEVICE static int piece_bytes(const BoxArguments& args, const Origin& tile) {
    return args.piece_bytes * (args.piece_is_cut ? tile.input_cut : 1);
  }

  SWIZZLE_HOST_DEVICE static Place find_place(const BoxDimension (&dimensions)[kMaxBoxRank], int rank,
                                              const Origin& tile, std::uint32_t number) {
    Place place;
    SWIZZLE_NO_UNROLL
    for (int i = 0; i < rank; ++i) {
      const BoxDimension& dimension = dimensions[i];
      const std::uint32_t rest = dimension.extent.quotient(number);
      const auto index = static_cast<int>(dimension.extent.remainder(number, rest));
      number = rest;
      place.is_inside = place.is_inside && index * dimension.steps < tile.limit(dimension.limit_kind);
      place.image += dimension.image_offset(index);
      place.offset += index * dimension.pitch;
    }
    return place;
  }

  // The tables of runs and of their elements, which storing needs: made while copies are under way.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void make_tables(Memory& memory, const BoxArguments& args, const Origin& tile,
                                              int thread) {
    SWIZZLE_NO_UNROLL
    for (int i = thread; i < args.runs; i += kThreads) {
      const Place place = find_place(args.run, args.run_rank, tile, static_cast<std::uint32_t>(i));
      const int first_step =
          static_cast<int>(args.runs_per_part.quotient(static_cast<std::uint32_t>(i))) * args.part_steps;
      const int steps = min_of(args.run_extent, tile.limit(args.run_limit_kind)) - first_step;
      Run run{place.offset, place.image, steps * args.run_step, first_step > 0};
      if (!place.is_inside) {
        run.length = 0;
        run.continues = true;
      }
      memory.store_shared(2, args.run_table + 16 * i, pack_run(run));
    }
    SWIZZLE_NO_UNROLL
    for (int i = thread; i < args.run_elements + kChunkElements - 1; i += kThreads) {
      auto rest = static_cast<std::uint32_t>(i);
      int image = 0;
      SWIZZLE_NO_UNROLL
      for (int d = 0; d < args.element_rank; ++d) {
        const BoxDimension& dimension = args.element[d];
        const std::uint32_t quotient = d + 1 < args.element_rank ? dimension.extent.quotient(rest) : 0;
        image += dimension.image_offset(static_cast<int>(dimension.extent.remainder(rest, quotient)));
        rest = quotient;
      }
      memory.store_shared(3, args.element_table + 2 * i, Opaque<2>{static_cast<std::uint16_t>(image)});
    }
  }

  // Where in the image the elements of a vector lie, of a part that begins at 0: those from `first` to before `end`,
  // and the nearest of these for the others.
  template <class Memory>
  SWIZZLE_HOST_DEVICE static void find_elements(Memory& memory, const BoxArguments& args, int first, int end,
                                                int (&offset)[kChunkElements]) {
    SWIZZLE_UNROLL
    for (int k = 0; k < kChunkElements; ++k) {
      const int nearest = min_of(max_of(first + k, 0), end - 1);
      offset[k] = memory.template load_shared<Opaque<2>>(kFirstLookup + k, args.element_table + 2 * nearest).value;
    }
  }

  static BoxDimension make_dimension(const Box& box, int dim, std::int64_t stride) {
    BoxDimension dimension;
    dimension.extent = FastDivision(static_cast<std::uint32_t>(box.extent[dim]));
    dimension.limit_kind = cut_of(box, dim);
    dimension.image_pitch = box.image_pitch[dim];
    if (dim == box.skew_dim) dimension.skew_shift = box.skew_shift;
    dimension.pitch = stride * kElementBytes;
    return dimension;
  }

  // Whether every run of the output begins at a multiple of `alignment` bytes, in every box.
  static bool are_runs_aligned(const BoxArguments& args, const void* dst, int alignment) {
    bool result = reinterpret_cast<std::uintptr_t>(dst) % alignment == 0;
    for (int i = 0; i < args.run_rank; ++i) result = result && args.run[i].pitch % alignment == 0;
    for (int i = 0; i < args.grid_rank; ++i) result = result && args.grid[i].dst_step % alignment == 0;
    return result;
  }

  // How lanes and warps are placed along the runs of the output, and what that costs: the vectors that a thread gathers
  // or looks up.
  struct Placement {
    int alignment = 16;
    int lanes_shift = 0;
    int warps_shift = 0;
    int groups = 0;
    std::int64_t cost = INT64_MAX;

    int lanes() const { return groups << lanes_shift; }  // along a run
  };

  // The placement with lanes that begin at multiples of `alignment` bytes. Warps walk side by side along a run, or
  // along neighbouring runs: the turns that this takes are weighed, and how often the elements of a vector must be
  // looked up again because a lane's next run is aligned in another way, which takes as long as a vector's elements do.
  static Placement place(const BoxArguments& args, const void* dst, int alignment) {
    Placement best;
    best.alignment = alignment;
    const int overhang = are_runs_aligned(args, dst, alignment) ? 0 : alignment / kElementBytes - 1;
    const int vectors = (args.run_elements + overhang + kChunkElements - 1) / kChunkElements;
    best.lanes_shift = share_of(vectors, detail::most_lanes_shift(args.runs));
    best.groups = (vectors + (1 << best.lanes_shift) - 1) >> best.lanes_shift;
    // After `period` runs, a lane's next one is aligned as before, `extent` runs long.
    std::int64_t period = 1;
    std::int64_t extent = 1;
    for (int i = 0; i < args.run_rank && period == 1; ++i) {
      const bool is_aligned = args.run[i].pitch % alignment == 0;
      if (!is_aligned && i > 0) break;
      while (period * args.run[i].pitch % alignment != 0) period *= 2;
      extent *= args.run[i].extent.divisor;
    }
    for (int shift = 0; shift <= kWarpShift; ++shift) {
      const std::int64_t step = std::int64_t{1} << (kWarpShift - shift + kLaneShift - best.lanes_shift);
      const std::int64_t turns = ceil_div(args.runs, step);
      const std::int64_t lookups = step % period != 0 ? turns : min_of(turns, ceil_div(turns * step, extent));
      const std::int64_t cost = ceil_div(best.groups, std::int64_t{1} << shift) * (turns + lookups);
      if (cost >= best.cost) continue;
      best.cost = cost;
      best.warps_shift = shift;
    }
    return best;
  }

  // Lanes begin at sectors, so that these are written as a whole: boxes among 200 random permutes, 4 bytes .83 to .87
  // of a copy, 8 bytes .89 to .93, 16 bytes .89 to .92 (H200, 2026-11-30). Elements of 1 and 2 bytes, whose vectors
  // cost more, begin at 16 bytes where that takes fewer of them (at sectors always .762 to .757 and .863 to .864).
  static void place_lanes(BoxArguments& args, const void* dst) {
    Placement placement = place(args, dst, kSectorBytes);
    if (kElementBytes <= 2) {
      const Placement at_chunks = place(args, dst, 16);
      if (placement.lanes() > at_chunks.lanes() || 20 * placement.cost > 21 * at_chunks.cost) placement = at_chunks;
    }
    args.alignment = placement.alignment;
    args.lanes_shift = placement.lanes_shift;
    args.warps_shift = placement.warps_shift;
    args.vector_groups = placement.groups;
  }

  static int cut_of(const Box& box, int dim) { return dim == box.input_cut ? 1 : dim == box.output_cut ? 2 : 0; }

  static void describe_pieces(const Box& box, BoxArguments& args) {
    args.piece_bytes = box.input_piece() * kElementBytes;
    args.piece_is_cut = box.input_cut >= 0 && box.is_in_input_piece(box.input_cut);
    if (args.piece_is_cut) args.piece_bytes /= box.extent[box.input_cut];
    const int overhang = box.is_aligned ? 0 : 15;
    args.piece_chunks =
        FastDivision(static_cast<std::uint32_t>((box.input_piece() * kElementBytes + overhang + 15) / 16));
    args.pieces = box.pieces();
    // From the output's innermost dimension on: neighbouring threads then read rows that lie close together.
    for (int i = box.rank - 1; i >= 0; --i) {
      if (box.extent[i] == 1 || box.is_in_input_piece(i)) continue;
      args.piece[args.piece_rank++] = make_dimension(box, i, box.src_stride[i]);
    }
  }

  static void describe_runs(const Box& box, BoxArguments& args, const void* dst) {
    args.runs = box.runs();
    args.run_elements = box.run_elements();
    args.run_step = box.run_step();
    args.run_extent = box.extent[box.run_dim];
    args.run_limit_kind = cut_of(box, box.run_dim);
    for (int i = box.rank - 1; i >= box.run_dim; --i) {
      if (box.extent[i] == 1 && i > box.run_dim) continue;
      args.element[args.element_rank++] = make_dimension(box, i, box.dst_stride[i]);
    }
    // From the input's densest dimension on: neighbouring lanes then read neighbouring elements of the image.
    for (int k = 0; k < box.rank; ++k) {
      const int i = box.input_order[k];
      if (box.extent[i] == 1 || i >= box.run_dim) continue;
      args.run[args.run_rank++] = make_dimension(box, i, box.dst_stride[i]);
    }
    if (box.run_steps < args.run_extent) {
      BoxDimension& parts = args.run[args.run_rank++];
      parts = make_dimension(box, box.run_dim, box.dst_stride[box.run_dim] * box.run_steps);
      const std::int64_t count = ceil_div(args.run_extent, box.run_steps);
      parts.extent = FastDivision(static_cast<std::uint32_t>(count));
      parts.steps = box.run_steps;
      parts.image_pitch = box.image_offset(box.run_dim, box.run_steps);
      parts.skew_shift = kNoSkew;
      args.part_steps = box.run_steps;
      args.runs_per_part = FastDivision(static_cast<std::uint32_t>(args.runs / count));
    }
    place_lanes(args, dst);
  }
};

}  // namespace swizzle
