"""`python -m bench.profile`: Nsight Compute's shared-memory counters beside the bank model.

Each layout runs the article's case on the article's tile, and the tile of 16-byte accesses, in a
process of its own under `ncu`: warmed up first, then one launch between cudaProfilerStart and Stop.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.records import PROFILE_NAME, RESULTS, ROOT

METHODS = ("naive", "padded", "swizzled")
TILES = ("scalar32", "vector")
KERNELS = "regex:.*(tile|direct)_kernel.*"
RAW_PAGE = ("--page", "raw", "--csv", "--print-units", "base")
TIMEOUT_S = 120  # for each profiled process
WORST_EXCESS = 31  # wavefronts beyond the first, where 32 lanes meet in one bank
NOISE = 0.01  # what arbitration adds at most, as a share of the worst layout's conflicts

METRICS = {
    "load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "load_instructions": "smsp__inst_executed_op_shared_ld.sum",
    "store_instructions": "smsp__inst_executed_op_shared_st.sum",
    "time_ns": "gpu__time_duration.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
}
# From the section SourceCounters, where the version of Nsight Compute has them.
OPTIONAL_METRICS = {
    "source_wavefronts": "memory_l1_wavefronts_shared",
    "source_wavefronts_ideal": "memory_l1_wavefronts_shared_ideal",
}


class ProfileError(Exception):
    """One sentence on why there are no counters."""


def main(argv: Sequence[str] | None = None) -> int:
    """Profiles, prints the table, writes the record; 1 and a sentence if that is impossible."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tile", nargs="+", default=list(TILES))
    parser.add_argument("--out", type=Path, default=RESULTS / PROFILE_NAME)
    parser.add_argument("--child", nargs=2, metavar=("METHOD", "TILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        launch_once(*options.child)
        return 0
    try:
        rows = [profile(method, tile) for tile in options.tile for method in options.method]
    except ProfileError as error:
        print(f"bench.profile: {error}")
        return 1
    from bench.stamp import make_stamp  # torch is needed only once there is something to record

    stamp = make_stamp("Nsight Compute, clocks not locked, one launch after three", on_gpu=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    record = {"stamp": stamp, "rows": rows}
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print_table(rows)
    print(f"written: {options.out}")
    return 0


def launch_once(method: str, tile: str) -> None:
    """The profiled process: three launches to warm up, then the one that is counted."""
    import torch

    import torch_swizzle  # noqa: F401
    from bench.grid import ARTICLE_CASE

    x = ARTICLE_CASE.build(torch.device("cuda"))
    for _ in range(3):
        torch.ops.swizzle._transpose_with(x, method, tile)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    torch.ops.swizzle._transpose_with(x, method, tile)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def profile(method: str, tile: str) -> dict[str, Any]:
    """Counters of one layout on one tile, beside the model's prediction.

    Raises:
        ProfileError: if ncu is missing, may not read the counters, or saw no kernel of ours.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise ProfileError("ncu (Nsight Compute) was not found on PATH.")
    print(f"profiling {tile}, {method} ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder) / "launch.ncu-rep", Path(folder) / "ncu.log"
        command = [
            *(ncu, "--clock-control", "none", "--profile-from-start", "off"),
            *("--target-processes", "all", "--kernel-name", KERNELS, "--launch-count", "1"),
            *("--section", "SourceCounters", "--metrics", ",".join(METRICS.values())),
            *("--log-file", str(log), "--force-overwrite", "--export", str(report)),
            *(sys.executable, "-m", "bench.profile", "--child", method, tile),
        ]
        program = _run(command)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        if "ERR_NVGPUCTRPERM" in text + program.stderr:
            raise ProfileError("ncu may not read the GPU's counters (ERR_NVGPUCTRPERM).")
        if not report.exists():
            raise ProfileError(_no_report(method, tile, text, program))
        page = _run([ncu, "--import", str(report), *RAW_PAGE])
    counters = parse_page(page.stdout)
    return {"tile": tile, "method": method, **counters, **prediction(method, tile)}


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=ROOT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ProfileError(f"{command[0]} took longer than {TIMEOUT_S} s.") from error


def _no_report(method: str, tile: str, log: str, program: subprocess.CompletedProcess[str]) -> str:
    if program.returncode == 0 or "No kernels were profiled" in log:
        return f"no kernel of {tile}, {method} matched {KERNELS}."
    lines = [line for line in (program.stderr + log).splitlines() if line.strip()]
    last = lines[-1] if lines else "no message"
    return f"{tile}, {method} ended with status {program.returncode}: {last}"


def parse_page(text: str) -> dict[str, float]:
    """The counters of the only launch in ncu's raw page as CSV (names, units, then values).

    Raises:
        ProfileError: if a counter or the launch is missing.
    """
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line.startswith('"ID"')), None)
    table = list(csv.reader(lines[start:])) if start is not None else []
    if len(table) < 3:
        raise ProfileError("ncu's report holds no launch.")
    values = dict(zip(table[0], table[2], strict=False))
    counters: dict[str, float] = {}
    for name, metric in {**METRICS, **OPTIONAL_METRICS}.items():
        try:
            counters[name] = float(values[metric].replace(",", ""))
        except (KeyError, ValueError) as error:
            if name in METRICS:
                raise ProfileError(f"ncu's report lacks the metric {metric}.") from error
    return counters


def prediction(method: str, tile: str) -> dict[str, int]:
    """What the bank model predicts for the article's case."""
    import torch_swizzle  # noqa: F401
    from bench.grid import ARTICLE_CASE
    from bench.model import tile_model

    model = tile_model(method, tile, ARTICLE_CASE.element_bytes)
    tiles = model.tiles(ARTICLE_CASE.result_bytes)
    return {
        "model_load_conflicts": tiles * model.load.excess,
        "model_store_conflicts": tiles * model.store.excess,
        "model_load_wavefronts": tiles * model.load.wavefronts,
        "model_store_wavefronts": tiles * model.store.wavefronts,
        "model_load_instructions": tiles * model.load.requests,
        "model_store_instructions": tiles * model.store.requests,
    }


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
