// The installed core headers serve kernels of other authors: plain C++17, no torch, no CUDA.
#include <torch_swizzle/core/layout.hpp>

#include <iostream>

constexpr int padded_column(int lane) { return 132 * lane; }
constexpr int naive_column(int lane) { return 128 * lane; }

int main() {
  using Rows = swizzle::RowMajor<128>;
  static_assert(Rows::offset(2, 5) == 2 * 128 + 5);
  using Tile = swizzle::ScalarTile<sizeof(float), 32, 32>;
  using Layout = swizzle::Swizzled<Tile::kRowBytes, Tile::LineForm>;
  static_assert(Layout::offset(1, 0) == 128 + 4);
  using Halves = swizzle::ArrayTile<short, double, 64>;
  static_assert(Halves::LineForm::apply(128) == 128 + 8);
  static_assert(swizzle::is_conflict_free_v<swizzle::WarpAccess<padded_column, 4>>);
  static_assert(!swizzle::is_conflict_free_v<swizzle::WarpAccess<naive_column, 4>>);
  std::cout << "core_only: a tile of 32 rows spans " << Rows::span_bytes(32) << " bytes\n";
}
