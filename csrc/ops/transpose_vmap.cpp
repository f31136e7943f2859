// swizzle::transpose and swizzle::permute under the vmap of torch.func.
#include <ATen/functorch/LegacyVmapTransforms.h>
#include <torch/library.h>

#include "ops/registration.hpp"
#include "ops/vmap_rule.hpp"

namespace swizzle {

TORCH_LIBRARY_IMPL(swizzle, FuncTorchBatched, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_batched<at::functorch::MultiBatchVmapTransform, c10::DispatchKey::FuncTorchBatched>);
  m.impl("permute", &permute_batched<at::functorch::MultiBatchVmapTransform, c10::DispatchKey::FuncTorchBatched>);
}

}  // namespace swizzle
