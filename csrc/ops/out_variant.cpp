// Implementation of the out overload's preparation.
#include "ops/out_variant.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

namespace swizzle {

bool prepare_out(const at::Tensor& self, const PermuteRequest& request, const at::Tensor& out) {
  at::native::resize_output(out, permute_sizes(self.sizes(), request));
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  return out.is_contiguous() && at::get_overlap_status(out, self) == at::MemOverlapStatus::No;
}

}  // namespace swizzle
