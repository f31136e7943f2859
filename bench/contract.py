"""`python -m bench.contract`: model = kernel = counter, for every kernel that is shipped.

Under one run of Nsight Compute, each kernel with shared memory is launched once, and the shared
memory instructions of each are compared with the bank model, one by one; the hardware's conflict
counter is compared too, with the noise of a launch without conflicts. Then come kernels that access
given addresses (bench/calibration.cu), with every width, as loads, stores and asynchronous copies:
they settle the model itself. Writes bench/results/contract.json.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.records import CONTRACT_NAME, RESULTS, ROOT, SCRATCH
from torch_swizzle import counters
from torch_swizzle.counters import Case, CountersError, Launch, Predicted, total

DTYPES = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}
WIDTHS = tuple(DTYPES)
METHODS = ("naive", "padded", "swizzled")
TILES_WITH_LAYOUT = ("scalar32", "vector", "vector128", "short_vector")
KERNELS = "regex:.*(tile|direct|calibration)_kernel.*"
METHOD = "Nsight Compute, clocks not locked, one launch after one to warm up"
LIBRARY = "libcalibration.so"
TIMEOUT_S = 540
BEGIN, END = "<!-- counters:begin -->", "<!-- counters:end -->"  # in docs/banks.md
SHARED_BYTES = 40 * 1024  # of a calibration kernel
# By how much the hardware's conflict counter may differ from its twin's and still count as noise:
# shares of the wavefronts of the access itself, and of asynchronous copies whose data arrive
# meanwhile. (0.078 of those was seen where 512 stores of a box's table met 2,048 copies.)
NOISE = 0.02
NOISE_OF_COPIES = 0.1
LANES = range(32)

# The calibration kernels, in the order of their launches: access as calibration.cu numbers it.
CALIBRATIONS = [(name, width) for name in ("load", "store") for width in WIDTHS] + [
    ("async copy", 16)
]
CONFLICTS = {access: counters.METRICS[f"{access}_conflicts"] for access, _ in CALIBRATIONS}
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
        cases += [
            Case("transpose", shape, dtype, "auto", "box")
            for shape in ((edge, edge), (8, edge, edge // 2))
        ]
        cases.append(Case("transpose", (33, 65), dtype, "auto", "direct"))
        if size <= 4:
            cases += [
                Case("transpose", shape, dtype, "auto", "scatter")
                for shape in ((8, 8192), (12, 8192), (512, 16, 16), (500, 12, 48))
            ]
        if size == 1:
            cases += [
                Case("transpose", shape, dtype, "auto", "scatter")
                for shape in ((500, 12, 12), (12, 8196), (333, 31, 29), (66, 8193), (276, 275))
            ]
        if size <= 2:
            columns = (1, 1 + 3 * edge // 4, 3)
            for method in METHODS:
                cases.append(
                    Case("transpose", (edge, edge), dtype, method, "short_vector", columns=columns)
                )
        if size <= 8:
            # Rows that begin within a chunk, and an end that cuts none.
            columns = (3, edge - 16 // size, 1)
            for method in METHODS:
                cases.append(
                    Case("transpose", (edge, edge), dtype, method, "vector", columns=columns)
                )
            # An odd pitch, and an end that no chunk is cut by.
            cases.append(Case("transpose", (304, 515), dtype, "auto", "window"))
            # Rows of 31 folded over 29, a row apart in the input.
            cases.append(Case("transpose", (31, 29, 515), dtype, "auto", "window", dims=(2, 0, 1)))
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
        "lanes two apart share a place, packed": [
            (lane // 4 * 2 + lane % 2) * width for lane in LANES
        ],
        "lanes three apart share a place, packed": [
            (lane // 4 * 2 + min(lane % 4, 3 - lane % 4)) * width for lane in LANES
        ],
        "both halves at one place each": [lane % 16 * width for lane in LANES],
        "all quarters at one place each": [lane % 8 * width for lane in LANES],
        "reversed": [(31 - lane) * width for lane in LANES],
        "every second place": [2 * lane * width for lane in LANES],
        "every fourth place": [4 * lane * width for lane in LANES],
        "every eighth place": [8 * lane * width for lane in LANES],
        "a line apart": [line * lane for lane in LANES],
        "pairs share a place, a line apart": [line * (lane // 2) for lane in LANES],
        "even and odd lanes far apart": [lane // 2 * width + lane % 2 * far for lane in LANES],
        "halves far apart": [lane % 16 * width + lane // 16 * far for lane in LANES],
        "quarters far apart": [lane % 8 * width + lane // 8 * far for lane in LANES],
        "lane 0 alone": [0 if lane == 0 else None for lane in LANES],
        "the first half alone": [lane * width if lane < 16 else None for lane in LANES],
        "even lanes alone": [None if lane % 2 else lane * width for lane in LANES],
        "even lanes alone, packed": [None if lane % 2 else lane // 2 * width for lane in LANES],
        **{
            f"pairs share a place, {name} missing": [
                None if lane in missing else lane // 2 * width for lane in LANES
            ]
            for name, missing in (
                ("lane 0", {0}),
                ("lane 1", {1}),
                ("lane 9", {9}),
                ("lane 17", {17}),
                ("lane 31", {31}),
                ("lanes 0 and 1", {0, 1}),
                ("lanes 1 and 17", {1, 17}),
                ("lanes 1 and 31", {1, 31}),
                ("lane 1 and the second half", {1, *range(16, 32)}),
                ("lane 1 and 16 to 30", {1, *range(16, 31)}),
                ("lane 1 and the second half but 19", {1, *range(16, 32)} - {19}),
                ("lane 1 and the second half but 27", {1, *range(16, 32)} - {27}),
                ("odd lanes of the first half", set(range(1, 16, 2))),
                ("odd lanes of the second half", set(range(17, 32, 2))),
                ("even lanes", set(range(0, 32, 2))),
            )
        },
        "lanes two apart share a place, packed, lane 2 missing": [
            None if lane == 2 else (lane // 4 * 2 + lane % 2) * width for lane in LANES
        ],
        "pairs share a place in the first half": [
            (lane // 2 if lane < 16 else lane) * width for lane in LANES
        ],
        "pairs share a place in the second half": [
            lane * width if lane < 16 else far + lane // 2 * width for lane in LANES
        ],
        "pairs share a place, then lanes two apart": [
            (lane // 2 if lane < 16 else lane // 4 * 2 + lane % 2) * width for lane in LANES
        ],
        "pairs share a place in the first quarter, then lanes two apart": [
            (lane // 2 if lane < 8 else lane // 4 * 2 + lane % 2) * width for lane in LANES
        ],
        "one lane of each quarter": [None if lane % 8 else lane * width for lane in LANES],
        "one lane of each quarter, packed": [
            None if lane % 8 else lane // 8 * width for lane in LANES
        ],
        "begin 16 bytes further": [16 + lane * width for lane in LANES],
        "begin 32 bytes further": [32 + lane * width for lane in LANES],
        "begin 64 bytes further": [64 + lane * width for lane in LANES],
        "two rows at a pitch of 17": [
            lane // 16 * 17 * width + lane % 16 * width for lane in LANES
        ],
        "next to each other, again": [lane * width for lane in LANES],
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
    parser.add_argument(
        "--page", type=Path, help="with --markdown: put the tables between the markers in PAGE"
    )
    parser.add_argument(
        "--import",
        type=Path,
        metavar="FOLDER",
        dest="pages",
        help="compare the pages (raw.csv, source.csv) of a run that was kept; record nothing",
    )
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    cases = [case for case in shipped_cases() if options.only in case.label]
    out = options.out or (SCRATCH if options.only else RESULTS) / CONTRACT_NAME
    if options.child:
        run_all(options.child, cases)
        return 0
    if options.markdown:
        tables = markdown(json.loads(out.read_text(encoding="utf-8")))
        print(tables)
        if options.page:
            page = options.page.read_text(encoding="utf-8")
            options.page.write_text(place_tables(page, tables), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            if options.pages:
                launches = check_number(cases, counters.read_pages(options.pages))
            else:
                launches = measure_all(folder, cases, options.only, options.metric)
        except CountersError as error:
            print(f"bench.contract: {error}", file=sys.stderr)
            return 3
        finally:
            if options.archive:
                shutil.make_archive(str(options.archive), "gztar", folder)
    return compare_and_print(cases, launches, None if options.pages else out)


def compare_and_print(cases: Sequence[Case], launches: Sequence[Launch], out: Path | None) -> int:
    """Compares the launches with the model, prints and records it; 1 if any differs.

    Without `out` nothing is recorded: pages that were kept do not say what they were made of.
    """
    from bench.stamp import make_stamp

    predicted = [counters.predict(case) for case in cases]
    noises = noises_of(cases, launches, predicted)
    rows = [
        row
        for case, launch, steps in zip(cases, launches, predicted, strict=False)
        for row in judge(case, launch, steps, noises.get(case.twin))
    ]
    calibration = [
        row
        for (access, width), launch in zip(CALIBRATIONS, launches[len(cases) :], strict=True)
        for row in judge_calibration(access, width, launch)
    ]
    record: dict[str, Any] = {"rows": rows, "calibration": calibration}
    if out:
        record["stamp"] = make_stamp(METHOD, on_gpu=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(to_json(record), encoding="utf-8")
    print(markdown(record))
    wrong = [row for row in [*rows, *calibration] if row["agreement"] == "no"]
    wrong += beyond_noise(rows)
    for row in wrong:
        print(f"DIFFERENT: {json.dumps(row)}")
    print(
        f"{len(rows)} accesses and {len(calibration)} patterns, {len(wrong)} differ"
        + (f": {out}" if out else "")
    )
    return 1 if wrong else 0


def place_tables(page: str, tables: str) -> str:
    """The page with the tables between its markers, whatever was there."""
    before, _, rest = page.partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise ValueError(f"expected a page with {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


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
        metrics=[*CONFLICTS.values(), *extra_metrics],
        timeout_s=TIMEOUT_S,
    )
    return check_number(cases, launches)


def check_number(cases: Sequence[Case], launches: list[Launch]) -> list[Launch]:
    """The launches, if there is one of each case and each calibration kernel.

    Raises:
        CountersError: there is not.
    """
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


def noises_of(
    cases: Sequence[Case], launches: Sequence[Launch], predicted: Sequence[Sequence[Predicted]]
) -> dict[Case | None, dict[str, float]]:
    """What the hardware's conflict counters say of each case beyond what is predicted."""
    return {
        case: {
            access: launch.metrics.get(CONFLICTS[access], 0) - _conflicts(steps, access)
            for access in ("load", "store")
        }
        for case, launch, steps in zip(cases, launches, predicted, strict=False)
    }


def _conflicts(steps: Iterable[Predicted], access: str) -> int:
    return sum(step.conflicts for step in steps if step.access == access)


def judge(
    case: Case, launch: Launch, predicted: Sequence[Predicted], twin_noise: dict[str, float] | None
) -> list[dict[str, Any]]:
    """A row for each access and width of a launch: measured, predicted, and whether they agree.

    A kernel that touches no shared memory, as predicted, has a row without an access. What the
    hardware's counter says of loads and of stores is for `beyond_noise` to judge; `twin_noise` is
    what it says of the twin (None where there is no twin).
    """
    rows = counters.compare(launch, predicted)
    named = {"case": case.label, "kind": kind_of(case), "dtype": case.dtype}
    if not rows:
        return [{**named, "access": None, "agreement": "each", "kernel": launch.kernel}]
    result = []
    for row in rows:
        counted = launch.metrics.get(CONFLICTS.get(row.access, ""))
        foreseen = _conflicts(predicted, row.access)
        noise = None if twin_noise is None else twin_noise.get(row.access)
        result.append(
            {
                **named,
                "access": row.access,
                "width": row.width,
                "agreement": row.agreement,
                "instructions": len(row.measured),
                "measured": list(total(row.measured)),
                "predicted": list(total(row.predicted)),
                "hardware_conflicts": counted,
                "predicted_conflicts": foreseen,
                "twin_noise": noise,
                "kernel": launch.kernel,
            }
        )
    return result


def beyond_noise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a record whose hardware counter is neither as predicted nor noise."""
    wavefronts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row["access"]:
            wavefronts[row["case"], row["access"]] += row["predicted"][1]
    result = []
    for row in rows:
        if row.get("hardware_conflicts") is None or row["access"] == "async copy":
            continue
        allowed = NOISE * wavefronts[row["case"], row["access"]]
        allowed += NOISE_OF_COPIES * wavefronts[row["case"], "async copy"]
        expected = row["predicted_conflicts"] + (row["twin_noise"] or 0)
        if abs(row["hardware_conflicts"] - expected) > allowed:
            result.append(row)
    return result


def kind_of(case: Case) -> str:
    """Operator and tile or ways, without size and dtype."""
    if case.op == "bank_probe":
        return f"bank_probe, {case.ways}-way"
    return f"transpose, {case.tile}" + ("" if case.method == "auto" else f", {case.method}")


def judge_calibration(access: str, width: int, launch: Launch) -> list[dict[str, Any]]:
    """A row for each pattern: wavefronts and ideal of one request, measured and predicted.

    Pattern p was executed p + 1 times, which is how its instruction is found. A last row has the
    hardware's conflict counter over all of them.
    """
    measured = {
        one.requests: one
        for one in launch.instructions
        if (one.access, one.width) == (access, width)
    }
    rows = []
    conflicts = 0
    for times, (name, offsets) in enumerate(patterns(width).items(), start=1):
        wavefronts, least, lines = predict_request(access, width, offsets)
        conflicts += times * (wavefronts - least)
        found = measured.get(times)
        counted = [found.wavefronts / times, found.ideal / times] if found else None
        rows.append(_calibration_row(access, width, name, counted, [wavefronts, lines]))
    counter = launch.metrics.get(CONFLICTS[access])
    if counter is not None and access != "async copy":
        rows.append(_calibration_row(access, width, ALL_PATTERNS, [counter], [conflicts]))
    return rows


ALL_PATTERNS = "hardware conflict counter, all patterns"


def _calibration_row(
    access: str, width: int, pattern: str, measured: list[float] | None, predicted: list[int]
) -> dict[str, Any]:
    agreement = "each"
    if measured != predicted:
        agreement = "requests" if access == "async copy" and measured else "no"
    return {
        "access": access,
        "width": width,
        "pattern": pattern,
        "measured": measured,
        "predicted": predicted,
        "agreement": agreement,
    }


def predict_request(access: str, width: int, offsets: Sequence[int | None]) -> list[int]:
    """Wavefronts, the least possible, and ncu's ideal of one request."""
    addresses = torch.tensor([[-1 if offset is None else offset for offset in offsets]])
    (row,) = torch.ops.swizzle._bank_wavefronts(
        addresses, width, addresses >= 0, access != "load"
    ).tolist()
    return list(row)


def markdown(record: dict[str, Any]) -> str:
    """The record as tables: kernels, by kind and access, then patterns."""
    stamp = record.get("stamp")
    lines = [
        f"{stamp['gpu']}, driver {stamp['driver']}, {stamp['date'][:10]}." if stamp else "",
        "",
        "Measured by Nsight Compute / predicted by the bank model, sums over all element sizes:",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{' --- |' * len(_COLUMNS)}",
    ]
    groups: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for row in record["rows"]:
        groups.setdefault((row["kind"], row["access"]), []).append(row)
    for (kind, access), rows in groups.items():
        launches = len({row["case"] for row in rows})
        worst = max((row["agreement"] for row in rows), key=list(_EQUAL).index)
        if access is None:
            lines.append(f"| {kind} | none | {launches} | | | | | {_EQUAL[worst]} |")
            continue
        sums = [total(row[side] for row in rows) for side in ("measured", "predicted")]
        cells = " | ".join(f"{a:,} / {b:,}" for a, b in zip(*sums, strict=True))
        conflicts = _conflict_cell(access, rows)
        lines.append(
            f"| {kind} | {access} | {launches} | {cells} | {conflicts} | {_EQUAL[worst]} |"
        )
    names = [f"{access} {width}" for access, width in CALIBRATIONS]
    lines += [
        "",
        "Wavefronts and ideal of one request, by access and bytes a lane; in brackets what the "
        "model says where that is something else:",
        "",
        f"| pattern | {' | '.join(names)} |",
        f"| --- |{' --- |' * len(names)}",
    ]
    by_pattern: dict[str, dict[str, str]] = {}
    for row in record["calibration"]:
        cell = "not found" if row["measured"] is None else _pair(row["measured"])
        if row["agreement"] != "each":
            cell += f" ({_pair(row['predicted'])})"
        by_pattern.setdefault(row["pattern"], {})[f"{row['access']} {row['width']}"] = cell
    for pattern, found in by_pattern.items():
        lines.append(f"| {pattern} | {' | '.join(found.get(name, '') for name in names)} |")
    return "\n".join([*lines, "", counters.ASYNC_COPIES]).lstrip()


_COLUMNS = (
    *("kernel", "access", "launches", "requests", "wavefronts", "ideal", "hardware conflicts"),
    "equal",
)
_EQUAL = {"each": "each", "sum": "in sum", "requests": "requests alone", "no": "no"}


def _conflict_cell(access: str, rows: Iterable[dict[str, Any]]) -> str:
    # The counter is of a launch and an access: rows of several widths share it.
    by_case = {row["case"]: row for row in rows}.values()
    counted = sum(row["hardware_conflicts"] or 0 for row in by_case)
    if access == "async copy":
        return f"{counted:,.0f}"
    return f"{counted:,.0f} / {sum(row['predicted_conflicts'] for row in by_case):,}"


def _pair(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


if __name__ == "__main__":
    sys.exit(main())
