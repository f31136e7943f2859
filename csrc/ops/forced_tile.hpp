// swizzle::_transpose_with: checks shared by its dispatch keys.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/request.hpp"

namespace swizzle {

inline constexpr std::string_view kForcedName = "swizzle::_transpose_with";

/// A checked call of the private op: the last two dimensions, a tile, and a method that the tile has a layout for.
struct ForcedRequest {
  PermuteRequest request;
  Tile tile = Tile::kDirect;
};

/// Raises as check_transpose does, and ValueError for an unknown tile or a method on a tile without a layout.
ForcedRequest check_forced(const at::Tensor& self, std::string_view method, std::string_view tile);

/// The plan with the forced tile; raises ValueError where the tile cannot serve the input.
Plan check_forced_plan(const at::Tensor& self, const Problem& problem, const at::Tensor& out,
                       const ForcedRequest& forced);

/// Bytes from a tensor's first element to the end of its last.
std::int64_t extent_bytes(const at::Tensor& tensor);

}  // namespace swizzle
