"""Runs cases: builds the input, checks every arm bit by bit, times those that pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import benchmark

from bench import cpp_host, timing
from bench.arms import Arm, Call, NotApplicable, copy_call, copy_source, difference, eager
from bench.grid import HEADS, Case
from bench.places import mover
from bench.records import COPY, FAILED, HOST_GROUP, MEASURED, NOT_APPLICABLE, Row

Clock = Callable[..., dict[str, timing.Timing]]  # of calls, with `move` where they are to move

# Small calls whose host time is compared: ours and torch's statement for each.
HOST_CASES = (
    (
        Case(HOST_GROUP, "float32", (64, 64)),
        {"auto": "torch.ops.swizzle.transpose(x)", "torch": "x.t().contiguous()"},
    ),
    (
        Case(HOST_GROUP, "bfloat16", (2, 32, 4, 64), dims=HEADS),
        {
            "auto": "torch.ops.swizzle.permute(x, (0, 2, 1, 3))",
            "torch": "x.permute(0, 2, 1, 3).contiguous()",
        },
    ),
    (  # planned in boxes, the dearest plan there is
        Case(HOST_GROUP, "float16", (8, 33, 40, 55), dims=(0, 3, 2, 1)),
        {
            "auto": "torch.ops.swizzle.permute(x, (0, 3, 2, 1))",
            "torch": "x.permute(0, 3, 2, 1).contiguous()",
        },
    ),
)


def run_case(
    case: Case, arms: Sequence[Arm], device: torch.device, clock: Clock, *, copy: bool = True
) -> list[Row]:
    """One row per arm, the copy first; an arm that fails or cannot serve has a note, no time."""
    x = case.build(device)
    expected = eager(x, case.dims)
    calls: dict[str, Call] = {}
    rows: dict[str, Row] = {}
    if copy:
        source = copy_source(case, x)
        calls[COPY] = copy_call(source)
        rows[COPY] = _row(case, COPY, "y.copy_(x)")
        rows[COPY] = _checked(rows[COPY], calls[COPY], source)
    for arm in arms:
        row = _row(case, arm.variant, arm.op)
        try:
            calls[arm.variant] = arm.prepare(case, x)
            row = _checked(row, calls[arm.variant], expected, arm.keeps_nan_payloads)
        except NotApplicable as reason:
            row = replace(row, status=NOT_APPLICABLE, note=str(reason))
        except Exception as error:  # whatever an arm raises is a result of the benchmark
            status = NOT_APPLICABLE if arm.is_peer else FAILED
            row = replace(row, status=status, note=_one_line(error))
        rows[arm.variant] = row
    del expected
    good = {name: call for name, call in calls.items() if rows[name].checked}
    timings = clock(good, move=mover(x))
    copy_ms = timings[COPY].ms if COPY in timings else None
    return [
        _timed(row, timings[name], case, copy_ms) if name in timings else row
        for name, row in rows.items()
    ]


def failed_rows(case: Case, arms: Sequence[Arm], error: Exception) -> list[Row]:
    """The rows of a case that could not be run at all."""
    note = _one_line(error)
    return [replace(_row(case, arm.variant, arm.op), status=FAILED, note=note) for arm in arms]


def _row(case: Case, variant: str, op: str) -> Row:
    return Row(case.dtype, case.shape, case.arrangement, case.group, op, variant)


def _checked(row: Row, call: Call, expected: torch.Tensor, keeps_nan_payloads: bool = True) -> Row:
    wrong = difference(call(), expected, keeps_nan_payloads=keeps_nan_payloads)
    return replace(row, status=FAILED, note=wrong) if wrong else replace(row, checked=True)


def _timed(row: Row, timed: timing.Timing, case: Case, copy_ms: float | None) -> Row:
    return replace(
        row,
        status=MEASURED,
        ms=timed.ms,
        ms_spread=timed.spread_ms,
        gbps=case.moved_bytes / timed.ms / 1e6,
        share_of_copy=copy_ms / timed.ms if copy_ms else None,
        repetitions=timed.repetitions,
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def run_host(
    device: torch.device, *, quick: bool = False
) -> tuple[list[Row], list[benchmark.Compare]]:
    """Host time of small calls, ours against torch's, from Python and the first from C++.

    Also the comparisons ready to print, of those from Python.
    """
    rows: list[Row] = []
    comparisons = []
    for case, statements in HOST_CASES:
        x = case.build(device)
        variables: dict[str, Any] = {"torch": torch, "x": x}
        wrong = difference(eval(statements["auto"], variables), eager(x, case.dims))
        timings, comparison = timing.time_host(
            statements,
            variables,
            label=f"host time of one call, {case.label}, {device.type}",
            rounds=6 if quick else 30,
            min_run_s=0.05,
        )
        comparisons.append(comparison)
        for variant, statement in statements.items():
            timed = timings[variant]
            failed = wrong if variant == "auto" else None
            rows.append(
                replace(
                    _row(case, variant, statement),
                    status=FAILED if failed else MEASURED,
                    checked=failed is None,
                    ms=timed.ms,
                    ms_spread=timed.spread_ms,
                    repetitions=timed.repetitions,
                    note=failed or "",
                )
            )
    return rows + _run_host_from_cpp(device, quick=quick), comparisons


def _run_host_from_cpp(device: torch.device, *, quick: bool) -> list[Row]:
    """The first of the host cases, called from C++."""
    case = HOST_CASES[0][0]
    rows = {
        "auto": _row(case, "auto", "C++, swizzle::transpose(x)"),
        "torch": _row(case, "torch", "C++, x.t().contiguous()"),
    }
    try:
        timings = cpp_host.time_calls(
            device, case.shape[0], rounds=3 if quick else 15, calls=1000 if quick else 10000
        )
    except RuntimeError as error:
        note = _one_line(error)
        return [replace(row, status=FAILED, note=note) for row in rows.values()]
    return [
        replace(
            row,
            status=MEASURED,
            checked=True,
            ms=timings[variant].ms,
            ms_spread=timings[variant].spread_ms,
            repetitions=timings[variant].repetitions,
        )
        for variant, row in rows.items()
    ]
