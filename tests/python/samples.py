"""The sample inputs that every test draws from, and the bitwise comparison that judges results.

Nothing here knows how the operators work: a sample is sizes, strides and an offset, and the
reference is always torch's own `input.transpose(dim0, dim1).contiguous()`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LAYOUTS = ("naive", "padded", "swizzled")
METHODS = ("auto", *LAYOUTS)
CHUNK_BYTES = {  # of the tiles of chunks, by element size
    "vector": {1: 16, 2: 16, 4: 16, 8: 16, 16: 16},
    "vector128": {1: 16, 2: 16, 4: 16, 8: 16, 16: 16},
    "short_vector": {1: 4, 2: 4, 4: 8, 8: 16, 16: 16},
}
TILES_WITH_LAYOUT = ("scalar32", *CHUNK_BYTES)
DIMS = (-2, -1)

DTYPES = (
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
    torch.int16,
    torch.uint16,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.uint32,
    torch.float32,
    torch.complex32,
    torch.int64,
    torch.uint64,
    torch.float64,
    torch.complex64,
    torch.complex128,
)
DTYPE_OF_SIZE = {
    1: torch.uint8,
    2: torch.float16,
    4: torch.float32,
    8: torch.float64,
    16: torch.complex128,
}

EDGES = (0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257)
STALE_BYTE = 0xFF  # NaN in every float type, -1 in every signed integer


@dataclass(frozen=True)
class Sample:
    """One strided input: how it lies over its storage, and the two dims to swap."""

    name: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None  # in elements; None means row-major
    offset: int = 0  # in elements
    dims: tuple[int, int] = DIMS

    @property
    def base_numel(self) -> int:
        """How many elements the storage must hold."""
        if 0 in self.sizes:
            return self.offset
        pairs = zip(self.sizes, self.strides or row_major(self.sizes), strict=True)
        return self.offset + sum((size - 1) * stride for size, stride in pairs) + 1

    def view(self, base: Tensor) -> Tensor:
        """This sample's sizes, strides and offset over a one-dimensional `base`."""
        return base.as_strided(self.sizes, self.strides or row_major(self.sizes), self.offset)

    def tensor(self, dtype: torch.dtype, device: str, seed: int = 0) -> Tensor:
        """The input itself, with random bits."""
        return self.view(random_bits((self.base_numel,), dtype, device, seed))

    def with_dims_last(self, x: Tensor) -> Tensor:
        """A view of `x` whose last two dims, when swapped, give what this sample's dims give."""
        return x.transpose(*self.dims).transpose(-2, -1)

    def expected(self, x: Tensor) -> Tensor:
        """Torch's own answer for this sample's dims."""
        return reference(x, *self.dims)


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides that a fresh contiguous tensor of these sizes has."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def reference(x: Tensor, dim0: int = -2, dim1: int = -1) -> Tensor:
    """Torch's own transposed copy, in memory of its own and with canonical strides."""
    return canonical_copy(x.transpose(dim0, dim1))


def canonical_copy(view: Tensor) -> Tensor:
    """Torch's own copy of a view, in memory of its own and with canonical strides."""
    return torch.empty(view.shape, dtype=view.dtype, device=view.device).copy_(view)


def random_bits(
    shape: tuple[int, ...], dtype: torch.dtype, device: str | torch.device = "cpu", seed: int = 0
) -> Tensor:
    """A contiguous tensor whose every bit is random: NaN payloads, infinities and -0.0 included."""
    numel = 1
    for size in shape:
        numel *= size
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randint(0, 256, (numel * dtype.itemsize,), dtype=torch.uint8, generator=generator)
    if dtype is torch.bool:
        raw &= 1
    return raw.to(device).view(dtype).reshape(shape)


def finite(sample: Sample, device: str) -> Tensor:
    """The input of a sample in float32, without NaN, for tools that compare by value."""
    generator = torch.Generator().manual_seed(0)
    return sample.view(torch.randn(sample.base_numel, generator=generator).to(device))


def bytes_of(x: Tensor) -> Tensor:
    """The bytes of `x` in row-major order."""
    return x.contiguous().reshape(-1).view(torch.uint8)


def leave_stale_memory(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
    """Fill and free a block of this size, so that an output element left unwritten shows."""
    block = torch.empty(shape, dtype=dtype, device=device)
    bytes_of(block).fill_(STALE_BYTE)


def stale(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> Tensor:
    """A contiguous tensor that holds nothing but stale bytes (true, for bool)."""
    block = torch.empty(shape, dtype=dtype, device=device)
    block.view(-1).view(torch.uint8).fill_(1 if dtype is torch.bool else STALE_BYTE)
    return block


def assert_same_bits(actual: Tensor, expected: Tensor, what: object = "") -> None:
    """Same dtype, device, shape and bits; NaN payloads count."""
    assert actual.dtype == expected.dtype, what
    assert actual.device == expected.device, what
    assert actual.shape == expected.shape, what
    assert not actual.is_conj(), what
    assert not actual.is_neg(), what
    if actual.numel() == 0 or torch.equal(bytes_of(actual), bytes_of(expected)):
        return
    differs = (bytes_of(actual) != bytes_of(expected)).view(-1, actual.element_size()).any(1)
    first = int(differs.nonzero()[0])
    raise AssertionError(
        f"{int(differs.sum())} of {actual.numel()} elements differ, the first at flat index "
        f"{first}, in a {actual.dtype} result of shape {tuple(actual.shape)} {what}"
    )


def assert_fresh_transpose(actual: Tensor, x: Tensor, expected: Tensor, what: object = "") -> None:
    """The whole promise: right bits, canonical strides, memory shared with nobody."""
    assert_same_bits(actual, expected, what)
    assert actual.stride() == row_major(tuple(actual.shape)), what
    assert actual.storage_offset() == 0, what
    if actual.numel():
        ours, theirs = actual.untyped_storage(), x.untyped_storage()
        assert ours.data_ptr() != theirs.data_ptr(), what


CONTIGUOUS_SAMPLES = (
    Sample("square", (64, 64)),
    Sample("tall", (65, 33)),
    Sample("wide", (33, 65)),
    Sample("tiny", (2, 4)),
    Sample("long_rows", (31, 1000)),
    Sample("no_multiple", (597, 252)),
    Sample("one_tile_wide", (256, 32)),
    Sample("one_tile_high", (32, 256)),
    Sample("narrow_rows", (256, 3)),
    Sample("few_rows", (3, 256)),
    Sample("one_row", (1, 7)),
    Sample("one_column", (7, 1)),
    Sample("one_element", (1, 1)),
    Sample("vector_dim0_dim0", (5,), dims=(0, -1)),
    Sample("scalar_dim0_dim0", (), dims=(0, 0)),
    Sample("scalar_negative_dim", (), dims=(-1, 0)),
    Sample("equal_dims", (9, 11), dims=(1, 1)),
    Sample("equal_dims_of_batch", (3, 9, 11), dims=(0, -3)),
)

EMPTY_SAMPLES = (
    Sample("no_rows", (0, 5)),
    Sample("no_columns", (5, 0)),
    Sample("neither", (0, 0)),
    Sample("batch_of_empty", (3, 0, 7)),
    Sample("empty_batch", (0, 5, 7)),
    Sample("empty_batch_dim_swapped", (0, 5, 7), dims=(0, 2)),
    Sample("empty_vector", (0,), dims=(0, 0)),
)

BATCH_SAMPLES = (
    Sample("batch", (5, 33, 17)),
    Sample("batch_dim_with_rows", (5, 33, 17), dims=(0, 1)),
    Sample("batch_dim_with_columns", (5, 33, 17), dims=(0, 2)),
    Sample("two_batch_dims", (3, 2, 33, 35)),
    Sample("outer_pair", (7, 3, 5, 11), dims=(0, 3)),
    Sample("middle_pair", (7, 35, 33, 11), dims=(1, 2)),
    Sample("five_dims", (2, 3, 17, 2, 19), dims=(2, 4)),
    Sample("ones_between", (4, 1, 33, 1, 17), dims=(2, -1)),
    Sample("twelve_dims", (2,) * 12, dims=(1, 9)),
    Sample("twelve_strided_dims", (2,) * 12, tuple(3 * 3**k for k in range(12)), dims=(0, 11)),
)

# Swapping leading dims moves whole runs, which kernels may treat as wider elements.
RUN_SAMPLES = (
    Sample("pairs_move_together", (33, 65, 2), dims=(0, 1)),
    Sample("triples_move_together", (33, 65, 3), dims=(0, 1)),
    Sample("runs_of_four", (33, 65, 4), dims=(0, 1)),
    Sample("runs_of_four_from_an_odd_start", (33, 65, 4), offset=1, dims=(0, 1)),
    Sample("runs_of_four_with_an_odd_pitch", (33, 17, 4), (17 * 4 + 1, 4, 1), dims=(0, 1)),
    Sample("runs_of_eight_two_apart", (33, 17, 8), (17 * 10, 10, 1), 2, dims=(0, 1)),
    Sample("long_runs", (9, 7, 300), dims=(1, 0)),
    Sample("runs_in_a_batch", (3, 17, 19, 8), dims=(1, 2)),
    Sample("expanded_runs", (33, 65, 4), (65, 1, 0), dims=(0, 1)),
)

PITCHED_SAMPLES = (
    Sample("odd_pitch", (33, 65), (67, 1)),
    Sample("odd_pitch_square", (64, 64), (67, 1), 1),
    Sample("even_pitch", (64, 64), (80, 1)),
    Sample("columns_128_to_384", (256, 256), (768, 1), 128),
    Sample("every_second_row", (33, 64), (128, 1)),
    Sample("one_row_of_a_wide_buffer", (1, 4640), (4672, 1)),
    Sample("pitched_batch", (3, 33, 17), (33 * 19 + 5, 19, 1), 3),
    Sample("batch_innermost", (5, 33, 17), (1, 85, 5)),
    Sample("leading_dims_swapped", (6, 4, 33, 17), (561, 3366, 17, 1)),
)

OFFSET_SAMPLES = tuple(Sample(f"starts_at_element_{k}", (64, 64), (64, 1), k) for k in range(1, 8))

STRIDED_SAMPLES = (
    Sample("column_major", (65, 33), (1, 65)),
    Sample("column_major_pitched", (65, 33), (1, 70), 1),
    Sample("every_third_column", (64, 85), (256, 3)),
    Sample("every_third_row_of_column_major", (31, 64), (3, 100)),
    Sample("strided_in_both", (33, 21), (130, 3), 2),
    Sample("strided_in_both_tall_step", (33, 21), (2, 77)),
    Sample("overlapping_windows", (40, 35), (1, 1)),
    Sample("batch_column_major", (3, 33, 17), (561, 1, 33)),
)

EXPANDED_SAMPLES = (
    Sample("rows_expanded", (64, 77), (0, 1)),
    Sample("columns_expanded", (64, 77), (1, 0)),
    Sample("columns_expanded_pitched", (64, 77), (3, 0)),
    Sample("both_expanded", (64, 77), (0, 0)),
    Sample("batch_expanded", (5, 33, 17), (0, 17, 1)),
    Sample("rows_of_batch_expanded", (5, 33, 17), (17, 0, 1)),
)

ABSURD_STRIDE_SAMPLES = (
    Sample("one_row_absurd_stride", (1, 64), (2**31, 1)),
    Sample("one_column_absurd_stride", (64, 1), (1, 2**40)),
    Sample("unit_batch_absurd_stride", (1, 33, 65), (2**33 + 1, 65, 1)),
    Sample("unit_middle_absurd_stride", (33, 1, 65), (65, 2**31 - 1, 1), dims=(0, 2)),
    Sample("unit_row_zero_stride", (1, 64), (0, 1)),
)

SAMPLES = (
    *CONTIGUOUS_SAMPLES,
    *EMPTY_SAMPLES,
    *BATCH_SAMPLES,
    *RUN_SAMPLES,
    *PITCHED_SAMPLES,
    *OFFSET_SAMPLES,
    *STRIDED_SAMPLES,
    *EXPANDED_SAMPLES,
    *ABSURD_STRIDE_SAMPLES,
)
MATRIX_SAMPLES = tuple(sample for sample in SAMPLES if len(sample.sizes) >= 2)

# Few and small enough for finite differences and for tracing, yet one of each kind.
SMALL_SAMPLES = (
    Sample("matrix", (3, 5)),
    Sample("row", (1, 4)),
    Sample("column", (4, 1)),
    Sample("empty", (0, 3)),
    Sample("scalar", (), dims=(0, -1)),
    Sample("equal_dims", (2, 3), dims=(0, 0)),
    Sample("batch", (2, 3, 4)),
    Sample("batch_dim", (2, 3, 4), dims=(0, -1)),
    Sample("pitched_offset", (3, 4), (7, 1), 2),
    Sample("column_major", (4, 3), (1, 4)),
    Sample("every_second_column", (3, 4), (9, 2)),
    Sample("rows_expanded", (3, 4), (0, 1)),
    Sample("columns_expanded", (3, 4), (1, 0)),
)
TEMPTING_ALIASES = (
    Sample("row_of_512", (1, 512)),
    Sample("column_of_512", (512, 1)),
    Sample("single_element", (1, 1)),
    Sample("empty_rows", (0, 4)),
    Sample("already_transposed", (64, 32), (1, 64)),
)


def name_of(sample: Sample) -> str:
    """The test id of a sample."""
    return sample.name


def short(dtype: torch.dtype) -> str:
    """The test id of a dtype."""
    return str(dtype).removeprefix("torch.")
