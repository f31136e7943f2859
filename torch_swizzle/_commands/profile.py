"""The command `torch-swizzle profile`: an operator's counters beside the bank model's figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from .. import counters
from ..counters import Case, CountersError, Launch, Predicted, total

DIFFERS, NOT_MEASURED = 1, 3  # exit status

_STALLS = {"stall_short_sb": "short scoreboard", "stall_mio": "MIO throttle"}


def add_parser(commands: Any) -> None:
    """Add the command to `torch-swizzle`."""
    parser = commands.add_parser(
        "profile",
        help="run an operator under Nsight Compute and compare its counters with the bank model",
        description="Run one of this package's operators under Nsight Compute (ncu), and print "
        "what each shared-memory instruction took beside what the bank model predicts. Exit "
        "status: 0 if they agree, 1 if not, 3 if nothing could be measured.",
    )
    operators = parser.add_subparsers(required=True, metavar="OP")
    transpose = operators.add_parser("transpose", help="a transpose kernel of a given tile")
    transpose.add_argument(
        "--method", default="swizzled", help="naive, padded, swizzled or auto (default: swizzled)"
    )
    transpose.add_argument("--tile", default="scalar32", help="the tile policy (default: scalar32)")
    transpose.add_argument(
        "--shape",
        type=_shape,
        default=(8192, 8192),
        metavar="RxC",
        help="shape of the input, as 8192x8192 or 16x300x40 (default: 8192x8192)",
    )
    transpose.add_argument("--dtype", default="float32", help="dtype (default: float32)")
    probe = operators.add_parser("bank_probe", help="floats through shared memory, with conflicts")
    probe.add_argument("--ways", type=int, default=2, help="1, 2, 4, 8, 16 or 32 (default: 2)")
    probe.add_argument("--size", type=_size, default=8192, help="floats (default: 8192)")
    for operator in (transpose, probe):
        operator.add_argument("--json", action="store_true", help="print JSON")
        operator.add_argument(
            "--keep", type=Path, metavar="FOLDER", help="keep ncu's report and pages there"
        )
    transpose.set_defaults(run=_run, parser=transpose, case=_transpose_case)
    probe.set_defaults(run=_run, parser=probe, case=_probe_case)


def _size(text: str) -> int:
    size = int(text)
    if size < 1:
        raise argparse.ArgumentTypeError("expected at least one element")
    return size


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(_size(size) for size in text.lower().split("x"))
    except ValueError as error:
        raise argparse.ArgumentTypeError("expected sizes as 8192x8192") from error


def _transpose_case(options: argparse.Namespace) -> Case:
    return Case("transpose", options.shape, options.dtype, options.method, options.tile)


def _probe_case(options: argparse.Namespace) -> Case:
    return Case("bank_probe", (options.size,), ways=options.ways)


def _run(options: argparse.Namespace) -> int:
    case = options.case(options)
    try:
        predicted = counters.predict(case)
    except (ValueError, IndexError, NotImplementedError) as error:
        options.parser.error(str(error).splitlines()[0])
    cases = [case] if case.twin is None else [case, case.twin]
    try:
        launches = counters.measure(cases, options.keep)
    except CountersError as error:
        print(f"{options.parser.prog}: {error}", file=sys.stderr)
        print(_unmeasured(case, predicted, str(error), as_json=options.json))
        return NOT_MEASURED
    result = describe(case, predicted, launches, _gpu())
    if options.json:
        print(json.dumps(result))
    else:
        print("\n".join(_lines(case, predicted, launches[0], result)))
    return 0 if result["agrees"] else DIFFERS


def _gpu() -> dict[str, Any]:
    properties = torch.cuda.get_device_properties()
    return {"name": properties.name, "multiprocessors": properties.multi_processor_count}


def _unmeasured(case: Case, predicted: Sequence[Predicted], reason: str, *, as_json: bool) -> str:
    """The model's figures alone, labelled as such."""
    rows = counters.compare(Launch("", {}, ()), predicted)
    if as_json:
        return json.dumps(
            {
                "case": asdict(case),
                "measured": None,
                "reason": reason,
                "predicted": [
                    {"access": row.access, "width": row.width, **_named(total(row.predicted))}
                    for row in rows
                ],
            }
        )
    lines = [f"{case.label}: predicted by the bank model, not measured", ""]
    lines.append("access      width    requests  wavefronts       ideal")
    for row in rows:
        requests, wavefronts, ideal = total(row.predicted)
        lines.append(f"{row.access:<11} {row.width:>5}{requests:>12,}{wavefronts:>12,}{ideal:>12,}")
    return "\n".join(lines)


def describe(
    case: Case, predicted: Sequence[Predicted], launches: Sequence[Launch], gpu: dict[str, Any]
) -> dict[str, Any]:
    """Everything that is known of a measured case, as plain values.

    Args:
        case: What was launched.
        predicted: What the model says of it.
        launches: Its launch, and its twin's if it has one.
        gpu: Name and number of multiprocessors.
    """
    launch = launches[0]
    rows = counters.compare(launch, predicted)
    return {
        "case": asdict(case),
        "gpu": gpu["name"],
        "kernel": launch.kernel,
        "agrees": all(row.agreement != "no" for row in rows),
        "accesses": [
            {
                "access": row.access,
                "width": row.width,
                "instructions": len(row.measured),
                "agreement": row.agreement,
                "measured": _named(total(row.measured)),
                "predicted": _named(total(row.predicted)),
            }
            for row in rows
        ],
        "instructions": [
            {
                "address": one.address,
                "sass": one.sass,
                "access": one.access,
                "width": one.width,
                "measured": _named((one.requests, one.wavefronts, one.ideal)),
                "predicted": step and _named((step.requests, step.wavefronts, step.ideal)),
            }
            for one, step in counters.pair(launch, predicted)
        ],
        "hardware_conflicts": {
            name: {
                "load": one.metric("load_conflicts"),
                "store": one.metric("store_conflicts"),
            }
            for name, one in zip(("case", "twin"), launches, strict=False)
        },
        "cost": _cost(launch, gpu["multiprocessors"]),
    }


def _named(step: counters.Step) -> dict[str, int]:
    requests, wavefronts, ideal = step
    return {
        "requests": requests,
        "wavefronts": wavefronts,
        "ideal": ideal,
        "excess": wavefronts - ideal,
    }


def _cost(launch: Launch, multiprocessors: int) -> dict[str, Any]:
    """What the excess costs: an SM's shared memory takes one wavefront a cycle."""
    cycles = launch.metric("cycles")
    excess_cycles = launch.excess / multiprocessors
    samples = sum(launch.samples.values())
    return {
        "excess_wavefronts": launch.excess,
        "excess_cycles": excess_cycles,
        "kernel_cycles": cycles,
        "kernel_ns": launch.metric("time_ns"),
        "share": excess_cycles / cycles if cycles else None,
        "stalls": {
            name: launch.samples.get(key, 0) / samples if samples else None
            for key, name in _STALLS.items()
        },
    }


def _lines(
    case: Case, predicted: Sequence[Predicted], launch: Launch, result: dict[str, Any]
) -> list[str]:
    lines = [f"{case.label}, on {result['gpu']}", ""]
    lines.append(f"{'access':<13}{'bytes':>5}{'requests':>27}{'wavefronts':>15}{'ideal':>15}")
    rows = counters.compare(launch, predicted)
    for row in rows:
        measured, foreseen = (_cells(total(side)) for side in (row.measured, row.predicted))
        lines.append(f"{row.access:<13}{row.width:>5}  measured  {measured}")
        lines.append(f"{'':<18}  predicted {foreseen}  {_AGREEMENT[row.agreement]}")
    if not rows:
        lines.append("no instruction touches shared memory")
    lines += ["", f"{'instruction':<40}{_headings('requests', 'wavefronts', 'ideal', 'predicted')}"]
    for one, step in counters.pair(launch, predicted):
        line = f"{one.sass[:39]:<40}{_cells((one.requests, one.wavefronts, one.ideal), 12)}"
        lines.append(f"{line}{step.wavefronts:>12,}{step.ideal:>12,}" if step else line)
    return [*lines, "", *_noise_lines(result["hardware_conflicts"]), *_cost_lines(result["cost"])]


_AGREEMENT = {
    "each": "equal, each",
    "sum": "equal in sum",
    "requests": "equal requests",
    "no": "DIFFERENT",
}


def _cells(step: counters.Step, width: int = 15) -> str:
    return "".join(f"{number:>{width},}" for number in step)


def _headings(*names: str) -> str:
    return "".join(f"{name:>12}" for name in (*names, "its ideal"))


def _noise_lines(conflicts: dict[str, dict[str, float | None]]) -> list[str]:
    def shown(value: float | None) -> str:
        return "not counted" if value is None else f"{value:,.0f}"

    lines = []
    for what in ("load", "store"):
        twin = conflicts.get("twin")
        noise = "no such twin" if twin is None else shown(twin[what])
        lines.append(
            f"hardware counter, {what} conflicts: {shown(conflicts['case'][what])} "
            f"(the same without conflicts, which is noise: {noise})"
        )
    return lines


def _cost_lines(cost: dict[str, Any]) -> list[str]:
    share = cost["share"]
    of_kernel = "" if share is None else f" of {cost['kernel_cycles']:,.0f}, {share:.1%}"
    line = (
        f"cost: {cost['excess_wavefronts']:,} wavefronts in excess are "
        f"{cost['excess_cycles']:,.0f} cycles of an SM{of_kernel}"
    )
    stalls = [f"{name} {share:.1%}" for name, share in cost["stalls"].items() if share is not None]
    return [line, *([f"warp samples that wait: {', '.join(stalls)}"] if stalls else [])]
