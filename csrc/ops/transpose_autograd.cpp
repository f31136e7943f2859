// Gradients of swizzle::transpose and swizzle::permute. The backward is the inverse order applied to the gradient,
// through the dispatcher, so that double backward, compiled autograd and every device follow; nothing is saved but the
// dimensions.
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include "torch_swizzle/torch_swizzle.h"

namespace swizzle {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class TransposeFunction : public torch::autograd::Function<TransposeFunction> {
 public:
  // Compiled autograd may trace into backward.
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, std::int64_t dim0, std::int64_t dim1,
                            std::string_view method) {
    context->saved_data["dim0"] = dim0;
    context->saved_data["dim1"] = dim1;
    context->saved_data["method"] = std::string(method);
    const at::AutoDispatchBelowADInplaceOrView guard;
    return torch_swizzle::transpose(self, dim0, dim1, method);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (!gradients[0].defined()) return variable_list(4);
    const std::string& method = context->saved_data["method"].toStringRef();
    return {torch_swizzle::transpose(gradients[0], context->saved_data["dim0"].toInt(),
                                     context->saved_data["dim1"].toInt(), method),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

class PermuteFunction : public torch::autograd::Function<PermuteFunction> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, at::IntArrayRef dims,
                            std::string_view method) {
    at::Tensor result;
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      result = torch_swizzle::permute(self, dims, method);  // checks the dimensions
    }
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::vector<std::int64_t> inverse(dims.size());
    for (std::int64_t i = 0; i < rank; ++i) inverse[dims[i] < 0 ? dims[i] + rank : dims[i]] = i;
    context->saved_data["inverse"] = std::move(inverse);
    context->saved_data["method"] = std::string(method);
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (!gradients[0].defined()) return variable_list(3);
    const std::vector<std::int64_t> inverse = context->saved_data["inverse"].toIntVector();
    const std::string& method = context->saved_data["method"].toStringRef();
    return {torch_swizzle::permute(gradients[0], inverse, method), at::Tensor(), at::Tensor()};
  }
};

bool has_derivative(const at::Tensor& self) {
  return torch::autograd::compute_requires_grad(self) || self._fw_grad(/*level=*/0).defined();
}

void check_out_without_gradient(const char* op, const at::Tensor& self, const at::Tensor& out) {
  TORCH_CHECK(!torch::autograd::compute_requires_grad(self, out), op,
              ": functions with out=... arguments don't support automatic differentiation, but one of the arguments "
              "requires grad.");
}

at::Tensor transpose_autograd(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  if (has_derivative(self)) return TransposeFunction::apply(self, dim0, dim1, method);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return torch_swizzle::transpose(self, dim0, dim1, method);
}

at::Tensor permute_autograd(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  if (has_derivative(self)) return PermuteFunction::apply(self, dims, method);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return torch_swizzle::permute(self, dims, method);
}

at::Tensor& transpose_out_autograd(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1,
                                   std::string_view method, at::Tensor& out) {
  check_out_without_gradient("swizzle::transpose", self, out);
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    torch_swizzle::transpose_out(out, self, dim0, dim1, method);
  }
  torch::autograd::impl::bump_version(out);
  return out;
}

at::Tensor& permute_out_autograd(const at::Tensor& self, at::IntArrayRef dims, std::string_view method,
                                 at::Tensor& out) {
  check_out_without_gradient("swizzle::permute", self, out);
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    torch_swizzle::permute_out(out, self, dims, method);
  }
  torch::autograd::impl::bump_version(out);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, Autograd, m) {
  m.impl("transpose", &transpose_autograd);
  m.impl("transpose.out", &transpose_out_autograd);
  m.impl("permute", &permute_autograd);
  m.impl("permute.out", &permute_out_autograd);
}

}  // namespace swizzle
