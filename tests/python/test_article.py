"""The article's verification and its bank conflicts, on the 32 x 32 tile of one element a lane."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from samples import (
    CHUNK_BYTES,
    DTYPE_OF_SIZE,
    LAYOUTS,
    TILES_WITH_LAYOUT,
    random_bits,
    reference,
)
from torch import Tensor

transpose_with = torch.ops.swizzle._transpose_with
tile_wavefronts = torch.ops.swizzle._tile_wavefronts

LONGEST = 64
HOST_SIDES = (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64)
NAIVE_COLUMN_READS = {1: 8, 2: 16, 4: 32, 8: 32, 16: 32}
IDEAL = {1: 1, 2: 1, 4: 1, 8: 2, 16: 4}


def scalar32(x: Tensor, layout: str) -> Tensor:
    """The article's kernel itself."""
    result: Tensor = transpose_with(x, layout, "scalar32")
    return result


def public(x: Tensor, layout: str) -> Tensor:
    """The public operator, whichever tile it chooses for this layout."""
    result: Tensor = torch.ops.swizzle.transpose(x, method=layout)
    return result


def assert_every_shape_is_right(
    op: Callable[[Tensor, str], Tensor],
    layout: str,
    dtype: torch.dtype,
    device: str,
    row_counts: tuple[int, ...],
    col_counts: tuple[int, ...],
) -> None:
    """Compare as bytes, once a row count, so that a GPU is not made to wait for each call."""
    buffer = random_bits((LONGEST * LONGEST,), dtype, device)
    for rows in row_counts:
        inputs = [buffer[: rows * cols].view(rows, cols) for cols in col_counts]
        actual = torch.cat([op(x, layout).view(-1) for x in inputs])
        expected = torch.cat([reference(x).view(-1) for x in inputs])
        assert torch.equal(actual.view(torch.uint8), expected.view(torch.uint8)), rows


@pytest.mark.slow
@pytest.mark.cuda
@pytest.mark.parametrize("op", [scalar32, public])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
def test_every_shape_to_64_is_right_on_the_gpu(
    op: Callable[[Tensor, str], Tensor], layout: str, size: int
) -> None:
    sides = tuple(range(1, LONGEST + 1))
    assert_every_shape_is_right(op, layout, DTYPE_OF_SIZE[size], "cuda", sides, sides)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
def test_the_gpu_program_run_on_the_host_is_right(layout: str, size: int) -> None:
    assert_every_shape_is_right(
        scalar32, layout, DTYPE_OF_SIZE[size], "cpu", HOST_SIDES, HOST_SIDES
    )


def requests(layout: str, tile: str, size: int, *, loads: bool) -> Tensor:
    """The rows (is_load, width, wavefronts, ideal) of one full tile's loads or stores."""
    table: Tensor = tile_wavefronts(layout, tile, size)
    assert table.dtype is torch.int64
    assert table.ndim == 2
    assert table.shape[1] == 4
    chosen = table[(table[:, 0] != 0) == loads]
    assert len(chosen) > 0
    return chosen


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_row_writes_of_the_scalar_tile_never_conflict(layout: str, size: int) -> None:
    stores = requests(layout, "scalar32", size, loads=False)
    assert bool((stores[:, 1] == size).all())
    assert bool((stores[:, 2] == IDEAL[size]).all())
    assert bool((stores[:, 3] == IDEAL[size]).all())


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
def test_column_reads_of_the_naive_scalar_tile_conflict(size: int) -> None:
    loads = requests("naive", "scalar32", size, loads=True)
    assert bool((loads[:, 2] == NAIVE_COLUMN_READS[size]).all())
    assert bool((loads[:, 3] == IDEAL[size]).all())


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("layout", ["padded", "swizzled"])
def test_column_reads_of_the_other_scalar_tiles_do_not(layout: str, size: int) -> None:
    loads = requests(layout, "scalar32", size, loads=True)
    assert bool((loads[:, 2] == IDEAL[size]).all())


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("layout", ["padded", "swizzled"])
@pytest.mark.parametrize("tile", CHUNK_BYTES)
def test_chunk_tiles_never_conflict_with_padding_or_swizzle(
    tile: str, layout: str, size: int
) -> None:
    table = tile_wavefronts(layout, tile, size)
    assert torch.equal(table[:, 2], table[:, 3])


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("tile", CHUNK_BYTES)
def test_naive_chunk_tiles_conflict(tile: str, size: int) -> None:
    table = tile_wavefronts("naive", tile, size)
    assert bool((table[:, 2] >= table[:, 3]).all())
    assert bool((table[:, 2] > table[:, 3]).any())


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("tile", TILES_WITH_LAYOUT)
def test_the_three_layouts_make_the_same_requests(tile: str, size: int) -> None:
    naive, padded, swizzled = (tile_wavefronts(layout, tile, size) for layout in LAYOUTS)
    for other in (padded, swizzled):
        assert torch.equal(naive[:, :2], other[:, :2])
        assert torch.equal(naive[:, 3], other[:, 3])
