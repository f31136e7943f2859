// C++ interface of torch_swizzle. Link the CMake target torch_swizzle::torch_swizzle.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch_swizzle/export.h>

#include <cstdint>
#include <string_view>

namespace torch_swizzle {

/// A new, contiguous tensor with two dimensions of `self` exchanged: self.transpose(dim0, dim1).contiguous() bit by
/// bit, at the speed of a copy. Goes through the dispatcher, so autograd, conjugate and negative bits and every device
/// work as from Python.
///
/// - self:   dense tensor of any shape, strides and dtype whose elements have 1, 2, 4, 8 or 16 bytes; CUDA, CPU or
/// meta.
/// - dim0, dim1: dimensions to exchange, negative ones counted from the end; the last two by default.
/// - method: "auto" (the fastest kernel), or the shared-memory layout "naive", "padded" or "swizzled".
///
/// Throws c10::IndexError for a dimension out of range, c10::ValueError for an unknown method, c10::NotImplementedError
/// for a kind of tensor that is not supported; nothing has been launched then.
///
/// Example: at::Tensor y = torch_swizzle::transpose(torch::rand({64, 1024, 768}, torch::kCUDA));  // 64 x 768 x 1024
TORCH_SWIZZLE_API at::Tensor transpose(const at::Tensor& self, std::int64_t dim0 = -2, std::int64_t dim1 = -1,
                                       std::string_view method = "auto");

/// As transpose, into `out`, which is resized as torch's out variants are; returns `out`. `out` has the dtype and
/// device of `self`, does not overlap it and takes no part in autograd; c10::Error otherwise.
TORCH_SWIZZLE_API at::Tensor& transpose_out(at::Tensor& out, const at::Tensor& self, std::int64_t dim0 = -2,
                                            std::int64_t dim1 = -1, std::string_view method = "auto");

/// A new, contiguous tensor with the dimensions of `self` in another order: self.permute(dims).contiguous() bit by bit,
/// at the speed of a copy. transpose is the case that exchanges two dimensions; what is said there holds here.
///
/// - dims: the dimension of `self` that each dimension of the result is, every one once, negative ones counted from the
/// end.
///
/// Throws c10::Error for a list of another length or with a dimension twice, as torch.permute does; else as transpose.
///
/// Example: at::Tensor y = torch_swizzle::permute(x, {0, 2, 3, 1});  // NCHW to NHWC
TORCH_SWIZZLE_API at::Tensor permute(const at::Tensor& self, at::IntArrayRef dims, std::string_view method = "auto");

/// As permute, into `out`, under the rules of transpose_out; returns `out`.
TORCH_SWIZZLE_API at::Tensor& permute_out(at::Tensor& out, const at::Tensor& self, at::IntArrayRef dims,
                                          std::string_view method = "auto");
/// From now on aten::copy_ between CUDA tensors of one device and dtype, to which x.t().contiguous(), clone, reshape
/// and to(memory_format) come, goes through the kernels of this library where it transposes or permutes and they are
/// faster; every other copy goes where it went. accelerate(false) takes that back without a trace. Values, strides,
/// autograd, streams, graph capture and errors stay as they are.
///
/// Throws c10::Error on a torch that it was not tried on, and where another library has a CUDA kernel for aten::copy_.
/// As with any registration, do not switch while other threads copy; in a process that traces in Python
/// (torch.compile), switch from Python, which remembers what it traced.
///
/// Example: torch_swizzle::accelerate(); at::Tensor y = x.t().contiguous();
TORCH_SWIZZLE_API void accelerate(bool enabled = true);

/// Whether accelerate is in effect.
TORCH_SWIZZLE_API bool is_accelerated();

/// The version of the library that is loaded, "major.minor.patch".
TORCH_SWIZZLE_API const char* version();

namespace detail {
// Names a symbol of the library in every program that includes this header, so that no linker drops it as unneeded.
inline const char* const kLinkedVersion = version();
}  // namespace detail

}  // namespace torch_swizzle
