"""Counters of Nsight Compute, instruction by instruction, beside what the bank model predicts.

A `Case` is a launch of one of this package's operators. `predict` asks the model what each of its
shared-memory instructions will take; `measure` runs it under `ncu`, exports a report, reads it with
ncu's own importer, and returns the same of every SASS instruction; `compare` says where they agree.

The truth is per instruction: wavefronts and the least possible (ncu's source counters) follow from
addresses, widths and live lanes alone. The hardware's conflict counter also counts arbitration with
other traffic, so it carries noise, which a launch without conflicts shows.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

Access = Literal["load", "store", "async copy", "other"]
Step = tuple[int, int, int]
"""Requests, wavefronts and ideal of one instruction."""
Listing = tuple[tuple["Instruction", ...], dict[str, int]]
"""The shared-memory instructions of a launch, and its warp samples by what was waited for."""

KERNELS = "regex:.*(tile|direct)_kernel.*"
TIMEOUT_S = 300

METRICS = {
    "load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "async copy_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "load_instructions": "smsp__inst_executed_op_shared_ld.sum",
    "store_instructions": "smsp__inst_executed_op_shared_st.sum",
    "time_ns": "gpu__time_duration.sum",
    "cycles": "sm__cycles_elapsed.max",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    # From the section SourceCounters: over all instructions.
    "source_wavefronts": "memory_l1_wavefronts_shared",
    "source_wavefronts_ideal": "memory_l1_wavefronts_shared_ideal",
}

ASYNC_COPIES = (
    "Asynchronous copies are compared by requests alone: Nsight Compute counts their wavefronts by "
    "where the 16-byte chunks of each line of the source land, which is what the model says if "
    "they keep their places in the line or exchange them by one XOR, and more if they are shifted, "
    "as by a pad."
)
"""What the counters say of LDGSTS."""

_RAW, _SOURCE = "raw.csv", "source.csv"  # pages that are kept of a report
_ACCESSES: tuple[Access, ...] = ("load", "store", "async copy")  # as the operators number them
_OPCODES: dict[str, Access] = {"LDS": "load", "STS": "store", "LDGSTS": "async copy"}
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_SASS = re.compile(r"\s*(?:@(!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)")


class CountersError(RuntimeError):
    """One sentence on why there are no counters, and what would help."""


@dataclass(frozen=True)
class Case:
    """A launch of one of this package's operators over fresh memory."""

    op: Literal["transpose", "bank_probe"]
    shape: tuple[int, ...]
    dtype: str = "float32"
    method: str = "auto"
    """Layout of a transpose's tile; ``"auto"`` for a tile that leaves no choice."""
    tile: str = "scalar32"
    """Tile policy of a transpose."""
    ways: int = 1
    """Ways of a bank probe's conflicts."""
    dims: tuple[int, ...] = ()
    """Order of the contiguous tensor's dimensions in the operator's input; none: its own."""
    columns: tuple[int, ...] = ()
    """First column, end and step of a view of the contiguous tensor; none: all columns."""

    @property
    def label(self) -> str:
        """The case in words."""
        shape = " x ".join(map(str, self.shape))
        if self.op == "bank_probe":
            return f"bank_probe, {self.ways}-way, {shape} floats"
        view = f", dims {' '.join(map(str, self.dims))}" if self.dims else ""
        if self.columns:
            view += f", columns {':'.join(map(str, self.columns))}"
        return f"transpose, {self.tile}, {self.method}, {self.dtype}, {shape}{view}"

    @property
    def twin(self) -> Case | None:
        """The same launch without bank conflicts, or None if there is none to choose."""
        if self.op == "bank_probe":
            return _replace(self, ways=1)
        if self.method == "auto":
            return None
        return _replace(self, method="padded" if self.method == "swizzled" else "swizzled")

    def input(self, device: str) -> Tensor:
        """What the operator reads, without memory on "meta"; its values do not matter."""
        x = torch.zeros(self.shape, dtype=dtype_of(self.dtype), device=device)
        if self.columns:
            x = x[..., slice(*self.columns)]
        return x.permute(self.dims) if self.dims else x

    def run(self, x: Tensor) -> Tensor:
        """Call the operator."""
        result: Tensor
        if self.op == "bank_probe":
            result = torch.ops.swizzle.bank_probe(x, self.ways)
        else:
            result = torch.ops.swizzle._transpose_with(x, self.method, self.tile)
        return result


@dataclass(frozen=True)
class Predicted:
    """What one instruction of a program, unrolled, asks of the banks over a whole launch."""

    access: Access
    width: int
    """Bytes a lane."""
    requests: int
    """Warps that executed it with at least one live lane, each time counted."""
    wavefronts: int
    ideal: int
    """As ncu's source page counts it: lines of 128 bytes."""
    conflicts: int
    """What the hardware counts as conflicts: wavefronts beyond one for each group of lanes."""


@dataclass(frozen=True)
class Instruction:
    """What ncu measured of one SASS instruction that touches shared memory."""

    address: int
    sass: str
    access: Access
    width: int
    """Bytes a lane."""
    requests: int
    """Warps that executed it, each time counted, those without a live lane included."""
    wavefronts: int
    ideal: int


@dataclass(frozen=True)
class Launch:
    """What ncu measured of one launch of a kernel."""

    kernel: str
    metrics: Mapping[str, float]
    """By ncu's names, in base units; those that the GPU does not have are missing."""
    instructions: tuple[Instruction, ...]
    """Those that touch shared memory, by address."""
    samples: Mapping[str, int] = field(default_factory=dict)
    """Warp samples by what the warp waited for, as ``"stall_short_sb"``."""

    def metric(self, name: str) -> float | None:
        """The value of one of METRICS; None if the GPU or this version of ncu lacks it."""
        return self.metrics.get(METRICS[name])

    @property
    def excess(self) -> int:
        """Wavefronts beyond the ideal, over all instructions but asynchronous copies."""
        return sum(
            one.wavefronts - one.ideal for one in self.instructions if one.access != "async copy"
        )


@dataclass(frozen=True)
class Comparison:
    """Measured beside predicted, for the instructions of one access and width."""

    access: Access
    width: int
    measured: tuple[Step, ...]
    """(requests, wavefronts, ideal) of each SASS instruction, ascending."""
    predicted: tuple[Step, ...]
    """The same of each step of the program, ascending."""

    @property
    def agreement(self) -> Literal["each", "sum", "requests", "no"]:
        """How far the two agree.

        ``"each"``: instruction by instruction. ``"sum"``: in sum, where the compiler made fewer
        instructions (a loop) or more (a loop unrolled in part) than the program has steps.
        ``"requests"``: an asynchronous copy that was requested as often as predicted
        (`ASYNC_COPIES`). ``"no"``: neither.
        """
        if self.measured == self.predicted:
            return "each"
        if total(self.measured)[1:] == total(self.predicted)[1:]:
            return "sum"
        if self.access == "async copy" and total(self.measured)[0] >= total(self.predicted)[0] > 0:
            return "requests"
        return "no"


def total(steps: Iterable[Step]) -> Step:
    """Requests, wavefronts and ideal of all together."""
    requests = wavefronts = ideal = 0
    for step in steps:
        requests, wavefronts, ideal = requests + step[0], wavefronts + step[1], ideal + step[2]
    return requests, wavefronts, ideal


def dtype_of(name: str) -> torch.dtype:
    """The dtype of that name.

    Raises:
        ValueError: there is none.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"expected the name of a torch dtype, got '{name}'")
    return dtype


def predict(case: Case) -> list[Predicted]:
    """Ask the bank model what a launch will take. Needs no GPU, and no memory for the tensor.

    Raises:
        ValueError, NotImplementedError: what the operator raises for such a call.
    """
    x = case.input("meta")
    if case.op == "bank_probe":
        rows = torch.ops.swizzle._bank_probe_requests(x, case.ways)
    else:
        rows = torch.ops.swizzle._transpose_requests(x, case.method, case.tile)
    return [
        Predicted(_ACCESSES[access], width, requests, wavefronts, lines, wavefronts - ideal)
        for access, _, width, requests, wavefronts, ideal, lines in rows.tolist()
    ]


def compare(launch: Launch, predicted: Sequence[Predicted]) -> list[Comparison]:
    """Put each access and width that was measured or predicted side by side."""
    measured, foreseen = _by_kind(launch.instructions), _by_kind(predicted)
    return [
        Comparison(*kind, tuple(measured.get(kind, ())), tuple(foreseen.get(kind, ())))
        for kind in sorted(measured.keys() | foreseen.keys())
    ]


def _by_kind(
    entries: Iterable[Instruction] | Iterable[Predicted],
) -> dict[tuple[Access, int], list[Step]]:
    """What each instruction of an access and width takes, ascending."""
    kinds: dict[tuple[Access, int], list[Step]] = {}
    for one in entries:
        kinds.setdefault((one.access, one.width), []).append(_order(one))
    return {kind: sorted(steps) for kind, steps in kinds.items()}


def pair(
    launch: Launch, predicted: Sequence[Predicted]
) -> list[tuple[Instruction, Predicted | None]]:
    """Put each SASS instruction beside the step of the program that it is, by address.

    The compiler orders instructions as it likes, so steps are found by what they take. None where
    it made a loop of several steps, or several instructions of one.
    """
    twins: dict[int, Predicted] = {}
    for kind in {(one.access, one.width) for one in launch.instructions}:
        measured = [one for one in launch.instructions if (one.access, one.width) == kind]
        steps = [one for one in predicted if (one.access, one.width) == kind]
        if len(measured) == len(steps):
            in_order = zip(sorted(measured, key=_order), sorted(steps, key=_order), strict=True)
            twins.update((one.address, step) for one, step in in_order)
    return [(one, twins.get(one.address)) for one in launch.instructions]


def _order(one: Instruction | Predicted) -> Step:
    return one.requests, one.wavefronts, one.ideal


def measure(cases: Sequence[Case], folder: Path | None = None) -> list[Launch]:
    """Launch each case once under ncu, after a launch to warm up, and read what it counted.

    Args:
        cases: What to launch, in this order, in one process.
        folder: Where the report and the pages read from it are kept; default: nowhere.

    Returns:
        A launch for each case.

    Raises:
        CountersError: there is no GPU, no ncu, no right to read counters, or no kernel was seen.
    """
    if not torch.cuda.is_available():
        raise CountersError(
            "torch finds no GPU here: run this on a machine with an NVIDIA GPU and its driver."
        )
    listed = json.dumps([asdict(case) for case in cases])
    command = [sys.executable, "-m", __name__, listed]
    if folder is not None:
        launches = collect(command, folder)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            launches = collect(command, Path(scratch))
    if len(launches) != len(cases):
        raise CountersError(f"ncu counted {len(launches)} launches where {len(cases)} were made.")
    return launches


def collect(
    command: Sequence[str],
    folder: Path,
    *,
    kernels: str = KERNELS,
    metrics: Iterable[str] = METRICS.values(),
    timeout_s: float | None = None,
) -> list[Launch]:
    """Run a program under ncu and read the report.

    Args:
        command: The program. Only what it launches between cudaProfilerStart and Stop is counted.
        folder: Where the report, ncu's log and the pages read from the report are written.
        kernels: Which kernels are counted, as ncu's option ``--kernel-name``.
        metrics: What is collected beside the section SourceCounters.
        timeout_s: After how many seconds ncu is ended; default: TIMEOUT_S.

    Returns:
        The launches, in their order.

    Raises:
        CountersError: ncu is missing or failed, may not read counters, or saw no such kernel.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersError(
            "ncu (Nsight Compute) is not on PATH: install it, or add its folder to PATH (it comes "
            "with the CUDA toolkit, often under /opt/nvidia/nsight-compute)."
        )
    folder.mkdir(parents=True, exist_ok=True)
    report, log = folder / "report.ncu-rep", folder / "ncu.log"
    report.unlink(missing_ok=True)
    program = _run(
        [
            *(ncu, "--clock-control", "none", "--profile-from-start", "off"),
            *("--target-processes", "all", "--kernel-name", kernels),
            *("--section", "SourceCounters", "--metrics", ",".join(metrics)),
            *("--log-file", str(log), "--force-overwrite", "--export", str(report)),
            *command,
        ],
        TIMEOUT_S if timeout_s is None else timeout_s,
    )
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if not report.exists() or program.returncode != 0:
        raise CountersError(_why_not(text, program, kernels))
    _import_page(ncu, report, folder / _RAW, ["raw", "--print-units", "base"])
    _import_page(ncu, report, folder / _SOURCE, ["source", "--print-source", "sass"])
    return read_pages(folder)


def read_pages(folder: Path) -> list[Launch]:
    """The launches of a report whose pages `collect` left in a folder.

    Raises:
        CountersError: a page is missing, has no launch, or the two have different ones.
    """
    try:
        raw, source = ((folder / name).read_text(encoding="utf-8") for name in (_RAW, _SOURCE))
    except OSError as error:
        raise CountersError(f"{error.filename} cannot be read: {error.strerror}.") from error
    return join_pages(raw, source)


def join_pages(raw: str, source: str) -> list[Launch]:
    """The launches of a report, from its raw page and its source page as CSV.

    Raises:
        CountersError: a page has no launch, or the two have different ones.
    """
    rows = parse_raw(raw)
    listings = _without_repetitions(parse_source(source), len(rows))
    if len(rows) != len(listings):
        raise CountersError(
            f"ncu's report has counters of {len(rows)} launches and the instructions of "
            f"{len(listings)}."
        )
    return [
        Launch(name, metrics, instructions, samples)
        for (name, metrics), (instructions, samples) in zip(rows, listings, strict=True)
    ]


def _without_repetitions(listings: list[Listing], launches: int) -> list[Listing]:
    """One listing a launch, where each is given several times over, as ncu 2025.3 does."""
    times, rest = divmod(len(listings), max(launches, 1))
    if times > 1 and not rest:
        firsts = [listing for listing in listings[::times] for _ in range(times)]
        if firsts == listings:
            return listings[::times]
    return listings


def parse_raw(text: str) -> list[tuple[str, dict[str, float]]]:
    """Kernel name and metrics of each launch in ncu's raw page as CSV.

    The page is a row of names, a row of units and a row for each launch; messages may precede it.

    Raises:
        CountersError: there is no launch.
    """
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line.startswith('"ID"')), None)
    table = list(csv.reader(lines[start:])) if start is not None else []
    if len(table) < 3:
        raise CountersError("ncu's report holds no launch.")
    names = table[0]
    launches = []
    for row in table[2:]:
        cells = dict(zip(names, row, strict=False))
        values = {name: _number(cell) for name, cell in cells.items()}
        numbers = {name: value for name, value in values.items() if value is not None}
        launches.append((cells.get("Kernel Name", ""), numbers))
    return launches


def parse_source(text: str) -> list[Listing]:
    """Shared-memory instructions and warp samples of each listing in ncu's source page as CSV.

    A listing is a row with the kernel's name, a row of column names and a row for each SASS
    instruction. Columns differ from version to version and from kernel to kernel, and are found by
    their names: those of shared memory are left out where a kernel does not touch it.

    Raises:
        CountersError: there is no instruction, or a column is missing.
    """
    launches: list[tuple[list[Instruction], Counter[str]]] = []
    columns: list[str] = []
    for row in csv.reader(text.splitlines()):
        if "Source" in row and "Address" in row:
            columns = row
            launches.append(([], Counter()))
        elif columns and len(row) == len(columns):
            _read_instruction(dict(zip(columns, row, strict=True)), *launches[-1])
        else:
            columns = []
    if not launches:
        raise CountersError("ncu's report lists no SASS instructions.")
    return [(tuple(instructions), dict(samples)) for instructions, samples in launches]


def _read_instruction(
    row: Mapping[str, str], instructions: list[Instruction], samples: Counter[str]
) -> None:
    """Add a row of the source page to the instructions, if it is one, and to the samples."""
    for name, cell in row.items():
        if name.startswith("stall_") and "(" not in name:
            samples[name] += int(_number(cell) or 0)
    found = _SASS.match(row["Source"])
    if found is None:
        return
    predicate, opcode = found.group(1), found.group(2).split(".")
    access = _OPCODES.get(opcode[0], "other")
    if access == "other" and "L1 Wavefronts Shared" not in row:
        return
    try:
        wavefronts = int(_number(row["L1 Wavefronts Shared"]) or 0)
        ideal = int(_number(row["L1 Wavefronts Shared Ideal"]) or 0)
        requests = int(_number(row["Instructions Executed"]) or 0)
    except KeyError as missing:
        raise CountersError(f"ncu's source page has no column {missing}.") from missing
    # ptxas puts LDS that are never executed (predicate !PT) before a kernel's first LDGSTS.
    if (access == "other" and wavefronts == 0) or predicate == "!PT" or requests == 0:
        return
    width = next((_WIDTHS[part] for part in opcode if part in _WIDTHS), 4)
    address = int(row["Address"], 0) if row["Address"] else 0
    instructions.append(
        Instruction(address, row["Source"].strip(), access, width, requests, wavefronts, ideal)
    )


def _number(cell: str) -> float | None:
    """The number in a cell; None for text, for nothing, and for what the GPU does not have."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def _import_page(ncu: str, report: Path, to: Path, page: Sequence[str]) -> None:
    """Read a page of a report with ncu's importer, and keep it."""
    result = _run([ncu, "--import", str(report), "--csv", "--page", *page], TIMEOUT_S)
    to.write_text(result.stdout, encoding="utf-8")
    if result.returncode != 0:
        raise CountersError(f"ncu cannot read its own report: {_last_line(result)}.")


def _run(command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    # The profiled process finds the package that is running now, installed or not.
    places = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CountersError(
            f"ncu took longer than {timeout_s:g} s: take a smaller case, or look whether another "
            "process holds the GPU."
        ) from error
    except OSError as error:
        raise CountersError(f"{command[0]} cannot be run: {error.strerror}.") from error


def _why_not(log: str, program: subprocess.CompletedProcess[str], kernels: str) -> str:
    """Why there is no report, in a sentence."""
    text = "\n".join((log, program.stdout, program.stderr))
    if "ERR_NVGPUCTRPERM" in text or "INSUFFICIENT_PRIVILEGES" in text:
        return (
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run as root, start a "
            "container with --cap-add=SYS_ADMIN, or have the administrator load the driver with "
            "NVreg_RestrictProfilingToAdminUsers=0."
        )
    if program.returncode == 0 or "No kernels were profiled" in text:
        return (
            f"ncu saw no kernel that matches {kernels}: the launch took another path, or failed; "
            "`torch-swizzle info` says whether the kernels run here."
        )
    return f"ncu ended with status {program.returncode}: {_last_line(program, log)}."


def _last_line(program: subprocess.CompletedProcess[str], log: str = "") -> str:
    lines = [line for line in (program.stderr + "\n" + log).splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line]
    return (errors or lines or ["it said nothing"])[-1].strip().rstrip(".")


def _replace(case: Case, **changes: Any) -> Case:
    return Case(**{**asdict(case), **changes})


def run_cases(cases: Iterable[Case]) -> None:
    """Launch each case: once to warm up, then between cudaProfilerStart and Stop."""
    runtime = torch.cuda.cudart()
    for case in cases:
        x = case.input("cuda")
        case.run(x)
        torch.cuda.synchronize()
        runtime.cudaProfilerStart()
        case.run(x)
        torch.cuda.synchronize()
        runtime.cudaProfilerStop()


def _main(listed: str) -> None:
    """The profiled process: `python -m torch_swizzle.counters CASES`, a JSON list of cases."""
    sequences = ("shape", "dims", "columns")
    run_cases(
        Case(**{**fields, **{name: tuple(fields.get(name, ())) for name in sequences}})
        for fields in json.loads(listed)
    )


if __name__ == "__main__":
    _main(sys.argv[1])
