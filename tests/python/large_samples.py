"""Inputs of gigabytes, made and checked on the device, a band at a time."""

from __future__ import annotations

import pytest
import torch
from samples import row_major
from torch import Tensor

CHUNK_ELEMENTS = 2**28
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def random_base(numel: int, dtype: torch.dtype, result_bytes: int = 0) -> Tensor:
    """Random bits made on the device, or a skip where they and the result cannot fit."""
    base_bytes = numel * dtype.itemsize
    free, _ = torch.cuda.mem_get_info()
    needed = base_bytes + (result_bytes or base_bytes) + 2 * CHUNK_ELEMENTS
    if free < needed:
        pytest.skip(f"needs {needed} bytes of device memory, {free} are free")
    generator = torch.Generator("cuda").manual_seed(0)
    raw = torch.empty(base_bytes, dtype=torch.uint8, device="cuda")
    return raw.random_(0, 256, generator=generator).view(dtype)


def as_words(x: Tensor) -> Tensor:
    """The elements as integers, so that NaN compares by its bits; pairs of them for 16 bytes."""
    x = torch.view_as_real(x) if x.element_size() == 16 else x
    return x.view(WORDS[x.element_size()])


def assert_transposed_in_bands(y: Tensor, x: Tensor, what: object = "") -> None:
    """Compare a band of output rows at a time, so that the check itself fits the memory."""
    rows, cols = x.shape
    assert y.dtype is x.dtype
    assert y.shape == (cols, rows)
    assert y.stride() == row_major((cols, rows))
    result, source = as_words(y), as_words(x)
    band = max(1, CHUNK_ELEMENTS // rows)
    same = torch.ones((), dtype=torch.bool, device=x.device)
    for first in range(0, cols, band):
        columns = source[:, first : first + band].transpose(0, 1)
        same &= (result[first : first + band] == columns).all()
    assert bool(same), what
