// What the out overload does before it writes, for real tensors of any device.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/request.hpp"

namespace swizzle {

/// Resizes a checked `out` as torch's out variants do, and raises RuntimeError where it overlaps itself or `self`. True
/// where the result may be written straight into it; false where its strides, or an overlap that torch cannot decide,
/// ask for a copy of a finished result.
bool prepare_out(const at::Tensor& self, const PermuteRequest& request, const at::Tensor& out);

}  // namespace swizzle
