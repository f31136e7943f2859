// Derivatives of swizzle::transpose and swizzle::permute. The backward is the inverse order applied to the gradient,
// the tangent's is the order itself, both through the dispatcher: so higher orders, torch.func's transforms and every
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

/// A call that derivatives repeat: two dimensions exchanged, which is its own inverse, or all in a new order.
struct Exchange {
  static constexpr const char* kNodeName = "SwizzleTransposeBackward";
  std::vector<std::int64_t> dims;
  std::string method;

  at::Tensor operator()(const at::Tensor& tensor) const {
    return torch_swizzle::transpose(tensor, dims[0], dims[1], method);
  }
  Exchange inverse() const { return *this; }
};

struct Reorder {
  static constexpr const char* kNodeName = "SwizzlePermuteBackward";
  std::vector<std::int64_t> dims;
  std::string method;

  at::Tensor operator()(const at::Tensor& tensor) const { return torch_swizzle::permute(tensor, dims, method); }
  Reorder inverse() const {
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::vector<std::int64_t> order(dims.size());
    for (std::int64_t i = 0; i < rank; ++i) order[dims[i] < 0 ? dims[i] + rank : dims[i]] = i;
    return {std::move(order), method};
  }
};

template <class Move>
class MoveBackward : public torch::autograd::Node {
 public:
  MoveBackward(Move inverse, torch::autograd::edge_list next_edges)
      : Node(std::move(next_edges)), inverse_(std::move(inverse)) {}

  std::string name() const override { return Move::kNodeName; }

  variable_list apply(variable_list&& gradients) override { return apply_move(gradients, inverse_); }

  // Compiled autograd: what the compiled backward is specialised on, and how the node is put into its graph.
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
    args.collect(inverse_.dims);
    args.collect(inverse_.method);
  }

  variable_list apply_with_saved(const variable_list& gradients,
                                 torch::dynamo::autograd::SwapSavedVariables& saved) override {
    using torch::dynamo::autograd::IValuePacker;
    const std::vector<c10::IValue> packed = {inverse_.dims, inverse_.method};
    const std::vector<at::TypePtr> schema = {packed[0].type(), packed[1].type()};
    const auto& compiler = torch::dynamo::autograd::getPyCompilerInterface();
    const std::string function = compiler->bind_function(saved.get_py_compiler(), name(), &apply_packed, schema,
                                                         /*is_custom_function=*/true, /*is_traceable=*/true);
    const auto metadata = IValuePacker<std::vector<std::optional<torch::autograd::InputMetadata>>>::pack(
        torch::dynamo::autograd::get_input_metadata(next_edges()));
    return compiler->call_function(saved.get_py_compiler(), "apply_functional", function, gradients, packed, metadata);
  }

 private:
  static variable_list apply_packed(const variable_list& gradients, const std::vector<c10::IValue>& packed) {
    return apply_move(gradients, Move{packed[0].toIntVector(), packed[1].toStringRef()});
  }

  static variable_list apply_move(const variable_list& gradients, const Move& inverse) {
    return {gradients[0].defined() ? inverse(gradients[0]) : at::Tensor()};
  }

  Move inverse_;
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

// The result of `move`, which was computed below autograd, with its derivatives.
template <class Move>
at::Tensor with_derivatives(at::Tensor result, const at::Tensor& self, const Move& move) {
  const at::Tensor& tangent = self._fw_grad(/*level=*/0);
  if (tangent.defined()) result._set_fw_grad(move(tangent), /*level=*/0, /*is_inplace_op=*/false);
  if (torch::autograd::compute_requires_grad(self)) {
    auto next_edges = torch::autograd::collect_next_edges(self);
    torch::autograd::set_history(result, make_node<MoveBackward<Move>>(move.inverse(), std::move(next_edges)));
  }
  return result;
}

bool has_derivative(const at::Tensor& self) {
  return torch::autograd::compute_requires_grad(self) || self._fw_grad(/*level=*/0).defined();
}

void check_out_without_derivative(const std::string& op, const at::Tensor& self, const at::Tensor& out) {
  refuse_jagged(op, self);
  refuse_jagged(op + "(out=...)", out);
  TORCH_CHECK(!torch::autograd::compute_requires_grad(self, out), op,
              ": functions with out=... arguments don't support automatic differentiation, but one of the arguments "
              "requires grad.");
  TORCH_CHECK_NOT_IMPLEMENTED(!torch::autograd::isFwGradDefined(self) && !torch::autograd::isFwGradDefined(out), op,
                              ": functions with out=... arguments don't support forward AD, but one of the arguments "
                              "has a tangent.");
}

at::Tensor transpose_autograd(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  refuse_jagged("swizzle::transpose", self);
  at::Tensor result;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    result = torch_swizzle::transpose(self, dim0, dim1, method);
  }
  if (!has_derivative(self)) return result;
  return with_derivatives(result, self, Exchange{{dim0, dim1}, std::string(method)});
}

at::Tensor permute_autograd(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  refuse_jagged("swizzle::permute", self);
  at::Tensor result;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    result = torch_swizzle::permute(self, dims, method);  // checks the dimensions
  }
  if (!has_derivative(self)) return result;
  return with_derivatives(result, self, Reorder{dims.vec(), std::string(method)});
}

at::Tensor& transpose_out_autograd(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1,
                                   std::string_view method, at::Tensor& out) {
  check_out_without_derivative("swizzle::transpose", self, out);
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    torch_swizzle::transpose_out(out, self, dim0, dim1, method);
  }
  torch::autograd::impl::bump_version(out);
  return out;
}

at::Tensor& permute_out_autograd(const at::Tensor& self, at::IntArrayRef dims, std::string_view method,
                                 at::Tensor& out) {
  check_out_without_derivative("swizzle::permute", self, out);
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    torch_swizzle::permute_out(out, self, dims, method);
  }
  torch::autograd::impl::bump_version(out);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, Autograd, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_autograd);
  m.impl("transpose.out", &transpose_out_autograd);
  m.impl("permute", &permute_autograd);
  m.impl("permute.out", &permute_out_autograd);
}

}  // namespace swizzle
