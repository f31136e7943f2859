// Runs kernel programs on the host: every thread of every block, phase by phase, on ordinary memory. Host only.
//
// The same code that the GPU runs is checked here for values, bounds and alignment, and every shared-memory access is
// recorded for the bank model.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bank_model.hpp"
#include "box_program.hpp"
#include "dispatch.hpp"
#include "gather_program.hpp"
#include "phases.hpp"

// Programs keep chunks in arrays whose elements outside the matrix are neither loaded nor stored, which gcc cannot
// follow through the copies below.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace swizzle {

/// A shared-memory request of a warp as a program made it.
struct TracedRequest {
  bool is_load = false;
  std::uint32_t block = 0;
  int step = 0;
  int warp = 0;
  WarpRequest lanes;
};

/// Memory as a program on the host sees it. Global accesses must be aligned to their width and stay inside `src` and
/// `dst` (throws std::out_of_range otherwise); shared memory starts out poisoned in every block.
class HostMemory {
 public:
  struct Span {
    const unsigned char* begin = nullptr;
    const unsigned char* end = nullptr;
  };

  /// `writes`, where given, counts the stores to each byte of `dst`.
  HostMemory(Span src, Span dst, std::vector<std::uint8_t>* writes = nullptr,
             std::vector<TracedRequest>* trace = nullptr)
      : src_(src), dst_(dst), writes_(writes), trace_(trace) {}

  void enter_block(std::uint32_t block, int shared_bytes) {
    block_ = block;
    shared_.assign(static_cast<std::size_t>(shared_bytes), kPoison);
    first_of_block_ = trace_ ? trace_->size() : 0;
  }
  void enter_thread(int thread) { thread_ = thread; }

  template <class T>
  T load_global(const unsigned char* address) const {
    check(address, sizeof(T), src_, "load outside the source");
    T value;
    std::memcpy(&value, address, sizeof(T));
    return value;
  }

  template <class T>
  void store_global(unsigned char* address, const T& value) {
    check(address, sizeof(T), dst_, "store outside the destination");
    std::memcpy(address, &value, sizeof(T));
    if (writes_) {
      for (std::size_t i = 0; i < sizeof(T); ++i) ++(*writes_)[static_cast<std::size_t>(address - dst_.begin) + i];
    }
  }

  template <class T>
  void copy_to_shared(int step, int offset, const unsigned char* address) {
    store_shared(step, offset, load_global<T>(address));
  }
  /// 16 aligned bytes, of which up to 15 may lie before the source: they are not looked at.
  void copy_window_to_shared(int step, int offset, const unsigned char* address) {
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) throw std::out_of_range("window not aligned to a chunk");
    if (address + 16 > src_.end || address + 15 < src_.begin) throw std::out_of_range("window outside the source");
    Opaque<16> value;
    std::memset(&value, kPoison, sizeof(value));
    const std::int64_t before = address < src_.begin ? src_.begin - address : 0;
    std::memcpy(reinterpret_cast<unsigned char*>(&value) + before, address + before,
                static_cast<std::size_t>(16 - before));
    store_shared(step, offset, value);
  }
  void await_copies() const {}
  void issue_loads() const {}

  template <class T>
  T load_shared(int step, int offset) {
    record(true, step, offset, sizeof(T));
    T value;
    std::memcpy(&value, shared_.data() + offset, sizeof(T));
    return value;
  }

  template <class T>
  void store_shared(int step, int offset, const T& value) {
    record(false, step, offset, sizeof(T));
    std::memcpy(shared_.data() + offset, &value, sizeof(T));
  }

 private:
  static constexpr unsigned char kPoison = 0xa5;

  static void check(const unsigned char* address, std::size_t bytes, const Span& span, const char* what) {
    if (address < span.begin || address + bytes > span.end) throw std::out_of_range(what);
    if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
      throw std::out_of_range("access not aligned to its width");
  }

  void record(bool is_load, int step, int offset, std::size_t bytes) {
    if (offset < 0 || offset + bytes > shared_.size()) throw std::out_of_range("access outside shared memory");
    if (offset % static_cast<int>(bytes) != 0) throw std::out_of_range("shared access not aligned to its width");
    if (!trace_) return;
    const int warp = thread_ / kLanes;
    for (std::size_t i = first_of_block_; i < trace_->size(); ++i) {
      TracedRequest& request = (*trace_)[i];
      if (request.is_load == is_load && request.step == step && request.warp == warp) {
        request.lanes.active[thread_ % kLanes] = true;
        request.lanes.offset[thread_ % kLanes] = offset;
        return;
      }
    }
    TracedRequest request;
    request.is_load = is_load;
    request.block = block_;
    request.step = step;
    request.warp = warp;
    request.lanes.width_bytes = static_cast<int>(bytes);
    request.lanes.is_store = !is_load;
    request.lanes.active[thread_ % kLanes] = true;
    request.lanes.offset[thread_ % kLanes] = offset;
    trace_->push_back(request);
  }

  Span src_;
  Span dst_;
  std::vector<std::uint8_t>* writes_;
  std::vector<TracedRequest>* trace_;
  std::vector<unsigned char> shared_;
  std::uint32_t block_ = 0;
  int thread_ = 0;
  std::size_t first_of_block_ = 0;
};

/// Runs every block of a program of phases, thread by thread, on HostMemory or on another memory that is told where it
/// is (enter_block, enter_thread).
template <class Program, class Memory>
void run_blocks(const typename Program::Arguments& args, Memory& memory) {
  for (std::int64_t block = 0; block < args.block_count; ++block) {
    const auto tile = Program::locate(args, static_cast<std::uint32_t>(block));
    memory.enter_block(static_cast<std::uint32_t>(block), Program::shared_bytes(args));
    if constexpr (has_preparation<Program>) {
      for (int thread = 0; thread < Program::kThreads; ++thread) {
        memory.enter_thread(thread);
        Program::prepare(memory, args, tile, thread);
      }
    }
    for (int thread = 0; thread < Program::kThreads; ++thread) {
      memory.enter_thread(thread);
      Program::load(memory, args, tile, thread);
    }
    for (int thread = 0; thread < Program::kThreads; ++thread) {
      memory.enter_thread(thread);
      Program::store(memory, args, tile, thread);
    }
  }
}

/// Runs a tile program over a whole problem.
template <class Program, class Shape>
void run_tile_program(const Shape& problem, const void* src, void* dst, HostMemory& memory) {
  run_blocks<Program>(Program::make_arguments(problem, src, dst), memory);
}

/// The shared-memory requests of one full tile, in the order in which the program makes them.
template <class Program>
std::vector<TracedRequest> trace_full_tile() {
  using Policy = typename Program::Policy;
  Transposition tile;
  tile.element_bytes = Policy::kElementBytes;
  tile.rows = Policy::kColumnBytes / Policy::kElementBytes;
  tile.cols = Policy::kRowBytes / Policy::kElementBytes;
  tile.src_row_stride = tile.cols;
  tile.src_col_stride = 1;
  tile.dst_col_stride = tile.rows;
  constexpr std::size_t kChunks =
      static_cast<std::size_t>(Policy::kColumnBytes) * Policy::kRowBytes / Policy::kElementBytes / sizeof(Opaque<16>);
  const std::vector<Opaque<16>> src(kChunks);
  std::vector<Opaque<16>> dst(kChunks);
  const auto* src_bytes = reinterpret_cast<const unsigned char*>(src.data());
  auto* dst_bytes = reinterpret_cast<unsigned char*>(dst.data());
  std::vector<TracedRequest> trace;
  HostMemory memory({src_bytes, src_bytes + kChunks * 16}, {dst_bytes, dst_bytes + kChunks * 16}, nullptr, &trace);
  run_tile_program<Program>(tile, src_bytes, dst_bytes, memory);
  return trace;
}

/// Runs the gather program over a whole problem of rank 1 or more.
template <int kElementBytes>
void run_gather_program(const Problem& problem, const void* src, void* dst, HostMemory& memory) {
  dispatch_gather<kElementBytes>(problem, src, dst, [&](auto program, const auto& args, std::uint32_t blocks) {
    using Program = decltype(program);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      memory.enter_block(block, 0);
      for (int thread = 0; thread < Program::kThreads; ++thread) Program::run(memory, args, block, thread);
    }
    return 0;
  });
}

/// Runs what launch_transpose would launch. `src` and `dst` are those that the plan was made for.
inline void run_plan(const Plan& plan, const Problem& problem, const void* src, void* dst, HostMemory& memory) {
  if (plan.route == Route::kNothing) return;
  if (plan.route == Route::kCopy) {
    std::memcpy(dst, src, static_cast<std::size_t>(problem.element_count() * problem.element_bytes));
    return;
  }
  dispatch_element_bytes(problem.element_bytes, [&](auto bytes) {
    constexpr int kElementBytes = decltype(bytes)::value;
    if (plan.route == Route::kGather) {
      run_gather_program<kElementBytes>(problem, src, dst, memory);
    } else if (plan.route == Route::kBox) {
      run_tile_program<BoxProgram<kElementBytes>>(plan.box, src, dst, memory);
    } else {
      dispatch_program<kElementBytes>(plan.tile, plan.layout, plan.matrices, src, dst, [&](auto program) {
        run_tile_program<decltype(program)>(plan.matrices, src, dst, memory);
      });
    }
  });
}

}  // namespace swizzle

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
