// The gather program: the body of the direct kernel, which moves any problem element by element without shared memory.
//
// Output elements are numbered in memory order; a thread reads a run of them one by one and writes it as one vector, so
// that every store of a warp is whole. Reads are as good as the input's strides make them.
#pragma once

#include <limits>

#include "problem.hpp"
#include "register_transpose.hpp"

namespace swizzle {

/// A problem of fewer than 2^31 elements with addresses and divisions; passed to the kernel by value. Pitches in bytes.
template <class Offset_, int kMaxDims_>
struct GatherArguments {
  using Offset = Offset_;
  static constexpr int kMaxDims = kMaxDims_;
  struct Dimension {
    FastDivision size;
    Offset pitch = 0;
  };

  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  int count = 0;
  int rank = 0;
  Dimension dimension[kMaxDims];  // innermost first, two at least
};
/// For problems whose farthest element is less than 4 GiB away, as it mostly is: of up to eight dimensions. An array of 64
/// dimensions makes a launch's arguments larger than 1 KiB. Batches of 2 x 2 matrices alone have arguments for up to three
/// dimensions, which need no loop (the other pieces gain nothing by them).
using StraightGather = GatherArguments<std::uint32_t, 3>;
using NarrowGather = GatherArguments<std::uint32_t, 8>;
using WideGather = GatherArguments<std::int64_t, kMaxRank>;

/// What a thread writes at once.
/// - kRun:    up to four neighbouring elements of the output.
/// - kCopies: a 16-byte vector of neighbours that are all one element of the input. The problem counts them as one.
/// - kSquare: the four elements of a 2 x 2 matrix, so that the two innermost dimensions need no division: (99999, 2, 2)
///            of 1 / 2 / 4 bytes 4.42 / 4.62 / 4.91 to 4.30 / 4.51 / 4.83 us (H200, 2026-12-01).
enum class GatherPiece { kRun, kCopies, kSquare };

template <int kElementBytes, class Arguments_, GatherPiece kPiece = GatherPiece::kRun>
struct GatherProgram {
  using Arguments = Arguments_;
  using Offset = typename Arguments::Offset;
  using Element = Opaque<kElementBytes>;
  static constexpr int kThreads = 256;
  static constexpr bool kIsSquare = kPiece == GatherPiece::kSquare;
  static constexpr int kRepeats = kPiece == GatherPiece::kCopies ? 16 / kElementBytes : 1;
  /// Elements that a thread reads one after another and stores at once: four, in 16 bytes at most.
  static constexpr int kRun = kRepeats > 1 ? 1 : min_of(4, 16 / kElementBytes);
  static_assert(!kIsSquare || kRun == 4, "GatherProgram: a 2 x 2 matrix is written in 16 bytes at most");
  /// Runs of a thread, a block's width apart. Of 16 bytes two: attention heads (8, 2048, 32, 128) of 2 bytes 70.3 us
  /// with four, 69.4 with two, 69.2 with one, which loses 1 to 6 % on a fifth of their size (H200, 2026-11-30).
  static constexpr int kRuns = kElementBytes == 16 ? 2 : 4 / kRun;
  static constexpr int kRunsPerBlock = kThreads * kRuns;
  static constexpr std::int64_t kMaxElements = (std::int64_t{1} << 31) - 2 * kRunsPerBlock * kRun;

  static std::int64_t block_count(const Problem& problem) {
    return ceil_div(problem.element_count() + kRun - 1, kRunsPerBlock * kRun);
  }

  /// Whether the arguments hold every dimension and offset of the problem.
  static bool reaches(const Problem& problem) {
    std::int64_t last = 0;
    for (int i = 0; i < problem.rank; ++i) last += (problem.size[i] - 1) * problem.src_stride[i] * kElementBytes;
    return problem.rank <= Arguments::kMaxDims && last <= static_cast<std::int64_t>(std::numeric_limits<Offset>::max());
  }

  static Arguments make_arguments(const Problem& problem, const void* src, void* dst) {
    Arguments args;
    args.src = static_cast<const unsigned char*>(src);
    args.dst = static_cast<unsigned char*>(dst);
    args.count = static_cast<int>(problem.element_count());
    args.rank = problem.rank;
    // Dimensions that are missing never end.
    for (int i = 0; i < 2; ++i) args.dimension[i].size = FastDivision(INT32_MAX);
    for (int i = 0; i < problem.rank; ++i) {
      auto& dimension = args.dimension[problem.rank - 1 - i];
      dimension.size = FastDivision(static_cast<std::uint32_t>(problem.size[i]));
      dimension.pitch = static_cast<Offset>(problem.src_stride[i] * kElementBytes);
    }
    return args;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void run(Memory& memory, const Arguments& args, std::uint32_t block, int thread) {
    // Runs lie at multiples of their own size in memory.
    const int shift = kRun > 1 && !kIsSquare ? misalignment_of(args.dst, kRun * kElementBytes) / kElementBytes : 0;
    const int first = static_cast<int>(block * (kRunsPerBlock * kRun)) + thread * kRun - shift;
    Element value[kRuns][kRun];
    bool is_run[kRuns];
    SWIZZLE_UNROLL
    for (int j = 0; j < kRuns; ++j) {
      const int begin = first + j * (kThreads * kRun);
      is_run[j] = is_whole(args, begin);
      if (is_run[j]) load_run(memory, args, begin, value[j]);
    }
    SWIZZLE_UNROLL
    for (int j = 0; j < kRuns; ++j) {
      const int begin = first + j * (kThreads * kRun);
      unsigned char* dst = args.dst + std::int64_t{begin} * (kElementBytes * kRepeats);
      if (is_run[j]) {
        store_run(memory, dst, value[j]);
      } else {
        SWIZZLE_NO_UNROLL
        for (int k = max_of(0, -begin); k < kRun && begin + k < args.count; ++k) {
          const Place place = find(args, begin + k);
          memory.store_global(dst + k * kElementBytes, memory.template load_global<Element>(args.src + place.offset));
        }
      }
    }
  }

 private:
  // An element by its index along the two innermost dimensions, the number of the others' elements before it, and where
  // these place it.
  struct Place {
    std::uint32_t index[2];
    std::uint32_t outer;
    Offset outer_offset;
    Offset offset;
  };

  SWIZZLE_HOST_DEVICE static bool is_whole(const Arguments& args, int begin) {
    return begin >= 0 && begin + kRun <= args.count;
  }

  SWIZZLE_HOST_DEVICE static Offset find_outer_offset(const Arguments& args, std::uint32_t index) {
    Offset offset = 0;
    int i = 2;
    if constexpr (Arguments::kMaxDims > 3) {
      SWIZZLE_NO_UNROLL
      for (; i + 1 < args.rank; ++i) {
        const std::uint32_t rest = args.dimension[i].size.quotient(index);
        offset += static_cast<Offset>(args.dimension[i].size.remainder(index, rest)) * args.dimension[i].pitch;
        index = rest;
      }
    }
    return offset + static_cast<Offset>(index) * args.dimension[i].pitch;
  }

  SWIZZLE_HOST_DEVICE static Place find(const Arguments& args, int element) {
    Place place;
    const auto number = static_cast<std::uint32_t>(element);
    const std::uint32_t rest = args.dimension[0].size.quotient(number);
    place.index[0] = args.dimension[0].size.remainder(number, rest);
    place.outer = args.dimension[1].size.quotient(rest);
    place.index[1] = args.dimension[1].size.remainder(rest, place.outer);
    place.outer_offset = find_outer_offset(args, place.outer);
    place.offset = place.outer_offset + static_cast<Offset>(place.index[1]) * args.dimension[1].pitch +
                   static_cast<Offset>(place.index[0]) * args.dimension[0].pitch;
    return place;
  }

  SWIZZLE_HOST_DEVICE static void advance(const Arguments& args, Place& place) {
    place.offset += args.dimension[0].pitch;
    if (++place.index[0] < args.dimension[0].size.divisor) return;
    place.index[0] = 0;
    if (++place.index[1] == args.dimension[1].size.divisor) {
      place.index[1] = 0;
      place.outer_offset = find_outer_offset(args, ++place.outer);
    }
    place.offset = place.outer_offset + static_cast<Offset>(place.index[1]) * args.dimension[1].pitch;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load_run(Memory& memory, const Arguments& args, int begin, Element (&value)[kRun]) {
    if constexpr (kIsSquare) {
      const unsigned char* src = args.src + find_outer_offset(args, static_cast<std::uint32_t>(begin) / kRun);
      SWIZZLE_UNROLL
      for (int k = 0; k < kRun; ++k) {
        const unsigned char* row = k / 2 == 0 ? src : src + args.dimension[1].pitch;
        value[k] = memory.template load_global<Element>(k % 2 == 0 ? row : row + args.dimension[0].pitch);
      }
    } else {
      load_neighbours(memory, args, begin, value);
    }
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load_neighbours(Memory& memory, const Arguments& args, int begin,
                                                  Element (&value)[kRun]) {
    Place place = find(args, begin);
    value[0] = memory.template load_global<Element>(args.src + place.offset);
    SWIZZLE_UNROLL
    for (int k = 1; k < kRun; ++k) {
      advance(args, place);
      value[k] = memory.template load_global<Element>(args.src + place.offset);
    }
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store_run(Memory& memory, unsigned char* dst, const Element (&value)[kRun]) {
    if constexpr (kRepeats == 1) {
      memory.store_global(dst, pack<kElementBytes>(value));
    } else {
      Element copies[kRepeats];
      SWIZZLE_UNROLL
      for (Element& copy : copies) copy = value[0];
      memory.store_global(dst, pack<kElementBytes>(copies));
    }
  }
};

/// Calls `launch(piece, src_offset, dst_offset)` (offsets in bytes) for pieces of at most `limit` elements that
/// together make up a problem: its outermost dimension is halved as often as it takes. Stops at, and returns, the first
/// status that is not Status{} (success).
template <class Launch>
auto for_each_piece(Problem problem, std::int64_t limit, const Launch& launch, std::int64_t src_offset = 0,
                    std::int64_t dst_offset = 0) -> decltype(launch(problem, src_offset, dst_offset)) {
  using Status = decltype(launch(problem, src_offset, dst_offset));
  while (problem.rank > 1 && problem.size[0] == 1) {
    --problem.rank;
    for (int i = 0; i < problem.rank; ++i) {
      problem.size[i] = problem.size[i + 1];
      problem.src_stride[i] = problem.src_stride[i + 1];
    }
  }
  const std::int64_t count = problem.element_count();
  if (count <= limit) return launch(problem, src_offset, dst_offset);

  const std::int64_t slice_elements = count / problem.size[0];
  const std::int64_t first_size = problem.size[0] / 2;
  Problem half = problem;
  half.size[0] = first_size;
  const Status status = for_each_piece(half, limit, launch, src_offset, dst_offset);
  if (status != Status{}) return status;
  half.size[0] = problem.size[0] - first_size;
  return for_each_piece(half, limit, launch, src_offset + first_size * problem.src_stride[0] * problem.element_bytes,
                        dst_offset + first_size * slice_elements * problem.element_bytes);
}

/// Whether whole 16-byte vectors of the output repeat one element of the input, in rows of `size` of them.
inline bool repeats_in_vectors(std::int64_t src_stride, std::int64_t size, int element_bytes,
                               std::uint64_t dst_address) {
  return src_stride == 0 && size * element_bytes % 16 == 0 && dst_address % 16 == 0;
}

/// Whether the two innermost dimensions are 2 x 2 and each such matrix of the output can be written at once.
inline bool is_square(const Problem& problem, std::uint64_t dst_address) {
  return problem.rank > 2 && problem.size[problem.rank - 1] == 2 && problem.size[problem.rank - 2] == 2 &&
         dst_address % (4 * problem.element_bytes) == 0;
}

namespace detail {

// The same with pieces of one kind.
template <int kElementBytes, GatherPiece kPiece, class Run>
auto dispatch_gather(const Problem& problem, const void* src, void* dst, const Run& run) {
  using Narrow = GatherProgram<kElementBytes, NarrowGather, kPiece>;
  using Wide = GatherProgram<kElementBytes, WideGather, kPiece>;
  const auto launch = [&](const Problem& piece, std::int64_t src_offset, std::int64_t dst_offset) {
    const void* from = static_cast<const unsigned char*>(src) + src_offset;
    void* to = static_cast<unsigned char*>(dst) + dst_offset * Narrow::kRepeats;
    const auto blocks = static_cast<std::uint32_t>(Narrow::block_count(piece));
    if constexpr (kPiece == GatherPiece::kSquare) {
      using Straight = GatherProgram<kElementBytes, StraightGather, kPiece>;
      if (Straight::reaches(piece)) return run(Straight{}, Straight::make_arguments(piece, from, to), blocks);
    }
    return Narrow::reaches(piece) ? run(Narrow{}, Narrow::make_arguments(piece, from, to), blocks)
                                  : run(Wide{}, Wide::make_arguments(piece, from, to), blocks);
  };
  return for_each_piece(problem, Narrow::kMaxElements, launch);
}

}  // namespace detail

/// Calls `run(program, arguments, blocks)` for each piece of a problem, with the program that its offsets ask for.
/// Where the innermost dimension repeats elements of the input, whole 16-byte vectors of it count as one; matrices of
/// 2 x 2 are moved as wholes.
template <int kElementBytes, class Run>
auto dispatch_gather(const Problem& problem, const void* src, void* dst, const Run& run) {
  constexpr int kRepeats = 16 / kElementBytes;
  if constexpr (kRepeats > 1) {
    const int innermost = problem.rank - 1;
    if (problem.rank > 0 && repeats_in_vectors(problem.src_stride[innermost], problem.size[innermost], kElementBytes,
                                               reinterpret_cast<std::uintptr_t>(dst))) {
      Problem vectors = problem;
      vectors.size[innermost] /= kRepeats;
      return detail::dispatch_gather<kElementBytes, GatherPiece::kCopies>(vectors, src, dst, run);
    }
  }
  if constexpr (kElementBytes <= 4) {
    if (is_square(problem, reinterpret_cast<std::uintptr_t>(dst))) {
      return detail::dispatch_gather<kElementBytes, GatherPiece::kSquare>(problem, src, dst, run);
    }
  }
  return detail::dispatch_gather<kElementBytes, GatherPiece::kRun>(problem, src, dst, run);
}

}  // namespace swizzle
