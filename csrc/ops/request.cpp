// Implementation of the shared checks.
#include "ops/request.hpp"

#include <ATen/WrapDimUtils.h>

#include <sstream>

namespace swizzle {

namespace {

template <class Entry, std::size_t kCount>
std::string list_names(const Entry (&entries)[kCount]) {
  std::ostringstream names;
  for (std::size_t i = 0; i < kCount; ++i) names << (i == 0 ? "'" : ", '") << entries[i].name << "'";
  return names.str();
}

// Two or more elements in a byte, or an element of fewer bits than its byte has: a byte is no element there.
bool is_sub_byte(at::ScalarType dtype) {
  switch (dtype) {
    case at::ScalarType::Float4_e2m1fn_x2:
    case at::ScalarType::Bits1x8:
    case at::ScalarType::Bits2x4:
    case at::ScalarType::Bits4x2:
      return true;
    default:
      return (dtype >= at::ScalarType::UInt1 && dtype <= at::ScalarType::UInt7) ||
             (dtype >= at::ScalarType::Int1 && dtype <= at::ScalarType::Int7);
  }
}

}  // namespace

void check_tensor_kind(std::string_view op, const at::Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.layout() == at::kStrided && !self.is_nested(), op,
                              ": expected a dense (strided) tensor, got a ",
                              self.is_nested() ? "nested" : c10::str(self.layout()), " tensor of dtype ",
                              self.scalar_type(), " on ", self.device());
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_quantized(), op, ": expected a tensor that is not quantized, got dtype ",
                              self.scalar_type(), " on ", self.device());
  TORCH_CHECK_NOT_IMPLEMENTED(!is_sub_byte(self.scalar_type()), op,
                              ": expected a dtype of whole bytes, got the packed dtype ", self.scalar_type(), " on ",
                              self.device());
  const auto bytes = self.element_size();
  TORCH_CHECK_NOT_IMPLEMENTED(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16, op,
                              ": expected elements of 1, 2, 4, 8 or 16 bytes, got dtype ", self.scalar_type(), " of ",
                              bytes, " bytes on ", self.device());
  TORCH_CHECK_NOT_IMPLEMENTED(self.dim() <= kMaxRank, op, ": expected at most ", kMaxRank, " dimensions, got ",
                              self.dim());
}

Method check_method(std::string_view op, std::string_view name) {
  Method method = Method::kAuto;
  TORCH_CHECK_VALUE(parse_name(kMethodNames, name, method), op, ": expected method to be one of ",
                    list_names(kMethodNames), ", got '", name, "'");
  return method;
}

Tile check_tile(std::string_view op, std::string_view name) {
  Tile tile = Tile::kDirect;
  TORCH_CHECK_VALUE(parse_name(kTileNames, name, tile), op, ": expected tile to be one of ", list_names(kTileNames),
                    ", got '", name, "'");
  return tile;
}

void exchange_dims(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, PermuteRequest& request) {
  const auto first = static_cast<std::size_t>(at::maybe_wrap_dim(dim0, self.dim()));
  const auto second = static_cast<std::size_t>(at::maybe_wrap_dim(dim1, self.dim()));
  request.rank = static_cast<int>(self.dim());
  for (int i = 0; i < request.rank; ++i) request.dims[i] = static_cast<std::uint8_t>(i);
  if (request.rank > 0) std::swap(request.dims[first], request.dims[second]);
}

PermuteRequest check_transpose(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  PermuteRequest request;
  request.op = "swizzle::transpose";
  request.method = check_method(request.op, method);
  check_tensor_kind(request.op, self);
  exchange_dims(self, dim0, dim1, request);
  return request;
}

PermuteRequest check_permute(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  PermuteRequest request;
  request.op = "swizzle::permute";
  request.method = check_method(request.op, method);
  check_tensor_kind(request.op, self);
  request.rank = static_cast<int>(self.dim());
  bool is_permutation = dims.size() == static_cast<std::size_t>(request.rank);
  std::uint64_t seen = 0;
  for (int i = 0; is_permutation && i < request.rank; ++i) {
    const std::int64_t dim = dims[i] < 0 ? dims[i] + request.rank : dims[i];
    is_permutation = dim >= 0 && dim < request.rank && (seen >> dim & 1u) == 0;
    if (!is_permutation) break;
    seen |= std::uint64_t{1} << dim;
    request.dims[i] = static_cast<std::uint8_t>(dim);
  }
  if (!is_permutation) {
    self.permute(dims);  // raises torch's own error
    TORCH_CHECK(false, request.op, ": expected dims to be a permutation of ", request.rank, " dimensions, got ", dims);
  }
  return request;
}

void check_out(std::string_view op, const at::Tensor& self, const at::Tensor& out) {
  TORCH_CHECK_TYPE(out.defined(), op, ": expected out to be a tensor, got None");
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), op, ": expected out to have dtype ", self.scalar_type(),
              ", got ", out.scalar_type());
  TORCH_CHECK(out.device() == self.device(), op, ": expected out to be on ", self.device(), ", got ", out.device());
  TORCH_CHECK(out.layout() == at::kStrided, op, ": expected a dense (strided) out, got layout ", out.layout());
}

at::Tensor permuted_view(const at::Tensor& self, const PermuteRequest& request) {
  at::DimVector dims;
  for (int i = 0; i < request.rank; ++i) dims.push_back(request.dims[i]);
  return self.permute(dims);
}

Problem make_problem(const at::Tensor& self, const PermuteRequest& request, const void* dst) {
  const at::IntArrayRef sizes = self.sizes();
  const at::IntArrayRef strides = self.strides();
  std::int64_t permuted_sizes[kMaxRank];
  std::int64_t permuted_strides[kMaxRank];
  for (int i = 0; i < request.rank; ++i) {
    permuted_sizes[i] = sizes[request.dims[i]];
    permuted_strides[i] = strides[request.dims[i]];
  }
  return canonicalize(request.rank, permuted_sizes, permuted_strides, static_cast<int>(self.element_size()),
                      address_of(self.const_data_ptr()), address_of(dst));
}

}  // namespace swizzle
