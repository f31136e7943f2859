// Implementation of the private op's checks and its CPU kernel (the tile programs on the host).
#include "ops/forced_tile.hpp"

#include <ATen/Functions.h>
#include <torch/library.h>

#include "core/host_runner.hpp"
#include "ops/registration.hpp"

namespace swizzle {

namespace {

std::string_view requirement_of(Tile tile) {
  switch (tile) {
    case Tile::kScalar32:
      return "aligned elements, denser along the last dimension than along the one before";
    case Tile::kShortVector:
      return "sides in multiples of two elements, four of bytes, one of 16 bytes, and so are base and pitches, but for "
             "columns a stride apart, of up to 2 bytes an element";
    case Tile::kVector:
      return "contiguous rows, with pitches and columns in multiples of 16 bytes";
    case Tile::kDeinterleave:
      return "packed rows of two to four elements of up to 8 bytes, columns, base and the rest in multiples of 16 "
             "bytes";
    case Tile::kFlat:
      return "one packed side of at most 128 or matrices of at most 16 KiB, base and the rest in multiples of 16 bytes";
    case Tile::kBox:
      return "at most 8 dimensions, none expanded, the densest without gaps";
    case Tile::kWindow:
      return "contiguous rows of aligned elements of up to 8 bytes";
    default:
      return "contiguous rows, with base, pitches and sides in multiples of 16 bytes";
  }
}

}  // namespace

ForcedRequest check_forced(const at::Tensor& self, std::string_view method, std::string_view tile) {
  ForcedRequest forced;
  forced.request.op = kForcedName;
  forced.request.method = check_method(kForcedName, method);
  forced.tile = check_tile(kForcedName, tile);
  check_tensor_kind(kForcedName, self);
  exchange_dims(self, -2, -1, forced.request);
  TORCH_CHECK_VALUE(has_layout(forced.tile) || forced.request.method == Method::kAuto, kForcedName,
                    ": expected method 'auto' for tile '", tile, "', which leaves no choice of layout, got '", method,
                    "'");
  return forced;
}

Plan check_forced_plan(const at::Tensor& self, const Problem& problem, const at::Tensor& out,
                       const ForcedRequest& forced) {
  Plan plan;
  const bool is_served = make_forced_plan(problem, address_of(self.const_data_ptr()), address_of(out.const_data_ptr()),
                                          forced.request.method, forced.tile, plan);
  TORCH_CHECK_VALUE(is_served, kForcedName, ": expected an input that tile '", name_of(forced.tile), "' can serve (",
                    requirement_of(forced.tile), "), got shape ", self.sizes(), " with strides ", self.strides(),
                    " of dtype ", self.scalar_type(), " on ", self.device());
  return plan;
}

std::int64_t extent_bytes(const at::Tensor& tensor) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return tensor.numel() == 0 ? 0 : (last + 1) * tensor.element_size();
}

namespace {

at::Tensor transpose_with_cpu(const at::Tensor& self, std::string_view method, std::string_view tile) {
  const ForcedRequest forced = check_forced(self, method, tile);
  at::Tensor out = at::empty(permute_sizes(self.sizes(), forced.request), self.options());
  const auto* src = static_cast<const unsigned char*>(self.const_data_ptr());
  auto* dst = static_cast<unsigned char*>(out.mutable_data_ptr());
  const Problem problem = make_problem(self, forced.request, dst);
  const Plan plan = check_forced_plan(self, problem, out, forced);
  HostMemory memory({src, src + extent_bytes(self)}, {dst, dst + out.nbytes()});
  run_plan(plan, problem, src, dst, memory);
  return out;
}

at::Tensor transpose_with_meta(const at::Tensor& self, std::string_view method, std::string_view tile) {
  const ForcedRequest forced = check_forced(self, method, tile);
  return at::empty_symint(permute_sizes(self.sym_sizes(), forced.request), self.options());
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CPU, m) {
  if (!owns_operators()) return;
  m.impl("_transpose_with", &transpose_with_cpu);
}
TORCH_LIBRARY_IMPL(swizzle, Meta, m) {
  if (!owns_operators()) return;
  m.impl("_transpose_with", &transpose_with_meta);
}

}  // namespace swizzle
