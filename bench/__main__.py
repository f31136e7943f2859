"""`python -m bench`: our transposes, torch's and a copy compared, each result checked first."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import torch_swizzle  # noqa: F401  (registers the operators)
from bench import arms, timing
from bench.grid import CPU_GROUPS, DEFAULT_GROUPS, GROUPS, Case, select
from bench.model import tile_model
from bench.plots import draw
from bench.records import (
    COPY,
    FAILED,
    HOST_GROUP,
    NOT_APPLICABLE,
    PLOTS,
    RESULTS,
    SCRATCH,
    VARIANTS,
    Record,
    Row,
    load_folder,
    save,
)
from bench.runner import Clock, failed_rows, run_case, run_host
from bench.stamp import library_hash, make_stamp, tree_hash
from bench.tables import make_console, model_table, share_table, share_text

ELEMENT_BYTES = (1, 2, 4, 8, 16)
NO_GPU = "No GPU found: the comparison runs on CPU tensors, kernel figures are the bank model's."


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; `group` and `out` are None where their default depends on the machine."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--group",
        nargs="+",
        choices=[*GROUPS, HOST_GROUP, "all"],
        help=f"groups of cases (default: {' '.join(DEFAULT_GROUPS)} {HOST_GROUP})",
    )
    parser.add_argument("--dtype", nargs="+", default=[], help="only cases of these dtypes")
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, help="only these and the copy")
    parser.add_argument("--peers", action="store_true", help="Triton, geam, cuTENSOR as well")
    parser.add_argument("--host", action="store_true", help="the host time of one call as well")
    parser.add_argument("--quick", action="store_true", help="fewer cases and repetitions")
    parser.add_argument("--cpu", action="store_true", help="CPU tensors although there is a GPU")
    parser.add_argument("--budget", type=float, help="seconds of measuring per case")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for <group>.json and plots/ (default: bench/results if whole groups run on a "
        "GPU, else build/bench)",
    )
    options = parser.parse_args(argv)
    if options.out is not None and options.out.suffix:
        parser.error("--out is a folder; each group has a file of its own in it")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns 1 if a variant failed or gave a wrong result."""
    options = parse_arguments(argv)
    console = make_console()
    on_gpu = torch.cuda.is_available() and not options.cpu
    if not torch.cuda.is_available():
        console.print(NO_GPU)
    out = _out_folder(options, on_gpu)
    if out.resolve() == RESULTS and not on_gpu:
        console.print("bench/results holds GPU results only: choose another --out.")
        return 2
    if on_gpu and library_hash() != tree_hash():
        console.print("The loaded library was not built from this tree: results carry its hash.")

    rows = _run(options, on_gpu, out, console)
    for group in dict.fromkeys(row.group for row in rows if row.group != HOST_GROUP):
        console.print(share_table([row for row in rows if row.group == group], group))
    _print_model(console)
    recorded = out.resolve() == RESULTS
    drawn = draw(
        [row for record in load_folder(out) for row in record.rows],
        PLOTS if recorded else out / "plots",
    )
    console.print(f"results: {out}; plots: {', '.join(map(str, drawn)) or 'none'}", soft_wrap=True)
    return _print_failures(rows, console)


def _groups(options: argparse.Namespace, on_gpu: bool) -> list[str]:
    """The groups to run, each once."""
    known = [*(GROUPS if on_gpu else CPU_GROUPS), HOST_GROUP]
    asked = options.group or [*DEFAULT_GROUPS, HOST_GROUP]
    if options.host:
        asked = [*asked, HOST_GROUP]
    return known if "all" in asked else [group for group in known if group in asked]


def _out_folder(options: argparse.Namespace, on_gpu: bool) -> Path:
    if options.out is not None:
        return Path(options.out)
    whole = on_gpu and not (options.dtype or options.variant or options.quick)
    return RESULTS if whole else SCRATCH


def _run(options: argparse.Namespace, on_gpu: bool, out: Path, console: Console) -> list[Row]:
    """Runs all groups, with a progress bar; each group's file is complete when its group is."""
    groups = _groups(options, on_gpu)
    device = torch.device("cuda" if on_gpu else "cpu")
    cases = select(groups, options.dtype, on_gpu=on_gpu, quick=options.quick)
    if on_gpu:
        budget_s = options.budget or (0.1 if options.quick else 1.0)
        clock: Clock = functools.partial(timing.time_kernels, budget_s=budget_s)
    else:
        budget_s = options.budget or (0.05 if options.quick else 0.2)
        clock = functools.partial(timing.time_cpu, budget_s=budget_s)
    stamp = make_stamp(timing.METHOD if on_gpu else timing.CPU_METHOD, on_gpu=on_gpu)

    rows: list[Row] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("benchmark", total=len(cases))
        for group in dict.fromkeys(case.group for case in cases):
            of_group: list[Row] = []
            for case in (case for case in cases if case.group == group):
                progress.update(task, description=case.label)
                of_group += _run_one(case, options, device, clock)
                # A run that is cut short leaves its rows here, and a complete record as it was.
                save(Record(stamp, of_group), out / f"{group}.json.part")
                progress.advance(task)
                if not console.is_terminal:
                    progress.console.print(_progress_line(case, of_group))
            (out / f"{group}.json.part").replace(out / f"{group}.json")
            rows += of_group
    if HOST_GROUP in groups:
        host_rows, comparisons = run_host(device, quick=options.quick)
        for comparison in comparisons:
            comparison.print()
        host_stamp: dict[str, Any] = {**stamp, "method": timing.HOST_METHOD}
        save(Record(host_stamp, host_rows), out / f"{HOST_GROUP}.json")
        rows += host_rows
    return rows


def _run_one(
    case: Case, options: argparse.Namespace, device: torch.device, clock: Clock
) -> list[Row]:
    chosen = [
        arm
        for arm in arms.arms_for(case, peers=options.peers and device.type == "cuda")
        if (device.type == "cuda" or arm.cpu)
        and (options.variant is None or arm.variant in options.variant)
    ]
    try:
        return run_case(case, chosen, device, clock)
    except Exception as error:  # a case that cannot run at all must not hide the others
        return failed_rows(case, chosen, error)
    finally:
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _progress_line(case: Case, rows: Sequence[Row]) -> str:
    shares = [
        f"{row.variant} {share_text(row)}"
        for row in rows
        if row.case == (case.group, case.dtype, case.shape, case.arrangement)
        and row.variant != COPY
    ]
    return f"{case.label}: {', '.join(shares)}"


def _print_model(console: Console) -> None:
    models = {
        (size, method): tile_model(method, arms.ARTICLE_TILE, size)
        for size in ELEMENT_BYTES
        for method in arms.METHODS
    }
    console.print(model_table(models, arms.ARTICLE_TILE))


def _print_failures(rows: Sequence[Row], console: Console) -> int:
    """Says what could not be measured and why; 1 if anything failed."""
    for status in (NOT_APPLICABLE, FAILED):
        notes: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            if row.status == status:
                notes.setdefault((row.variant, row.note), []).append(row.label)
        for (variant, note), labels in notes.items():
            more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
            console.print(f"{status}: {variant}, {labels[0]}{more}: {note}", markup=False)
    checked = sum(row.checked for row in rows)
    failed = sum(row.status == FAILED for row in rows)
    console.print(f"{checked} results checked bit by bit, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
