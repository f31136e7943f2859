// torch_swizzle::accelerate: a kernel for aten::copy_ under a backend's own key, where torch has none, so that it goes
// before ATen's generic one and falls back to it; taking it away again leaves the dispatcher as it was.
#include "ops/accelerate.hpp"
#include "ops/registration.hpp"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/copy_native.h>
#include <torch/library.h>
#include <torch/version.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <sstream>

#include "torch_swizzle/torch_swizzle.h"

namespace swizzle {

namespace {

constexpr std::size_t kReasons = std::size(kCopyReasonNames);

// Never destroyed: the dispatcher may be gone before statics of this library are.
struct Acceleration {
  std::mutex mutex;
  std::optional<torch::Library> cuda;
  std::optional<torch::Library> cpu;
  std::atomic<bool> is_counting{false};
  std::array<std::atomic<std::int64_t>, kReasons> calls{};
  std::array<std::atomic<std::int64_t>, kReasons> bytes{};
};
Acceleration& acceleration() {
  static auto* const instance = new Acceleration;
  return *instance;
}

// Newer versions of torch (2.15 among them) have no named tensors any more.
template <class Tensor>
auto has_names(const Tensor& tensor, int) -> decltype(tensor.has_names()) {
  return tensor.has_names();
}
template <class Tensor>
bool has_names(const Tensor&, ...) {
  return false;
}

// Tensors whose elements are not all of their value, or not values at all. Lazily conjugated and negated ones are:
// their bits move with them.
bool is_plain(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kOdd({c10::DispatchKey::ZeroTensor, c10::DispatchKey::Quantized});
  return !tensor.key_set().has_any(kOdd) && tensor.layout() == at::kStrided && !has_names(tensor, 0);
}

bool has_served_width(std::int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

}  // namespace

CopyReason plan_tensor_copy(const at::Tensor& self, const at::Tensor& src,
                            DeviceTraits (*traits_of)(const at::Tensor& self), CopyPlan& copy) {
  if (!self.defined() || !src.defined()) return CopyReason::kKind;
  if (self.device() != src.device()) return CopyReason::kDevice;
  if (self.dtype() != src.dtype()) return CopyReason::kDtype;
  if (!is_plain(self) || !is_plain(src)) return CopyReason::kKind;
  const std::int64_t element_bytes = static_cast<std::int64_t>(self.itemsize());
  if (self.numel() * element_bytes < kMinCopyBytes) return CopyReason::kSmall;
  if (self.sizes() != src.sizes()) return CopyReason::kShape;
  if (self.is_conj() != src.is_conj() || self.is_neg() != src.is_neg()) return CopyReason::kLazyBits;
  if (self.is_contiguous() && src.is_contiguous()) return CopyReason::kPlain;
  if (!has_served_width(element_bytes) || self.dim() > kMaxRank) return CopyReason::kKind;
  CopyView view;
  view.element_bytes = static_cast<int>(element_bytes);
  view.rank = static_cast<int>(self.dim());
  view.size = self.sizes().data();
  view.src_stride = src.strides().data();
  view.dst_stride = self.strides().data();
  view.src_address = reinterpret_cast<std::uintptr_t>(src.const_data_ptr());
  view.dst_address = reinterpret_cast<std::uintptr_t>(self.mutable_data_ptr());
  return plan_copy(view, traits_of(self), copy);
}

void count_copy(CopyReason reason, const at::Tensor& self) {
  Acceleration& state = acceleration();
  if (!state.is_counting.load(std::memory_order_relaxed)) return;
  const auto index = static_cast<std::size_t>(reason);
  state.calls[index].fetch_add(1, std::memory_order_relaxed);
  if (self.defined()) state.bytes[index].fetch_add(static_cast<std::int64_t>(self.nbytes()), std::memory_order_relaxed);
}

at::Tensor& leave_copy(CopyReason reason, at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  count_copy(reason, self);
  return at::native::copy_(self, src, non_blocking);
}

namespace {

// Versions of torch (major.minor) whose aten::copy_ is known to be at::native::copy_ under every key of interest.
constexpr std::string_view kTriedVersions[] = {"2.11"};

void check_version(std::string_view torch_version) {
  std::string tried;
  for (const std::string_view version : kTriedVersions) {
    const bool is_prefix = torch_version.substr(0, version.size()) == version;
    if (is_prefix && (torch_version.size() == version.size() || torch_version[version.size()] == '.')) return;
    tried += (tried.empty() ? "" : ", ") + std::string(version);
  }
  TORCH_CHECK(false, "torch_swizzle::accelerate: expected a torch that it was tried on (", tried, "), got ",
              torch_version);
}

// The line of the dispatcher's table that says who registered a kernel under `key`.
std::string owner_of(const c10::OperatorHandle& op, c10::DispatchKey key) {
  std::istringstream lines(op.dumpState());
  const std::string prefix = std::string(c10::toString(key)) + ": ";
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, prefix.size(), prefix) == 0) return line.substr(prefix.size());
  }
  return "an unknown library";
}

template <class Kernel>
void set_accelerated(std::optional<torch::Library>& library, bool enabled, c10::DispatchKey key, Kernel kernel) {
  if (library.has_value() == enabled) return;
  if (!enabled) {
    library.reset();
    return;
  }
  const auto copy = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  TORCH_CHECK(!copy.hasKernelForDispatchKey(key),
              "torch_swizzle::accelerate: expected aten::copy_ to have no kernel for ", key, ", got one ",
              owner_of(copy, key));
  library.emplace(torch::Library::IMPL, "aten", key, "torch_swizzle " __FILE__, __LINE__);
  // Known at compile time, so that the dispatcher keeps no state for it which a call in another thread could miss.
  library->impl("copy_", kernel);
}

void set_accelerated(bool enabled, std::string_view torch_version, c10::DeviceType device) {
  check_version(torch_version);
  Acceleration& state = acceleration();
  const std::lock_guard lock(state.mutex);
  if (device == at::kCUDA) {
    set_accelerated(state.cuda, enabled, c10::DispatchKey::CUDA, TORCH_FN(copy_cuda));
  } else {
    set_accelerated(state.cpu, enabled, c10::DispatchKey::CPU, TORCH_FN(copy_cpu));
  }
}

c10::DeviceType check_device_type(const c10::Device& device) {
  TORCH_CHECK_VALUE(device.is_cuda() || device.is_cpu(), "swizzle::_accelerate: expected device cuda or cpu, got ",
                    device);
  return device.type();
}

void accelerate_device(bool enabled, std::string_view torch_version, c10::Device device) {
  set_accelerated(enabled, torch_version, check_device_type(device));
}

bool is_device_accelerated(c10::Device device) {
  const bool on_cuda = check_device_type(device) == at::kCUDA;
  Acceleration& state = acceleration();
  const std::lock_guard lock(state.mutex);
  return on_cuda ? state.cuda.has_value() : state.cpu.has_value();
}

std::string copy_reason(const at::Tensor& self, const at::Tensor& src) {
  CopyPlan copy;
  return std::string(name_of(plan_tensor_copy(self, src, [](const at::Tensor&) { return DeviceTraits{}; }, copy)));
}

void count_copies(bool enabled) { acceleration().is_counting.store(enabled); }

using Counts =
    std::tuple<std::vector<std::string>, c10::List<bool>, std::vector<std::int64_t>, std::vector<std::int64_t>>;

Counts copy_counts() {
  const Acceleration& state = acceleration();
  Counts counts;
  for (const auto& entry : kCopyReasonNames) {
    const auto index = static_cast<std::size_t>(entry.value);
    std::get<0>(counts).emplace_back(entry.name);
    std::get<1>(counts).push_back(is_taken(entry.value));
    std::get<2>(counts).push_back(state.calls[index].load());
    std::get<3>(counts).push_back(state.bytes[index].load());
  }
  return counts;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(swizzle, m) {
  if (!owns_operators()) return;
  m.def("_accelerate(bool enabled, str torch_version, Device device) -> ()",
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(accelerate_device)));
  m.def("_is_accelerated(Device device) -> bool",
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(is_device_accelerated)));
  m.def("_count_copies(bool enabled) -> ()",
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(count_copies)));
  m.def("_copy_counts() -> (str[], bool[], int[], int[])",
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(copy_counts)));
  m.def("_copy_reason(Tensor self, Tensor src) -> str",
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(copy_reason)));
  // Lazy bits and zero tensors are among what it decides on.
  for (const auto key : {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor}) {
    m.impl("_copy_reason", torch::dispatch(key, torch::CppFunction::makeFallthrough()));
  }
}

}  // namespace swizzle

namespace torch_swizzle {

void accelerate(bool enabled) { swizzle::set_accelerated(enabled, TORCH_VERSION, at::kCUDA); }

bool is_accelerated() { return swizzle::is_device_accelerated(at::kCUDA); }

}  // namespace torch_swizzle
