"""`python -m bench.compare A B`: what changed between two recorded results (files or folders)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.records import Record, Row, geometric_mean, load

THRESHOLD = 0.02  # relative changes below this are noise between runs

RowKey = tuple[str, str, tuple[int, ...], str, str, str]


@dataclass(frozen=True)
class Change:
    """One row in both results; `speedup` is time before over time after."""

    before: Row
    after: Row
    speedup: float

    @property
    def noise(self) -> float:
        """Relative half width of the two spreads together."""
        spreads = [(row.ms_spread or 0.0) / (row.ms or 1.0) for row in (self.before, self.after)]
        return sum(spreads) / 2


def key(row: Row) -> RowKey:
    """What makes two rows comparable."""
    return (row.group, row.dtype, row.shape, row.layout, row.op, row.variant)


def changes(before: Record, after: Record) -> list[Change]:
    """Rows measured in both, the greatest slowdown first."""
    old = {key(row): row for row in before.rows if row.ms}
    found = [
        Change(old[key(row)], row, (old[key(row)].ms or 0.0) / row.ms)
        for row in after.rows
        if row.ms and key(row) in old
    ]
    return sorted(found, key=lambda change: change.speedup)


def is_significant(change: Change, threshold: float) -> bool:
    """Beyond the threshold and beyond the spread of the two measurements."""
    return abs(change.speedup - 1) > max(threshold, change.noise)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the comparison; 1 only if the results cannot be read or have no row in common."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("before", type=Path, metavar="A")
    parser.add_argument("after", type=Path, metavar="B")
    parser.add_argument("--threshold", type=float, default=THRESHOLD, help="relative change shown")
    options = parser.parse_args(argv)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    try:
        before, after = load(options.before), load(options.after)
    except ValueError as error:
        console.print(f"bench.compare: {error}", markup=False)
        return 1
    found = changes(before, after)
    if not found:
        console.print("bench.compare: the two results have no measured row in common.")
        return 1
    for name, record in (("A", before), ("B", after)):
        stamp = record.stamp
        console.print(
            f"{name}: {stamp['gpu'] or 'CPU'}, {stamp['date']}, torch {stamp['torch']}, "
            f"source {stamp['source_hash'][:12]}"
        )
    shown = [change for change in found if is_significant(change, options.threshold)]
    console.print(_table(shown))
    console.print(
        f"{len(found)} rows in both, {len(shown)} changed beyond {options.threshold:.0%} and their "
        f"spread, {_only(before, after)} only in A, {_only(after, before)} only in B"
    )
    console.print(_means(found))
    return 0


def _only(these: Record, those: Record) -> int:
    measured = {key(row) for row in those.rows if row.ms}
    return sum(row.ms is not None and key(row) not in measured for row in these.rows)


def _table(shown: Sequence[Change]) -> Table:
    table = Table(title="changed rows, slowdowns first")
    table.add_column("group")
    table.add_column("case", no_wrap=True)
    table.add_column("variant")
    for title in ("ms A", "ms B", "A / B", "share A", "share B"):
        table.add_column(title, justify="right")
    for change in shown:
        row = change.after
        table.add_row(
            row.group,
            row.label,
            row.variant,
            f"{change.before.ms:.4f}",
            f"{row.ms:.4f}",
            f"[{'green' if change.speedup > 1 else 'red'}]{change.speedup:.3f}[/]",
            _share(change.before),
            _share(row),
        )
    return table


def _share(row: Row) -> str:
    return "-" if row.share_of_copy is None else f"{row.share_of_copy:.3f}"


def _means(found: Sequence[Change]) -> Table:
    table = Table(title="geometric means of A / B (above 1: B is faster)")
    table.add_column("group")
    table.add_column("variant")
    table.add_column("rows", justify="right")
    table.add_column("A / B", justify="right")
    for group in dict.fromkeys(change.after.group for change in found):
        for variant in dict.fromkeys(change.after.variant for change in found):
            speedups = [
                change.speedup
                for change in found
                if change.after.group == group and change.after.variant == variant
            ]
            mean = geometric_mean(speedups)
            if mean is not None:
                table.add_row(group, variant, str(len(speedups)), f"{mean:.3f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
