// Implementation of the way from a strided view to a launch.
#include "ops/gather_cuda.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <c10/util/StringUtil.h>

#include "core/dispatch.hpp"
#include "kernels/launch.hpp"
#include "ops/architecture.hpp"
#include "ops/request.hpp"

namespace swizzle {

namespace {

std::string describe(const Plan& plan, const Problem& problem, const void* src, void* dst) {
  std::string text = plan.route == Route::kCopy ? "a memory copy" : c10::str("tile '", name_of(plan.tile), "'");
  if (has_layout(plan.tile)) text += c10::str(" in layout '", name_of(plan.layout), "'");
  if (plan.route == Route::kTile) {
    text += c10::str(" over ", plan.matrices.outer_count(), " x ", plan.matrices.rows, " x ", plan.matrices.cols);
  }
  if (plan.route == Route::kBox) text += c10::str(", ", plan.box.block_count(), " of them");
  text += c10::str(", ", problem.element_count(), " elements of ", problem.element_bytes, " bytes,");
  if (plan.route == Route::kTile || plan.route == Route::kBox) {
    text += c10::str(" with ", shared_bytes_of(plan, problem.element_bytes, src, dst),
                     " bytes of shared memory a block (allowed: ",
                     at::cuda::getCurrentDeviceProperties()->sharedMemPerBlockOptin, ")");
  }
  return text;
}

DeviceTraits current_device_traits() {
  DeviceTraits traits;
  traits.multiprocessors = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  return traits;
}

}  // namespace

// Turns a failed launch into an exception that says what was launched and, for a GPU without code, what was built.
void launch_plan(std::string_view op, const Plan& plan, const Problem& problem, const void* src, void* dst) {
  const cudaError_t status = launch_transpose(plan, problem, src, dst, at::cuda::getCurrentCUDAStream());
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // raised here, so not by whoever looks for an error next
  check_architecture(status, op);
  TORCH_CHECK(false, op, ": launching ", describe(plan, problem, src, dst), " failed: ", cudaGetErrorString(status));
}

void gather_into(std::string_view op, const Problem& problem, const void* src, void* dst, Method method) {
  launch_plan(op, make_plan(problem, address_of(src), address_of(dst), method, current_device_traits()), problem, src,
              dst);
}

void gather_into(std::string_view op, c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t element_bytes,
                 const void* src, void* dst, Method method) {
  const Problem problem = canonicalize(static_cast<int>(sizes.size()), sizes.data(), strides.data(),
                                       static_cast<int>(element_bytes), address_of(src), address_of(dst));
  gather_into(op, problem, src, dst, method);
}

}  // namespace swizzle
