"""Reports of wrong results from transposing kernels elsewhere, each tried here (O01 to O07)."""

from __future__ import annotations

import pytest
import torch
from large_samples import assert_transposed_in_bands, random_base
from samples import (
    DTYPES,
    LAYOUTS,
    METHODS,
    Sample,
    assert_fresh_transpose,
    bytes_of,
    leave_stale_memory,
    name_of,
    random_bits,
    reference,
    row_major,
    short,
)
from torch import Tensor

import torch_swizzle

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with

large = [
    pytest.mark.cuda,
    pytest.mark.slow,
    pytest.mark.usefixtures("memory_is_given_back"),
]
# The first row counts for which tiles of 16, 32, 64 and 128 rows overflow a grid side of 65535.
GRID_LIMITS = (1048561, 2097121, 4194241, 8388481)


class TestSizesBeyond32Bits:
    """O01, https://github.com/JuliaGPU/CUDA.jl/issues/2679: 2^32 elements overflow the launch."""

    pytestmark = large

    @pytest.mark.parametrize("rows", [46340, 46341])
    def test_both_sides_of_2_to_31_elements_are_right(self, rows: int) -> None:
        x = random_base(rows * rows, torch.uint8).view(rows, rows)
        for method in METHODS:
            assert_transposed_in_bands(transpose(x, method=method), x, method)
        for layout in LAYOUTS:
            assert_transposed_in_bands(transpose_with(x, layout, "scalar32"), x, layout)

    @pytest.mark.parametrize("shape", [(65536, 32769), (32769, 65536), (65536, 65536)])
    def test_2_to_32_elements_are_right(self, shape: tuple[int, int]) -> None:
        x = random_base(shape[0] * shape[1], torch.uint8).view(shape)
        for method in METHODS:
            assert_transposed_in_bands(transpose(x, method=method), x, method)


class TestGridLimits:
    """O02, https://github.com/microsoft/onnxruntime/pull/31644: block counts beyond 65535."""

    pytestmark = large

    @pytest.mark.parametrize("limit", GRID_LIMITS)
    @pytest.mark.parametrize("dtype", [torch.uint8, torch.float16], ids=short)
    def test_both_sides_of_each_grid_limit_are_right(self, dtype: torch.dtype, limit: int) -> None:
        for long_side in (limit - 1, limit):
            for shape in ((long_side, 3), (3, long_side)):
                x = random_base(3 * long_side, dtype).view(shape)
                for method in METHODS:
                    actual = transpose(x, method=method)
                    assert_fresh_transpose(actual, x, reference(x), (shape, method))
                for layout in LAYOUTS:
                    actual = transpose_with(x, layout, "scalar32")
                    assert_fresh_transpose(actual, x, reference(x), (shape, layout))

    @pytest.mark.parametrize("shape", [(8388481, 1), (1, 8388481)])
    def test_a_single_long_side_is_right(self, shape: tuple[int, int]) -> None:
        x = random_base(8388481, torch.uint8).view(shape)
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)


class TestBounds:
    """O03, https://github.com/pytorch/ao/issues/4584: bounds swapped between rows and columns."""

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=short)
    @pytest.mark.parametrize(
        "shape",
        [(32, 256), (256, 32), (2, 4), (33, 65), (1, 7), (7, 1), (31, 1000), (597, 252)],
    )
    def test_rectangles_and_partial_tiles_are_written_whole(
        self, shape: tuple[int, int], dtype: torch.dtype, device: str
    ) -> None:
        x = random_bits(shape, dtype, device)
        for method in METHODS:
            leave_stale_memory(shape[::-1], dtype, device)
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)


BASE = (256, 768)
LAYOUT_SAMPLES = (
    Sample("columns_128_to_384", (256, 256), (768, 1), 128),
    Sample("every_second_row", (128, 768), (1536, 1)),
    Sample("every_third_column", (256, 256), (768, 3)),
    Sample("already_transposed", (768, 256), (1, 768)),
    Sample("one_row_expanded", (64, 768), (0, 1)),
    Sample("batch_of_slices_leading_axes_swapped", (4, 3, 32, 96), (96, 32 * 768, 768, 1), 7),
)


class TestStrides:
    """O04, https://github.com/ROCm/aiter/pull/1631: strides were computed from the shape."""

    @pytest.mark.parametrize("sample", LAYOUT_SAMPLES, ids=name_of)
    def test_strides_are_read_and_not_guessed(self, sample: Sample, device: str) -> None:
        x = sample.view(random_bits(BASE, torch.float16, device).view(-1))
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, sample.expected(x), method)


def unit_dims(device: str) -> dict[str, Tensor]:
    """Inputs with a dimension of size 1, whose stride means nothing."""
    return {
        "row of a column": torch.randn(1, 4096, device=device).t(),
        "column of a row": torch.randn(4096, 1, device=device).t(),
        "row stride of 2^31": torch.randn(64, device=device).as_strided((1, 64), (2**31, 1)),
        "row of a pitched buffer": torch.randn(4672, device=device)[:4640].as_strided(
            (1, 4640), (4672, 1)
        ),
    }


class TestUnitDimensions:
    """O05, https://github.com/pytorch/pytorch/issues/85558: an odd stride outlived the copy."""

    def test_a_unit_dimension_gets_a_canonical_stride(self, device: str) -> None:
        for name, x in unit_dims(device).items():
            for method in METHODS:
                y = transpose(x, method=method)
                assert_fresh_transpose(y, x, reference(x), (name, method))

    def test_the_fake_kernel_reports_the_same_strides(self) -> None:
        for name, x in unit_dims("cpu").items():
            fake = torch.empty(0, device="meta").as_strided(x.size(), x.stride())
            assert transpose(fake).stride() == row_major(tuple(x.mT.shape)), name


class TestLazyBits:
    """O06, https://github.com/tensorflow/tensorflow/pull/46736: the conjugation got lost.

    That a C++ program which calls the public function keeps it: tests/cpp_consumer.
    """

    @pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=short)
    @pytest.mark.parametrize("shape", [(97, 2), (2, 97), (512, 512), (15, 97)])
    def test_conjugate_negative_and_both_are_resolved(
        self, shape: tuple[int, int], dtype: torch.dtype, device: str
    ) -> None:
        x = random_bits(shape, dtype, device)
        both = torch._neg_view(x.conj())
        assert both.is_conj()
        assert both.is_neg()
        for lazy in (x.conj(), x.conj().imag, torch._neg_view(x), both):
            expected = reference(lazy.resolve_conj().resolve_neg())
            for method in METHODS:
                actual = torch_swizzle.transpose(lazy, method=method)
                assert_fresh_transpose(actual, x, expected, method)


SUB_BYTE = [
    name
    for name in ("float4_e2m1fn_x2", "bits1x8", "bits2x4", "bits4x2", "uint1", "uint4", "int4")
    if hasattr(torch, name)
]


class TestPackedElements:
    """O07, https://github.com/ROCm/aiter/issues/5537: bytes of two 4-bit values were moved."""

    @pytest.mark.parametrize("name", SUB_BYTE)
    def test_a_dtype_of_fewer_bits_than_a_byte_is_refused(self, name: str, any_device: str) -> None:
        x = torch.empty(64, 32, dtype=torch.uint8, device=any_device).view(getattr(torch, name))
        with pytest.raises(NotImplementedError) as caught:
            transpose(x)
        assert str(caught.value).startswith(
            "swizzle::transpose: expected a dtype of whole bytes, got the packed dtype"
        )

    @pytest.mark.parametrize(
        "dtype", [dtype for dtype in DTYPES if str(dtype).startswith("torch.float8")], ids=short
    )
    def test_every_code_of_float8_survives(self, dtype: torch.dtype, device: str) -> None:
        codes = torch.arange(256, dtype=torch.uint8, device=device).repeat(8).view(64, 32)
        for method in METHODS:
            actual = transpose(codes.view(dtype), method=method)
            assert actual.dtype is dtype
            assert torch.equal(bytes_of(actual), bytes_of(codes.t()))
