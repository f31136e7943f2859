"""`python -m bench.contract`: model = kernel = counter, for every kernel that is shipped.

Under one run of Nsight Compute, each kernel with shared memory is launched once, and the shared
memory instructions of each are compared with the bank model, one by one. Then come kernels that
access given addresses (bench/calibration.cu), with every width, as loads, stores and asynchronous
copies: they settle the model itself. Writes bench/results/contract.json.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.records import CONTRACT_NAME, RESULTS, ROOT, SCRATCH
from torch_swizzle import banks, counters
from torch_swizzle.counters import Case, CountersError, Launch, Predicted, total

DTYPES = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}
WIDTHS = tuple(DTYPES)
METHODS = ("naive", "padded", "swizzled")
TILES_WITH_LAYOUT = ("scalar32", "vector", "vector128")
KERNELS = "regex:.*(tile|direct|calibration)_kernel.*"
METHOD = "Nsight Compute, clocks not locked, one launch after one to warm up"
LIBRARY = "libcalibration.so"
TIMEOUT_S = 540
SHARED_BYTES = 40 * 1024  # of a calibration kernel
LANES = range(32)

# The calibration kernels, in the order of their launches: access as calibration.cu numbers it.
CALIBRATIONS = [(name, width) for name in ("load", "store") for width in WIDTHS] + [
    ("async copy", 16)
]
_ACCESS_NUMBERS = {"load": 0, "store": 1, "async copy": 2}


def shipped_cases() -> list[Case]:
    """A launch of every layout, tile policy and element size, of whole tiles and of parts."""
    cases = []
    for size, dtype in DTYPES.items():
        edge = 1024 // size
        for tile in TILES_WITH_LAYOUT:
            for method in METHODS:
                cases.append(Case("transpose", (edge, edge), dtype, method, tile))
        cases += [
            Case("transpose", shape, dtype, "auto", "flat")
            for shape in (
                *((8192, 8), (8192, 12)),  # few columns
                *((8, 8192), (12, 8192)),  # few rows
                *((512, 16, 16), (500, 12, 12)),  # small matrices
            )
        ]
        cases.append(Case("transpose", (33, 65), dtype, "auto", "direct"))
        if size <= 8:
            # An odd pitch, and an end that no chunk is cut by.
            cases.append(Case("transpose", (304, 515), dtype, "auto", "window"))
            for columns in (2, 3, 4):
                cases.append(Case("transpose", (4096, columns), dtype, "auto", "deinterleave"))
    for tile in TILES_WITH_LAYOUT:
        for method in METHODS:
            cases.append(Case("transpose", (172, 236), "float32", method, tile))
    for ways in (1, 2, 4, 8, 16, 32):
        cases.append(Case("bank_probe", (8192,), ways=ways))
    cases.append(Case("bank_probe", (1000,), ways=4))
    return cases


def patterns(width: int) -> dict[str, list[int | None]]:
    """Byte offset of each lane, by what the pattern shows; None for an inactive lane."""
    line, far = 128, 2048
    return {
        "next to each other": [lane * width for lane in LANES],
        "all at one place": [0 for _ in LANES],
        "pairs share a place": [lane // 2 * width for lane in LANES],
        "lanes two apart share a place": [(lane & ~2) * width for lane in LANES],
        "lanes three apart share a place": [min(lane, lane ^ 3) * width for lane in LANES],
        "fours share a place": [lane // 4 * width for lane in LANES],
        "eights share a place": [lane // 8 * width for lane in LANES],
        "both halves at one place each": [lane % 16 * width for lane in LANES],
        "all quarters at one place each": [lane % 8 * width for lane in LANES],
        "reversed": [(31 - lane) * width for lane in LANES],
        "every second place": [2 * lane * width for lane in LANES],
        "a line apart": [line * lane for lane in LANES],
        "pairs share a place, a line apart": [line * (lane // 2) for lane in LANES],
        "even and odd lanes far apart": [lane // 2 * width + lane % 2 * far for lane in LANES],
        "halves far apart": [lane % 16 * width + lane // 16 * far for lane in LANES],
        "quarters far apart": [lane % 8 * width + lane // 8 * far for lane in LANES],
        "lane 0 alone": [0 if lane == 0 else None for lane in LANES],
        "the first half alone": [lane * width if lane < 16 else None for lane in LANES],
        "even lanes alone": [None if lane % 2 else lane * width for lane in LANES],
        "one lane of each quarter": [None if lane % 8 else lane * width for lane in LANES],
        "begin 16 bytes further": [16 + lane * width for lane in LANES],
        "begin 32 bytes further": [32 + lane * width for lane in LANES],
        "begin 64 bytes further": [64 + lane * width for lane in LANES],
        "two rows at a pitch of 17": [
            lane // 16 * 17 * width + lane % 16 * width for lane in LANES
        ],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, compares, prints, records; 1 if anything differs, 3 if nothing was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.contract", description=__doc__)
    parser.add_argument(
        "--out", type=Path, help="the record (default: in bench/results, build/bench with --only)"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only cases whose label contains TEXT"
    )
    parser.add_argument(
        "--archive", type=Path, metavar="NAME", help="keep ncu's report and pages as NAME.tar.gz"
    )
    parser.add_argument(
        "--metric", action="append", default=[], help="a metric of ncu that the report has as well"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print the record in --out as tables, and stop"
    )
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    cases = [case for case in shipped_cases() if options.only in case.label]
    out = options.out or (SCRATCH if options.only else RESULTS) / CONTRACT_NAME
    if options.child:
        run_all(options.child, cases)
        return 0
    if options.markdown:
        print(markdown(json.loads(out.read_text(encoding="utf-8"))))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            launches = measure_all(folder, cases, options.only, options.metric)
        except CountersError as error:
            print(f"bench.contract: {error}", file=sys.stderr)
            return 3
        finally:
            if options.archive:
                shutil.make_archive(str(options.archive), "gztar", folder)
    return record_and_print(cases, launches, out)


def record_and_print(cases: Sequence[Case], launches: Sequence[Launch], out: Path) -> int:
    """Compares the launches with the model, writes the record, prints it; 1 if any differs."""
    from bench.stamp import make_stamp

    stamp = make_stamp(METHOD, on_gpu=True)
    rows = [
        row for case, launch in zip(cases, launches, strict=False) for row in judge(case, launch)
    ]
    calibration = [
        row
        for (access, width), launch in zip(CALIBRATIONS, launches[len(cases) :], strict=True)
        for row in judge_calibration(access, width, launch)
    ]
    record = {"stamp": stamp, "rows": rows, "calibration": calibration}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(to_json(record), encoding="utf-8")
    print(markdown(record))
    wrong = [row for row in rows if row["agreement"] == "no"]
    wrong += [row for row in calibration if not row["agrees"]]
    print(f"{len(rows)} accesses and {len(calibration)} patterns, {len(wrong)} differ: {out}")
    return 1 if wrong else 0


def to_json(record: dict[str, Any]) -> str:
    """The record as JSON, a row a line so that differences read well."""
    parts = [f' "stamp": {json.dumps(record["stamp"])}']
    for name in ("rows", "calibration"):
        lines = ",\n".join("  " + json.dumps(row) for row in record[name])
        parts.append(f' "{name}": [\n{lines}\n ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def measure_all(
    folder: Path, cases: Sequence[Case], only: str, extra_metrics: Iterable[str]
) -> list[Launch]:
    """Runs the cases and every calibration kernel under one ncu.

    Raises:
        CountersError: that is impossible, or a launch is missing.
    """
    if not torch.cuda.is_available():
        raise CountersError("torch finds no GPU here: run this on a machine with an NVIDIA GPU.")
    folder.mkdir(parents=True, exist_ok=True)
    compile_calibration(folder / LIBRARY)
    launches = counters.collect(
        [sys.executable, "-m", "bench.contract", "--child", str(folder), "--only", only],
        folder,
        kernels=KERNELS,
        metrics=[*counters.METRICS.values(), *extra_metrics],
        timeout_s=TIMEOUT_S,
    )
    expected = len(cases) + len(CALIBRATIONS)
    if len(launches) != expected:
        raise CountersError(f"ncu counted {len(launches)} launches where {expected} were made.")
    return launches


def compile_calibration(library: Path) -> None:
    """Compiles bench/calibration.cu for the GPU at hand.

    Raises:
        CountersError: there is no nvcc, or it fails.
    """
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    major, minor = torch.cuda.get_device_capability()
    command = [
        *(nvcc, "-std=c++17", f"-arch=sm_{major}{minor}", f"-DPATTERNS={len(patterns(4))}"),
        *(f"-I{ROOT / 'csrc'}", "--shared", "-Xcompiler=-fPIC", "-o", str(library)),
        str(ROOT / "bench" / "calibration.cu"),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except OSError as error:
        raise CountersError(
            "nvcc is not on PATH: add the CUDA toolkit's bin folder to PATH."
        ) from error
    except subprocess.CalledProcessError as error:
        raise CountersError(f"nvcc failed: {error.stderr.strip().splitlines()[-1]}") from error


def run_all(folder: Path, cases: Sequence[Case]) -> None:
    """The profiled process: launches the cases, then the calibration kernels."""
    counters.run_cases(cases)
    library = ctypes.CDLL(str(folder / LIBRARY))
    source = torch.zeros(512, dtype=torch.uint8, device="cuda")
    sink = torch.zeros(32, dtype=torch.int32, device="cuda")
    runtime = torch.cuda.cudart()
    for access, width in CALIBRATIONS:
        offsets = torch.tensor(
            [[-1 if one is None else one for one in row] for row in patterns(width).values()],
            dtype=torch.int32,
            device="cuda",
        )
        pointers = [ctypes.c_void_p(x.data_ptr()) for x in (offsets, source, sink)]
        torch.cuda.synchronize()
        runtime.cudaProfilerStart()
        status = library.calibrate(_ACCESS_NUMBERS[access], width, *pointers, SHARED_BYTES)
        runtime.cudaProfilerStop()
        if status != 0:
            raise RuntimeError(f"the calibration kernel ended with CUDA error {status}")


def judge(
    case: Case, launch: Launch, predicted: Sequence[Predicted] | None = None
) -> list[dict[str, Any]]:
    """A row for each access and width of a launch: measured, predicted, and whether they agree.

    A kernel that touches no shared memory, as predicted, has a row without an access.
    """
    rows = counters.compare(launch, counters.predict(case) if predicted is None else predicted)
    named = {"case": case.label, "op": case.op, "tile": case.tile, "dtype": case.dtype}
    if not rows:
        return [{**named, "access": None, "agreement": "each", "kernel": launch.kernel}]
    return [
        {
            **named,
            "access": row.access,
            "width": row.width,
            "agreement": row.agreement,
            "instructions": len(row.measured),
            "measured": list(total(row.measured)),
            "predicted": list(total(row.predicted)),
            "hardware_conflicts": launch.metrics.get(
                counters.METRICS.get(f"{row.access}_conflicts", "")
            ),
            "kernel": launch.kernel,
        }
        for row in rows
    ]


def judge_calibration(access: str, width: int, launch: Launch) -> list[dict[str, Any]]:
    """A row for each pattern: wavefronts and ideal of one request, measured and predicted.

    Pattern p was executed p + 1 times, which is how its instruction is found.
    """
    measured = {
        one.requests: one
        for one in launch.instructions
        if (one.access, one.width) == (access, width)
    }
    rows = []
    for times, (name, offsets) in enumerate(patterns(width).items(), start=1):
        active = [offset is not None for offset in offsets]
        request = banks.wavefronts([offset or 0 for offset in offsets], width, active).worst
        found = measured.get(times)
        counted = [found.wavefronts / times, found.ideal / times] if found else None
        predicted = [request.wavefronts, request.ideal]
        rows.append(
            {
                "access": access,
                "width": width,
                "pattern": name,
                "measured": counted,
                "predicted": predicted,
                "agrees": counted == predicted,
            }
        )
    return rows


def markdown(record: dict[str, Any]) -> str:
    """The record as tables: kernels, then patterns."""
    stamp = record["stamp"]
    lines = [
        f"{stamp['gpu']}, driver {stamp['driver']}, {stamp['date'][:10]}: wavefronts of ideal, "
        "measured by Nsight Compute | predicted by the bank model.",
        "",
        "| case | access | bytes | requests | wavefronts | ideal | equal |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in record["rows"]:
        if row["access"] is None:
            lines.append(f"| {row['case']} | none | | | | | yes |")
            continue
        pairs = zip(row["measured"], row["predicted"], strict=True)
        cells = " | ".join(f"{a:,} / {b:,}" for a, b in pairs)
        lines.append(
            f"| {row['case']} | {row['access']} | {row['width']} | {cells} | "
            f"{_EQUAL[row['agreement']]} |"
        )
    lines += [
        "",
        "| pattern | access | bytes | wavefronts, ideal | model | equal |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for row in record["calibration"]:
        counted = "not found" if row["measured"] is None else _pair(row["measured"])
        lines.append(
            f"| {row['pattern']} | {row['access']} | {row['width']} | {counted} | "
            f"{_pair(row['predicted'])} | {'yes' if row['agrees'] else 'no'} |"
        )
    return "\n".join(lines)


_EQUAL = {"each": "each", "sum": "in sum", "requests": "requests alone", "no": "no"}


def _pair(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


if __name__ == "__main__":
    sys.exit(main())
