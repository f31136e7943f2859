"""docs/pytorch.md: its Python runs as it stands, its table is what the record says."""

from __future__ import annotations

import re

import pytest
import settings_record
import torch

PAGE = settings_record.PAGE.read_text(encoding="utf-8")


def blocks(language: str) -> list[tuple[str, str]]:
    """The page's blocks of code in a language, each with the title of its section."""
    found = []
    for section in PAGE.split("\n## ")[1:]:
        title = section.splitlines()[0]
        pattern = rf"^```{language}\n(.*?)^```"
        for block in re.findall(pattern, section, re.MULTILINE | re.DOTALL):
            found.append((title, block))
    return found


@pytest.mark.parametrize(("title", "block"), blocks("python"), ids=[b[0] for b in blocks("python")])
def test_each_block_of_python_runs(title: str, block: str) -> None:
    torch.compiler.reset()
    exec(compile(block, f"docs/pytorch.md, {title}", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(
    ("language", "file"), [("cpp", "consumer.cpp"), ("cmake", "CMakeLists.txt")]
)
def test_other_code_is_that_of_a_program_that_is_tested(language: str, file: str) -> None:
    program = (settings_record.ROOT / "tests" / "cpp_consumer" / file).read_text(encoding="utf-8")
    lines = {line.strip() for line in program.splitlines()}
    ((_, block),) = blocks(language)
    assert [line for line in block.splitlines() if line and line.strip() not in lines] == []


def test_the_table_is_what_the_record_gives() -> None:
    table = settings_record.render(settings_record.load())
    assert settings_record.page_with(table, PAGE) == PAGE, "run `python tests/settings_record.py`"


def test_the_record_has_every_setting_and_no_failure() -> None:
    record = settings_record.load()
    assert set(record) == settings_record.marked_settings(), (
        "run `pytest tests/python -m setting --record-settings`"
    )
    for setting, row in record.items():
        for device in settings_record.DEVICES:
            assert row.get(device, "passed") == "passed", (setting, device)


def test_a_failure_is_not_hidden_by_a_later_success() -> None:
    outcomes = [
        ("a", "works", "t.py", "cpu", outcome) for outcome in ("passed", "failed", "passed")
    ]
    outcomes += [("b", "refused", "t.py", device, "skipped") for device in ("cpu", "cuda")]
    old: settings_record.Record = {
        "b": {"answer": "works", "test": "t.py", "devices": ["cuda"], "cuda": "passed"},
        "gone": {"answer": "works", "test": "t.py", "devices": ["cpu"], "cpu": "passed"},
    }
    record = settings_record.merge(old, outcomes)
    assert set(record) == {"a", "b"}
    assert record["a"]["cpu"] == "failed"
    assert record["b"]["cuda"] == "passed", "what did not run keeps its column"
    table = settings_record.render(record)
    assert "| a | failed | – |" in table
    assert "| b | not recorded | refused |" in table
