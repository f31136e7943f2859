"""Configures, builds and runs a C++ project against the installed package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torch_swizzle

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))

from cuda_toolkit import cuda_environment, find_cuda_home  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.also_cuda]


def program(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found is not None, f"{name} is not installed"
    return found


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build_programs(build: Path, *names: str) -> Path:
    """Configure the project, build these of its programs or all, and return their folder."""
    cuda_home = find_cuda_home(torch.version.cuda)
    assert cuda_home is not None, "torch's CMake package needs nvcc"
    environment = os.environ | cuda_environment(cuda_home)
    archive = ROOT / "build" / "cmake" / "libtorch_swizzle_static.a"
    if (archive.parent / "CMakeCache.txt").exists():  # not where an installed package is tested
        run(program("cmake"), "--build", archive.parent, "--target", "torch_swizzle_static")
    prefixes = f"{torch_swizzle.cmake_prefix_path};{torch.utils.cmake_prefix_path}"
    run(
        program("cmake"),
        "-S",
        ROOT / "tests" / "cpp_consumer",
        "-B",
        build,
        f"-DCMAKE_PREFIX_PATH={prefixes}",
        f"-DTORCH_SWIZZLE_ARCHIVE={archive if archive.exists() else ''}",
        env=environment,
    )
    targets = ["--target", *names] if names else []
    run(program("cmake"), "--build", build, "--parallel", "2", *targets, env=environment)
    return build


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built programs."""
    return build_programs(tmp_path_factory.mktemp("cpp_consumer"))


@pytest.mark.setting("C++ programs (LibTorch): values, derivatives, vmap, errors")
def test_public_function_serves_cpp_programs(programs: Path) -> None:
    devices = ["cpu", "cuda:0"] if torch.cuda.is_available() else ["cpu"]
    output = run(programs / "consumer")
    assert output.splitlines() == [f"consumer: all checks hold on {device}" for device in devices]


@pytest.mark.setting("C++ programs that name no symbol, linked with bfd, gold or lld")
def test_library_is_kept_without_a_named_symbol(programs: Path) -> None:
    linked = [programs / f"dispatcher_only_{linker}" for linker in ("bfd", "gold", "lld")]
    assert linked[0].exists()
    for path in linked:
        if path.exists():  # its linker is on this machine
            assert "found and right" in run(path), path


@pytest.mark.setting("C++ programs that link the archive (static)")
def test_a_static_program_needs_no_library_of_ours(programs: Path) -> None:
    path = programs / "dispatcher_only_static"
    if not path.exists():
        pytest.skip("the library was not built in this source tree")
    assert "found and right" in run(path)
    assert "libtorch_swizzle" not in run("readelf", "--dynamic", path)


def test_core_headers_stand_alone(programs: Path) -> None:
    assert "core_only" in run(programs / "core_only")
