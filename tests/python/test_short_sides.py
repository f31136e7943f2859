"""Short sides and small matrices: every tile that serves them, and the one that is chosen."""

from __future__ import annotations

import pytest
import torch
from samples import DTYPE_OF_SIZE, assert_same_bits, leave_stale_memory, random_bits

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with

TILES = ("scalar32", "window", "deinterleave", "flat", "scatter", "box", "direct")
SIDES = (2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 49, 64, 100, 128, 130)
BATCHES = (
    (1001, 2, 2),
    (300, 8, 8),
    (70, 16, 16),
    (65, 16, 12),
    (33, 49, 64),
    (9, 64, 49),
    (5, 100, 100),
    (40, 31, 33),
)


def run(x: torch.Tensor, tile: str | None) -> torch.Tensor | None:
    """The transpose by a tile, or by the chosen one; None where the tile refuses."""
    leave_stale_memory((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype, x.device.type)
    if tile is None:
        return transpose(x)
    try:
        return transpose_with(x, "auto", tile)
    except ValueError:
        return None


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("long_side", [2048, 4160, 4161])
def test_short_sides_are_right_with_every_tile(size: int, long_side: int, device: str) -> None:
    served = set()
    for side in SIDES:
        for shape in ((long_side, side), (side, long_side), (2, long_side, side)):
            x = random_bits(shape, DTYPE_OF_SIZE[size], device)
            expected = x.transpose(-2, -1).contiguous()
            for tile in (None, *TILES):
                actual = run(x, tile)
                if actual is not None:
                    served.add(tile)
                    assert_same_bits(actual, expected)
    aligned = long_side * size % 16 == 0
    assert "flat" in served
    assert ("scatter" in served) == (size == 1 or (aligned and size <= 4))
    assert ("deinterleave" in served) == (aligned and size <= 8)


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("shape", BATCHES)
def test_small_matrices_are_right_with_every_tile(
    shape: tuple[int, ...], size: int, device: str
) -> None:
    x = random_bits(shape, DTYPE_OF_SIZE[size], device)
    expected = x.transpose(-2, -1).contiguous()
    for tile in (None, *TILES):
        actual = run(x, tile)
        if actual is not None:
            assert_same_bits(actual, expected)
