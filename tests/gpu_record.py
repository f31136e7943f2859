"""The record of a run on a GPU: the Python tests with CUDA required, load, compute-sanitizer.

`run --record PATH` makes it; `check --record PATH`, which needs no torch, says whether it is there,
free of failures and of this tree. Each prints why not, and exits 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from source_hash import source_hash

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_RECORD = ROOT / "tests" / "gpu_record.json"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
ERROR_EXIT_CODE = 99
WORKERS = max(1, (os.cpu_count() or 1) // 2)  # test processes that share the GPU
# What needs a GPU or uses one that is there, and what tests/settings.json is made of; the rest runs
# on every other machine.
ON_CUDA = "cuda or two_gpus or also_cuda or setting"
LEAST_CASES = 20_000  # random inputs of the load
LEAST_CALLS = 1_000_000

# "ERROR SUMMARY: 2 errors" or "RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)"
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed)")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpu_record", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "check"):
        command = commands.add_parser(name)
        command.add_argument("--record", type=Path, default=DEFAULT_RECORD)
        if name == "run":
            command.add_argument("--test-timeout", type=float, default=360, help="seconds")
            command.add_argument("--tool-timeout", type=float, default=300, help="seconds, each")
            command.add_argument("--load-timeout", type=float, default=180, help="seconds")
    options = parser.parse_args(argv)
    if options.command == "check":
        problem = find_problem(options.record, source_hash(ROOT))
        print(problem or f"GPU record {options.record.name} is of this tree and free of failures.")
        return 1 if problem else 0
    return run(options.record, options.test_timeout, options.tool_timeout, options.load_timeout)


def find_problem(path: Path, tree_hash: str) -> str | None:
    """One line on what is wrong with a record; None if it is of this tree and clean."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"GPU record {path} is missing: run `make test-gpu` on a machine with a GPU."
    except ValueError:
        return f"GPU record {path} is not JSON."
    if record.get("source_hash") != tree_hash:
        recorded = str(record.get("source_hash"))[:12]
        return (
            f"GPU record {path.name} is stale: it is of sources {recorded}, "
            f"the tree is {tree_hash[:12]}; run `make test-gpu` on a machine with a GPU."
        )
    failures = list_failures(record)
    return f"GPU record {path.name} has failures: {'; '.join(failures)}." if failures else None


def list_failures(record: dict[str, Any]) -> list[str]:
    """What failed, or did not run, in a record."""
    failures = []
    tests = record.get("tests", {})
    if not tests.get("passed"):
        failures.append("no test passed")
    if tests.get("failed"):
        failures.append(f"{tests['failed']} tests failed")
    if tests.get("exit_code") != 0:
        failures.append(f"pytest ended with status {tests.get('exit_code')}")
    two_gpus = tests.get("two_gpus", {})
    if record.get("gpus", 1) > 1 and (two_gpus.get("skipped") or not two_gpus.get("passed")):
        failures.append("tests of two GPUs were skipped although there were two")
    failures += list_load_failures(record.get("load"))
    for tool in TOOLS:
        result = record.get("sanitizers", {}).get(tool)
        if result is None:
            failures.append(f"{tool} did not run")
        elif result["errors"] != 0 or result["exit_code"] != 0:
            failures.append(f"{tool}: {result['errors']} errors, exit status {result['exit_code']}")
    return failures


def list_load_failures(load: dict[str, Any] | None) -> list[str]:
    """What is wrong with the load section of a record."""
    if load is None:
        return ["the load did not run"]
    failures = []
    for name, least in (("cases", LEAST_CASES), ("calls", LEAST_CALLS)):
        if load.get(name, 0) < least:
            failures.append(f"the load had {load.get(name, 0)} {name}, fewer than {least}")
    if load.get("differences") != 0:
        failures.append(f"load: {load.get('differences')} differences, seed {load.get('seed')}")
    if load.get("grown") != []:
        failures.append(f"load: memory grew: {load.get('grown')}")
    if load.get("exit_code") != 0:
        failures.append(f"load ended with status {load.get('exit_code')}")
    return failures


def run(path: Path, test_timeout_s: float, tool_timeout_s: float, load_timeout_s: float) -> int:
    """Runs everything, writes the record, and returns 0 if nothing failed.

    A record with failures is written too: `check` then says what they are.
    """
    sys.path.append(str(ROOT))  # for bench, and for a library built in the tree
    import torch

    if not torch.cuda.is_available():
        print("gpu_record: no GPU was found, so there is nothing to record.")
        return 1
    import torch_swizzle  # noqa: F401
    from bench.stamp import library_hash, make_stamp

    tree_hash = source_hash(ROOT)
    if library_hash() != tree_hash:
        print(
            f"gpu_record: the loaded library was built from sources {library_hash()[:12]}, "
            f"the tree is {tree_hash[:12]}: build it first."
        )
        return 1
    record = make_stamp("pytest on CUDA tensors, load, compute-sanitizer", on_gpu=True)
    record["gpus"] = torch.cuda.device_count()
    record["tests"] = run_tests(test_timeout_s)
    record["load"] = run_load(load_timeout_s)
    record["sanitizers"] = {tool: run_sanitizer(tool, tool_timeout_s) for tool in TOOLS}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    failures = list_failures(record)
    tests = record["tests"]
    print(
        f"tests: {tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped; "
        f"load: {record['load'].get('cases')} cases, {record['load'].get('differences')} wrong; "
        f"written: {path}"
    )
    for failure in failures:
        print(f"failure: {failure}")
    return 1 if failures else 0


def _run(command: Sequence[str], environment: dict[str, str], timeout_s: float) -> int | None:
    """The exit status of a command, its output shown; None if it took too long and was ended."""
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **environment}, start_new_session=True
    )
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with its workers, which share its session
        process.wait()
        return None


def run_tests(timeout_s: float) -> dict[str, Any]:
    """Runs the Python tests that use CUDA; a skip for want of it counts as a failure there.

    Writes tests/settings.json as well: what each setting gave on this machine.
    """
    print("running the tests with CUDA required ...", flush=True)
    parallel = ["-n", str(WORKERS)] if importlib.util.find_spec("xdist") else []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-q", *parallel, "-m", ON_CUDA),
            *("--record-settings", "-p", "no:cacheprovider", f"--junitxml={report}"),
            "tests/python",
        ]
        status = _run(command, {"TORCH_SWIZZLE_REQUIRE_CUDA": "1"}, timeout_s)
        counts = count_tests(report.read_text(encoding="utf-8") if report.exists() else "")
    note = f"ended after {timeout_s:g} s" if status is None else ""
    return {**counts, "exit_code": status, "note": note}


def count_tests(junit_xml: str) -> dict[str, Any]:
    """Passed, failed and skipped tests of a JUnit report, the reasons and the failures' names.

    `two_gpus` counts those among them that need two GPUs.
    """
    failed: list[str] = []
    reasons: Counter[str] = Counter()
    two_gpus: Counter[str] = Counter(passed=0, failed=0, skipped=0)
    total = 0
    for case in ElementTree.fromstring(junit_xml or "<testsuites/>").iter("testcase"):
        total += 1
        skipped = case.find("skipped")
        outcome = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif skipped is not None:
            outcome = "skipped"
            reasons[skipped.get("message") or "no reason given"] += 1
        if case.find("properties/property[@name='two_gpus']") is not None:
            two_gpus[outcome] += 1
    skips = sum(reasons.values())
    return {
        "passed": total - len(failed) - skips,
        "failed": len(failed),
        "skipped": skips,
        "skip_reasons": dict(reasons),
        "two_gpus": dict(two_gpus),
        "failures": failed,
    }


def run_load(timeout_s: float) -> dict[str, Any]:
    """Runs the random cases and the small calls; the report is empty if they did not end."""
    print("running the load ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "tests/load_cases.py", "--report", str(report)]
        status = _run(command, {}, timeout_s)
        figures = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    note = f"ended after {timeout_s:g} s" if status is None else ""
    return {**figures, "exit_code": status, "note": note}


def run_sanitizer(tool: str, timeout_s: float) -> dict[str, Any]:
    """Runs the small cases under one tool; `errors` is None if the tool gave no summary."""
    print(f"running compute-sanitizer {tool} ...", flush=True)
    # Without torch's caching each tensor is an allocation of its own, so that an access beyond its
    # end is beyond the allocation, and fresh memory counts as uninitialised.
    environment = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    options = ["--tool", tool, "--error-exitcode", str(ERROR_EXIT_CODE)]
    shown = f"compute-sanitizer {' '.join(options)} python tests/sanitizer_cases.py"
    result: dict[str, Any] = {"errors": None, "exit_code": None, "seconds": 0.0, "command": shown}
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        return {**result, "note": "compute-sanitizer was not found on PATH"}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [
            *(sanitizer, *options, "--log-file", str(log)),
            *(sys.executable, "tests/sanitizer_cases.py"),
        ]
        begin = time.monotonic()
        status = _run(command, environment, timeout_s)
        seconds = time.monotonic() - begin
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    errors = count_errors(text)
    if errors != 0 or status != 0:
        print("\n".join(text.splitlines()[:40]))
    result.update(errors=errors, exit_code=status, seconds=round(seconds, 1))
    return result if status is not None else {**result, "note": f"ended after {timeout_s:g} s"}


def count_errors(log: str) -> int | None:
    """Errors (for racecheck: hazards) in a tool's log; None without a summary."""
    counts = [int(count) for count in _SUMMARY.findall(log)]
    return sum(counts) if counts else None


if __name__ == "__main__":
    sys.exit(main())
