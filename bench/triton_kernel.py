"""A Triton transpose as one would write it by hand: load a tile, `tl.trans`, store it.

Imported only where the Triton peer is asked for.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import triton
import triton.language as tl

TILES = (  # rows, cols, warps
    (32, 32, 4),
    (32, 64, 4),
    (64, 32, 4),
    (64, 64, 4),
    (64, 128, 8),
    (128, 64, 8),
    (128, 128, 8),
    (256, 64, 8),
    (64, 256, 8),
)


@triton.jit
def transpose_tile(
    source,
    target,
    rows,
    cols,
    batch_stride,
    row_stride,
    col_stride,
    TILE_ROWS: tl.constexpr,
    TILE_COLS: tl.constexpr,
):
    """One program moves one tile; tiles walk down the input's rows, so stores form long runs."""
    tiles_down = tl.cdiv(rows, TILE_ROWS)
    tiles_across = tl.cdiv(cols, TILE_COLS)
    program = tl.program_id(0)
    matrix = (program // (tiles_down * tiles_across)).to(tl.int64)
    tile = program % (tiles_down * tiles_across)
    row = (tile % tiles_down) * TILE_ROWS + tl.arange(0, TILE_ROWS)
    col = (tile // tiles_down) * TILE_COLS + tl.arange(0, TILE_COLS)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    wide_row = row.to(tl.int64)
    wide_col = col.to(tl.int64)
    source_at = wide_row[:, None] * row_stride + wide_col[None, :] * col_stride
    values = tl.load(source + matrix * batch_stride + source_at, mask=inside)
    target_at = wide_col[:, None] * rows + wide_row[None, :]
    matrix_at = matrix * rows * cols
    tl.store(target + matrix_at + target_at, tl.trans(values), mask=tl.trans(inside))


# 20 ms a tile, a fifth of triton's default: enough to choose from nine, and most of a run's time.
_tuned = triton.autotune(
    configs=[
        triton.Config({"TILE_ROWS": rows, "TILE_COLS": cols}, num_warps=warps)
        for rows, cols, warps in TILES
    ],
    key=["rows", "cols", "batch_stride", "row_stride", "col_stride"],
    do_bench=functools.partial(triton.testing.do_bench, warmup=5, rep=20),
)(transpose_tile)


def launch(kernel: Any, x: torch.Tensor, y: torch.Tensor, **tile: int) -> None:
    """Runs the kernel on x (batch, rows, cols), any strides, into y (batch, cols, rows), dense."""
    batch, rows, cols = x.shape

    def grid(meta: dict[str, int]) -> tuple[int]:
        down = triton.cdiv(rows, meta["TILE_ROWS"])
        return (batch * down * triton.cdiv(cols, meta["TILE_COLS"]),)

    kernel[grid](x, y, rows, cols, *x.stride(), **tile)


def launch_tuned(x: torch.Tensor, y: torch.Tensor) -> None:
    """As `launch`, with the tile that is fastest for these sizes and strides at the first call."""
    launch(_tuned, x, y)
