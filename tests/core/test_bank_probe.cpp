// Claims about the bank probe: exact ways, nothing lost, the same values whatever the ways; and about counting requests
// without data.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <vector>

#include "core/bank_probe_program.hpp"
#include "core/host_runner.hpp"
#include "core/request_counter.hpp"
#include "strided_view.hpp"

namespace swizzle {
namespace {

std::vector<float> run_probe(std::int64_t ways, const std::vector<float>& x, std::vector<TracedRequest>* trace) {
  std::vector<float> result(x.size(), -1.0f);
  std::vector<std::uint8_t> writes(x.size() * sizeof(float));
  const auto* src = reinterpret_cast<const unsigned char*>(x.data());
  auto* dst = reinterpret_cast<unsigned char*>(result.data());
  const auto count = static_cast<std::int64_t>(x.size());
  HostMemory memory({src, src + writes.size()}, {dst, dst + writes.size()}, &writes, trace);
  dispatch_bank_probe(ways, [&](auto program) {
    using Program = decltype(program);
    run_blocks<Program>(Program::make_arguments(src, dst, count), memory);
  });
  for (const std::uint8_t times : writes) EXPECT_EQ(times, 1);
  return result;
}

class BankProbe : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ways, BankProbe, ::testing::Values(1, 2, 4, 8, 16, 32));

TEST_P(BankProbe, ComputesEveryElementOfAnySize) {
  for (const int size : {0, 1, 31, 255, 256, 257, 1023, 1024, 1025, 2047, 8192}) {
    std::vector<float> x(static_cast<std::size_t>(size));
    std::vector<float> expected;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 0.37f * static_cast<float>(i) - 100.0f;
      const float sum = x[i] + 10.0f;
      expected.push_back(sum * 2.0f);
    }
    EXPECT_EQ(run_probe(GetParam(), x, nullptr), expected) << size;
  }
}

TEST_P(BankProbe, TakesExactlyItsWaysOnEveryRequest) {
  std::vector<TracedRequest> trace;
  run_probe(GetParam(), std::vector<float>(8192), &trace);
  EXPECT_EQ(trace.size(), 2u * 256u);
  int excess[2] = {};
  for (const TracedRequest& request : trace) {
    const Wavefronts wavefronts = count_wavefronts(request.lanes);
    EXPECT_EQ(wavefronts.actual, GetParam());
    excess[request.is_load ? 1 : 0] += wavefronts.excess();
  }
  EXPECT_EQ(excess[0], 256 * (GetParam() - 1));
  EXPECT_EQ(excess[1], 256 * (GetParam() - 1));
}

// The article's index, and a block too small for its ways.
struct Folded : BankProbeProgram<2> {
  static constexpr int shared_offset(int thread) { return thread * 2 % 256 * 4; }
};
struct TooSmall : BankProbeProgram<16> {
  static constexpr int kThreads = 256;
  static constexpr int shared_offset(int thread) { return (thread * 16 % 256 + thread * 16 / 256) * 4; }
};

TEST(BankProbeProof, RefusesTheFoldedIndexAndBlocksTooSmall) {
  static_assert(has_exact_ways<BankProbeProgram<2>>() && has_exact_ways<BankProbeProgram<32>>());
  EXPECT_FALSE(has_exact_ways<Folded>());
  EXPECT_FALSE(has_exact_ways<TooSmall>());
}

// What HostMemory records, request by request, is what RequestCounter sums up.
TEST(RequestCounting, EqualsTheTraceOfAWholeProblem) {
  for (const auto& [tile, layout, rows, cols] : {std::tuple{Tile::kScalar32, Method::kNaive, 70, 45},
                                                 {Tile::kScalar32, Method::kPadded, 64, 64},
                                                 {Tile::kVector, Method::kSwizzled, 100, 136},
                                                 {Tile::kVector128, Method::kNaive, 32, 40},
                                                 {Tile::kWindow, Method::kAuto, 131, 77},
                                                 {Tile::kFlat, Method::kAuto, 2048, 6}}) {
    const View view = matrix_view(4, rows, cols, cols);
    Arena arena(view);
    const Problem problem = arena.problem();
    Plan plan;
    ASSERT_TRUE(make_forced_plan(problem, reinterpret_cast<std::uintptr_t>(arena.src()),
                                 reinterpret_cast<std::uintptr_t>(arena.dst()), layout, tile, plan));
    std::vector<TracedRequest> trace;
    HostMemory memory = arena.memory(&trace);
    run_plan(plan, problem, arena.src(), arena.dst(), memory);
    std::int64_t traced[2][3] = {};
    for (const TracedRequest& request : trace) {
      const Wavefronts wavefronts = count_wavefronts(request.lanes);
      traced[request.is_load][0] += 1;
      traced[request.is_load][1] += wavefronts.actual;
      traced[request.is_load][2] += wavefronts.ideal;
    }
    RequestCounter counter;
    dispatch_program<4>(plan.tile, plan.layout, plan.matrices, arena.src(), arena.dst(), [&](auto program) {
      using Program = decltype(program);
      run_blocks<Program>(Program::make_arguments(plan.matrices, arena.src(), arena.dst()), counter);
    });
    std::int64_t counted[2][3] = {};
    for (const RequestCount& count : counter.counts()) {
      const bool is_load = count.access == SharedAccess::kLoad;
      counted[is_load][0] += count.requests;
      counted[is_load][1] += count.actual;
      counted[is_load][2] += count.ideal;
    }
    for (int i = 0; i < 6; ++i) EXPECT_EQ(counted[i / 3][i % 3], traced[i / 3][i % 3]) << name_of(tile) << " " << i;
    EXPECT_GT(counted[1][0], 0);
  }
}

TEST(RequestCounter, AStepThatAThreadMakesAgainIsAnotherRequest) {
  RequestCounter counter;
  for (std::uint32_t block = 0; block < 3; ++block) {
    counter.enter_block(block, 0);
    for (int thread = 0; thread < 2 * kLanes; ++thread) {
      counter.enter_thread(thread);
      for (const int stride : {4, 128, 4}) counter.load_shared<Opaque<4>>(5, stride * (thread % kLanes));
    }
  }
  const std::vector<RequestCount> counts = counter.counts();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].requests, 3 * 2 * 3);
  EXPECT_EQ(counts[0].actual, 3 * 2 * (1 + 32 + 1));
  EXPECT_EQ(counts[0].ideal, 3 * 2 * 3);
}

}  // namespace
}  // namespace swizzle
