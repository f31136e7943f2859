// Host time of small calls from C++, ours and torch's, without Python: compiled and called by bench/cpp_host.py.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <chrono>
#include <cstdint>

namespace {

at::Tensor transpose(const at::Tensor& x) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("swizzle::transpose", "")
                             .typed<at::Tensor(const at::Tensor&, std::int64_t, std::int64_t, c10::string_view)>();
  return op.call(x, -2, -1, "auto");
}

}  // namespace

/// Seconds that one call takes, of `calls` that nothing waits for, on a float32 matrix of size x size. Where the result of
/// either call is wrong: -1. Preconditions: the operators are loaded; on_gpu only with a CUDA device.
extern "C" double seconds_per_call(bool is_ours, bool on_gpu, std::int64_t size, std::int64_t calls) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(on_gpu ? at::kCUDA : at::kCPU);
  const at::Tensor x = at::rand({size, size}, options);
  const auto call = [&] { return is_ours ? transpose(x) : x.t().contiguous(); };
  const at::Tensor result = call();
  if (!result.is_contiguous() || !at::equal(result, x.t())) return -1;  // waits for the GPU
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / static_cast<double>(calls);
}
