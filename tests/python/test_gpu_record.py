"""The GPU record: when `check` accepts it, and how results are counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpu_record
import load_cases
import newest_record
import pytest
import torch
from samples import METHODS, Sample
from source_hash import source_hash

from bench import stamp

CLEAN: dict[str, Any] = {
    "source_hash": source_hash(),
    "tests": {"passed": 3, "failed": 0, "skipped": 0, "exit_code": 0},
    "load": {
        "cases": gpu_record.LEAST_CASES,
        "calls": gpu_record.LEAST_CALLS,
        "differences": 0,
        "seed": 7,
        "grown": [],
        "exit_code": 0,
    },
    "sanitizers": {tool: {"errors": 0, "exit_code": 0} for tool in gpu_record.TOOLS},
}

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite>
<testcase classname="t.a" name="one"/>
<testcase classname="t.a" name="two"><failure message="x">trace</failure></testcase>
<testcase classname="t.a" name="three">
<properties><property name="two_gpus" value="yes"/></properties>
<skipped message="needs two CUDA devices"/></testcase>
<testcase classname="t.a" name="four"><error message="x">trace</error></testcase>
</testsuite></testsuites>"""
JUNIT_CLEAN = '<testsuites><testcase classname="t.a" name="one"/></testsuites>'


def check(path: Path) -> subprocess.CompletedProcess[str]:
    """Runs the check as a user does, in an interpreter that cannot see torch."""
    command = [sys.executable, "-S", gpu_record.__file__, "check", "--record", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "record.json"
    path.write_text(json.dumps({**CLEAN, **changes}))
    return path


def test_fresh_clean_record_is_accepted(tmp_path: Path) -> None:
    result = check(write(tmp_path))
    assert result.returncode == 0
    assert result.stdout.count("\n") == 1


def test_stale_record_is_refused_in_one_line(tmp_path: Path) -> None:
    result = check(write(tmp_path, source_hash="0" * 64))
    assert result.returncode == 1
    assert "is stale" in result.stdout
    assert result.stdout.count("\n") == 1


def test_missing_record_is_refused_in_one_line(tmp_path: Path) -> None:
    result = check(tmp_path / "none.json")
    assert result.returncode == 1
    assert "is missing" in result.stdout
    assert result.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tests": {**CLEAN["tests"], "failed": 2}}, "2 tests failed"),
        ({"tests": {**CLEAN["tests"], "exit_code": None}}, "pytest ended with status None"),
        ({"tests": {}}, "no test passed"),
        ({"sanitizers": {}}, "memcheck did not run"),
        ({"load": None}, "the load did not run"),
        ({"load": {**CLEAN["load"], "cases": 19_999}}, "19999 cases, fewer than 20000"),
        ({"load": {**CLEAN["load"], "calls": 10}}, "10 calls, fewer than 1000000"),
        ({"load": {**CLEAN["load"], "differences": 2}}, "2 differences, seed 7"),
        ({"load": {**CLEAN["load"], "grown": ["device"]}}, "memory grew: ['device']"),
        ({"load": {"exit_code": None}}, "load ended with status None"),
        ({"gpus": 2}, "two GPUs were skipped"),
        (
            {"gpus": 2, "tests": {**CLEAN["tests"], "two_gpus": {"passed": 8, "skipped": 1}}},
            "two GPUs were skipped",
        ),
        (
            {
                "sanitizers": {
                    **CLEAN["sanitizers"],
                    "racecheck": {"errors": 4, "exit_code": 99},
                }
            },
            "racecheck: 4 errors, exit status 99",
        ),
        (
            {
                "sanitizers": {
                    **CLEAN["sanitizers"],
                    "initcheck": {"errors": None, "exit_code": 0},
                }
            },
            "initcheck: None errors",
        ),
    ],
    ids=[
        "failed",
        "timeout",
        "none",
        "no tools",
        "no load",
        "few cases",
        "few calls",
        "differences",
        "growth",
        "load timeout",
        "no tests of two GPUs",
        "skipped tests of two GPUs",
        "race",
        "no summary",
    ],
)
def test_record_with_failures_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    result = check(write(tmp_path, **changes))
    assert result.returncode == 1
    assert said in result.stdout


def test_record_that_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text("{")
    assert check(path).returncode == 1


def test_counts_of_a_junit_report() -> None:
    counts = gpu_record.count_tests(JUNIT)
    assert (counts["passed"], counts["failed"], counts["skipped"]) == (1, 2, 1)
    assert counts["failures"] == ["t.a::two", "t.a::four"]
    assert counts["skip_reasons"] == {"needs two CUDA devices": 1}
    assert counts["two_gpus"] == {"passed": 0, "failed": 0, "skipped": 1}
    assert gpu_record.count_tests("")["passed"] == 0


@pytest.mark.parametrize(
    ("log", "errors"),
    [
        ("========= ERROR SUMMARY: 0 errors", 0),
        ("========= ERROR SUMMARY: 1 error", 1),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", 0),
        ("========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)", 3),
        ("========= Device not supported", None),
        ("", None),
    ],
)
def test_errors_of_a_sanitizer_log(log: str, errors: int | None) -> None:
    assert gpu_record.count_errors(log) == errors


@pytest.mark.parametrize(
    ("script", "errors", "exit_code"),
    [
        ("exit 0", 0, 0),
        ("exit 1", 0, 1),
        ("sleep 60", 0, None),
    ],
)
def test_sanitizer_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    errors: int,
    exit_code: int | None,
) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(
        '#!/bin/sh\nwhile [ "$1" != --log-file ]; do shift; done\n'
        f'echo "========= ERROR SUMMARY: 0 errors" > "$2"\n{script}\n'
    )
    tool.chmod(0o755)
    monkeypatch.setattr(gpu_record.shutil, "which", lambda name: str(tool))
    result = gpu_record.run_sanitizer("memcheck", timeout_s=2)
    assert (result["errors"], result["exit_code"]) == (errors, exit_code)


def test_missing_sanitizer_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_record.shutil, "which", lambda name: None)
    result = gpu_record.run_sanitizer("memcheck", timeout_s=1)
    failures = gpu_record.list_failures({**CLEAN, "sanitizers": {"memcheck": result}})
    assert any("memcheck" in failure for failure in failures)


def test_run_without_gpu_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    path = tmp_path / "record.json"
    assert gpu_record.main(["run", "--record", str(path)]) == 1
    assert "no GPU" in capsys.readouterr().out
    assert not path.exists()


@pytest.mark.parametrize("failed", [0, 1])
def test_run_writes_a_record_that_check_judges_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: int
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(stamp, "library_hash", source_hash)
    monkeypatch.setattr(stamp, "make_stamp", lambda method, on_gpu: {"source_hash": source_hash()})
    tests = {**CLEAN["tests"], "failed": failed}
    monkeypatch.setattr(gpu_record, "run_tests", lambda timeout_s: tests)
    monkeypatch.setattr(gpu_record, "run_load", lambda timeout_s: CLEAN["load"])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    clean = {"errors": 0, "exit_code": 0}
    monkeypatch.setattr(gpu_record, "run_sanitizer", lambda tool, timeout_s: clean)
    path = tmp_path / "record.json"
    assert gpu_record.main(["run", "--record", str(path)]) == failed
    assert check(path).returncode == failed


def test_run_refuses_a_library_of_other_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu_record, "source_hash", lambda root: "0" * 64)
    path = tmp_path / "record.json"
    assert gpu_record.main(["run", "--record", str(path)]) == 1
    assert "build it first" in capsys.readouterr().out
    assert not path.exists()


def test_sanitizer_cases_reach_every_tile() -> None:
    script = Path(gpu_record.__file__).with_name("sanitizer_cases.py")
    result = subprocess.run(
        [sys.executable, str(script), "--cpu"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert ", 0 wrong" in result.stdout


def test_two_gpus_are_stated_where_both_were_used(tmp_path: Path) -> None:
    tests = {**CLEAN["tests"], "two_gpus": {"passed": 9, "failed": 0, "skipped": 0}}
    assert check(write(tmp_path, gpus=2, tests=tests)).returncode == 0


@pytest.mark.parametrize(("junit", "status"), [(JUNIT, 1), (JUNIT_CLEAN, 0), ("", 1)])
def test_run_against_another_torch_is_recorded(tmp_path: Path, junit: str, status: int) -> None:
    report, record = tmp_path / "report.xml", tmp_path / "record.json"
    if junit:
        report.write_text(junit)
    assert newest_record.main(report, record) == status
    figures = json.loads(record.read_text())
    assert torch.__version__.startswith(figures["torch"].split("+")[0])
    assert figures["source_hash"] == source_hash()
    assert figures["tests"]["passed"] == junit.count('name="one"')


def test_load_finds_no_difference_and_reports_its_seed(tmp_path: Path) -> None:
    script = Path(gpu_record.__file__).with_name("load_cases.py")
    report = tmp_path / "report.json"
    command = [sys.executable, str(script), "--device", "cpu", "--report", str(report)]
    command += ["--cases", "60", "--calls", "4000"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    figures = json.loads(report.read_text())
    assert (figures["cases"], figures["calls"], figures["differences"]) == (60, 4000, 0)
    assert figures["comparisons"] > 5 * 60
    assert isinstance(figures["seed"], int)


def test_load_sees_a_wrong_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_cases, "reference", lambda x, *dims: x.clone().contiguous())
    monkeypatch.setattr(load_cases, "canonical_copy", lambda view: view.t().contiguous())
    square = Sample("square", (64, 64), (64, 1))
    case = load_cases.Case(0, torch.float32, square, (1, 0), "scalar32", "padded")
    tally = load_cases.run_cases([case], "cpu")
    assert len(tally.wrong) == tally.comparisons == len(METHODS) + 3


def test_load_repeats_a_case_from_its_seed_and_number() -> None:
    tiles = ("scalar32", "direct")
    cases = [load_cases.make_case(5, number, tiles) for number in range(50)]
    assert cases == [load_cases.make_case(5, number, tiles) for number in range(50)]
    assert len({case.sample.sizes for case in cases}) > 25
    assert {len(case.order) for case in cases} >= {0, 1, 2, 3, 4}
    assert all(
        sorted(dim % len(case.order) for dim in case.order) == list(range(len(case.order)))
        for case in cases
    )
    assert cases != [load_cases.make_case(6, number, tiles) for number in range(50)]


def test_load_sees_memory_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([{"resident": 100}, {"resident": 100 + load_cases.MOST_GROWTH_BYTES + 1}])
    monkeypatch.setattr(load_cases, "memory_in_use", lambda device: next(readings))
    assert load_cases.call_often(8, "cpu")["grown"] == ["resident"]
