// Derivatives of swizzle::transpose. The backward of a transpose is the same transpose of the gradient, and its tangent
// the same transpose of the tangent, both through the dispatcher: so higher orders, torch.func's transforms and every
// device follow; nothing is saved but the dimensions. A node written by hand, because torch::autograd::Function has no
// forward mode and refuses to run under torch.func.
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/dynamo/compiled_autograd.h>
#include <torch/library.h>

#include "ops/registration.hpp"
#include "ops/request.hpp"
#include "torch_swizzle/torch_swizzle.h"

namespace swizzle {

namespace {

using torch::autograd::variable_list;

/// Arguments of a call that its derivatives repeat.
struct TransposeArguments {
  std::int64_t dim0;
  std::int64_t dim1;
  std::string method;

  at::Tensor operator()(const at::Tensor& tensor) const {
    return tensor.defined() ? torch_swizzle::transpose(tensor, dim0, dim1, method) : tensor;
  }
};

class TransposeBackward : public torch::autograd::Node {
 public:
  TransposeBackward(TransposeArguments arguments, torch::autograd::edge_list next_edges)
      : Node(std::move(next_edges)), arguments_(std::move(arguments)) {}

  std::string name() const override { return "SwizzleTransposeBackward"; }

  variable_list apply(variable_list&& gradients) override { return {arguments_(gradients[0])}; }

  // Compiled autograd: what the compiled backward is specialised on, and how the node is put into its graph.
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
    args.collect(arguments_.dim0);
    args.collect(arguments_.dim1);
    args.collect(arguments_.method);
  }

  variable_list apply_with_saved(const variable_list& gradients,
                                 torch::dynamo::autograd::SwapSavedVariables& saved) override {
    using torch::dynamo::autograd::IValuePacker;
    const std::vector<c10::IValue> packed = {arguments_.dim0, arguments_.dim1, arguments_.method};
    const std::vector<at::TypePtr> schema = {packed[0].type(), packed[1].type(), packed[2].type()};
    const auto& compiler = torch::dynamo::autograd::getPyCompilerInterface();
    const std::string function = compiler->bind_function(saved.get_py_compiler(), name(), &apply_packed, schema,
                                                         /*is_custom_function=*/true, /*is_traceable=*/true);
    const auto metadata = IValuePacker<std::vector<std::optional<torch::autograd::InputMetadata>>>::pack(
        torch::dynamo::autograd::get_input_metadata(next_edges()));
    return compiler->call_function(saved.get_py_compiler(), "apply_functional", function, gradients, packed, metadata);
  }

 private:
  static variable_list apply_packed(const variable_list& gradients, const std::vector<c10::IValue>& packed) {
    return {TransposeArguments{packed[0].toInt(), packed[1].toInt(), packed[2].toStringRef()}(gradients[0])};
  }

  TransposeArguments arguments_;
};

// A graph's pointer to a node: shared in torch 2.11, intrusive in 2.15.
using NodePointer = decltype(torch::autograd::Edge::function);

template <class BackwardNode, class... Arguments>
NodePointer make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>) {
    // torch's deleter: it takes a long chain of nodes apart without recursion.
    return NodePointer(new BackwardNode(std::forward<Arguments>(arguments)...), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<BackwardNode>(std::forward<Arguments>(arguments)...);
  }
}

// A jagged nested tensor is a subclass in Python that answers below this key, with the operator's name alone.
void refuse_jagged(std::string_view op, const at::Tensor& tensor) {
  if (tensor.defined() && tensor.layout() == at::kJagged) check_tensor_kind(op, tensor);
}

at::Tensor transpose_autograd(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  refuse_jagged("swizzle::transpose", self);
  at::Tensor result;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    result = torch_swizzle::transpose(self, dim0, dim1, method);
  }
  const bool requires_grad = torch::autograd::compute_requires_grad(self);
  const at::Tensor& tangent = self._fw_grad(/*level=*/0);
  if (!requires_grad && !tangent.defined()) return result;
  TransposeArguments arguments{dim0, dim1, std::string(method)};
  if (tangent.defined()) result._set_fw_grad(arguments(tangent), /*level=*/0, /*is_inplace_op=*/false);
  if (requires_grad) {
    auto next_edges = torch::autograd::collect_next_edges(self);
    torch::autograd::set_history(result, make_node<TransposeBackward>(std::move(arguments), std::move(next_edges)));
  }
  return result;
}

at::Tensor& transpose_out_autograd(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1,
                                   std::string_view method, at::Tensor& out) {
  refuse_jagged("swizzle::transpose", self);
  refuse_jagged("swizzle::transpose(out=...)", out);
  TORCH_CHECK(!torch::autograd::compute_requires_grad(self, out),
              "swizzle::transpose: functions with out=... arguments don't support automatic differentiation, but one "
              "of the arguments "
              "requires grad.");
  TORCH_CHECK_NOT_IMPLEMENTED(!torch::autograd::isFwGradDefined(self) && !torch::autograd::isFwGradDefined(out),
                              "swizzle::transpose: functions with out=... arguments don't support forward AD, but one "
                              "of the arguments has a tangent.");
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    torch_swizzle::transpose_out(out, self, dim0, dim1, method);
  }
  torch::autograd::impl::bump_version(out);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, Autograd, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_autograd);
  m.impl("transpose.out", &transpose_out_autograd);
}

}  // namespace swizzle
