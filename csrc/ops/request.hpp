// Checks of a call that every dispatch key shares, so that CUDA, CPU and Meta raise the same class with the same text.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <string_view>

#include "core/plan.hpp"

namespace swizzle {

/// A checked call: dimensions in 0 .. dim() - 1 (both 0 for a zero-dimensional tensor) and a known method.
struct TransposeRequest {
  std::int64_t dim0 = 0;
  std::int64_t dim1 = 0;
  Method method = Method::kAuto;
};

/// Raises IndexError (dimensions, torch.transpose's text), ValueError (method) or NotImplementedError (kind of tensor).
TransposeRequest check_transpose(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method);

/// Raises NotImplementedError unless the tensor is dense with elements of 1, 2, 4, 8 or 16 bytes.
void check_tensor_kind(std::string_view op, const at::Tensor& self);

/// The method or tile of that name; raises ValueError with the names that exist.
Method check_method(std::string_view op, std::string_view name);
Tile check_tile(std::string_view op, std::string_view name);

/// Raises RuntimeError unless `out` may receive the result: dtype and device of `self`; TypeError for None.
void check_out(const at::Tensor& self, const at::Tensor& out);

/// Sizes with two entries exchanged.
template <class Sizes>
auto exchange_dims(const Sizes& sizes, const TransposeRequest& request) {
  c10::SmallVector<typename Sizes::value_type, at::kDimVectorStaticSize> result(sizes.begin(), sizes.end());
  if (!result.empty()) std::swap(result[request.dim0], result[request.dim1]);
  return result;
}

/// The problem of writing self.transpose(dim0, dim1) contiguously to `dst`.
Problem make_problem(const at::Tensor& self, const TransposeRequest& request, const void* dst);

inline std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace swizzle
