"""The group `sides`: speed by short side, and how much slower a byte is than at the next side.

The report, the plot and tests/python/test_sides.py judge a record by what stands here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.records import SIDES_GROUP, Row

# Beyond it one more row or column, or one less, is a cliff. Medians of one kernel differ by a few
# per cent; the rest is what the choice of another kernel for the next side may cost.
LIMIT = 1.3

TALL, WIDE = "tall", "wide"

LineKey = tuple[str, str]


def line_of(row: Row) -> LineKey:
    """Dtype and direction: what neighbouring sides have in common."""
    rows, cols = row.shape
    return row.dtype, TALL if rows > cols else WIDE


def lines(rows: Iterable[Row], variant: str = "auto") -> dict[LineKey, dict[int, Row]]:
    """The measured rows of a variant by side in ascending order, for each dtype and direction."""
    found: dict[LineKey, dict[int, Row]] = {}
    for row in sorted(rows, key=lambda row: min(row.shape)):
        if row.group == SIDES_GROUP and row.variant == variant and row.gbps is not None:
            found.setdefault(line_of(row), {})[min(row.shape)] = row
    return found


@dataclass(frozen=True)
class Step:
    """Two neighbouring sides of one dtype and direction, and which of them moves bytes slower."""

    slower: Row
    faster: Row

    @property
    def slowdown(self) -> float:
        """Time per moved byte of the slower over that of the faster: 1 or more."""
        return (self.faster.gbps or 0.0) / (self.slower.gbps or 1.0)

    @property
    def text(self) -> str:
        """One clause: which side is how much slower than which."""
        return (
            f"{self.slower.label} takes {self.slowdown:.2f} times as long per byte as "
            f"side {min(self.faster.shape)}"
        )


def steps(rows: Iterable[Row], variant: str = "auto") -> list[Step]:
    """Every two measured sides that differ by one, the greatest slowdown first."""
    found = []
    for by_side in lines(rows, variant).values():
        for side, row in by_side.items():
            if side + 1 in by_side:
                pair = sorted((row, by_side[side + 1]), key=lambda row: row.gbps or 0.0)
                found.append(Step(*pair))
    return sorted(found, key=lambda step: step.slowdown, reverse=True)


def cliffs(rows: Iterable[Row], variant: str = "auto") -> list[Step]:
    """The steps beyond the limit, the worst first."""
    return [step for step in steps(rows, variant) if step.slowdown > LIMIT]
