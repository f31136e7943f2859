// What swizzle::transpose and swizzle::permute do under vmap, for either of torch's two kinds of batched tensor; their
// headers cannot be included together, so each kind has a source of its own.
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

/// The same for permute: the batch dimensions stay in front.
template <class Transform, c10::DispatchKey kKey>
at::Tensor permute_batched(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  const c10::impl::ExcludeDispatchKeyGuard guard(kKey);
  auto view = Transform::logicalToPhysical(self);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < view.tensor().dim() - self.dim(); ++i) order.push_back(i);
  for (const std::int64_t dim : dims) order.push_back(view.getPhysicalDim(dim));
  return view.getPhysicalToLogicalMap().apply(torch_swizzle::permute(view.tensor(), order, method));
}

}  // namespace swizzle
