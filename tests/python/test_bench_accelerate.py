"""The benchmark of `accelerate` without a GPU: what it compares, what it records and reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("rich", reason="the extra `bench` is not installed")

from rich.console import Console

from bench import accelerate, records, report, timing

CPU = torch.device("cpu")
all_copies = accelerate.copies
pytestmark = pytest.mark.skipif(
    not str(torch.__version__).startswith("2.11."), reason="accelerate refuses this torch"
)


@pytest.fixture
def switch() -> accelerate.Switch:
    """Of CPU tensors, whose copies run the programs on the host."""
    return accelerate.Switch(CPU)


def test_copies_that_pay_for_a_decision_are_of_ten_kinds_and_all_left(
    switch: accelerate.Switch,
) -> None:
    cases = accelerate.left_copies(CPU)
    assert len(cases) == 10
    for label, call in cases:
        assert switch.taken(call) == (0, 1), label


def test_each_other_copy_is_taken(switch: accelerate.Switch) -> None:
    for label, call in accelerate.copies(CPU):
        assert switch.taken(call) == (1, 1), label


@pytest.mark.slow
def test_a_run_without_a_gpu_gives_a_record_that_the_report_shows(
    switch: accelerate.Switch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(accelerate, "ROUNDS", 1)
    monkeypatch.setattr(accelerate, "HOST_ROUNDS", 2)
    monkeypatch.setattr(accelerate, "_repeats", lambda call, device: 1)
    monkeypatch.setattr(accelerate, "copies", lambda device: all_copies(device)[:3])
    path = tmp_path / records.ACCELERATE_NAME
    assert accelerate.main(["--cpu", "--budget", "0.001", "--out", str(path)]) == 0
    record = json.loads(path.read_text())
    assert {row["program"] for row in record["programs"]} == set(accelerate.PROGRAMS)
    assert all(row["on_ms"] > 0 and row["off_ms"] > 0 for row in record["programs"])
    assert records.load_folder(tmp_path) == []
    text = "\n".join(report._accelerated_part(record) + report._accelerated_details(record))
    for row in record["programs"]:
        assert f"| {row['program']} | {row['step']} | {row['taken']} of {row['copies']} |" in text
    for row in (*record["grid"], *record["copies"], *record["host"]):
        assert f"| {row['case']} | " in text


def test_a_wrong_result_is_no_measurement(
    switch: accelerate.Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "around", lambda call: lambda: torch.zeros(64, 64))
    monkeypatch.setattr(accelerate, "copies", lambda device: [("ones", lambda: torch.ones(64, 64))])
    with pytest.raises(AssertionError, match="ones: wrong bits"):
        accelerate.measure_copies(CPU, switch, timing.time_cpu, Console(quiet=True))
