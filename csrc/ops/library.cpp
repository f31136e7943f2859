// Schemas of the swizzle operators, the public C++ functions, and the refusal of tensors that are not dense.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "ops/registration.hpp"
#include "ops/request.hpp"
#include "torch_swizzle/torch_swizzle.h"

// A fragment, since the macro that claims the whole namespace ends the process where another copy has done so.
TORCH_LIBRARY_FRAGMENT(swizzle, m) {
  if (!swizzle::owns_operators()) return;
  m.def("transpose(Tensor self, int dim0=-2, int dim1=-1, *, str method=\"auto\") -> Tensor",
        {at::Tag::pt2_compliant_tag});
  m.def("transpose.out(Tensor self, int dim0=-2, int dim1=-1, *, str method=\"auto\", Tensor(a!) out) -> Tensor(a!)",
        {at::Tag::pt2_compliant_tag});
  m.def("permute(Tensor self, int[] dims, *, str method=\"auto\") -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("permute.out(Tensor self, int[] dims, *, str method=\"auto\", Tensor(a!) out) -> Tensor(a!)",
        {at::Tag::pt2_compliant_tag});
  m.def("_transpose_with(Tensor self, str method, str tile) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("bank_probe(Tensor x, int ways) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("_transpose_requests(Tensor self, str method, str tile) -> Tensor");
  m.def("_bank_probe_requests(Tensor x, int ways) -> Tensor");
  m.def("_tile_wavefronts(str method, str tile, int element_bytes) -> Tensor");
  m.def("_tile_accesses(str method, str tile, int element_bytes) -> Tensor");
  m.def("_bank_wavefronts(Tensor addresses, int width, Tensor? active=None, bool is_store=False) -> Tensor");
  m.def("_bank_words(Tensor addresses, int width, Tensor? active=None, bool is_store=False) -> Tensor");
  m.def("_bank_loads(Tensor addresses, int width, Tensor? active=None, bool is_store=False) -> Tensor");
  m.def(
      "_least_wavefronts(Tensor addresses, int width, int chunk_bytes, Tensor? active=None, bool is_store=False) -> "
      "Tensor");
  m.def("_layout_numbers(str layout, int rows, int cols, int element_bytes) -> int[]");
  m.def("_layout_offsets(str layout, int rows, int cols, int element_bytes) -> Tensor");
  m.def("_library() -> str[]", &swizzle::identify_library);
}

namespace torch_swizzle {

at::Tensor transpose(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  using Signature = at::Tensor(const at::Tensor&, std::int64_t, std::int64_t, std::string_view);
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("swizzle::transpose", "").typed<Signature>();
  return op.call(self, dim0, dim1, method);
}

at::Tensor& transpose_out(at::Tensor& out, const at::Tensor& self, std::int64_t dim0, std::int64_t dim1,
                          std::string_view method) {
  using Signature = at::Tensor&(const at::Tensor&, std::int64_t, std::int64_t, std::string_view, at::Tensor&);
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("swizzle::transpose", "out").typed<Signature>();
  return op.call(self, dim0, dim1, method, out);
}

at::Tensor permute(const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  using Signature = at::Tensor(const at::Tensor&, at::IntArrayRef, std::string_view);
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("swizzle::permute", "").typed<Signature>();
  return op.call(self, dims, method);
}

at::Tensor& permute_out(at::Tensor& out, const at::Tensor& self, at::IntArrayRef dims, std::string_view method) {
  using Signature = at::Tensor&(const at::Tensor&, at::IntArrayRef, std::string_view, at::Tensor&);
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("swizzle::permute", "out").typed<Signature>();
  return op.call(self, dims, method, out);
}

const char* version() { return TORCH_SWIZZLE_VERSION; }

}  // namespace torch_swizzle

namespace swizzle {

namespace {

// Dispatch keys whose tensors have no strides, or none that mean bytes. Without these entries torch answers with a page
// on missing kernels.
constexpr c10::DispatchKey kRefusedKeys[] = {
    c10::DispatchKey::SparseCPU,       c10::DispatchKey::SparseCUDA,       c10::DispatchKey::SparseMeta,
    c10::DispatchKey::SparseCsrCPU,    c10::DispatchKey::SparseCsrCUDA,    c10::DispatchKey::SparseCsrMeta,
    c10::DispatchKey::QuantizedCPU,    c10::DispatchKey::QuantizedCUDA,    c10::DispatchKey::QuantizedMeta,
    c10::DispatchKey::NestedTensorCPU, c10::DispatchKey::NestedTensorCUDA, c10::DispatchKey::NestedTensorMeta,
    c10::DispatchKey::MkldnnCPU,
};

[[noreturn]] void refuse(std::string_view op, const at::Tensor& self) {
  check_tensor_kind(op, self);
  TORCH_CHECK_NOT_IMPLEMENTED(false, op, ": expected a dense (strided) tensor, got ", self.toString());
}

at::Tensor refuse_transpose(const at::Tensor& self, std::int64_t, std::int64_t, std::string_view) {
  refuse("swizzle::transpose", self);
}
at::Tensor& refuse_transpose_out(const at::Tensor& self, std::int64_t, std::int64_t, std::string_view,
                                 at::Tensor& out) {
  check_tensor_kind("swizzle::transpose", self);
  refuse("swizzle::transpose(out=...)", out);
}
at::Tensor refuse_permute(const at::Tensor& self, at::IntArrayRef, std::string_view) {
  refuse("swizzle::permute", self);
}
at::Tensor& refuse_permute_out(const at::Tensor& self, at::IntArrayRef, std::string_view, at::Tensor& out) {
  check_tensor_kind("swizzle::permute", self);
  refuse("swizzle::permute(out=...)", out);
}
at::Tensor refuse_transpose_with(const at::Tensor& self, std::string_view, std::string_view) {
  refuse("swizzle::_transpose_with", self);
}
at::Tensor refuse_bank_probe(const at::Tensor& x, std::int64_t) { refuse("swizzle::bank_probe", x); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(swizzle, m) {
  if (!owns_operators()) return;
  for (const c10::DispatchKey key : kRefusedKeys) {
    m.impl("transpose", torch::dispatch(key, &refuse_transpose));
    m.impl("transpose.out", torch::dispatch(key, &refuse_transpose_out));
    m.impl("permute", torch::dispatch(key, &refuse_permute));
    m.impl("permute.out", torch::dispatch(key, &refuse_permute_out));
    m.impl("_transpose_with", torch::dispatch(key, &refuse_transpose_with));
    m.impl("bank_probe", torch::dispatch(key, &refuse_bank_probe));
  }
}

}  // namespace swizzle
