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
/// For problems whose farthest element is less than 4 GiB away, as it mostly is, of three dimensions, which straight
/// code walks over, and of up to eight. An array of 64 dimensions makes a launch's arguments larger than 1 KiB.
using StraightGather = GatherArguments<std::uint32_t, 3>;
using NarrowGather = GatherArguments<std::uint32_t, 8>;
using WideGather = GatherArguments<std::int64_t, kMaxRank>;

/// kCopies: how many neighbouring elements of the output are one of the input. The problem counts them as one.
template <int kElementBytes, class Arguments_, int kCopies = 1>
struct GatherProgram {
  using Arguments = Arguments_;
  using Offset = typename Arguments::Offset;
  using Element = Opaque<kElementBytes>;
  static constexpr int kThreads = 256;
  /// Elements that a thread reads one after another and stores at once: four, in 16 bytes at most.
  static constexpr int kRun = kCopies > 1 ? 1 : min_of(4, 16 / kElementBytes);
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
    const int shift = kRun > 1 ? misalignment_of(args.dst, kRun * kElementBytes) / kElementBytes : 0;
    const int first = static_cast<int>(block * (kRunsPerBlock * kRun)) + thread * kRun - shift;
    Element value[kRuns][kRun];
    SWIZZLE_UNROLL
    for (int j = 0; j < kRuns; ++j) {
      const int begin = first + j * (kThreads * kRun);
      if (is_whole(args, begin)) load_run(memory, args, begin, value[j]);
    }
    SWIZZLE_UNROLL
    for (int j = 0; j < kRuns; ++j) {
      const int begin = first + j * (kThreads * kRun);
      unsigned char* dst = args.dst + std::int64_t{begin} * (kElementBytes * kCopies);
      if (is_whole(args, begin)) {
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
    if constexpr (Arguments::kMaxDims == 3) return index * args.dimension[2].pitch;
    Offset offset = 0;
    SWIZZLE_NO_UNROLL
    for (int i = 2; i < args.rank; ++i) {
      const std::uint32_t rest = args.dimension[i].size.quotient(index);
      offset += static_cast<Offset>(args.dimension[i].size.remainder(index, rest)) * args.dimension[i].pitch;
      index = rest;
    }
    return offset;
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
    if constexpr (Arguments::kMaxDims == 3) {
      // Selections instead of branches: the next load is sooner under way.
      const bool ends_first = ++place.index[0] == args.dimension[0].size.divisor;
      place.index[0] = ends_first ? 0 : place.index[0];
      place.index[1] += ends_first ? 1 : 0;
      const bool ends_second = place.index[1] == args.dimension[1].size.divisor;
      place.index[1] = ends_second ? 0 : place.index[1];
      place.outer += ends_second ? 1 : 0;
      place.offset = place.outer * args.dimension[2].pitch + place.index[1] * args.dimension[1].pitch +
                     place.index[0] * args.dimension[0].pitch;
      return;
    }
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
    if constexpr (kCopies == 1) {
      memory.store_global(dst, pack<kElementBytes>(value));
    } else {
      Element copies[kCopies];
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

namespace detail {

// The same for a problem that counts kCopies elements of the output as one.
template <int kElementBytes, int kCopies, class Run>
auto dispatch_gather(const Problem& problem, const void* src, void* dst, const Run& run) {
  using Straight = GatherProgram<kElementBytes, StraightGather, kCopies>;
  using Narrow = GatherProgram<kElementBytes, NarrowGather, kCopies>;
  using Wide = GatherProgram<kElementBytes, WideGather, kCopies>;
  const auto launch = [&](const Problem& piece, std::int64_t src_offset, std::int64_t dst_offset) {
    const void* from = static_cast<const unsigned char*>(src) + src_offset;
    void* to = static_cast<unsigned char*>(dst) + dst_offset * kCopies;
    const auto blocks = static_cast<std::uint32_t>(Narrow::block_count(piece));
    if (Straight::reaches(piece)) return run(Straight{}, Straight::make_arguments(piece, from, to), blocks);
    return Narrow::reaches(piece) ? run(Narrow{}, Narrow::make_arguments(piece, from, to), blocks)
                                  : run(Wide{}, Wide::make_arguments(piece, from, to), blocks);
  };
  return for_each_piece(problem, Narrow::kMaxElements, launch);
}

}  // namespace detail

/// Calls `run(program, arguments, blocks)` for each piece of a problem, with the program that its offsets ask for.
/// Where the innermost dimension repeats elements of the input, whole 16-byte vectors of it count as one.
template <int kElementBytes, class Run>
auto dispatch_gather(const Problem& problem, const void* src, void* dst, const Run& run) {
  constexpr int kCopies = 16 / kElementBytes;
  if constexpr (kCopies > 1) {
    const int innermost = problem.rank - 1;
    if (problem.rank > 0 && repeats_in_vectors(problem.src_stride[innermost], problem.size[innermost], kElementBytes,
                                               reinterpret_cast<std::uintptr_t>(dst))) {
      Problem vectors = problem;
      vectors.size[innermost] /= kCopies;
      return detail::dispatch_gather<kElementBytes, kCopies>(vectors, src, dst, run);
    }
  }
  return detail::dispatch_gather<kElementBytes, 1>(problem, src, dst, run);
}

}  // namespace swizzle
