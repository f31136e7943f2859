// Counts the shared-memory requests of a whole problem by instruction: what Nsight Compute is to measure for the kernel.
//
// Memory for run_blocks (host_runner.hpp) that holds nothing: only addresses matter, so a problem of any size is counted
// without its data. Host only.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "bank_model.hpp"
#include "register_transpose.hpp"

namespace swizzle {

/// How a request moves data between registers or global memory and shared memory: the instructions LDS, STS, LDGSTS.
enum class SharedAccess { kLoad, kStore, kAsyncCopy };

/// The requests that one instruction of a program, unrolled, makes over a whole problem.
struct RequestCount {
  SharedAccess access = SharedAccess::kLoad;
  int step = 0;
  int width_bytes = 0;
  std::int64_t requests = 0;
  std::int64_t actual = 0;
  std::int64_t ideal = 0;
};

/// Memory that a program sees while its requests are counted.
class RequestCounter {
 public:
  void enter_block(std::uint32_t /*block*/, int /*shared_bytes*/) {
    flush();
    ++block_;
  }
  void enter_thread(int thread) { thread_ = thread; }

  template <class T>
  T load_global(const unsigned char*) const {
    return T{};
  }
  template <class T>
  void store_global(unsigned char*, const T&) const {}
  void await_copies() const {}

  template <class T>
  void copy_to_shared(int step, int offset, const unsigned char*) {
    record(SharedAccess::kAsyncCopy, step, offset, sizeof(T));
  }
  void copy_window_to_shared(int step, int offset, const unsigned char*) {
    record(SharedAccess::kAsyncCopy, step, offset, 16);
  }
  template <class T>
  T load_shared(int step, int offset) {
    record(SharedAccess::kLoad, step, offset, sizeof(T));
    return T{};
  }
  template <class T>
  void store_shared(int step, int offset, const T&) {
    record(SharedAccess::kStore, step, offset, sizeof(T));
  }

  /// The counts so far, by access, step and width.
  std::vector<RequestCount> counts() {
    flush();
    std::vector<RequestCount> result;
    for (const auto& [key, count] : counts_) result.push_back(count);
    return result;
  }

 private:
  struct Slot {
    std::int64_t block = 0;  // that last made this request; 0 for none
    RequestCount* count = nullptr;
    WarpRequest lanes;
    WarpRequest counted;  // of an earlier block, with what it took
    Wavefronts wavefronts;
  };

  void record(SharedAccess access, int step, int offset, std::size_t bytes) {
    constexpr int kMaxWarps = 32;
    auto& slots = slots_[static_cast<std::size_t>(access)];
    const auto index = static_cast<std::size_t>(step * kMaxWarps + thread_ / kLanes);
    if (index >= slots.size()) slots.resize(index + 1);
    Slot& slot = slots[index];
    if (slot.block != block_) {
      slot.block = block_;
      slot.lanes = WarpRequest{};
      slot.lanes.width_bytes = static_cast<int>(bytes);
      made_.emplace_back(access, static_cast<int>(index));
      if (slot.count == nullptr) {
        slot.count = &counts_[{static_cast<int>(access), step}];
        slot.count->access = access;
        slot.count->step = step;
        slot.count->width_bytes = static_cast<int>(bytes);
      }
    }
    slot.lanes.active[thread_ % kLanes] = true;
    slot.lanes.offset[thread_ % kLanes] = offset;
  }

  // Adds the requests of the block that ends. Most blocks make the requests of the one before.
  void flush() {
    for (const auto& [access, index] : made_) {
      Slot& slot = slots_[static_cast<std::size_t>(access)][static_cast<std::size_t>(index)];
      if (!are_equal(slot.lanes, slot.counted)) {
        slot.counted = slot.lanes;
        slot.wavefronts = count_wavefronts(slot.lanes);
      }
      slot.count->requests += 1;
      slot.count->actual += slot.wavefronts.actual;
      slot.count->ideal += slot.wavefronts.ideal;
    }
    made_.clear();
  }

  static bool are_equal(const WarpRequest& a, const WarpRequest& b) {
    return a.width_bytes == b.width_bytes && std::equal(a.active, a.active + kLanes, b.active) &&
           std::equal(a.offset, a.offset + kLanes, b.offset);
  }

  std::map<std::pair<int, int>, RequestCount> counts_;
  std::vector<Slot> slots_[3];
  std::vector<std::pair<SharedAccess, int>> made_;
  std::int64_t block_ = 0;
  int thread_ = 0;
};

}  // namespace swizzle
