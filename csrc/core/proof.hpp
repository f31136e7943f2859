// Compile-time proofs over a tile program: its layout is one-to-one, in range, linear over the steps of a thread, and
// conflict-free where it claims to be.
#pragma once

#include <type_traits>

#include "bank_model.hpp"
#include "tile_program.hpp"

namespace swizzle {

namespace detail {

// A unit is what a group of lanes fetches as a whole: one word, or the access where that is wider. In these units a
// request is conflict-free iff each unit column of the 128-byte line is wanted at most once a group, which a single
// pass over the lanes decides (the full count of bank_model.hpp would exceed the constexpr budget of some compilers).
template <class Program>
struct SharedAccesses {
  using Policy = typename Program::Policy;
  static constexpr int kWidth = Policy::kChunkBytes;
  static constexpr int kUnit = kWidth > kWordBytes ? kWidth : kWordBytes;
  static constexpr int kColumns = kLineBytes / kUnit;

  static constexpr bool has_conflict(const int (&offset)[kLanes]) {
    constexpr int kGroup = lanes_per_group(kWidth);
    for (int first = 0; first < kLanes; first += kGroup) {
      int wanted[kColumns] = {};
      for (int lane = first; lane < first + kGroup; ++lane) {
        const int unit = offset[lane] / kUnit;
        int& seen = wanted[unit % kColumns];
        if (seen != 0 && seen != unit + 1) return true;
        seen = unit + 1;
      }
    }
    return false;
  }

  static constexpr bool loads_conflict() {
    int offset[kLanes] = {};
    for (int step = 0; step < Policy::kBlocksPerThread; ++step) {
      for (int k = 0; k < Policy::kChunkElements; ++k) {
        for (int warp = 0; warp < Policy::kThreads; warp += kLanes) {
          for (int lane = 0; lane < kLanes; ++lane) {
            offset[lane] =
                Program::shared_offset(Program::block_row(warp + lane) + k, Program::block_chunk(warp + lane, step));
          }
          if (has_conflict(offset)) return true;
        }
      }
    }
    return false;
  }

  static constexpr bool stores_conflict() {
    int offset[kLanes] = {};
    for (int step = 0; step < Policy::kLoadsPerThread; ++step) {
      for (int warp = 0; warp < Policy::kThreads; warp += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
          offset[lane] = Program::shared_offset(Program::load_row(warp + lane, step), Program::load_chunk(warp + lane));
        }
        if (has_conflict(offset)) return true;
      }
    }
    return false;
  }

  // Whether the offsets that threads step to are those of their rows and chunks.
  static constexpr bool has_linear_steps() {
    for (int thread = 0; thread < Policy::kThreads; ++thread) {
      const int chunk = Program::load_chunk(thread);
      const int load = Program::shared_offset(Program::load_row(thread, 0), chunk);
      for (int step = 0; step < Policy::kLoadsPerThread; ++step) {
        if (Program::load_place(load, step) != Program::shared_offset(Program::load_row(thread, step), chunk))
          return false;
      }
      const int row = Program::block_row(thread);
      const int block = Program::shared_offset(row, Program::block_chunk(thread, 0));
      for (int step = 0; step < Policy::kBlocksPerThread; ++step) {
        for (int k = 0; k < Policy::kChunkElements; ++k) {
          if (Program::block_place(block, step, k) !=
              Program::shared_offset(row + k, Program::block_chunk(thread, step)))
            return false;
        }
      }
    }
    return true;
  }

  static constexpr bool is_unique() {
    bool taken[Program::kSharedBytes / Policy::kChunkBytes] = {};
    for (int row = 0; row < Policy::kRows; ++row) {
      for (int chunk = 0; chunk < Policy::kChunksPerRow; ++chunk) {
        const int offset = Program::shared_offset(row, chunk);
        if (offset < 0 || offset % Policy::kChunkBytes != 0 || offset + Policy::kChunkBytes > Program::kSharedBytes)
          return false;
        if (taken[offset / Policy::kChunkBytes]) return false;
        taken[offset / Policy::kChunkBytes] = true;
      }
    }
    return true;
  }
};

}  // namespace detail

/// Whether every chunk of a full tile has an aligned place of its own inside the program's shared memory.
template <class Program>
inline constexpr bool is_unique_v = detail::SharedAccesses<Program>::is_unique();

/// Whether the program's steps through shared memory end where its layout says.
template <class Program>
inline constexpr bool has_linear_steps_v = detail::SharedAccesses<Program>::has_linear_steps();

/// Whether no request of a full tile, in either phase, takes more wavefronts than its width asks for.
template <class Program>
inline constexpr bool is_conflict_free_v<Program, std::void_t<typename Program::Layout>> =
    !detail::SharedAccesses<Program>::loads_conflict() && !detail::SharedAccesses<Program>::stores_conflict();

/// Fails the build of a program whose layout loses data or breaks its claim.
template <class Program>
struct ProvenProgram : Program {
  static_assert(is_unique_v<Program>, "the layout maps two chunks of the tile to one place, or outside shared memory");
  static_assert(has_linear_steps_v<Program>, "the layout is not linear over the bits of a thread and of its steps");
  static_assert(!Program::Layout::kClaimsConflictFree || is_conflict_free_v<Program>,
                "the layout claims to be conflict-free for this policy and is not");
};

}  // namespace swizzle
