// What swizzle::transpose does under vmap, for either of torch's two kinds of batched tensor; their headers cannot be
// included together, so each kind has a source of its own.
#pragma once

#include <ATen/core/Tensor.h>

#include "torch_swizzle/torch_swizzle.h"

namespace swizzle {

/// One call on the tensor behind a batched one, its batch dimensions in front: no loop, whatever in_dims says.
/// `Transform` is the MultiBatchVmapTransform and kKey the dispatch key of that kind.
template <class Transform, c10::DispatchKey kKey>
at::Tensor transpose_batched(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  const c10::impl::ExcludeDispatchKeyGuard guard(kKey);
  auto view = Transform::logicalToPhysical(self);
  const std::int64_t physical0 = view.getPhysicalDim(dim0);
  const std::int64_t physical1 = view.getPhysicalDim(dim1);
  // A zero-dimensional tensor accepts the dims 0 and -1 but has no dimension behind those of the batch.
  const bool is_scalar = self.dim() == 0;
  return view.getPhysicalToLogicalMap().apply(
      torch_swizzle::transpose(view.tensor(), is_scalar ? 0 : physical0, is_scalar ? 0 : physical1, method));
}

}  // namespace swizzle
