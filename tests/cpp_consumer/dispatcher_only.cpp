// Includes no header of torch_swizzle and names none of its symbols: the operator is found through the dispatcher.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <iostream>
#include <vector>

int main() {
  const auto schema = c10::Dispatcher::singleton().findSchema({"swizzle::transpose", ""});
  if (!schema) {
    std::cerr << "failed: swizzle::transpose is not registered; was the library dropped by the linker?\n";
    return 1;
  }
  const at::Tensor x = at::arange(12).reshape({3, 4});
  std::vector<c10::IValue> stack = {x, -2, -1, "auto"};
  schema->callBoxed(&stack);
  if (!at::equal(stack.at(0).toTensor(), x.t())) {
    std::cerr << "failed: swizzle::transpose does not transpose\n";
    return 1;
  }
  std::cout << "dispatcher_only: swizzle::transpose found and right\n";
}
