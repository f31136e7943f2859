// The bank probe: the body of a kernel that takes every float through shared memory with conflicts of a chosen number
// of ways, on the store and on the load alike, and computes (x + 10) * 2 on the way.
//
// Thread i uses word rotate_left(i, log2 kWays) of a block's kThreads words, that is kWays * i folded into the block
// plus the carry that folding alone would lose: with it no two threads share a word, without it (kWays * i mod
// kThreads) threads i and i + kThreads / kWays do, and race. A bank holds kThreads / 32 words, so kWays ways ask for
// blocks of 32 * kWays threads.
#pragma once

#include <cstring>

#include "arithmetic.hpp"
#include "bank_model.hpp"
#include "register_transpose.hpp"

namespace swizzle {

/// kWays lanes of every warp want different words of one bank; kWays == 1 is free of conflicts.
template <int kWays_>
struct BankProbeProgram {
  static constexpr int kWays = kWays_;
  static constexpr int kThreads = max_of(256, kLanes* kWays);
  static constexpr int kSharedBytes = kThreads * kWordBytes;
  static_assert(is_power_of_two(kWays) && kWays <= kBanks, "BankProbeProgram: ways are 1, 2, 4, 8, 16 or 32");

  struct Arguments {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    std::int64_t count = 0;
    std::int64_t block_count = 0;
  };

  /// A block's first float on both sides, and how many it has.
  struct Origin {
    const unsigned char* src = nullptr;
    unsigned char* dst = nullptr;
    int count = 0;
  };

  static Arguments make_arguments(const void* src, void* dst, std::int64_t count) {
    return {static_cast<const unsigned char*>(src), static_cast<unsigned char*>(dst), count, ceil_div(count, kThreads)};
  }
  static constexpr int shared_bytes(const Arguments&) { return kSharedBytes; }

  SWIZZLE_HOST_DEVICE static Origin locate(const Arguments& args, std::uint32_t block) {
    const std::int64_t first = std::int64_t{block} * kThreads;
    return {args.src + first * kWordBytes, args.dst + first * kWordBytes,
            static_cast<int>(min_of<std::int64_t>(args.count - first, kThreads))};
  }

  SWIZZLE_HOST_DEVICE static constexpr int shared_offset(int thread) {
    return (thread * kWays % kThreads + thread * kWays / kThreads) * kWordBytes;
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void load(Memory& memory, const Arguments&, const Origin& block, int thread) {
    if (thread >= block.count) return;
    const auto x = memory.template load_global<Opaque<4>>(block.src + thread * kWordBytes);
    memory.store_shared(0, shared_offset(thread), bits_of(float_of(x) + 10.0f));
  }

  template <class Memory>
  SWIZZLE_HOST_DEVICE static void store(Memory& memory, const Arguments&, const Origin& block, int thread) {
    if (thread >= block.count) return;
    const auto sum = memory.template load_shared<Opaque<4>>(0, shared_offset(thread));
    memory.store_global(block.dst + thread * kWordBytes, bits_of(float_of(sum) * 2.0f));
  }

 private:
  SWIZZLE_HOST_DEVICE static float float_of(const Opaque<4>& bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  SWIZZLE_HOST_DEVICE static Opaque<4> bits_of(float value) {
    Opaque<4> bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
};

/// Whether no two threads of a probe share a word, and every bank that a warp wants is wanted kWays times.
template <class Program>
constexpr bool has_exact_ways() {
  bool taken[Program::kThreads] = {};
  for (int warp = 0; warp < Program::kThreads; warp += kLanes) {
    int wanted[kBanks] = {};
    for (int lane = 0; lane < kLanes; ++lane) {
      const int word = Program::shared_offset(warp + lane) / kWordBytes;
      if (word < 0 || word >= Program::kThreads || taken[word]) return false;
      taken[word] = true;
      ++wanted[bank_of(word)];
    }
    for (const int lanes : wanted) {
      if (lanes != 0 && lanes != Program::kWays) return false;
    }
  }
  return true;
}

/// Fails the build of a probe that loses a value or has other ways than it says.
template <int kWays>
struct ProvenBankProbe : BankProbeProgram<kWays> {
  static_assert(has_exact_ways<BankProbeProgram<kWays>>(), "the probe loses a value or has other ways than it says");
};

/// Whether a probe with that many ways exists.
constexpr bool is_probe_ways(std::int64_t ways) { return ways >= 1 && ways <= kBanks && (ways & (ways - 1)) == 0; }

/// Calls visitor(program) with the probe of that many ways (is_probe_ways) and returns its result.
template <class Visitor>
auto dispatch_bank_probe(std::int64_t ways, const Visitor& visitor) {
  switch (ways) {
    case 1:
      return visitor(ProvenBankProbe<1>{});
    case 2:
      return visitor(ProvenBankProbe<2>{});
    case 4:
      return visitor(ProvenBankProbe<4>{});
    case 8:
      return visitor(ProvenBankProbe<8>{});
    case 16:
      return visitor(ProvenBankProbe<16>{});
    default:
      return visitor(ProvenBankProbe<32>{});
  }
}

}  // namespace swizzle
