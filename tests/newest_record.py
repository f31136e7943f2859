"""Writes the record of a run of the Python tests against another torch than the reference.

`newest_record.py REPORT RECORD`, by the Python that ran the tests. Exits 1 if one failed or
none ran.
"""

from __future__ import annotations

import datetime
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

from gpu_record import count_tests
from source_hash import source_hash


def main(report: Path, record: Path) -> int:
    """Turn pytest's JUnit report into a record."""
    counts = count_tests(report.read_text(encoding="utf-8") if report.exists() else "")
    del counts["two_gpus"]
    figures = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "torch": metadata.version("torch"),
        "python": platform.python_version(),
        "source_hash": source_hash(),
        "tests": counts,
    }
    record.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"torch {figures['torch']}: {counts['passed']} passed, {counts['failed']} failed")
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
