"""docs/pytorch_deployment.md: its Python runs as it stands, its C++ is a tested program's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_swizzle

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "pytorch_deployment.md"


def blocks(language: str) -> list[str]:
    """The page's blocks of code in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


PACKAGE, LOAD, SHARDED, GRAPH, FAULT = blocks("python")


def run_block(code: str, folder: Path, *launcher: str, **environment: str) -> str:
    script = folder / "block.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(torch_swizzle.__file__).parents[1])} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_package_made_by_one_block_is_loaded_by_the_next(tmp_path: Path) -> None:
    library = run_block(PACKAGE, tmp_path).splitlines()[-1]
    assert library == torch_swizzle.library_path
    assert "torch_swizzle" not in LOAD
    run_block(LOAD, tmp_path, SWIZZLE_LIBRARY=library)


@pytest.mark.slow
def test_the_sharded_program_runs_under_torchrun(tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    run_block(SHARDED, tmp_path, *launcher, "--nproc-per-node", "2", OMP_NUM_THREADS="1")


@pytest.mark.parametrize("code", [GRAPH, FAULT], ids=["graph", "fault"])
def test_block_runs(code: str, tmp_path: Path) -> None:
    run_block(code, tmp_path)


def test_cpp_lines_are_those_of_the_program_that_is_tested() -> None:
    program = (ROOT / "tests" / "cpp_consumer" / "run_package.cpp").read_text()
    (block,) = blocks("cpp")
    lines = {line.strip() for line in program.splitlines()}
    assert [line for line in block.splitlines() if line and line.strip() not in lines] == []
