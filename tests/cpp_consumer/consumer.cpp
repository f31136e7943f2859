// A LibTorch program: the public function with and without arguments, its derivatives of every mode, vmap, its errors.
#include <ATen/LegacyBatchedTensorImpl.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/torch.h>
#include <torch_swizzle/torch_swizzle.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>

namespace {

void check(bool holds, const std::string& claim) {
  if (!holds) {
    std::cerr << "failed: " << claim << "\n";
    std::exit(1);
  }
}

// Same shape, dtype and bytes, so that NaN equals itself and -0 differs from 0.
bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  const torch::Tensor x = a.cpu().contiguous();
  const torch::Tensor y = b.cpu().contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

void check_values(torch::Device device) {
  const auto bytes = torch::TensorOptions(device).dtype(torch::kUInt8);
  for (const auto dtype : {torch::kUInt8, torch::kHalf, torch::kFloat, torch::kDouble, torch::kComplexDouble}) {
    const int64_t size = static_cast<int64_t>(torch::elementSize(dtype));
    const torch::Tensor x = torch::randint(256, {3, 33, 70 * size}, bytes).view(dtype);
    const torch::Tensor expected = x.transpose(-2, -1).contiguous();
    check(same_bits(torch_swizzle::transpose(x), expected), "transpose(x) equals x.transpose(-2, -1).contiguous()");
    for (const char* method : {"auto", "naive", "padded", "swizzled"}) {
      const torch::Tensor y = torch_swizzle::transpose(x, -2, -1, method);
      check(y.is_contiguous() && same_bits(y, expected), std::string("the last two dims by method ") + method);
    }
    check(same_bits(torch_swizzle::transpose(x, 0, 2), x.transpose(0, 2).contiguous()), "dims 0 and 2");

    check(same_bits(torch_swizzle::permute(x, {2, 0, 1}), x.permute({2, 0, 1}).contiguous()), "dims in another order");

    torch::Tensor out = torch::empty_like(expected);
    check(torch_swizzle::transpose_out(out, x).is_same(out), "transpose_out returns its out");
    check(same_bits(out, expected), "transpose_out writes the transpose");
  }
}

void check_gradients(torch::Device device) {
  const auto options = torch::TensorOptions(device).dtype(torch::kDouble);
  const torch::Tensor x = torch::randn({17, 40}, options.requires_grad(true));
  const torch::Tensor weight = torch::randn({40, 17}, options);
  (torch_swizzle::transpose(x) * weight).sum().backward();
  check(x.grad().defined() && same_bits(x.grad(), weight.t()), "the gradient is the transposed weight");
}

// Backward of backward, and a tangent through the op (forward mode).
void check_higher_derivatives(torch::Device device) {
  const auto options = torch::TensorOptions(device).dtype(torch::kDouble);
  const torch::Tensor x = torch::randn({17, 40}, options.requires_grad(true));
  const torch::Tensor y = torch_swizzle::transpose(x).pow(3).sum();
  const torch::Tensor first = torch::autograd::grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  const torch::Tensor second = torch::autograd::grad({first.sum()}, {x})[0];
  check(torch::allclose(second, 6 * x.detach()), "the second derivative of a cube is six times its base");

  const torch::Tensor tangent = torch::randn({17, 40}, options);
  torch::autograd::ForwardADLevel::get_next_idx();
  const torch::Tensor dual = torch_swizzle::transpose(at::_make_dual(x.detach(), tangent, /*level=*/0));
  check(same_bits(std::get<1>(at::_unpack_dual(dual, /*level=*/0)), tangent.t()), "the tangent is transposed");
  torch::autograd::ForwardADLevel::release_idx(0);
}

// Under vmap, here over dimension 1, the op sees one batched tensor. (torch's C++ package lacks a header that the vmap of
// torch.func includes; this is the one that serves batches of gradients.)
void check_vmap(torch::Device device) {
  const torch::Tensor x = torch::randn({17, 5, 40}, device);
  const torch::Tensor y = torch_swizzle::transpose(at::addBatchDim(x, /*level=*/1, /*dim=*/1));
  check(y.dim() == 2 && y.size(0) == 40 && y.size(1) == 17, "vmap hides the batch dimension");
  check(same_bits(at::maybeGetBatchedImpl(y)->value(), x.movedim(1, 0).transpose(-2, -1)),
        "each matrix of the batch is transposed");
}

// The call throws a c10::Error whose message names the operator.
void check_refused(const std::function<void()>& call, const std::string& what) {
  try {
    call();
  } catch (const c10::Error& error) {
    check(std::string(error.what()).find("transpose") != std::string::npos, what + ": the message names the operator");
    return;
  }
  check(false, what + " is refused");
}

void check_errors(torch::Device device) {
  const torch::Tensor x = torch::zeros({4, 5}, device);
  check_refused([&] { torch_swizzle::transpose(x, -2, -1, "fastest"); }, "an unknown method");
  check_refused([&] { torch_swizzle::transpose(x.to_sparse()); }, "a sparse tensor");
}

// torch's own transposed copy gives the same bits while it goes through the kernels.
void check_acceleration(torch::Device device) {
  const torch::Tensor x = torch::randn({300, 70}, device);
  const torch::Tensor expected = x.t().contiguous();
  try {
    torch_swizzle::accelerate();
  } catch (const c10::Error& error) {
    check(std::string(error.what()).find("that it was tried on") != std::string::npos, "only an untried torch refuses");
    return;
  }
  check(torch_swizzle::is_accelerated(), "accelerate() takes effect");
  check(same_bits(x.t().contiguous(), expected), "an accelerated copy has the same bits");
  torch_swizzle::accelerate(false);
  check(!torch_swizzle::is_accelerated(), "accelerate(false) takes it back");
}

}  // namespace

int main() {
  std::vector<torch::Device> devices = {torch::kCPU};
  if (torch::cuda::is_available()) devices.emplace_back(torch::kCUDA, 0);
  for (const torch::Device device : devices) {
    check_values(device);
    check_gradients(device);
    check_higher_derivatives(device);
    check_vmap(device);
    check_errors(device);
    check_acceleration(device);
    std::cout << "consumer: all checks hold on " << device << "\n";
  }
}
