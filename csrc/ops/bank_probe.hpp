// swizzle::bank_probe: checks shared by its dispatch keys.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace swizzle {

/// Raises ValueError unless a probe with that many ways exists, NotImplementedError unless `x` is a dense tensor of
/// dtype float32.
void check_bank_probe(const at::Tensor& x, std::int64_t ways);

}  // namespace swizzle
