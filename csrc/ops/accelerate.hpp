// torch_swizzle::accelerate: what its kernels for aten::copy_ on each device share.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/copy_plan.hpp"

namespace swizzle {

/// A kernel for aten::copy_.
using CopyKernel = at::Tensor&(at::Tensor& self, const at::Tensor& src, bool non_blocking);

CopyKernel copy_cuda;
/// For tests: runs the programs on the host, as swizzle::_transpose_with does.
CopyKernel copy_cpu;

/// Decides on self.copy_(src); fills in `copy` if it is taken. `traits_of(device)` is called once strides are looked
/// at. Has no effect but that of any write on a lazily cloned `self`.
CopyReason plan_tensor_copy(const at::Tensor& self, const at::Tensor& src,
                            DeviceTraits (*traits_of)(const at::Tensor& self), CopyPlan& copy);

/// Adds a call to the report, if one is kept.
void count_copy(CopyReason reason, const at::Tensor& self);

/// ATen's own copy, counted.
at::Tensor& leave_copy(CopyReason reason, at::Tensor& self, const at::Tensor& src, bool non_blocking);

}  // namespace swizzle
