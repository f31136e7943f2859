// Counts the shared-memory requests of a whole problem by instruction: what Nsight Compute is to measure for the
// kernel.
//
// Memory for run_blocks (host_runner.hpp) without global memory: only addresses matter, so a problem of any size is
// counted without its data. Host only.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
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
  std::int64_t lines = 0;
};

/// Memory that a program sees while its requests are counted.
class RequestCounter {
 public:
  void enter_block(std::uint32_t /*block*/, int shared_bytes) {
    flush();
    shared_.resize(static_cast<std::size_t>(shared_bytes));
    ++block_;
  }
  void enter_thread(int thread) {
    thread_ = thread;
    ++entry_;
  }

  template <class T>
  T load_global(const unsigned char*) const {
    return T{};
  }
  template <class T>
  void store_global(unsigned char*, const T&) const {}
  void await_copies() const {}
  void issue_loads() const {}

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
    T value{};
    const auto begin = static_cast<std::size_t>(offset);
    if (begin + sizeof(T) <= shared_.size()) std::memcpy(&value, shared_.data() + begin, sizeof(T));
    return value;
  }
  template <class T>
  void store_shared(int step, int offset, const T& value) {
    record(SharedAccess::kStore, step, offset, sizeof(T));
    const auto begin = static_cast<std::size_t>(offset);
    if (begin + sizeof(T) <= shared_.size()) std::memcpy(shared_.data() + begin, &value, sizeof(T));
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

  // How often the thread that is running has made a step.
  struct Turn {
    std::int64_t entry = 0;
    int count = 0;
  };

  void record(SharedAccess access, int step, int offset, std::size_t bytes) {
    constexpr int kMaxWarps = 32;
    // A step that a thread makes again is an instruction in a loop: lanes meet in the same turn of it.
    auto& turns = turns_[static_cast<std::size_t>(access)];
    const auto row = static_cast<std::size_t>(step + 1);  // steps begin at -1: the ends that vectors leave
    if (row >= turns.size()) turns.resize(row + 1);
    Turn& turn = turns[row];
    if (turn.entry != entry_) turn = {entry_, 0};
    const auto number = static_cast<std::size_t>(turn.count++);
    auto& slots = slots_[static_cast<std::size_t>(access)];
    const auto index = row * kMaxWarps + static_cast<std::size_t>(thread_ / kLanes);
    if (index >= slots.size()) slots.resize(index + 1);
    if (number >= slots[index].size()) slots[index].resize(number + 1);
    Slot& slot = slots[index][number];
    if (slot.block != block_) {
      slot.block = block_;
      slot.lanes = WarpRequest{};
      slot.lanes.width_bytes = static_cast<int>(bytes);
      slot.lanes.is_store = access != SharedAccess::kLoad;
      made_.emplace_back(access, index, number);
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
    for (const auto& [access, index, number] : made_) {
      Slot& slot = slots_[static_cast<std::size_t>(access)][index][number];
      if (!are_equal(slot.lanes, slot.counted)) {
        slot.counted = slot.lanes;
        slot.wavefronts = count_wavefronts(slot.lanes);
      }
      slot.count->requests += 1;
      slot.count->actual += slot.wavefronts.actual;
      slot.count->ideal += slot.wavefronts.ideal;
      slot.count->lines += slot.wavefronts.lines;
    }
    made_.clear();
  }

  static bool are_equal(const WarpRequest& a, const WarpRequest& b) {
    return a.width_bytes == b.width_bytes && std::equal(a.active, a.active + kLanes, b.active) &&
           std::equal(a.offset, a.offset + kLanes, b.offset);
  }

  std::map<std::pair<int, int>, RequestCount> counts_;
  std::vector<unsigned char> shared_;        // what is stored: a program may look up its offsets there
  std::vector<std::vector<Slot>> slots_[3];  // by access; by step and warp; by turn
  std::vector<Turn> turns_[3];
  std::vector<std::tuple<SharedAccess, std::size_t, std::size_t>> made_;
  std::int64_t block_ = 0;
  std::int64_t entry_ = 0;
  int thread_ = 0;
};

}  // namespace swizzle
