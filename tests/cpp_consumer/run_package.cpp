// Loads a model that AOTInductor packaged and checks its first result, the transpose of a matrix of 65 columns, for
// several numbers of rows. Names nothing of torch_swizzle: linked with it, or not, the program is the same.
#include <ATen/ATen.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <exception>
#include <iostream>
#include <vector>

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    std::cerr << "usage: run_package PACKAGE DEVICE\n";
    return 2;
  }
  const at::Device device(arguments[2]);
  try {
    torch::inductor::AOTIModelPackageLoader model(arguments[1]);
    for (const std::int64_t rows : {1, 2, 33, 4096}) {
      const at::Tensor x = at::arange(rows * 65, at::TensorOptions(device).dtype(at::kFloat)).view({rows, 65});
      if (!at::equal(model.run({x}).at(0), x.t())) {
        std::cerr << "failed: wrong values for " << rows << " rows\n";
        return 1;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  std::cout << "run_package: right for 1, 2, 33 and 4096 rows on " << device << "\n";
}
