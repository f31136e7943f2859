"""The benchmark's cases: dtype, shape and memory layout of an input, in named groups.

A new row is one more `Case` in a group's list; a new group is one more entry of `GROUPS`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from bench.records import (
    ARTICLE_GROUP,
    CONTIGUOUS_NAME,
    GRID_GROUP,
    RANDOM_GROUP,
    SIDES_GROUP,
    case_label,
)

SECTOR_BYTES = 32  # what device memory reads at least

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Where the elements of a (..., rows, cols) tensor lie in its storage; all counts in elements.

    `row_pitch` is the distance from one row to the next (None: as dense as `col_step` allows, 0:
    one row read again and again), `col_step` the distance from one column to the next, `offset`
    that of the first element from the storage's start (which is 256-byte aligned on a GPU).
    """

    name: str
    row_pitch: int | None = None
    col_step: int = 1
    offset: int = 0
    column_major: bool = False

    def strides(self, shape: Shape) -> Shape:
        """Strides in elements of a tensor of that shape."""
        rows, cols = shape[-2:]
        if self.column_major:
            row_stride, col_stride, matrix = 1, rows, rows * cols
        else:
            dense = max(cols * self.col_step, 1)
            row_stride = dense if self.row_pitch is None else self.row_pitch
            col_stride, matrix = self.col_step, rows * max(row_stride, dense)
        outer: list[int] = []
        for size in reversed(shape[:-2]):
            outer.insert(0, matrix)
            matrix *= size
        return (*outer, row_stride, col_stride)


CONTIGUOUS = Layout(CONTIGUOUS_NAME)
COLUMN_MAJOR = Layout("column-major", column_major=True)


def pitched(row_pitch: int, offset: int = 0) -> Layout:
    """Rows cut from longer rows of `row_pitch` elements, beginning `offset` elements in."""
    name = f"pitch {row_pitch}"
    return Layout(f"{name}, offset {offset}" if offset else name, row_pitch, offset=offset)


def shifted(offset: int) -> Layout:
    """Dense rows on a base `offset` elements into its storage."""
    return Layout(f"offset {offset}", offset=offset)


@dataclass(frozen=True)
class Case:
    """One benchmark row: what is transposed.

    `dims` is the order of the result's dimensions (None: the last two are swapped), `seed` what a
    random case was drawn from.
    """

    group: str
    dtype: str
    shape: Shape
    layout: Layout = CONTIGUOUS
    dims: Shape | None = None
    seed: int | None = None

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype itself."""
        dtype = getattr(torch, self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return self.torch_dtype.itemsize

    @property
    def arrangement(self) -> str:
        """What a record calls the layout: that of the input, or the order of a permuted result."""
        if self.dims is None:
            return self.layout.name
        order = f"dims ({', '.join(map(str, self.dims))})"
        return order if self.seed is None else f"{order}, seed {self.seed}"

    @property
    def label(self) -> str:
        """dtype, shape and, unless contiguous, arrangement, for tables and progress."""
        return case_label(self.dtype, self.shape, self.arrangement)

    @property
    def result_bytes(self) -> int:
        """Bytes of the result: what has to be written."""
        return math.prod(self.shape) * self.element_bytes

    @property
    def moved_bytes(self) -> int:
        """Bytes that must cross the memory bus: all written, and each sector read once."""
        distinct = self.element_bytes
        for size, stride in zip(self.shape, self.layout.strides(self.shape), strict=True):
            distinct *= size if stride else 1
        if not self.layout.column_major:
            step_bytes = self.layout.col_step * self.element_bytes
            read_per_element = min(step_bytes, max(SECTOR_BYTES, self.element_bytes))
            distinct = distinct * max(read_per_element, self.element_bytes) // self.element_bytes
        return distinct + self.result_bytes

    def build(self, device: torch.device, seed: int = 0) -> torch.Tensor:
        """The input on `device`: random bits, so that NaNs with payloads are among floats."""
        strides = self.layout.strides(self.shape)
        last = sum((size - 1) * stride for size, stride in zip(self.shape, strides, strict=True))
        span = self.layout.offset + last + 1 if math.prod(self.shape) else self.layout.offset
        storage = random_bits(span, self.torch_dtype, device, seed)
        return storage.as_strided(self.shape, strides, self.layout.offset)


def random_bits(
    count: int, dtype: torch.dtype, device: torch.device, seed: int = 0
) -> torch.Tensor:
    """`count` elements of `dtype` whose every bit is random."""
    generator = torch.Generator(device=device).manual_seed(seed)
    count_bytes = count * dtype.itemsize
    words = torch.empty(-(-count_bytes // 8) + 1, dtype=torch.int64, device=device)
    words.random_(-(2**63), None, generator=generator)
    return words.view(torch.uint8)[:count_bytes].view(dtype)


def _cases(
    group: str,
    dtypes: Iterable[str],
    shapes: Iterable[Shape],
    layouts: Iterable[Layout] = (CONTIGUOUS,),
) -> list[Case]:
    shapes, layouts = list(shapes), list(layouts)
    return [
        Case(group, dtype, shape, layout)
        for dtype in dtypes
        for shape in shapes
        for layout in layouts
    ]


def _square(side: int) -> Shape:
    return (side, side)


WIDTHS_1_TO_8 = ("uint8", "float16", "float32", "float64")

ARTICLE_CASE = Case(ARTICLE_GROUP, "float32", _square(8192))

GRID_DTYPES = ("uint8", "float16", "float32", "float64", "complex128")
GRID = _cases(
    GRID_GROUP,
    GRID_DTYPES,
    (
        *(_square(side) for side in (256, 1024, 4096, 8192)),
        (8191, 8193),
        (1048576, 64),
        (64, 1048576),
        (64, 1024, 768),
    ),
)

LARGE_ALIGNED = [
    *_cases(
        "large-aligned",
        WIDTHS_1_TO_8,
        (
            *(_square(side) for side in (4096, 8192, 16384)),
            (32768, 8192),
            (8192, 32768),
            (2048, 32768),
            (32768, 2048),
        ),
    ),
    *_cases("large-aligned", ("complex128",), (_square(side) for side in (4096, 8192, 10240))),
    Case("large-aligned", "float8_e4m3fn", (32768, 8192)),
    Case("large-aligned", "float32", _square(32768)),
]

LARGE_ODD = [
    *_cases(
        "large-odd",
        WIDTHS_1_TO_8,
        ((8191, 8193), (16383, 16385), (12345, 6789), (5000, 50000)),
    ),
    Case("large-odd", "int32", (32767, 32769)),
    Case("large-odd", "complex64", (8191, 8193)),
    *_cases(
        "large-odd",
        WIDTHS_1_TO_8,
        (_square(8192),),
        (pitched(8193), shifted(1), shifted(3), shifted(5)),
    ),
]

LARGE_BATCHES = [
    *_cases(
        "large-batches",
        ("float16", "float32"),
        ((64, 1024, 768), (128, 256, 3136), (64, 1023, 769)),
    ),
    Case("large-batches", "uint8", (32, 4032, 7168)),
    Case("large-batches", "bfloat16", (16, 8192, 5120)),
]

VIEWS = [
    *_cases(
        "views",
        ("float32", "uint8"),
        (_square(8192),),
        (
            pitched(16384),
            COLUMN_MAJOR,
            Layout("expanded rows", row_pitch=0),
            Layout("expanded columns", row_pitch=1, col_step=0),
            Layout("every third column", col_step=3),
        ),
    ),
    Case("views", "uint8", (100001, 128), pitched(21504, offset=64)),
]

THIN = [
    *_cases(
        "thin",
        GRID_DTYPES,
        (
            *((1048576, 64), (64, 1048576), (4194304, 8), (8, 4194304)),
            *((3145728, 24), (24, 3145728), (2073600, 3), (3, 2073600)),
        ),
    ),
    *_cases("thin", ("float32", "float16"), ((786432, 256), (256, 786432))),
    Case("thin", "float32", (4096, 56)),
    *_cases("thin", ("uint8",), ((8388609, 24), (8388609, 3))),
]

TINY_BATCHES = [
    *_cases(
        "tiny-batches",
        ("float16", "float32", "uint8"),
        (
            *((4096, 128, 128), (65536, 16, 16), (3072, 1024, 24)),
            *((99999, 2, 2), (64, 2048, 49), (8, 8, 262144)),
        ),
    ),
    Case("tiny-batches", "float16", (12288, 128, 64)),
    *_cases("tiny-batches", ("float16", "uint8"), ((20000, 49, 49), (5000, 100, 100))),
]

SMALL = _cases(
    "small",
    GRID_DTYPES,
    (
        *(_square(side) for side in (64, 128, 256, 512, 1024)),
        *((1223, 1583), (462, 1024), (512, 14336), (32, 4096), (120, 2080)),
    ),
)


def _permutes(dtype: str, *pairs: tuple[Shape, Shape]) -> list[Case]:
    return [Case("permute", dtype, shape, dims=dims) for shape, dims in pairs]


HEADS, NHWC, NCHW = (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2)
PERMUTE = [
    *_permutes(  # attention heads, forth and back
        "bfloat16",
        *(((8, 2048, 32, 128), HEADS), ((8, 32, 2048, 128), HEADS)),
        *(((2, 4429, 24, 64), HEADS), ((2, 24, 4429, 64), HEADS)),
        *(((1, 4608, 24, 128), HEADS), ((1, 24, 4608, 128), HEADS)),
    ),
    *_permutes(
        "float16",
        ((64, 12, 512, 64), (0, 1, 3, 2)),
        *(((32, 256, 56, 56), NHWC), ((32, 56, 56, 256), NCHW)),
        *(((64, 2048, 7, 7), NHWC), ((64, 7, 7, 2048), NCHW)),
        *(((8, 8, 512, 512), NHWC), ((8, 512, 512, 8), NCHW)),
    ),
    *_permutes("float32", ((64, 2048, 7, 7), NHWC), ((64, 7, 7, 2048), NCHW)),
    *_permutes("uint8", ((16, 1080, 1920, 3), NCHW), ((16, 3, 1080, 1920), NHWC)),
    *_permutes("float8_e4m3fn", ((32, 4032, 7168), (0, 2, 1))),
    *_permutes("bfloat16", ((16, 8192, 5120), (0, 2, 1))),
    *_permutes(
        "float32",
        ((33, 100019, 33), (2, 1, 0)),
        ((99999, 2, 2), (0, 2, 1)),
        ((4, 16, 32, 64, 48), (4, 2, 0, 3, 1)),
    ),
    *_permutes("float16", ((1, 462, 16, 64), NHWC), ((2, 3, 224, 224, 4), (0, 4, 1, 2, 3))),
]


def random_permute(seed: int) -> Case:
    """A random order of 3 to 6 dimensions of random sizes: 16 to 256 MiB, any element size."""
    rng = random.Random(seed)
    dtype = rng.choice(GRID_DTYPES)
    rank = rng.randint(3, 6)
    elements = 2 ** rng.uniform(24.1, 27.9) / getattr(torch, dtype).itemsize
    weights = [rng.uniform(0.2, 1) for _ in range(rank)]
    shape = tuple(max(2, round(elements ** (weight / sum(weights)))) for weight in weights)
    dims = list(range(rank))
    while dims == sorted(dims):
        rng.shuffle(dims)
    return Case(RANDOM_GROUP, dtype, shape, dims=tuple(dims), seed=seed)


SIDES = range(1, 131)  # past 128, the most rows or columns that select_tile asks about
SIDES_BYTES = 32 << 20


def side_cases(dtype: str) -> list[Case]:
    """Matrices of about 32 MiB with every short side from 1 to 130, tall and wide.

    The long side is the largest multiple of 16 elements for which the input is at most 32 MiB, so
    columns and rows stay aligned, and it is a power of two only where the side is one.
    """
    elements = SIDES_BYTES // getattr(torch, dtype).itemsize
    lengths = {side: elements // side // 16 * 16 for side in SIDES}
    tall = [(length, side) for side, length in lengths.items()]
    return _cases(SIDES_GROUP, (dtype,), (*tall, *(shape[::-1] for shape in tall)))


# Where other transposes were reported slow; tests/python/reports/test_speed.py judges these rows.
REPORTS = [
    Case("reports", "float8_e4m3fn", (32768, 8192)),
    *_cases(
        "reports",
        ("uint8", "float16", "float32"),
        [_square(side) for side in (64, 128, 256, 512, 1024, 2048, 4096, 8192)],
    ),
    *_cases("reports", ("float16", "float32"), ((256, 786432), (786432, 256))),
    Case("reports", "float16", (256, 1024, 768)),
    *_cases(
        "reports",
        ("float32",),
        ((1000, 10000), (1024, 10240), (10000, 1000), (10240, 1024), (5000, 50000), (5120, 50176)),
    ),
]

GROUPS: dict[str, list[Case]] = {
    ARTICLE_GROUP: [ARTICLE_CASE],
    GRID_GROUP: GRID,
    "large-aligned": LARGE_ALIGNED,
    "large-odd": LARGE_ODD,
    "large-batches": LARGE_BATCHES,
    "views": VIEWS,
    "thin": THIN,
    "tiny-batches": TINY_BATCHES,
    "small": SMALL,
    "permute": PERMUTE,
    RANDOM_GROUP: [random_permute(seed) for seed in range(200)],
    "reports": REPORTS,
    SIDES_GROUP: [case for dtype in ("uint8", "float16", "float32") for case in side_cases(dtype)],
}
DEFAULT_GROUPS = (ARTICLE_GROUP, GRID_GROUP)

QUICK_ELEMENTS = 1 << 24  # --quick leaves out larger cases

# Without a GPU: the same kinds of case, small enough for two CPU cores.
CPU_GROUPS: dict[str, list[Case]] = {
    ARTICLE_GROUP: [Case(ARTICLE_GROUP, "float32", _square(256))],
    GRID_GROUP: _cases(
        GRID_GROUP,
        GRID_DTYPES,
        (_square(256), _square(1024), (1023, 1025), (65536, 16), (16, 65536), (8, 128, 96)),
    ),
    "permute": [
        *_permutes("bfloat16", ((2, 256, 16, 64), HEADS)),
        *_permutes("float32", ((2, 64, 28, 28), NHWC), ((4, 16, 8, 16, 12), (4, 2, 0, 3, 1))),
    ],
}
QUICK_CPU_ELEMENTS = 1 << 17


def select(
    groups: Iterable[str], dtypes: Iterable[str] = (), *, on_gpu: bool, quick: bool = False
) -> list[Case]:
    """The cases of the named groups, in order; only the given dtypes if any are given."""
    table = GROUPS if on_gpu else CPU_GROUPS
    most_elements = QUICK_ELEMENTS if on_gpu else QUICK_CPU_ELEMENTS
    wanted = set(dtypes)
    return [
        case
        for group in groups
        for case in table.get(group, [])
        if (not wanted or case.dtype in wanted)
        and (not quick or group == ARTICLE_GROUP or math.prod(case.shape) <= most_elements)
    ]
