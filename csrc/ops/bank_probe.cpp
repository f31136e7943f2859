// swizzle::bank_probe: its checks, the program on the host for CPU tensors, meta tensors, and gradients.
#include "ops/bank_probe.hpp"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include "core/bank_probe_program.hpp"
#include "core/host_runner.hpp"
#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

void check_bank_probe(const at::Tensor& x, std::int64_t ways) {
  TORCH_CHECK_VALUE(is_probe_ways(ways), "swizzle::bank_probe: expected ways to be 1, 2, 4, 8, 16 or 32, got ", ways);
  check_tensor_kind("swizzle::bank_probe", x);
  TORCH_CHECK_NOT_IMPLEMENTED(x.scalar_type() == at::kFloat,
                              "swizzle::bank_probe: expected a tensor of dtype Float, got dtype ", x.scalar_type(),
                              " on ", x.device());
}

namespace {

at::Tensor bank_probe_cpu(const at::Tensor& x, std::int64_t ways) {
  check_bank_probe(x, ways);
  const at::Tensor packed = x.contiguous();
  at::Tensor result = at::empty(packed.sizes(), packed.options());
  const auto* src = static_cast<const unsigned char*>(packed.const_data_ptr());
  auto* dst = static_cast<unsigned char*>(result.mutable_data_ptr());
  HostMemory memory({src, src + packed.nbytes()}, {dst, dst + result.nbytes()});
  dispatch_bank_probe(ways, [&](auto program) {
    using Program = decltype(program);
    run_blocks<Program>(Program::make_arguments(src, dst, packed.numel()), memory);
  });
  return result;
}

at::Tensor bank_probe_meta(const at::Tensor& x, std::int64_t ways) {
  check_bank_probe(x, ways);
  return at::empty_symint(x.sym_sizes(), x.options());
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor call_bank_probe(const at::Tensor& x, std::int64_t ways) {
  using Signature = at::Tensor(const at::Tensor&, std::int64_t);
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("swizzle::bank_probe", "").typed<Signature>();
  return op.call(x, ways);
}

class BankProbeFunction : public torch::autograd::Function<BankProbeFunction> {
 public:
  // Compiled autograd may trace into backward.
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext*, const at::Tensor& x, std::int64_t ways) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return call_bank_probe(x, ways);
  }

  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    if (!gradients[0].defined()) return variable_list(2);
    return {gradients[0] * 2, at::Tensor()};
  }
};

at::Tensor bank_probe_autograd(const at::Tensor& x, std::int64_t ways) {
  if (torch::autograd::compute_requires_grad(x) || x._fw_grad(/*level=*/0).defined()) {
    return BankProbeFunction::apply(x, ways);
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  return call_bank_probe(x, ways);
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CPU, m) {
  if (!owns_operators()) return;
  m.impl("bank_probe", &bank_probe_cpu);
}
TORCH_LIBRARY_IMPL(swizzle, Meta, m) {
  if (!owns_operators()) return;
  m.impl("bank_probe", &bank_probe_meta);
}
TORCH_LIBRARY_IMPL(swizzle, Autograd, m) {
  if (!owns_operators()) return;
  m.impl("bank_probe", &bank_probe_autograd);
}

}  // namespace swizzle
