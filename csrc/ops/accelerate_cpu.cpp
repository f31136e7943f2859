// The kernel for aten::copy_ that tests register for CPU tensors: the programs on the host.
#include <ATen/record_function.h>

#include "core/host_runner.hpp"
#include "ops/accelerate.hpp"
#include "ops/forced_tile.hpp"

namespace swizzle {

at::Tensor& copy_cpu(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  CopyPlan copy;
  const CopyReason reason = plan_tensor_copy(self, src, [](const at::Tensor&) { return DeviceTraits{}; }, copy);
  if (!is_taken(reason)) return leave_copy(reason, self, src, non_blocking);
  RECORD_FUNCTION("swizzle::copy_", std::vector<c10::IValue>({self, src, non_blocking}));
  const auto* from = static_cast<const unsigned char*>(src.const_data_ptr());
  auto* to = static_cast<unsigned char*>(self.mutable_data_ptr());
  HostMemory memory({from, from + extent_bytes(src)}, {to, to + extent_bytes(self)});
  run_plan(copy.plan, copy.problem, from, to, memory);
  count_copy(reason, self);
  return self;
}

}  // namespace swizzle
