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

TransposeRequest check_transpose(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1,
                                 std::string_view method) {
  TransposeRequest request;
  request.method = check_method("swizzle::transpose", method);
  check_tensor_kind("swizzle::transpose", self);
  request.dim0 = at::maybe_wrap_dim(dim0, self.dim());
  request.dim1 = at::maybe_wrap_dim(dim1, self.dim());
  return request;
}

void check_out(const at::Tensor& self, const at::Tensor& out) {
  TORCH_CHECK_TYPE(out.defined(), "swizzle::transpose: expected out to be a tensor, got None");
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "swizzle::transpose: expected out to have dtype ",
              self.scalar_type(), ", got ", out.scalar_type());
  TORCH_CHECK(out.device() == self.device(), "swizzle::transpose: expected out to be on ", self.device(), ", got ",
              out.device());
  TORCH_CHECK(out.layout() == at::kStrided, "swizzle::transpose: expected a dense (strided) out, got layout ",
              out.layout());
}

Problem make_problem(const at::Tensor& self, const TransposeRequest& request, const void* dst) {
  const auto sizes = exchange_dims(self.sizes(), request);
  const auto strides = exchange_dims(self.strides(), request);
  return canonicalize(static_cast<int>(self.dim()), sizes.data(), strides.data(), static_cast<int>(self.element_size()),
                      address_of(self.const_data_ptr()), address_of(dst));
}

}  // namespace swizzle
