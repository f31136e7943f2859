// The installed core headers serve kernels of other authors: plain C++17, no torch, no CUDA.
#include <torch_swizzle/core/layout.hpp>

#include <iostream>

int main() {
  using Rows = swizzle::RowMajor<128>;
  static_assert(Rows::offset(2, 5) == 2 * 128 + 5);
  using Tile = swizzle::ScalarTile<sizeof(float), 32, 32>;
  using Layout = swizzle::Swizzled<Tile::kRowBytes, Tile::LineForm>;
  static_assert(Layout::offset(1, 0) == 128 + 4);
  std::cout << "core_only: a tile of 32 rows spans " << Rows::span_bytes(32) << " bytes\n";
}
