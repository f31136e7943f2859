"""Sizes that overflow 32 bits: more than 2^31 elements, offsets beyond it, and huge tile counts."""

from __future__ import annotations

import pytest
import torch
from large_samples import assert_transposed_in_bands, random_base
from samples import (
    LAYOUTS,
    METHODS,
    assert_fresh_transpose,
    random_bits,
    reference,
    row_major,
    short,
)

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.slow,
    pytest.mark.usefixtures("memory_is_given_back"),
]

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with

TWO_31 = 2**31


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.float32, torch.float64, torch.complex128], ids=short
)
def test_more_than_2_to_31_wider_elements_are_right(dtype: torch.dtype) -> None:
    x = random_base(46341 * 46344, dtype).view(46341, 46344)
    for method in METHODS if dtype.itemsize < 8 else ("auto", "swizzled"):
        assert_transposed_in_bands(transpose(x, method=method), x, method)


def test_vector_tile_is_right_beyond_2_to_31_elements() -> None:
    x = random_base(46352 * 46352, torch.uint8).view(46352, 46352)
    for layout in LAYOUTS:
        assert_transposed_in_bands(transpose_with(x, layout, "vector"), x, layout)


@pytest.mark.parametrize("shape", [(8388609, 3), (3, 8388609), (8388481, 1), (1, 8388481)])
def test_millions_of_narrow_rows_or_columns_are_right(shape: tuple[int, int]) -> None:
    x = random_base(shape[0] * shape[1], torch.uint8).view(shape)
    for method in METHODS:
        assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)
    for layout in LAYOUTS:
        actual = transpose_with(x, layout, "scalar32")
        assert_fresh_transpose(actual, x, reference(x), layout)


def test_a_slice_of_a_base_beyond_2_to_31_bytes_is_right() -> None:
    x = random_base(100001 * 21504, torch.uint8).view(100001, 21504)[:, 64:192]
    for method in METHODS:
        assert_transposed_in_bands(transpose(x, method=method), x, method)
    for layout in LAYOUTS:
        assert_transposed_in_bands(transpose_with(x, layout, "scalar32"), x, layout)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=short)
def test_small_views_with_offsets_beyond_2_to_31_are_right(dtype: torch.dtype) -> None:
    base = random_base(2 * TWO_31 + 4096, dtype, result_bytes=1)
    for sizes, strides, offset in (
        ((64, 64), (64, 1), TWO_31 - 2048),
        ((64, 64), (64, 1), TWO_31 + 5),
        ((33, 65), (TWO_31 // 16, 1), 0),
        ((33, 65), (1, TWO_31 // 32), 3),
        ((3, 65), (TWO_31 - 1, 3), 1),
        ((2, 65), (2 * TWO_31 + 7, 1), 0),
        ((2, 33, 65), (TWO_31 + 1, 65, 1), 0),
        ((33, 2, 65), (65, TWO_31 + 1, 1), 0),
    ):
        x = base.as_strided(sizes, strides, offset)
        for method in METHODS:
            actual = transpose(x, method=method)
            assert_fresh_transpose(actual, x, reference(x), (sizes, strides, method))


def test_a_strided_out_beyond_2_to_31_elements_is_right() -> None:
    base = random_base(TWO_31 + 4096, torch.uint8, result_bytes=1)
    x = random_bits((65, 17), torch.uint8, "cuda")
    out = base.as_strided((17, 65), (TWO_31 // 16, 1))
    transpose(x, out=out)
    assert torch.equal(out, x.t())


def test_a_batch_of_more_than_2_to_31_elements_is_right() -> None:
    x = random_base(70001 * 129 * 257, torch.uint8).view(70001, 129, 257)
    for method in METHODS:
        y = transpose(x, method=method)
        for first in range(0, 70001, 8192):
            band = slice(first, first + 8192)
            assert bool((y[band] == x[band].mT).all()), method


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((3, 70001, 11, 1009), (0, 2, 1, 3)),
        ((3, 70001, 11, 1009), (3, 0, 2, 1)),
        ((1500007, 7, 211), (2, 1, 0)),
        ((2, 65537, 32, 1024), (0, 2, 1, 3)),
    ],
)
def test_permutes_of_more_than_2_to_31_elements_are_right(
    shape: tuple[int, ...], dims: tuple[int, ...]
) -> None:
    numel = 1
    for size in shape:
        numel *= size
    x = random_base(numel, torch.uint8).view(shape)
    y = torch.ops.swizzle.permute(x, dims)
    expected = x.permute(dims)
    assert y.stride() == row_major(tuple(expected.shape))
    for first in range(0, y.shape[0], 64):
        band = slice(first, first + 64)
        assert bool((y[band] == expected[band]).all())


def test_gradients_beyond_2_to_31_elements_are_right() -> None:
    x = random_base(46341 * 46341, torch.uint8, result_bytes=1).view(46341, 46341)
    leaf = torch.empty(46341, 46341, dtype=torch.float16, device="cuda").requires_grad_()
    incoming = x.to(torch.float16)
    (gradient,) = torch.autograd.grad(transpose(leaf), leaf, incoming)
    assert_transposed_in_bands(gradient, incoming)
