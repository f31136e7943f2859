"""Load: random transposes and permutes against torch bit by bit, and a million small calls.

Some of the cases run on many threads at once. A case is made from a seed and its number, so that
`--seed S --first N --cases 1` repeats it. Exits 1 if a result differs or memory grew;
`--report PATH` gets the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
sys.path += [str(TESTS.parent), str(TESTS / "python")]  # a library built in the tree; samples

import torch  # noqa: E402
from samples import (  # noqa: E402
    DTYPES,
    LAYOUTS,
    METHODS,
    STALE_BYTE,
    TILES_WITH_LAYOUT,
    Sample,
    canonical_copy,
    reference,
    row_major,
)
from sanitizer_cases import known_tiles  # noqa: E402
from torch import Tensor  # noqa: E402

import torch_swizzle  # noqa: E402, F401  (registers the operators)

THREADS = 8
BASE_BYTES = 64 << 20
SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 256)
MOST_ELEMENTS = (2**10, 2**12, 2**15, 2**18)
MANY_ELEMENTS = 2**22  # one case in thirty, for kernels that only large problems get
# Memory counts as flat if the process gained less than four bytes a call, for what Python does.
MOST_GROWTH_BYTES = 4 << 20


@dataclass(frozen=True)
class Case:
    """An input over the common buffer, how it is permuted, and the tile that is forced on it."""

    number: int
    dtype: torch.dtype
    sample: Sample
    order: tuple[int, ...]
    tile: str
    layout: str


@dataclass
class Tally:
    """What a run of cases has found."""

    cases: int
    comparisons: int
    wrong: list[str]
    served: Counter[str]


def make_case(seed: int, number: int, tiles: Sequence[str]) -> Case:
    """The case of that number."""
    rng = random.Random(f"{seed}/{number}")
    dtype = rng.choice(DTYPES)
    rank = rng.choice((0, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8))
    most = MANY_ELEMENTS if rng.random() < 1 / 30 else rng.choice(MOST_ELEMENTS)
    sizes = [rng.choice(SIZES) if rng.random() < 0.7 else rng.randint(1, 3000) for _ in range(rank)]
    if rank and rng.random() < 0.03:
        sizes[rng.randrange(rank)] = 0
    while math.prod(max(size, 1) for size in sizes) > most:
        largest = sizes.index(max(sizes))
        sizes[largest] = (sizes[largest] + 1) // 2
    dims = (rng.randrange(-rank, rank), rng.randrange(-rank, rank)) if rank else (0, -1)
    strides = random_strides(rng, sizes)
    offset = 0 if rng.random() < 0.5 else rng.randint(1, 40)
    sample = Sample(f"case {number}", tuple(sizes), tuple(strides), offset, dims)
    while sample.base_numel * dtype.itemsize > BASE_BYTES:
        strides = [stride // 2 for stride in strides]
        sample = Sample(sample.name, sample.sizes, tuple(strides), offset, dims)
    order = [dim - rank if rng.random() < 0.1 else dim for dim in rng.sample(range(rank), rank)]
    return Case(number, dtype, sample, tuple(order), rng.choice(tiles), rng.choice(LAYOUTS))


def random_strides(rng: random.Random, sizes: Sequence[int]) -> list[int]:
    """Row-major, or permuted, pitched, stepped, expanded or overlapping."""
    if rng.random() < 0.4:
        return list(row_major(tuple(sizes)))
    order = list(range(len(sizes)))
    if rng.random() < 0.6:
        rng.shuffle(order)
    has_gaps = rng.random() < 0.5
    strides = [0] * len(sizes)
    step = rng.choice((1, 1, 2, 3)) if has_gaps else 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
        if has_gaps and rng.random() < 0.5:
            step += rng.choice((1, 3, 16, 16 - step % 16, 64))
    for dim, size in enumerate(sizes):
        if rng.random() < 0.05:
            strides[dim] = rng.randint(0, 2)
        if size == 1 and rng.random() < 0.2:
            strides[dim] = 2**40 + 1
    return strides


@cache
def base_of(dtype: torch.dtype, device: str) -> Tensor:
    """The common buffer of random bits, as elements of a dtype."""
    if dtype is torch.bool:
        return (base_of(torch.uint8, device) & 1).view(torch.bool)
    if dtype is not torch.uint8:
        return base_of(torch.uint8, device).view(dtype)
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(0, 256, (BASE_BYTES,), dtype=torch.uint8, generator=generator)
    return bits.to(device)


def bytes_of(result: Tensor) -> Tensor:
    return result.view(-1).view(torch.uint8)


def run_cases(cases: Iterable[Case], device: str) -> Tally:
    """Every method, the out variant, a forced tile and a permute of each case, against torch."""
    tally = Tally(0, 0, [], Counter())
    for case in cases:
        x, dims = case.sample.view(base_of(case.dtype, device)), case.sample.dims
        expected = reference(x, *dims)

        def compare(result: Tensor, what: str, expected: Tensor, case: Case = case) -> None:
            tally.comparisons += 1
            is_right = (
                result.dtype is expected.dtype
                and result.shape == expected.shape
                and result.stride() == row_major(tuple(expected.shape))
                and torch.equal(bytes_of(result), bytes_of(expected))
            )
            if not is_right:
                tally.wrong.append(f"{case}: {what}")

        for method in METHODS:
            stale = torch.empty_like(expected, memory_format=torch.contiguous_format)
            bytes_of(stale).fill_(STALE_BYTE)
            del stale  # the next block of this size: what is left unwritten shows
            compare(torch.ops.swizzle.transpose(x, *dims, method=method), method, expected)
        out = torch.empty_like(expected, memory_format=torch.contiguous_format)
        bytes_of(out).fill_(STALE_BYTE)
        compare(torch.ops.swizzle.transpose(x, *dims, out=out), "out", expected)
        if x.dim() >= 2:
            last = case.sample.with_dims_last(x)
            method = case.layout if case.tile in TILES_WITH_LAYOUT else "auto"
            try:
                forced = torch.ops.swizzle._transpose_with(last, method, case.tile)
            except ValueError:  # not this input
                pass
            else:
                tally.served[case.tile] += 1
                compare(forced, f"{method} {case.tile}", expected)
        permuted = canonical_copy(x.permute(case.order))
        compare(torch.ops.swizzle.permute(x, case.order), "permute", permuted)
        tally.cases += 1
    return tally


def run_on_threads(cases: Sequence[Case], device: str) -> list[Tally]:
    """The cases in equal parts on threads that run at once, on a stream each."""

    def work(part: Sequence[Case]) -> Tally:
        with side_stream(device):
            return run_cases(part, device)

    parts = [cases[thread::THREADS] for thread in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, parts))


def side_stream(device: str) -> AbstractContextManager[Any]:
    return torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else nullcontext()


def memory_in_use(device: str) -> dict[str, int]:
    """Bytes: resident in the process; handed out by torch; taken on the device by anyone."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    used = {"resident": pages * os.sysconf("SC_PAGE_SIZE")}
    if device == "cuda":
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        used |= {"allocated": torch.cuda.memory_allocated(), "device": total - free}
    return used


def call_often(calls: int, device: str) -> dict[str, Any]:
    """Small calls by every method, and the memory before and after."""
    x = torch.rand(64, 64, device=device)
    transpose = torch.ops.swizzle.transpose

    def call(times: int) -> None:
        for _ in range(times // len(METHODS)):
            for method in METHODS:
                transpose(x, method=method)

    call(max(calls // 50, len(METHODS)))
    before = memory_in_use(device)
    begin = time.monotonic()
    call(calls)
    after = memory_in_use(device)
    growth = {name: after[name] - before[name] for name in before}
    return {
        "calls": calls // len(METHODS) * len(METHODS),
        "call_seconds": round(time.monotonic() - begin, 1),
        "bytes_before": before,
        "bytes_after": after,
        "grown": sorted(name for name, gained in growth.items() if gained > MOST_GROWTH_BYTES),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="load_cases", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=24_000, help="a fifth of them on threads")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore", message="ComplexHalf support is experimental")
    begin = time.monotonic()
    tiles = known_tiles()
    numbers = range(options.first, options.first + options.cases)
    cases = [make_case(options.seed, number, tiles) for number in numbers]
    on_threads = len(cases) // 5
    for dtype in DTYPES:
        base_of(dtype, options.device)  # before the threads, and complete before other streams
    if options.device == "cuda":
        torch.cuda.synchronize()
    tallies = [
        run_cases(cases[on_threads:], options.device),
        *run_on_threads(cases[:on_threads], options.device),
    ]
    wrong = [line for tally in tallies for line in tally.wrong]
    report = {
        "seed": options.seed,
        "first": options.first,
        "cases": sum(tally.cases for tally in tallies),
        "comparisons": sum(tally.comparisons for tally in tallies),
        "differences": len(wrong),
        "wrong": wrong[:5],
        "threads": THREADS,
        "forced_tiles": dict(sum((tally.served for tally in tallies), Counter())),
        **call_often(options.calls, options.device),
    }
    report["seconds"] = round(time.monotonic() - begin, 1)
    print(json.dumps(report, indent=1))
    if options.report:
        options.report.write_text(json.dumps(report), encoding="utf-8")
    return 1 if wrong or report["grown"] else 0


if __name__ == "__main__":
    sys.exit(main())
