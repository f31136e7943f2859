"""Recorded results: rows, stamps, JSON files, geometric means. Plain Python, no torch."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PLOTS = ROOT / "bench" / "plots"
SCRATCH = ROOT / "build" / "bench"  # what is not to be recorded; git ignores build/
PROFILE_NAME = "profile.json"
CONTRACT_NAME = "contract.json"
ACCELERATE_NAME = "accelerate.json"
L2_NEIGHBOUR_NAME = "l2_neighbour.json"
REMOVAL_NAME = "removal.json"

MEASURED = "measured"
FAILED = "failed"
NOT_APPLICABLE = "not applicable"

COPY = "copy"
CONTIGUOUS_NAME = "contiguous"
ARTICLE_GROUP = "article"
GRID_GROUP = "grid"
RANDOM_GROUP = "permute-random"
SIDES_GROUP = "sides"
MANY_GROUPS = (RANDOM_GROUP, SIDES_GROUP)  # of too many cases to compile or draw each
HOST_GROUP = "host"
OURS = ("auto", "naive", "padded", "swizzled")
PEERS = ("torch", "compile", "triton", "geam", "cutensor")
VARIANTS = (COPY, *OURS, *PEERS)  # the order of columns

CaseKey = tuple[str, str, tuple[int, ...], str]


@dataclass(frozen=True)
class Row:
    """One variant on one case. Times in milliseconds, rates in 10^9 bytes a second.

    `checked` says that the result was compared bit by bit with torch's before it was timed. A row
    that was not measured has no times, and `note` says why.
    """

    dtype: str
    shape: tuple[int, ...]
    layout: str
    group: str
    op: str
    variant: str
    status: str = MEASURED
    checked: bool = False
    ms: float | None = None
    ms_spread: float | None = None
    gbps: float | None = None
    share_of_copy: float | None = None
    repetitions: int = 0
    note: str = ""

    @property
    def case(self) -> CaseKey:
        """What was transposed."""
        return (self.group, self.dtype, self.shape, self.layout)

    @property
    def label(self) -> str:
        """dtype, shape and, unless contiguous, layout."""
        return case_label(self.dtype, self.shape, self.layout)


@dataclass(frozen=True)
class Record:
    """One results file: where and how it was measured, and its rows."""

    stamp: dict[str, Any]
    rows: list[Row] = field(default_factory=list)


def case_label(dtype: str, shape: Iterable[int], layout: str) -> str:
    """How a case is called in tables, plots and progress."""
    name = f"{dtype} ({', '.join(str(size) for size in shape)})"
    return name if layout == CONTIGUOUS_NAME else f"{name} {layout}"


def save(record: Record, path: Path) -> None:
    """Writes a results file, one row a line so that differences read well."""
    rows = ",\n".join("  " + json.dumps(_plain(row)) for row in record.rows)
    stamp = json.dumps(record.stamp, indent=1).replace("\n", "\n ")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{\n "stamp": {stamp},\n "rows": [\n{rows}\n ]\n}}\n', encoding="utf-8")


def _plain(row: Row) -> dict[str, Any]:
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in dataclasses.asdict(row).items()
    }


def load(path: Path) -> Record:
    """Reads one results file, or each results file of a folder as one record with the first stamp.

    Raises:
        ValueError: if there is no such file or it holds something else.
    """
    if path.is_dir():
        parts = load_folder(path)
        if not parts:
            raise ValueError(f"no results (*.json) in {path}")
        return Record(parts[0].stamp, [row for part in parts for row in part.rows])
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        rows = [Row(**{**row, "shape": tuple(row["shape"])}) for row in data["rows"]]
        return Record(dict(data["stamp"]), rows)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a results file: {error!r}") from error


def load_folder(folder: Path) -> list[Record]:
    """The records of a folder, by file name; those with other rows than `Row` are none."""
    others = (PROFILE_NAME, CONTRACT_NAME, ACCELERATE_NAME, L2_NEIGHBOUR_NAME, REMOVAL_NAME)
    return [load(path) for path in sorted(folder.glob("*.json")) if path.name not in others]


def by_case(rows: Iterable[Row]) -> dict[CaseKey, dict[str, Row]]:
    """Rows by case and variant, in their order; host times left out."""
    cases: dict[CaseKey, dict[str, Row]] = {}
    for row in rows:
        if row.group != HOST_GROUP:
            cases.setdefault(row.case, {})[row.variant] = row
    return cases


def variants_of(rows: Iterable[Row]) -> list[str]:
    """The variants that occur, in the order of columns."""
    present = {row.variant for row in rows}
    return [variant for variant in VARIANTS if variant in present] + sorted(present - set(VARIANTS))


def best_peer(variants: dict[str, Row]) -> Row | None:
    """The fastest peer of a case."""
    peers = [row for row in variants.values() if row.variant in PEERS and row.ms is not None]
    return min(peers, key=lambda row: row.ms or math.inf, default=None)


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers; None of none."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None
