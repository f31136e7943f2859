"""`python -m bench.profile`: Nsight Compute's shared-memory counters beside the bank model.

Each layout runs the article's case on the article's tile, and the tile of 16-byte accesses, under
one `ncu`: warmed up first, then one launch between cudaProfilerStart and Stop.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.grid import ARTICLE_CASE
from bench.records import PROFILE_NAME, RESULTS
from torch_swizzle import counters
from torch_swizzle.counters import Case, CountersError, Launch

METHODS = ("naive", "padded", "swizzled")
TILES = ("scalar32", "vector")
WORST_EXCESS = 31  # wavefronts beyond the first, where 32 lanes meet in one bank
NOISE = 0.01  # what arbitration adds at most, as a share of the worst layout's conflicts
OPTIONAL = ("cycles", "source_wavefronts", "source_wavefronts_ideal")


def main(argv: Sequence[str] | None = None) -> int:
    """Profiles, prints the table, writes the record; 1 and a sentence if that is impossible."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tile", nargs="+", default=list(TILES))
    parser.add_argument("--out", type=Path, default=RESULTS / PROFILE_NAME)
    options = parser.parse_args(argv)
    cases = [article_case(method, tile) for tile in options.tile for method in options.method]
    try:
        launches = counters.measure(cases)
        rows = [make_row(case, launch) for case, launch in zip(cases, launches, strict=True)]
    except CountersError as error:
        print(f"bench.profile: {error}")
        return 1
    from bench.stamp import make_stamp

    stamp = make_stamp("Nsight Compute, clocks not locked, one launch after another", on_gpu=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    record = {"stamp": stamp, "rows": rows}
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print_table(rows)
    print(f"written: {options.out}")
    return 0


def article_case(method: str, tile: str) -> Case:
    """The article's case on one layout and tile."""
    return Case("transpose", ARTICLE_CASE.shape, ARTICLE_CASE.dtype, method, tile)


def make_row(case: Case, launch: Launch) -> dict[str, Any]:
    """The counters of a launch beside the model's prediction.

    Raises:
        CountersError: a counter is missing.
    """
    counted: dict[str, float] = {}
    for name, metric in counters.METRICS.items():
        value = launch.metric(name)
        if value is not None:
            counted[name] = value
        elif name not in OPTIONAL:
            raise CountersError(f"ncu's report lacks the metric {metric}.")
    return {"tile": case.tile, "method": case.method, **counted, **prediction(case)}


def prediction(case: Case) -> dict[str, int]:
    """What the bank model predicts of a case; asynchronous copies are stores here."""
    steps = counters.predict(case)
    result = {}
    for what in ("load", "store"):
        own = [one for one in steps if (one.access == "load") == (what == "load")]
        result |= {
            f"model_{what}_conflicts": sum(one.wavefronts - one.ideal for one in own),
            f"model_{what}_wavefronts": sum(one.wavefronts for one in own),
            f"model_{what}_instructions": sum(one.requests for one in own),
        }
    return result


def agrees(row: dict[str, Any], what: str) -> bool:
    """Whether conflicts of "load" or "store" are as predicted, arbitration noise aside.

    The noise allowed is a share of what the same accesses would cost with all lanes in one bank.
    """
    largest = WORST_EXCESS * row[f"model_{what}_instructions"]
    off = float(abs(row[f"{what}_conflicts"] - row[f"model_{what}_conflicts"]))
    return bool(off <= NOISE * largest)


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Counters and prediction side by side, a line per layout and direction."""
    from rich.table import Table

    from bench.tables import make_console

    table = Table(title="shared memory: counted by Nsight Compute | predicted by the bank model")
    for title in ("tile", "layout", "access"):
        table.add_column(title)
    for title in ("instructions", "wavefronts", "conflicts", "as predicted", "ms", "DRAM %"):
        table.add_column(title, justify="right")
    for row in rows:
        for what in ("store", "load"):
            pairs = [
                f"{row[f'{what}_{name}']:,.0f} | {row[f'model_{what}_{name}']:,}"
                for name in ("instructions", "wavefronts", "conflicts")
            ]
            table.add_row(
                row["tile"],
                row["method"],
                what,
                *pairs,
                "yes" if agrees(row, what) else "[red]no[/]",
                f"{row['time_ns'] / 1e6:.3f}",
                f"{row['dram_percent']:.1f}",
            )
    make_console().print(table)


if __name__ == "__main__":
    sys.exit(main())
