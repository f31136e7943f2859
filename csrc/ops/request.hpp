// Checks of a call that every dispatch key shares, so that CUDA, CPU and Meta raise the same class with the same text.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <string_view>

#include "core/plan.hpp"

namespace swizzle {

/// A checked call of an op: dimension i of the output is dimension dims[i] of the input, in 0 .. rank - 1 and each
/// once. A transpose is the permutation that exchanges two dimensions.
struct PermuteRequest {
  std::string_view op;
  int rank = 0;
  std::uint8_t dims[kMaxRank];
  Method method = Method::kAuto;
};

/// Raises IndexError (dimensions, torch.transpose's text), ValueError (method) or NotImplementedError (kind of tensor).
PermuteRequest check_transpose(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method);

/// Raises what torch.permute raises for `dims`, ValueError (method) or NotImplementedError (kind of tensor).
PermuteRequest check_permute(const at::Tensor& self, at::IntArrayRef dims, std::string_view method);

/// The order of a rank-dimensional tensor's dimensions with two of them exchanged (negative ones count from the end).
void exchange_dims(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, PermuteRequest& request);

/// Raises NotImplementedError unless the tensor is dense with elements of 1, 2, 4, 8 or 16 bytes.
void check_tensor_kind(std::string_view op, const at::Tensor& self);

/// The method or tile of that name; raises ValueError with the names that exist.
Method check_method(std::string_view op, std::string_view name);
Tile check_tile(std::string_view op, std::string_view name);

/// Raises RuntimeError unless `out` may receive the result: dtype and device of `self`; TypeError for None.
void check_out(std::string_view op, const at::Tensor& self, const at::Tensor& out);

/// The input's sizes in the output's order.
template <class Sizes>
auto permute_sizes(const Sizes& sizes, const PermuteRequest& request) {
  c10::SmallVector<typename Sizes::value_type, at::kDimVectorStaticSize> result;
  for (int i = 0; i < request.rank; ++i) result.push_back(sizes[request.dims[i]]);
  return result;
}

/// The input with its dimensions in the output's order, as a view.
at::Tensor permuted_view(const at::Tensor& self, const PermuteRequest& request);

/// The problem of writing permuted_view(self, request) contiguously to `dst`.
Problem make_problem(const at::Tensor& self, const PermuteRequest& request, const void* dst);

inline std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace swizzle
