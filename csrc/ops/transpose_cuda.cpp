// swizzle::transpose on CUDA tensors: check, guard, allocate, current stream, launch.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/EmptyTensor.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/launch.hpp"
#include "ops/forced_tile.hpp"
#include "ops/out_variant.hpp"
#include "ops/registration.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

std::string describe(const Plan& plan, const Problem& problem) {
  std::string text = plan.route == Route::kCopy ? "a memory copy" : c10::str("tile '", name_of(plan.tile), "'");
  if (has_layout(plan.tile)) text += c10::str(" in layout '", name_of(plan.layout), "'");
  if (plan.route == Route::kTile) {
    text += c10::str(" over ", plan.matrices.outer_count(), " x ", plan.matrices.rows, " x ", plan.matrices.cols);
  }
  return text + c10::str(", ", problem.element_count(), " elements of ", problem.element_bytes, " bytes,");
}

// What CUDA answers where the library holds no code for a GPU, or only PTX that its driver cannot translate.
bool is_without_code(cudaError_t status) {
  return status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
         status == cudaErrorUnsupportedPtxVersion;
}

// Turns a failed launch into an exception that says what was launched and, for a GPU without code, what was built.
void check_launch(cudaError_t status, std::string_view op, const Plan& plan, const Problem& problem) {
  if (status == cudaSuccess) return;
  const cudaDeviceProp& device = *at::cuda::getCurrentDeviceProperties();
  TORCH_CHECK(!is_without_code(status), op, ": expected a GPU of the architectures built (",
              TORCH_SWIZZLE_CUDA_ARCHITECTURES, "), got ", device.name, " of compute capability ", device.major, ".",
              device.minor);
  TORCH_CHECK(false, op, ": launching ", describe(plan, problem), " failed: ", cudaGetErrorString(status));
}

at::Tensor empty_like_transposed(const at::Tensor& self, const TransposeRequest& request) {
  return at::detail::empty_cuda(exchange_dims(self.sizes(), request), self.scalar_type(), self.device(), std::nullopt);
}

DeviceTraits current_device_traits() {
  DeviceTraits traits;
  traits.multiprocessors = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  return traits;
}

void run_transpose(const at::Tensor& self, const TransposeRequest& request, void* dst) {
  const void* src = self.const_data_ptr();
  const Problem problem = make_problem(self, request, dst);
  const Plan plan = make_plan(problem, address_of(src), address_of(dst), request.method, current_device_traits());
  check_launch(launch_transpose(plan, problem, src, dst, at::cuda::getCurrentCUDAStream()), "swizzle::transpose", plan,
               problem);
}

at::Tensor transpose_cuda(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method) {
  const TransposeRequest request = check_transpose(self, dim0, dim1, method);
  const c10::cuda::CUDAGuard guard(self.device());
  at::Tensor out = empty_like_transposed(self, request);
  run_transpose(self, request, out.mutable_data_ptr());
  return out;
}

at::Tensor& transpose_out_cuda(const at::Tensor& self, std::int64_t dim0, std::int64_t dim1, std::string_view method,
                               at::Tensor& out) {
  const TransposeRequest request = check_transpose(self, dim0, dim1, method);
  check_out(self, out);
  const c10::cuda::CUDAGuard guard(self.device());
  if (prepare_out(self, request, out)) {
    run_transpose(self, request, out.mutable_data_ptr());
  } else {
    out.copy_(transpose_cuda(self, dim0, dim1, method));
  }
  return out;
}

at::Tensor transpose_with_cuda(const at::Tensor& self, std::string_view method, std::string_view tile) {
  const ForcedRequest forced = check_forced(self, method, tile);
  const c10::cuda::CUDAGuard guard(self.device());
  at::Tensor out = empty_like_transposed(self, forced.request);
  const void* src = self.const_data_ptr();
  const Problem problem = make_problem(self, forced.request, out.const_data_ptr());
  const Plan plan = check_forced_plan(self, problem, out, forced);
  check_launch(launch_transpose(plan, problem, src, out.mutable_data_ptr(), at::cuda::getCurrentCUDAStream()),
               kForcedName, plan, problem);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CUDA, m) {
  if (!owns_operators()) return;
  m.impl("transpose", &transpose_cuda);
  m.impl("transpose.out", &transpose_out_cuda);
  m.impl("_transpose_with", &transpose_with_cuda);
}

}  // namespace swizzle
