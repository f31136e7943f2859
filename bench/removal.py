"""`python -m bench.removal`: what each kernel's removal would cost the groups that it serves.

Times every case of a group with every tile that can serve it. A group without a kernel is as fast
as the best of the other tiles, case by case: a choice that no rule makes better, so what is lost
is the least that it can be. Writes bench/results/removal.json and prints the table.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

import torch_swizzle  # noqa: F401  (registers the operators)
from bench import timing
from bench.arms import Call, copy_call, copy_source, difference
from bench.contract import TILES_WITH_LAYOUT
from bench.grid import GROUPS, Case
from bench.places import mover
from bench.records import COPY, RANDOM_GROUP, REMOVAL_NAME, RESULTS, geometric_mean

# The kernels and the tiles that are theirs.
KERNELS = {
    "tile": TILES_WITH_LAYOUT,
    "window": ("window",),
    "flat": ("flat",),
    "scatter": ("scatter",),
    "deinterleave": ("deinterleave",),
    "box": ("box",),
    "direct": ("direct",),
}
DEFAULT_GROUPS = ("thin", "tiny-batches", "small", "large-odd", "permute", RANDOM_GROUP)


@dataclass(frozen=True)
class CaseTimes:
    """Times in milliseconds of a copy of the same bytes, `auto`, and every tile that serves."""

    group: str
    label: str
    ms: dict[str, float]

    def share(self, without: Iterable[str] = ()) -> float:
        """Share of the copy's speed of the fastest tile that is left; 0 if none is."""
        tiles = self.ms.keys() - {COPY, "auto"} - set(without)
        return max((self.ms[COPY] / self.ms[tile] for tile in tiles), default=0.0)


@dataclass(frozen=True)
class Loss:
    """What a group loses without a kernel: geometric means of shares of a copy."""

    group: str
    kernel: str
    cases: int
    share: float
    share_without: float

    @property
    def points(self) -> float:
        """Points of a hundred; all of them where a case would be left unserved."""
        return 100 * (self.share - self.share_without)


def losses(rows: Iterable[CaseTimes]) -> list[Loss]:
    """The loss of every group without every kernel that serves a case of it."""
    by_group: dict[str, list[CaseTimes]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    found = []
    for group, cases in by_group.items():
        share = geometric_mean(case.share() for case in cases) or 0.0
        for kernel, tiles in KERNELS.items():
            if not any(tile in case.ms for case in cases for tile in tiles):
                continue
            left = [case.share(without=tiles) for case in cases]
            share_without = geometric_mean(left) if min(left) > 0 else None
            found.append(Loss(group, kernel, len(cases), share, share_without or 0.0))
    return found


def table(found: Sequence[Loss]) -> str:
    """Markdown: points that a group (rows) loses without a kernel (columns)."""
    kernels = [kernel for kernel in KERNELS if any(loss.kernel == kernel for loss in found)]
    lines = [
        "| group | cases | best of all | " + " | ".join(kernels) + " |",
        "| --- " * (3 + len(kernels)) + "|",
    ]
    for group in dict.fromkeys(loss.group for loss in found):
        own = {loss.kernel: loss for loss in found if loss.group == group}
        any_loss = next(iter(own.values()))
        cells = [f"{own[kernel].points:.1f}" if kernel in own else "-" for kernel in kernels]
        lines.append(
            f"| {group} | {any_loss.cases} | {any_loss.share:.3f} | " + " | ".join(cells) + " |"
        )
    return "\n".join(lines)


def _call_tile(x: torch.Tensor, order: tuple[int, ...], tile: str) -> torch.Tensor:
    return torch.ops.swizzle._transpose_with(x.permute(order), "auto", tile)


def time_case(case: Case, device: torch.device, budget_s: float) -> CaseTimes:
    """Times of one case; every tile's result is compared with torch's bit by bit first.

    Raises:
        RuntimeError: a tile's result is wrong.
    """
    x = case.build(device)
    dims = case.dims or (*range(x.dim() - 2), x.dim() - 1, x.dim() - 2)
    # The operator that takes a tile swaps the last two dimensions.
    order = (*dims[:-2], dims[-1], dims[-2])
    expected = x.permute(dims).contiguous()
    calls: dict[str, Call] = {
        COPY: copy_call(copy_source(case, x)),
        "auto": lambda: torch.ops.swizzle.permute(x, dims),
    }
    for tile in (tile for tiles in KERNELS.values() for tile in tiles):
        call = functools.partial(_call_tile, x, order, tile)
        try:
            result = call()
        except ValueError:
            continue  # the tile does not serve this view
        wrong = difference(result, expected)
        if wrong:
            raise RuntimeError(f"{tile} on {case.label}: {wrong}")
        calls[tile] = call
    clock = timing.time_kernels if device.type == "cuda" else timing.time_cpu
    timings = clock(calls, budget_s=budget_s, move=mover(x))
    return CaseTimes(case.group, case.label, {name: timed.ms for name, timed in timings.items()})


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table, writes the record; 1 and a sentence without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m bench.removal", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / REMOVAL_NAME)
    parser.add_argument("--group", nargs="+", choices=list(GROUPS), default=DEFAULT_GROUPS)
    parser.add_argument("--budget", type=float, default=0.03, help="seconds a case")
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        print("bench.removal: there is no CUDA device on which kernels could be compared")
        return 1
    from bench.stamp import make_stamp

    stamp = make_stamp(timing.METHOD, on_gpu=True)
    device = torch.device("cuda")
    rows = [
        time_case(case, device, options.budget) for group in options.group for case in GROUPS[group]
    ]
    print(table(losses(rows)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"stamp": stamp, "rows": [asdict(row) for row in rows]}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
    print(f"written: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
