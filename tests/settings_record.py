"""What works where: a record of the tests that carry a setting, and the table in docs/pytorch.md.

A test with `@pytest.mark.setting("name")` shows that the operators work in that setting, or are
refused there (`answer="..."`). `pytest tests/python -m setting --record-settings` writes the
outcomes into tests/settings.json, a column for each kind of device that ran; this script renders
the record into the table.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "settings.json"
PAGE = ROOT / "docs" / "pytorch.md"
BEGIN, END = "<!-- settings:begin -->", "<!-- settings:end -->"
DEVICES = ("cpu", "cuda")
WORKS = "works"

Record = dict[str, dict[str, Any]]
Outcome = tuple[str, str, str, str, str]  # setting, answer, test file, device, outcome


def load(path: Path = RECORD) -> Record:
    """By setting: its answer, its test file, the devices it is tested on, what came of each."""
    record: Record = json.loads(path.read_text(encoding="utf-8"))["settings"]
    return record


def merge(old: Record, outcomes: list[Outcome]) -> Record:
    """The record after a run.

    Devices that did not run keep their column; settings that no test of the run carries go.
    """
    new: Record = {}
    for setting, answer, file, device, outcome in outcomes:
        before = old.get(setting, {}).get("devices", [])
        row = new.setdefault(setting, {"answer": answer, "test": file, "devices": before})
        row["devices"] = sorted({*row["devices"], device})
        if outcome == "skipped":
            continue
        failed = outcome == "failed" or row.get(device) == "failed"
        row[device] = "failed" if failed else outcome
    for setting, row in new.items():
        for device in DEVICES:
            if device not in row and device in old.get(setting, {}):
                row[device] = old[setting][device]
    return new


def save(record: Record, path: Path = RECORD) -> None:
    """Writes the record, sorted by test file and name so that differences read well."""
    ordered = dict(sorted(record.items(), key=lambda item: (item[1]["test"], item[0])))
    path.write_text(json.dumps({"settings": ordered}, indent=1) + "\n", encoding="utf-8")


def render(record: Record) -> str:
    """The table in Markdown."""
    lines = ["| setting | CPU | CUDA | shown by |", "| --- | --- | --- | --- |"]
    for setting, row in record.items():
        cells = [_cell(row, device) for device in DEVICES]
        shown = f"[{Path(row['test']).name}](../{row['test']})"
        lines.append(f"| {setting} | {cells[0]} | {cells[1]} | {shown} |")
    return "\n".join(lines)


def _cell(row: dict[str, Any], device: str) -> str:
    if device not in row["devices"]:
        return "–"
    outcome = row.get(device, "not recorded")
    return str(row["answer"] if outcome == "passed" else outcome)


def page_with(table: str, page: str) -> str:
    """The page with the table between its two marks."""
    pattern = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n{table}\n{END}", page)


def marked_settings(folder: Path = ROOT / "tests" / "python") -> set[str]:
    """The settings that tests carry, read from their sources."""
    found: set[str] = set()
    for path in folder.rglob("test_*.py"):
        found.update(re.findall(r'mark\.setting\(\s*"([^"]+)"', path.read_text(encoding="utf-8")))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Renders the record into the page."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_with(render(load()), page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
