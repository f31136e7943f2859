// swizzle::transpose and swizzle::permute under the vmap that torch.autograd.grad runs for a batch of gradients
// (is_grads_batched).
#include <ATen/LegacyVmapTransforms.h>
#include <torch/library.h>

#include "ops/registration.hpp"
#include "ops/vmap_rule.hpp"

namespace swizzle {

TORCH_LIBRARY_IMPL(swizzle, Batched, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_batched<at::MultiBatchVmapTransform, c10::DispatchKey::Batched>);
  m.impl("permute", &permute_batched<at::MultiBatchVmapTransform, c10::DispatchKey::Batched>);
}

}  // namespace swizzle
