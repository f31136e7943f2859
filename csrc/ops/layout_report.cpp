// Layouts by notation: private operators that say what a notation means for a tile, and where each element lies. CPU
// only.
#include <ATen/Functions.h>
#include <torch/library.h>

#include "core/layout_notation.hpp"

#include "ops/registration.hpp"

namespace swizzle {

namespace {

constexpr std::int64_t kMaxTileBytes = 1 << 20;  // far more than the shared memory of any GPU

TileShape check_tile_shape(std::string_view op, std::int64_t rows, std::int64_t cols, std::int64_t element_bytes) {
  TORCH_CHECK_VALUE(element_bytes >= 1 && element_bytes <= 16, op, ": expected element_bytes to be 1 to 16, got ",
                    element_bytes);
  TORCH_CHECK_VALUE(rows >= 1 && cols >= 1 && rows <= kMaxTileBytes && cols <= kMaxTileBytes &&
                        rows * cols * element_bytes <= kMaxTileBytes,
                    op, ": expected a tile of 1 to ", kMaxTileBytes, " bytes, got ", rows, " x ", cols, " elements of ",
                    element_bytes);
  return {static_cast<int>(rows), static_cast<int>(cols), static_cast<int>(element_bytes)};
}

TileLayout check_layout(std::string_view op, std::string_view notation, const TileShape& tile) {
  try {
    return parse_layout(notation, tile);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK_VALUE(false, op, ": ", error.what());
  }
}

// Pad bytes, rows between pads, bits, base and shift of the XOR, period of the XOR, bytes spanned, bytes of the widest
// chunk that stays whole and aligned, and whether TMA can write it.
std::vector<std::int64_t> layout_numbers(std::string_view layout, std::int64_t rows, std::int64_t cols,
                                         std::int64_t element_bytes) {
  const TileShape tile = check_tile_shape("swizzle::_layout_numbers", rows, cols, element_bytes);
  const TileLayout numbers = check_layout("swizzle::_layout_numbers", layout, tile);
  return {numbers.pad_bytes,
          numbers.rows_per_pad,
          numbers.exchange.bits,
          numbers.exchange.base,
          numbers.exchange.shift,
          numbers.exchange.period(),
          numbers.span_bytes(tile.rows),
          numbers.chunk_bytes(),
          is_tma_expressible(numbers) ? 1 : 0};
}

// (rows, cols): the byte offset of each element.
at::Tensor layout_offsets(std::string_view layout, std::int64_t rows, std::int64_t cols, std::int64_t element_bytes) {
  const TileShape tile = check_tile_shape("swizzle::_layout_offsets", rows, cols, element_bytes);
  const TileLayout numbers = check_layout("swizzle::_layout_offsets", layout, tile);
  at::Tensor offsets = at::empty({rows, cols}, at::kLong);
  auto* entry = offsets.mutable_data_ptr<std::int64_t>();
  for (int row = 0; row < tile.rows; ++row) {
    for (int col = 0; col < tile.cols; ++col) *entry++ = numbers.offset(row, col * tile.element_bytes);
  }
  return offsets;
}

}  // namespace

TORCH_LIBRARY_IMPL(swizzle, CompositeExplicitAutograd, m) {
  if (!owns_operators()) return;
  m.impl("_layout_numbers", &layout_numbers);
  m.impl("_layout_offsets", &layout_offsets);
}

}  // namespace swizzle
