"""Reports on models that were packaged ahead of time and loaded where they were not built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_cpp_consumer import build_programs, run
from torch import Tensor

import torch_swizzle

pytestmark = pytest.mark.slow

ROWS = (1, 2, 33, 4096)
NO_SCHEMA = "Could not find schema for swizzle::transpose"


class Model(torch.nn.Module):
    """The operator between two kernels of Inductor's own, and once more with other arguments."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch_swizzle.transpose(x * 2, 0, 1) / 2
        return y, torch.ops.swizzle.transpose(y.unsqueeze(0), 0, -1, method="padded")


def write_compiler(folder: Path) -> Path:
    """A g++ that links the C++ library of this process.

    Where a machine's g++ finds none but an archive, a package gets a copy of its own, and torch's
    code in it, of any model, crashes in std::regex.
    """
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").split()
    (library,) = {word for word in maps if "/libstdc++.so" in word}
    script = folder / "g++"
    linking = f'case " $* " in *" -shared "*) set -- "$@" -Wl,{library};; esac'
    script.write_text(f'#!/bin/sh\n{linking}\nexec g++ "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of the model, in a folder named after its device."""
    device: str = request.param
    rows = torch.export.Dim("rows", min=1, max=8192)
    example = torch.randn(33, 65, device=device)
    program = torch.export.export(Model(), (example,), dynamic_shapes={"x": {0: rows}})
    (size,) = program.range_constraints.values()
    assert (size.lower, size.upper) == (1, 8192)
    path = tmp_path_factory.mktemp("packages") / device / "model.pt2"
    path.parent.mkdir()
    compiler = str(write_compiler(path.parent))
    with torch._inductor.config.patch({"cpp.vec_isa_ok": True, "cpp.cxx": (None, compiler)}):
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))
    return path


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the C++ program, with and without the library."""
    folder = tmp_path_factory.mktemp("cpp_consumer")
    return build_programs(folder, "run_package", "run_package_alone")


def load_in_a_fresh_process(package: Path, before: str) -> subprocess.CompletedProcess[str]:
    code = f"""
import sys, torch
{before}
model = torch._inductor.aoti_load_package({str(package)!r})
for rows in {ROWS}:
    x = torch.arange(rows * 65.0, device={package.parent.name!r}).view(rows, 65)
    y, z = model(x)
    assert torch.equal(y, x.t()), rows
    assert torch.equal(z, x.unsqueeze(-1)), rows
assert "torch_swizzle" not in sys.modules
print("right")
"""
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    # Inductor would compile and load a program for each set of vector instructions: 55 s a process.
    environment = {**os.environ, "TORCHINDUCTOR_VEC_ISA_OK": "1"}
    return subprocess.run(
        command, cwd=package.parent, env=environment, capture_output=True, text=True, check=False
    )


def test_a_packaged_model_needs_the_native_library_alone(package: Path) -> None:
    """https://github.com/pytorch/pytorch/issues/145394: an op's schema is found in a fresh process.

    Python loads no more than libtorch_swizzle.so, and the first dimension is still dynamic.
    """
    load = f"torch.ops.load_library({torch_swizzle.library_path!r})"
    done = load_in_a_fresh_process(package, load)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"


def test_a_packaged_model_without_the_library_says_which_operator_it_misses(package: Path) -> None:
    """https://github.com/pytorch/pytorch/issues/145394: the refusal names what is missing.

    The sentence is torch's; docs/pytorch_deployment.md says which library it asks for.
    """
    done = load_in_a_fresh_process(package, "")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"RuntimeError: {NO_SCHEMA}."


def test_a_cpp_program_runs_a_packaged_model_without_python(package: Path, programs: Path) -> None:
    """https://github.com/pytorch/pytorch/issues/145394: the library is all that C++ links."""
    device = package.parent.name
    output = run(programs / "run_package", package, device)
    assert output == f"run_package: right for 1, 2, 33 and 4096 rows on {device}\n"
    linked = run("ldd", programs / "run_package")
    assert "libtorch_swizzle.so" in linked
    assert "libpython" not in linked
    assert "libtorch_python" not in linked


def test_a_cpp_program_without_the_library_says_which_operator_it_misses(
    package: Path, programs: Path
) -> None:
    """https://github.com/pytorch/pytorch/issues/145394: the refusal in C++."""
    command = [programs / "run_package_alone", package, package.parent.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert NO_SCHEMA in done.stderr
