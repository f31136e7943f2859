// Counts of shared-memory requests: private operators that say, instruction by instruction, what a launch of an
// operator will ask of the banks. Nothing is launched, and no tensor's data is looked at.
#include <ATen/Functions.h>
#include <torch/library.h>

#include "core/bank_probe_program.hpp"
#include "core/host_runner.hpp"
#include "core/request_counter.hpp"
#include "ops/bank_probe.hpp"
#include "ops/forced_tile.hpp"
#include "ops/registration.hpp"

namespace swizzle {

namespace {

// A row (access: 0 load, 1 store, 2 asynchronous copy; step; width in bytes; requests; wavefronts; ideal; lines) for
// each instruction.
at::Tensor list_counts(RequestCounter& counter) {
  const std::vector<RequestCount> counts = counter.counts();
  at::Tensor report = at::empty({static_cast<std::int64_t>(counts.size()), 7}, at::kLong);
  auto* row = report.mutable_data_ptr<std::int64_t>();
  for (const RequestCount& count : counts) {
    *row++ = static_cast<std::int64_t>(count.access);
    *row++ = count.step;
    *row++ = count.width_bytes;
    *row++ = count.requests;
    *row++ = count.actual;
    *row++ = count.ideal;
    *row++ = count.lines;
  }
  return report;
}

// What a pointer is taken to be where a meta tensor has none: aligned as torch's allocators align.
const unsigned char* base_of(const at::Tensor& tensor) {
  const std::uintptr_t address = address_of(tensor.const_data_ptr());
  return reinterpret_cast<const unsigned char*>(tensor.is_meta() ? address + (std::uintptr_t{1} << 40) : address);
}

// The requests of _transpose_with(self, method, tile).
at::Tensor transpose_requests(const at::Tensor& self, std::string_view method, std::string_view tile) {
  const ForcedRequest forced = check_forced(self, method, tile);
  const at::Tensor out = at::empty(permute_sizes(self.sizes(), forced.request), self.options().device(at::kMeta));
  const Problem problem = make_problem(self, forced.request, out.const_data_ptr());
  const Plan plan = check_forced_plan(self, problem, out, forced);
  // Never written to: a counter stores nothing.
  auto* dst = const_cast<unsigned char*>(base_of(out));
  RequestCounter counter;
  dispatch_element_bytes(problem.element_bytes, [&](auto bytes) {
    constexpr int kElementBytes = decltype(bytes)::value;
    if (plan.route == Route::kBox) {
      using Program = BoxProgram<kElementBytes>;
      run_blocks<Program>(Program::make_arguments(plan.box, base_of(self), dst), counter);
    } else if (plan.route == Route::kTile) {
      dispatch_program<kElementBytes>(plan.tile, plan.layout, plan.matrices, base_of(self), dst, [&](auto program) {
        using Program = decltype(program);
        run_blocks<Program>(Program::make_arguments(plan.matrices, base_of(self), dst), counter);
      });
    }
  });
  return list_counts(counter);
}

// The requests of bank_probe(x, ways).
at::Tensor bank_probe_requests(const at::Tensor& x, std::int64_t ways) {
  check_bank_probe(x, ways);
  RequestCounter counter;
  dispatch_bank_probe(ways, [&](auto program) {
    using Program = decltype(program);
    run_blocks<Program>(Program::make_arguments(nullptr, nullptr, x.numel()), counter);
  });
  return list_counts(counter);
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CompositeExplicitAutograd, m) {
  if (!owns_operators()) return;
  m.impl("_transpose_requests", &transpose_requests);
  m.impl("_bank_probe_requests", &bank_probe_requests);
}

}  // namespace swizzle
