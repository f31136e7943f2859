"""Runs code in a fresh Python process that sees the package under test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch_swizzle

PACKAGE_PARENT = Path(torch_swizzle.__file__).parents[1]
TESTS = Path(__file__).parent


def run_python(code: str) -> str:
    """What the code prints; its errors are raised here."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({str(TESTS)!r})\n{code}"],
        cwd=PACKAGE_PARENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
