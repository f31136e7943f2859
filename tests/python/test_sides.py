"""No cliff between neighbouring short sides, asked of the recorded benchmark.

The figures are those of bench/results/sides.json, which `python -m bench --variant auto --group
sides --budget 0.04 --out bench/results` makes on a GPU; each result was checked bit by bit before
it was timed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import arms, grid, report, sides
from bench.records import COPY, FAILED, PEERS, RESULTS, SIDES_GROUP, Record, Row, load

RECORD = RESULTS / f"{SIDES_GROUP}.json"
WORST_SHOWN = 10
CASES = grid.GROUPS[SIDES_GROUP]

Speed = Callable[[int], float]


def judge(rows: list[Row]) -> None:
    """Fails where a side was not measured and checked, and where it is a cliff beside another."""
    good = {
        (row.dtype, row.shape)
        for row in rows
        if row.group == SIDES_GROUP and row.variant == "auto" and row.checked and row.gbps
    }
    lacking = [case.label for case in CASES if (case.dtype, case.shape) not in good]
    assert not lacking, f"{len(lacking)} sides without a result: {'; '.join(lacking[:WORST_SHOWN])}"
    cliffs = sides.cliffs(rows)
    worst = "; ".join(step.text for step in cliffs[:WORST_SHOWN])
    assert not cliffs, f"{len(cliffs)} steps beyond {sides.LIMIT}: {worst}"


def made_record(speed: Speed, dtype: str = "uint8", direction: str = sides.TALL) -> list[Row]:
    """A row per case of the group: 1000 GB/s, in one dtype and direction what `speed` gives."""
    rows = []
    for case in CASES:
        row = Row(case.dtype, case.shape, case.arrangement, SIDES_GROUP, "transpose", "auto")
        is_line = sides.line_of(row) == (dtype, direction)
        gbps = speed(min(case.shape)) if is_line else 1000.0
        ms = case.moved_bytes / gbps / 1e6
        share = gbps / 2000.0
        rows.append(dataclasses.replace(row, checked=True, ms=ms, gbps=gbps, share_of_copy=share))
    return rows


def test_no_side_is_a_cliff_beside_its_neighbour() -> None:
    if not RECORD.exists():
        pytest.skip("no GPU has recorded the group yet")
    judge(load(RECORD).rows)


def test_level_and_gently_sloping_records_pass() -> None:
    judge(made_record(lambda side: 1000.0))
    judge(made_record(lambda side: 4000.0 * 0.96**side))
    judge(made_record(lambda side: 1000.0 / (1.29 if side == 64 else 1.0)))


@pytest.mark.parametrize("direction", [sides.TALL, sides.WIDE])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_a_slow_side_is_named_beside_both_neighbours(dtype: str, direction: str) -> None:
    rows = made_record(lambda side: 1000.0 / (1.31 if side == 65 else 1.0), dtype, direction)
    found = sides.cliffs(rows)
    assert {min(step.faster.shape) for step in found} == {64, 66}
    assert {min(step.slower.shape) for step in found} == {65}
    slow = next(row.label for row in rows if 65 in row.shape and (row.gbps or 0) < 1000)
    with pytest.raises(AssertionError, match=r"2 steps beyond 1\.3: ") as failure:
        judge(rows)
    assert f"{slow} takes 1.31 times as long per byte as side 64" in str(failure.value)


@pytest.mark.parametrize(("low", "high"), [(1000.0, 500.0), (500.0, 1000.0)])
@pytest.mark.parametrize("edge", [1, 32, 129])
def test_a_cliff_is_seen_from_either_side(edge: int, low: float, high: float) -> None:
    (step,) = sides.cliffs(made_record(lambda side: low if side <= edge else high))
    assert {min(row.shape) for row in (step.slower, step.faster)} == {edge, edge + 1}
    assert (step.slower.gbps, step.faster.gbps, step.slowdown) == (500.0, 1000.0, 2.0)


def test_the_worst_step_is_named_first() -> None:
    found = sides.cliffs(made_record(lambda side: {40: 700.0, 90: 200.0}.get(side, 1000.0)))
    assert [min(step.slower.shape) for step in found] == [90, 90, 40, 40]


def test_other_dtypes_and_directions_are_no_neighbours() -> None:
    rows = made_record(lambda side: 100.0, "float16", sides.WIDE)
    assert not sides.cliffs(rows)
    assert len(sides.steps(rows)) == len(CASES) - 6


@pytest.mark.parametrize(
    "change",
    [
        {"status": FAILED, "checked": False, "ms": None, "gbps": None, "note": "wrong bits"},
        {"variant": COPY},
    ],
)
def test_a_side_without_a_result_fails(change: dict[str, object]) -> None:
    rows = made_record(lambda side: 1000.0)
    lost = rows[64].label
    rows[64] = dataclasses.replace(rows[64], **change)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="1 sides without a result: ") as failure:
        judge(rows)
    assert lost in str(failure.value)


def test_every_side_has_about_32_mib_whatever_its_length() -> None:
    assert len(CASES) == 3 * 2 * 130
    for case in CASES:
        side, length = sorted(case.shape)
        assert length % 16 == 0
        room = grid.SIDES_BYTES - case.result_bytes
        assert 0 <= room < 16 * side * case.element_bytes, case.label


def test_report_shows_the_greatest_step_and_a_line_per_side() -> None:
    rows = made_record(lambda side: 500.0 if side == 100 else 1000.0, "float16", sides.WIDE)
    stamp = {"gpu": "G", "driver": "1", "torch": "2", "cuda": "13", "date": "2030", "method": "m"}
    record = Record(stamp, rows)
    summary = report.summary_text([record], None, plots="plots", details="RESULTS.md")
    greatest = "float16 (100, 167760) takes 2.00 times as long per byte as side 99"
    assert "**Neighbouring sides**, 774 pairs of short sides that differ by one" in summary
    assert greatest in summary
    assert "| sides | all | 780 | 0.50 | - | 0.25 |" in summary
    assert "(plots/sides.svg)" in summary
    details = report.details_text([record])
    assert "| float16 wide | 100 | 99 | 2.00 |" in details
    assert "| uint8 tall | 1 | 2 | 1.00 |" in details
    assert "| 100 | 0.50 | 0.50 | 0.50 | 0.25 | 0.50 | 0.50 |" in details
    assert len(details.splitlines()) < 200


def test_report_without_the_group_does_not_mention_it() -> None:
    thin = load(RESULTS / "thin.json")
    summary = report.summary_text([thin], None, plots="plots", details="RESULTS.md")
    assert "sides.svg" not in summary
    assert "Neighbouring" not in summary


def test_sides_are_drawn_against_the_share_in_a_plot_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")
    from bench import plots

    rows = made_record(lambda side: 1000.0)
    assert plots.draw(rows, tmp_path) == [tmp_path / plots.SIDES_PLOT]
    drawn = (tmp_path / plots.SIDES_PLOT).read_text()
    assert all(
        f"{dtype}, {way}" in drawn
        for dtype in ("uint8", "float32")
        for way in (sides.TALL, sides.WIDE)
    )


def test_sides_are_compiled_as_peers_alone() -> None:
    variants = [arm.variant for arm in arms.arms_for(CASES[0])]
    assert [variant for variant in variants if variant in PEERS] == ["torch"]
