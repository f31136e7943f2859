"""Input layouts: pitched, offset, strided, expanded, batched inputs through every forced tile."""

from __future__ import annotations

import pytest
import torch
from samples import (
    ABSURD_STRIDE_SAMPLES,
    CHUNK_BYTES,
    DTYPE_OF_SIZE,
    EXPANDED_SAMPLES,
    LAYOUTS,
    MATRIX_SAMPLES,
    METHODS,
    OFFSET_SAMPLES,
    PITCHED_SAMPLES,
    RUN_SAMPLES,
    STRIDED_SAMPLES,
    TILES_WITH_LAYOUT,
    Sample,
    assert_fresh_transpose,
    leave_stale_memory,
    name_of,
    random_bits,
    reference,
    short,
)

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with

FORCED = [
    *((layout, tile) for tile in TILES_WITH_LAYOUT for layout in LAYOUTS),
    *(("auto", tile) for tile in ("window", "deinterleave", "flat", "scatter", "box", "direct")),
]
VECTOR_SAMPLES = (
    Sample("aligned", (64, 96)),
    Sample("one_row_of_tiles", (16, 400)),
    Sample("partial_tiles", (208, 144)),
    Sample("aligned_pitch", (64, 64), (80, 1)),
    Sample("aligned_offset", (64, 64), (64, 1), 16),
    Sample("aligned_pitch_and_offset", (48, 112), (176, 1), 32),
    Sample("aligned_batch", (3, 64, 32)),
    Sample("aligned_pitched_batch", (3, 64, 32), (64 * 48 + 16, 48, 1), 16),
    Sample("aligned_two_batch_dims", (2, 3, 32, 48), (16 * 1000, 32 * 64, 64, 1)),
)


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("sample", MATRIX_SAMPLES, ids=name_of)
def test_a_forced_tile_is_right_or_refuses_by_name(sample: Sample, size: int, device: str) -> None:
    x = sample.tensor(DTYPE_OF_SIZE[size], device)
    view = sample.with_dims_last(x)
    expected = sample.expected(x)
    refusals: list[tuple[str, str]] = []
    for method, tile in FORCED:
        leave_stale_memory(tuple(expected.shape), x.dtype, device)
        try:
            actual = transpose_with(view, method, tile)
        except ValueError as error:
            refusals.append((tile, str(error)))
        else:
            assert_fresh_transpose(actual, x, expected, (method, tile))
    for tile, refusal in refusals:
        assert tile != "direct", "which serves everything"
        assert refusal.startswith("swizzle::_transpose_with: ")
        assert f"'{tile}'" in refusal


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("sample", [*PITCHED_SAMPLES, *OFFSET_SAMPLES], ids=name_of)
def test_scalar32_serves_every_pitch_and_offset(sample: Sample, size: int, device: str) -> None:
    x = sample.tensor(DTYPE_OF_SIZE[size], device)
    for layout in LAYOUTS:
        actual = transpose_with(x, layout, "scalar32")
        assert_fresh_transpose(actual, x, sample.expected(x), layout)


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("sample", VECTOR_SAMPLES, ids=name_of)
def test_chunk_tiles_serve_aligned_pitches_offsets_and_batches(
    sample: Sample, size: int, device: str
) -> None:
    x = sample.tensor(DTYPE_OF_SIZE[size], device)
    for method in METHODS:
        assert_fresh_transpose(transpose(x, method=method), x, sample.expected(x), method)
    forced = [(layout, tile) for tile in CHUNK_BYTES for layout in LAYOUTS]
    for method, tile in forced:
        leave_stale_memory(tuple(sample.expected(x).shape), x.dtype, device)
        actual = transpose_with(x, method, tile)
        assert_fresh_transpose(actual, x, sample.expected(x), (method, tile))


@pytest.mark.parametrize("k", range(1, 8))
@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32], ids=short
)
def test_vector_serves_any_base_and_vector128_an_aligned_one(
    dtype: torch.dtype, k: int, device: str
) -> None:
    x = random_bits((64 * 64 + 8,), dtype, device)[k : k + 4096].view(64, 64)
    aligned = k * dtype.itemsize % 16 == 0
    for layout in LAYOUTS:
        for tile in ("vector", "vector128") if aligned else ("vector",):
            actual = transpose_with(x, layout, tile)
            assert_fresh_transpose(actual, x, reference(x), (layout, tile))
        if not aligned:
            with pytest.raises(ValueError, match="vector128"):
                transpose_with(x, layout, "vector128")
        assert_fresh_transpose(transpose(x, method=layout), x, reference(x), layout)


@pytest.mark.parametrize(
    "sample",
    [*STRIDED_SAMPLES, *EXPANDED_SAMPLES, *ABSURD_STRIDE_SAMPLES, *RUN_SAMPLES],
    ids=name_of,
)
def test_out_variant_takes_every_layout_too(sample: Sample, device: str) -> None:
    x = sample.tensor(torch.float32, device)
    expected = sample.expected(x)
    for method in METHODS:
        out = torch.full_like(expected, torch.nan)
        transpose(x, *sample.dims, method=method, out=out)
        assert_fresh_transpose(out, x, expected, method)


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_result_of_a_channels_last_input_is_row_major(
    memory_format: torch.memory_format, device: str
) -> None:
    x = random_bits((2, 3, 33, 17), torch.float16, device).to(memory_format=memory_format)
    for dims in ((-2, -1), (1, 3), (0, 1), (1, 2)):
        assert_fresh_transpose(transpose(x, *dims), x, reference(x, *dims), dims)


def test_transposed_view_of_a_transposed_copy_comes_back(device: str) -> None:
    x = random_bits((65, 33), torch.float32, device)
    for method in METHODS:
        y = transpose(x.t(), method=method)
        assert_fresh_transpose(y, x, x, method)


def test_sliced_batches_with_swapped_leading_axes_are_right(device: str) -> None:
    x = random_bits((6, 5, 40, 50), torch.float16, device)
    for view in (
        x.transpose(0, 1),
        x[1:4, :, 3:36, 7:24],
        x.transpose(0, 1)[:, 1:4, ::2, 7:24],
        x[:, :, :, ::3],
        x.permute(3, 1, 0, 2),
        x[:1].expand(7, 5, 40, 50),
        x[:, 2],
        x[0, :, 5],
    ):
        for method in METHODS:
            actual = transpose(view, method=method)
            assert_fresh_transpose(actual, view, reference(view), method)
