// Fuzzes canonicalisation, plans and programs on the host, under the address and undefined-behaviour sanitizers: any
// bytes become a strided view, which every method and one forced tile then move.
//
// With clang this is a libFuzzer target. Other compilers get a driver that makes the bytes from a seed:
//   fuzz_programs SECONDS [SEED [CASE]]    CASE alone is run where it is given, as a failure's message asks
#include <sanitizer/common_interface_defs.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "../strided_view.hpp"

namespace swizzle {
namespace {

constexpr std::int64_t kMaxElements = 1 << 15;
constexpr std::int64_t kMaxExtentBytes = 1 << 21;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
  std::abort();
}

// Numbers made of the fuzzer's bytes; zeros once they are used up.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), end_(data + size) {}

  /// 0 .. count - 1.
  std::int64_t below(std::int64_t count) {
    std::uint32_t value = 0;
    for (int i = 0; i < 3; ++i) value = value << 8 | (data_ == end_ ? 0u : *data_++);
    return value % count;
  }
  template <class T, std::size_t kCount>
  T one_of(const T (&values)[kCount]) {
    return values[below(kCount)];
  }

 private:
  const std::uint8_t* data_;
  const std::uint8_t* end_;
};

std::int64_t choose_size(Choices& choices) {
  constexpr std::int64_t kEdges[] = {0, 1, 2, 3, 4, 5, 8, 12, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 256, 257};
  return choices.below(4) == 0 ? 1 + choices.below(700) : choices.one_of(kEdges);
}

// Sizes whose product stays within kMaxElements.
std::vector<std::int64_t> choose_sizes(Choices& choices) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(choices.below(7)));
  std::int64_t count = 1;
  for (std::int64_t& size : sizes) {
    size = choose_size(choices);
    if (size * count > kMaxElements) size = 1 + choices.below(kMaxElements / count);
    count *= size > 0 ? size : 1;
  }
  return sizes;
}

// The strides of a row-major tensor whose dimensions were permuted, here and there with a gap behind a dimension.
std::vector<std::int64_t> choose_permuted_strides(Choices& choices, const std::vector<std::int64_t>& sizes) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(choices.below(static_cast<std::int64_t>(i)))]);
  }
  const bool has_gaps = choices.below(3) == 0;
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = has_gaps ? 1 + choices.below(3) : 1;
  for (const std::size_t dim : order) {
    strides[dim] = step;
    step *= sizes[dim] > 0 ? sizes[dim] : 1;
    if (has_gaps && choices.below(3) == 0) step += choices.below(40);
  }
  return strides;
}

View choose_view(Choices& choices) {
  constexpr int kElementBytes[] = {1, 2, 4, 8, 16};
  View view;
  view.element_bytes = choices.one_of(kElementBytes);
  view.size = choose_sizes(choices);
  view.stride = choose_permuted_strides(choices, view.size);
  for (std::size_t dim = 0; dim < view.size.size(); ++dim) {
    const bool is_single = view.size[dim] == 1;
    if (choices.below(12) == 0) view.stride[dim] = choices.below(3);  // expanded, overlapping
    if (is_single && choices.below(3) == 0) view.stride[dim] = std::int64_t{1} << choices.below(62);  // means nothing
  }
  while (view.extent() * view.element_bytes > kMaxExtentBytes) {
    for (std::size_t dim = 0; dim < view.size.size(); ++dim) view.stride[dim] /= 2;
  }
  // Elements begin at multiples of their size, unless memory of another program was wrapped.
  const int unit = choices.below(8) == 0 ? 1 : view.element_bytes;
  view.offset_bytes = unit * choices.below(17);
  view.dst_offset_bytes = choices.below(2) == 0 ? 0 : unit * choices.below(17);
  return view;
}

void check_canonical(const View& view, const Problem& problem) {
  if (problem.is_empty != (view.count() == 0)) fail(view.describe() + ": empty or not");
  if (problem.element_count() * problem.element_bytes != view.count() * view.element_bytes)
    fail(view.describe() + ": canonical form has another number of bytes");
  for (int i = 0; i < problem.rank; ++i) {
    if (problem.size[i] < 2) fail(view.describe() + ": a dimension of size 1 is left");
    if (i > 0 && problem.src_stride[i - 1] == problem.src_stride[i] * problem.size[i])
      fail(view.describe() + ": two dimensions could be one");
  }
}

void check_plan(Arena& arena, const View& view, const Problem& problem, const Plan& plan) {
  const auto result = arena.run(plan, problem);
  if (!result)
    fail(std::string(result.message()) + ", tile " + std::string(name_of(plan.tile)) + ", layout " +
         std::string(name_of(plan.layout)));
  if (shared_bytes_of(plan, problem.element_bytes, arena.src(), arena.dst()) > kGrantedSharedBytes)
    fail(view.describe() + ": too much asked for");
}

void check_case(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  const View view = choose_view(choices);
  const DeviceTraits device{1 << choices.below(9)};
  const auto& forced = kTileNames[choices.below(static_cast<std::int64_t>(std::size(kTileNames)))];
  const auto address = [](const unsigned char* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  for (const auto& method : kMethodNames) {
    Arena arena(view);
    const Problem problem = arena.problem();
    check_canonical(view, problem);
    check_plan(arena, view, problem,
               make_plan(problem, address(arena.src()), address(arena.dst()), method.value, device));
    Arena again(view);
    const Problem same = again.problem();
    Plan plan;
    if (make_forced_plan(same, address(again.src()), address(again.dst()), method.value, forced.value, plan))
      check_plan(again, view, same, plan);
  }
}

}  // namespace
}  // namespace swizzle

#ifdef SWIZZLE_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  swizzle::check_case(data, size);
  return 0;
}
#else
namespace {

unsigned long long seed = 0;
unsigned long long number = 0;

void say_how_to_repeat() { std::fprintf(stderr, "to repeat: fuzz_programs 0 %llu %llu\n", seed, number); }

}  // namespace

int main(int argument_count, char** arguments) {
  const double seconds = argument_count > 1 ? std::atof(arguments[1]) : 10;
  seed = argument_count > 2 ? std::strtoull(arguments[2], nullptr, 10) : std::random_device{}();
  const bool runs_one = argument_count > 3;
  if (runs_one) number = std::strtoull(arguments[3], nullptr, 10);
  __sanitizer_set_death_callback(say_how_to_repeat);
  std::signal(SIGABRT, [](int) { say_how_to_repeat(); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  unsigned long long cases = 0;
  do {
    std::seed_seq sequence{seed & 0xffffffffu, seed >> 32, number & 0xffffffffu, number >> 32};
    std::mt19937 random(sequence);
    std::uint8_t bytes[128];
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    swizzle::check_case(bytes, sizeof(bytes));
    ++number;
    ++cases;
  } while (!runs_one && std::chrono::steady_clock::now() < end);
  std::printf("seed %llu: %llu cases, 0 wrong\n", seed, cases);
}
#endif
