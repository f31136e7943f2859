// Implementation of the choice between copies of the library.
#include "ops/registration.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

namespace swizzle {

namespace {

std::string describe(const std::vector<std::string>& identity) {
  return identity.at(0) + " (torch_swizzle " + identity.at(1) + ")";
}

bool is_first_copy() {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (!dispatcher.findSchema({"swizzle::transpose", ""})) return true;
  std::string owner = "another library";
  if (const auto identify = dispatcher.findSchema({"swizzle::_library", ""})) {
    std::vector<c10::IValue> stack;
    identify->callBoxed(&stack);
    owner = describe(stack.at(0).to<std::vector<std::string>>());
  }
  TORCH_WARN("the operators swizzle::* are already registered by ", owner, ", so ", describe(identify_library()),
             " registers nothing");
  return false;
}

}  // namespace

bool owns_operators() {
  static const bool is_owner = is_first_copy();
  return is_owner;
}

std::vector<std::string> identify_library() {
  Dl_info info;
  const bool is_known = dladdr(reinterpret_cast<const void*>(&identify_library), &info) != 0;
  return {is_known && info.dli_fname != nullptr ? info.dli_fname : "an unknown file", TORCH_SWIZZLE_VERSION};
}

}  // namespace swizzle
