// The gather program: the body of the direct kernel, which moves any problem element by element without shared memory.
//
// Output elements are numbered in memory order; a thread takes kElementsPerThread of them, a block's width apart, so
// that every store of a warp is one contiguous run. Reads are as good as the input's strides make them.
#pragma once

#include <limits>

#include "problem.hpp"
#include "register_transpose.hpp"

namespace swizzle {

/// A problem of fewer than 2^31 elements with addresses and divisions; passed to the kernel by value. Pitches in bytes.
/// Offset is 32 bits wide where the farthest element allows it, as it mostly does.
template <class Offset>
struct GatherArguments {
  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  std::uint32_t count = 0;
  int rank = 0;
  FastDivision size[kMaxRank];
  Offset src_pitch[kMaxRank];
};

/// kCopies: how many neighbouring elements of the output are one of the input. The problem counts them as one.
template <int kElementBytes, class Offset, int kCopies = 1>
struct GatherProgram {
  using Element = Opaque<kElementBytes>;
  static constexpr int kThreads = 256;
  /// Two of 16 bytes: attention heads (8, 2048, 32, 128) of 2 bytes 70.3 us with four, 69.4 with two, 69.2 with one, which
  /// loses 1 to 3 % on a quarter of their size (H200, 2026-11-30).
  static constexpr int kElementsPerThread = kElementBytes == 16 ? 2 : 4;
  static constexpr int kElementsPerBlock = kThreads * kElementsPerThread;
  static constexpr std::int64_t kMaxElements = (std::int64_t{1} << 31) - kElementsPerBlock;

  static std::int64_t block_count(const Problem& problem) {
    return ceil_div(problem.element_count(), kElementsPerBlock);
  }

  /// Whether every offset of the problem fits.
  static bool reaches(const Problem& problem) {
    std::int64_t last = 0;
    for (int i = 0; i < problem.rank; ++i) last += (problem.size[i] - 1) * problem.src_stride[i] * kElementBytes;
    return last <= static_cast<std::int64_t>(std::numeric_limits<Offset>::max());
  }

  static GatherArguments<Offset> make_arguments(const Problem& problem, const void* src, void* dst) {
    GatherArguments<Offset> args;
    args.src = static_cast<const unsigned char*>(src);
    args.dst = static_cast<unsigned char*>(dst);
    args.count = static_cast<std::uint32_t>(problem.element_count());
    args.rank = problem.rank;
    for (int i = 0; i < problem.rank; ++i) {
      args.size[i] = FastDivision(static_cast<std::uint32_t>(problem.size[i]));
      args.src_pitch[i] = static_cast<Offset>(problem.src_stride[i] * kElementBytes);
    }
    return args;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void run(Memory& memory, const GatherArguments<Offset>& args, std::uint32_t block,
                                      int thread) {
    const std::uint32_t first = block * kElementsPerBlock + thread;
    // Dimension by dimension for all elements at once: the divisors are fetched once, and the divisions overlap.
    std::uint32_t index[kElementsPerThread];
    Offset offset[kElementsPerThread];
    SWIZZLE_UNROLL
    for (int k = 0; k < kElementsPerThread; ++k) {
      index[k] = first + k * kThreads;
      offset[k] = 0;
    }
    SWIZZLE_NO_UNROLL
    for (int i = args.rank - 1; i > 0; --i) {
      SWIZZLE_UNROLL
      for (int k = 0; k < kElementsPerThread; ++k) {
        const std::uint32_t rest = args.size[i].quotient(index[k]);
        offset[k] += static_cast<Offset>(args.size[i].remainder(index[k], rest)) * args.src_pitch[i];
        index[k] = rest;
      }
    }
    Element value[kElementsPerThread];
    SWIZZLE_UNROLL
    for (int k = 0; k < kElementsPerThread; ++k) {
      offset[k] += static_cast<Offset>(index[k]) * args.src_pitch[0];
      if (first + k * kThreads < args.count) value[k] = memory.template load_global<Element>(args.src + offset[k]);
    }
    SWIZZLE_UNROLL
    for (int k = 0; k < kElementsPerThread; ++k) {
      const std::uint32_t element = first + k * kThreads;
      if (element >= args.count) continue;
      unsigned char* dst = args.dst + std::int64_t{element} * (kElementBytes * kCopies);
      if constexpr (kCopies == 1) {
        memory.store_global(dst, value[k]);
      } else {
        Element copies[kCopies];
        SWIZZLE_UNROLL
        for (Element& copy : copies) copy = value[k];
        memory.store_global(dst, pack<kElementBytes>(copies));
      }
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

namespace detail {

// The same for a problem that counts kCopies elements of the output as one.
template <int kElementBytes, int kCopies, class Run>
auto dispatch_gather(const Problem& problem, const void* src, void* dst, const Run& run) {
  using Narrow = GatherProgram<kElementBytes, std::uint32_t, kCopies>;
  using Wide = GatherProgram<kElementBytes, std::int64_t, kCopies>;
  const auto launch = [&](const Problem& piece, std::int64_t src_offset, std::int64_t dst_offset) {
    const void* from = static_cast<const unsigned char*>(src) + src_offset;
    void* to = static_cast<unsigned char*>(dst) + dst_offset * kCopies;
    const auto blocks = static_cast<std::uint32_t>(Narrow::block_count(piece));
    return Narrow::reaches(piece) ? run(Narrow{}, Narrow::make_arguments(piece, from, to), blocks)
                                  : run(Wide{}, Wide::make_arguments(piece, from, to), blocks);
  };
  return for_each_piece(problem, Narrow::kMaxElements, launch);
}

}  // namespace detail

/// Calls `run(program, arguments, blocks)` for each piece of a problem, with the program that its offsets ask for. Where
/// the innermost dimension repeats elements of the input, whole 16-byte vectors of it count as one.
template <int kElementBytes, class Run>
auto dispatch_gather(const Problem& problem, const void* src, void* dst, const Run& run) {
  constexpr int kCopies = 16 / kElementBytes;
  if constexpr (kCopies > 1) {
    const int innermost = problem.rank - 1;
    const bool repeats = problem.rank > 0 && problem.src_stride[innermost] == 0;
    if (repeats && problem.size[innermost] % kCopies == 0 && reinterpret_cast<std::uintptr_t>(dst) % 16 == 0) {
      Problem vectors = problem;
      vectors.size[innermost] /= kCopies;
      return detail::dispatch_gather<kElementBytes, kCopies>(vectors, src, dst, run);
    }
  }
  return detail::dispatch_gather<kElementBytes, 1>(problem, src, dst, run);
}

}  // namespace swizzle
