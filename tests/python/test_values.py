"""Values: bit for bit what torch's own transposed copy gives, in fresh row-major memory."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from samples import (
    CHUNK_BYTES,
    DTYPE_OF_SIZE,
    DTYPES,
    EDGES,
    LAYOUTS,
    METHODS,
    SAMPLES,
    TEMPTING_ALIASES,
    TILES_WITH_LAYOUT,
    Sample,
    assert_fresh_transpose,
    assert_same_bits,
    bytes_of,
    finite,
    leave_stale_memory,
    name_of,
    random_bits,
    reference,
    row_major,
    short,
)

import torch_swizzle

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_every_dtype_and_layout_equals_torch(
    sample: Sample, dtype: torch.dtype, device: str
) -> None:
    x = sample.tensor(dtype, device)
    expected = sample.expected(x)
    for method in METHODS:
        leave_stale_memory(tuple(expected.shape), dtype, device)
        actual = transpose(x, *sample.dims, method=method)
        assert_fresh_transpose(actual, x, expected, method)


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("rows", EDGES)
def test_sides_around_every_tile_edge_equal_torch(rows: int, size: int, device: str) -> None:
    dtype = DTYPE_OF_SIZE[size]
    for cols in EDGES:
        x = random_bits((rows, cols), dtype, device, seed=rows + cols)
        expected = reference(x)
        for method in METHODS:
            leave_stale_memory((cols, rows), dtype, device)
            assert_fresh_transpose(transpose(x, method=method), x, expected, (cols, method))


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scalar32_tile_equals_torch_at_every_edge(layout: str, size: int, device: str) -> None:
    dtype = DTYPE_OF_SIZE[size]
    for rows in EDGES[:8]:
        for cols in EDGES[:8]:
            x = random_bits((rows, cols), dtype, device, seed=rows + cols)
            leave_stale_memory((cols, rows), dtype, device)
            actual = transpose_with(x, layout, "scalar32")
            assert_fresh_transpose(actual, x, reference(x), (rows, cols))


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tile", CHUNK_BYTES)
def test_tiles_of_chunks_serve_whole_chunks_and_refuse_the_rest(
    tile: str, layout: str, size: int, device: str
) -> None:
    dtype = DTYPE_OF_SIZE[size]
    step = CHUNK_BYTES[tile][size] // size
    edges = sorted({0, 1, step, 2 * step, 31, 32, 33, 64, 65, 128 - step, 128, 128 + step})
    for rows in edges:
        for cols in edges:
            x = random_bits((rows, cols), dtype, device, seed=rows + cols)
            is_plain_copy = rows <= 1 or cols <= 1
            if is_plain_copy or (rows % step == 0 and cols % step == 0):
                leave_stale_memory((cols, rows), dtype, device)
                actual = transpose_with(x, layout, tile)
                assert_fresh_transpose(actual, x, reference(x), (rows, cols))
            else:
                with pytest.raises(ValueError, match=f"'{tile}'"):
                    transpose_with(x, layout, tile)


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_cut_out_of_an_aligned_matrix_equal_torch(
    layout: str, size: int, device: str
) -> None:
    dtype = DTYPE_OF_SIZE[size]
    chunk, tile = 16 // size, 256 // size
    for rows in (2 * chunk, tile, tile + chunk):
        base = random_bits((2, rows, 3 * tile), dtype, device, seed=rows)
        for first in (0, 1, chunk - 1, chunk + 1, tile // 2 - 1):
            for cols in (2, chunk - 1, chunk + 1, tile - 1, tile, tile + 1, 3 * tile - first):
                x = base[..., first : first + max(cols, 2)]
                leave_stale_memory((2, x.shape[-1], rows), dtype, device)
                actual = transpose_with(x, layout, "vector")
                assert_fresh_transpose(actual, x, reference(x), (rows, first, cols))


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
def test_large_views_from_any_column_equal_torch(size: int, device: str) -> None:
    dtype = DTYPE_OF_SIZE[size]
    base = random_bits((1024, 8192 // size + 64), dtype, device)
    for first, columns in ((1, 2048 // size), (3, 8192 // size), (5, 8192 // size - 7)):
        x = base[:, first : first + columns]
        leave_stale_memory((columns, 1024), dtype, device)
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), (first, method))


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_short_vectors_of_columns_a_stride_apart_equal_torch(
    layout: str, size: int, device: str
) -> None:
    dtype = DTYPE_OF_SIZE[size]
    step = CHUNK_BYTES["short_vector"][size] // size
    for rows in (step, 32, 32 + step):
        for cols in (step, 128 // size, 128 // size + step):
            for stride in (2, 3, 7):
                base = random_bits((3, rows, cols * stride + 1), dtype, device, seed=rows + cols)
                x = base[..., 1::stride]
                leave_stale_memory((3, cols, rows), dtype, device)
                actual = transpose_with(x, layout, "short_vector")
                assert_fresh_transpose(actual, x, reference(x), (rows, cols, stride))


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize("cols", range(1, 9))
def test_direct_tile_serves_narrow_sides(cols: int, size: int, device: str) -> None:
    dtype = DTYPE_OF_SIZE[size]
    for shape in ((300, cols), (cols, 300), (3, 70, cols)):
        x = random_bits(shape, dtype, device)
        leave_stale_memory((*shape[:-2], shape[-1], shape[-2]), dtype, device)
        assert_fresh_transpose(transpose_with(x, "auto", "direct"), x, reference(x), shape)


@pytest.mark.parametrize("tile", TILES_WITH_LAYOUT)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tiles_without_anything_to_transpose_are_plain_copies(
    layout: str, tile: str, device: str
) -> None:
    for sample in (*TEMPTING_ALIASES, Sample("odd_column_major", (33, 65), (1, 33))):
        x = sample.tensor(torch.float32, device)
        assert_fresh_transpose(transpose_with(x, layout, tile), x, sample.expected(x), sample.name)


@pytest.mark.parametrize(
    "dtype",
    [dtype for dtype in DTYPES if dtype.itemsize == 1 and dtype.is_floating_point],
    ids=short,
)
def test_every_float8_code_survives(dtype: torch.dtype, device: str) -> None:
    codes = torch.arange(256, dtype=torch.uint8, device=device).repeat(8)
    x = codes.view(dtype).view(64, 32)
    for method in METHODS:
        actual = transpose(x, method=method)
        assert actual.dtype is dtype
        assert torch.equal(actual.view(torch.uint8), codes.view(64, 32).t())


@pytest.mark.parametrize("shape", [(65535, 2, 2), (65536, 2, 2), (70000, 3, 5)])
def test_batches_beyond_65535_are_right(shape: tuple[int, int, int], device: str) -> None:
    x = random_bits(shape, torch.float32, device)
    batch_in_the_middle = x.transpose(0, 1)
    for method in METHODS:
        assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)
        for view in (batch_in_the_middle, batch_in_the_middle.contiguous()):
            actual = transpose(view, method=method)
            assert_fresh_transpose(actual, view, reference(view), method)


@pytest.mark.parametrize("shape", [(7, 33, 5), (4, 3, 33, 5), (3, 2, 17, 4, 5)])
@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
def test_any_two_dims_can_be_swapped(shape: tuple[int, ...], size: int, device: str) -> None:
    x = random_bits(shape, DTYPE_OF_SIZE[size], device)
    rank = len(shape)
    for dim0, dim1 in combinations(range(rank), 2):
        expected = reference(x, dim0, dim1)
        for pair in ((dim0, dim1), (dim1, dim0), (dim0 - rank, dim1), (dim1 - rank, dim0 - rank)):
            assert_fresh_transpose(transpose(x, *pair), x, expected, pair)


@pytest.mark.parametrize("sample", TEMPTING_ALIASES, ids=name_of)
def test_result_never_shares_memory_with_the_input(sample: Sample, device: str) -> None:
    x = finite(sample, device)
    before = x.clone()
    for method in METHODS:
        y = transpose(x, method=method)
        y.add_(1)
        assert_same_bits(x, before, method)
    for dims in ((0, 0), (1, 1)):
        y = transpose(x, *dims)
        y.add_(1)
        assert_same_bits(x, before, dims)


@pytest.mark.parametrize("rows", [33, 64, 256])
def test_the_input_is_left_as_it_was(rows: int, device: str) -> None:
    x = random_bits((rows, 96), torch.float32, device)
    before = x.clone()
    for method in METHODS:
        transpose(x, method=method)
        assert_same_bits(x, before, method)


@pytest.mark.parametrize("dtype", [torch.int16, torch.float32, torch.complex128], ids=short)
def test_elements_that_are_not_aligned_to_their_size_are_right(dtype: torch.dtype) -> None:
    for start in range(1, dtype.itemsize, 3):
        memory = bytearray(range(256)) * 64
        count = 33 * 17
        x = torch.frombuffer(memory, dtype=dtype, count=count, offset=start).view(33, 17)
        raw = torch.frombuffer(memory, dtype=torch.uint8)[start : start + count * dtype.itemsize]
        expected = raw.view(33, 17, dtype.itemsize).transpose(0, 1).reshape(-1)
        actual = [transpose(x, method=method) for method in METHODS]
        for y in (*actual, transpose_with(x, "auto", "direct")):
            assert torch.equal(bytes_of(y), expected)


def test_function_and_operator_are_the_same(device: str) -> None:
    x = random_bits((3, 33, 65), torch.bfloat16, device)
    assert_same_bits(torch_swizzle.transpose(x), transpose(x))
    for method in METHODS:
        actual = torch_swizzle.transpose(x, 0, 2, method=method)
        assert_fresh_transpose(actual, x, reference(x, 0, 2), method)
    assert_same_bits(torch_swizzle.transpose(x, dim0=1, dim1=0), reference(x, 0, 1))


def test_transposing_twice_gives_the_input_back(device: str) -> None:
    x = random_bits((5, 257, 129), torch.int16, device)
    for method in METHODS:
        assert_same_bits(transpose(transpose(x, method=method), method=method), x, method)


def test_deterministic_mode_changes_nothing(device: str) -> None:
    x = random_bits((65, 129), torch.float32, device)
    torch.use_deterministic_algorithms(True)
    try:
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_autocast_leaves_the_dtype_alone(dtype: torch.dtype, device: str) -> None:
    x = random_bits((33, 65), dtype, device)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert_same_bits(transpose(x), reference(x))


@st.composite
def strided_samples(draw: st.DrawFn) -> Sample:
    """Any rank to 5, dims laid out in any order, with gaps, repeats and an offset."""
    rank = draw(st.integers(0, 5))
    longest = {0: 1, 1: 300, 2: 100, 3: 40, 4: 12, 5: 7}[rank]
    sizes = tuple(draw(st.integers(0 if draw(st.booleans()) else 1, longest)) for _ in range(rank))
    strides = [0] * rank
    step = 1
    for dim in draw(st.permutations(range(rank))):
        kind = draw(st.sampled_from(("dense", "dense", "gap", "repeat")))
        strides[dim] = 0 if kind == "repeat" else step
        step *= max(sizes[dim], 1) if kind != "repeat" else 1
        step += draw(st.integers(1, 5)) if kind == "gap" else 0
    any_dim = st.integers(-max(rank, 1), max(rank, 1) - 1)
    dims = (draw(any_dim), draw(any_dim))
    use_strides = rank > 0 and draw(st.booleans())
    return Sample(
        "drawn",
        sizes,
        tuple(strides) if use_strides else row_major(sizes),
        draw(st.integers(0, 9)),
        dims,
    )


drawn = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@drawn
@given(
    sample=strided_samples(),
    dtype=st.sampled_from(DTYPES),
    method=st.sampled_from(METHODS),
    seed=st.integers(0, 1000),
)
def test_any_strided_input_equals_torch(
    device: str, sample: Sample, dtype: torch.dtype, method: str, seed: int
) -> None:
    x = sample.tensor(dtype, device, seed)
    expected = sample.expected(x)
    leave_stale_memory(tuple(expected.shape), dtype, device)
    assert_fresh_transpose(transpose(x, *sample.dims, method=method), x, expected)


@drawn
@given(
    sample=strided_samples().filter(lambda sample: len(sample.sizes) >= 2),
    dtype=st.sampled_from(DTYPES),
    how=st.sampled_from(
        (
            *((layout, "scalar32") for layout in LAYOUTS),
            *(("swizzled", tile) for tile in CHUNK_BYTES),
            ("auto", "box"),
            ("auto", "direct"),
        )
    ),
    seed=st.integers(0, 1000),
)
def test_a_forced_tile_never_gives_a_wrong_answer(
    device: str, sample: Sample, dtype: torch.dtype, how: tuple[str, str], seed: int
) -> None:
    x = sample.tensor(dtype, device, seed)
    expected = sample.expected(x)
    leave_stale_memory(tuple(expected.shape), dtype, device)
    try:
        actual = transpose_with(sample.with_dims_last(x), *how)
    except ValueError:
        reject()
    assert_fresh_transpose(actual, x, expected)
