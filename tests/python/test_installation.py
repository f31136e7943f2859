"""The installed package: its files, what its library needs, and what its import checks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from source_hash import source_hash

import torch_swizzle
from torch_swizzle import _build_info

PACKAGE = Path(torch_swizzle.__file__).parent
ROOT = Path(__file__).resolve().parents[2]


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=False)


def program(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found is not None, f"{name} is not installed"
    return found


def dynamic_section() -> str:
    command = ["readelf", "--dynamic", "--wide", torch_swizzle.library_path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed_libraries() -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic_section())


def test_library_needs_torch_and_the_cuda_runtime() -> None:
    needed = needed_libraries()
    assert "libtorch_cpu.so" in needed
    assert any(name.startswith("libcudart.so.") for name in needed)


@pytest.mark.parametrize("name", ["libpython", "libtorch_python", "libcuda.so"])
def test_library_does_not_need(name: str) -> None:
    assert not [needed for needed in needed_libraries() if needed.startswith(name)]


def test_library_names_itself_and_no_folder_of_this_machine() -> None:
    section = dynamic_section()
    assert re.search(r"\(SONAME\).*\[libtorch_swizzle\.so\]", section)
    (run_path,) = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.+)\]", section)
    assert all(folder.startswith("$ORIGIN") for folder in run_path.split(":"))


def test_library_exports_the_public_functions_only() -> None:
    command = ["nm", "--dynamic", "--defined-only", "--demangle", torch_swizzle.library_path]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "torch_swizzle::transpose(" in symbols
    assert "torch_swizzle::transpose_out(" in symbols
    assert "launch_" not in symbols


def test_headers_and_cmake_files_are_installed() -> None:
    for name in ("torch_swizzle.h", "export.h"):
        assert (PACKAGE / "include" / "torch_swizzle" / name).is_file()
    core = {path.name for path in (ROOT / "csrc" / "core").glob("*.hpp")}
    installed = {path.name for path in (PACKAGE / "include/torch_swizzle/core").iterdir()}
    assert installed == core
    cmake_files = Path(torch_swizzle.cmake_prefix_path) / "torch_swizzle"
    for name in ("Config", "ConfigVersion", "Targets"):
        text = (cmake_files / f"torch_swizzle{name}.cmake").read_text()
        assert str(ROOT) not in text
        assert str(Path(torch.__file__).parent) not in text


@pytest.fixture
def build_folder() -> Path:
    """Return the folder that the installed library was built in."""
    folder = ROOT / "build" / "cmake"
    if not (folder / "cmake_install.cmake").exists():
        pytest.skip("the library was not built in this source tree")
    return folder


def native_files(folder: Path) -> dict[str, bytes]:
    """Return the installed native files under folder, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for name in ("lib", "include", "share")
        for path in (folder / name).rglob("*")
        if path.is_file()
    }


def test_prefix_holds_the_same_files_as_the_package(build_folder: Path, tmp_path: Path) -> None:
    command = [program("cmake"), "--install", build_folder, "--prefix", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {"lib", "include", "share"}
    assert native_files(tmp_path) == native_files(PACKAGE)


@pytest.mark.slow
def test_wheel_holds_the_same_files_as_the_package(build_folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir", tmp_path]
    architectures = {"TORCH_CUDA_ARCH_LIST": _build_info.cuda_architectures}
    subprocess.run(
        command, cwd=ROOT, env=os.environ | architectures, check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("torch_swizzle-*-py3-none-linux_*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    package = tmp_path / "wheel" / "torch_swizzle"
    assert native_files(package) == native_files(PACKAGE)
    assert {path.name for path in package.iterdir() if path.is_file()} == {
        path.name for path in PACKAGE.iterdir() if path.is_file()
    }


def test_build_info_matches_torch_and_the_sources() -> None:
    assert _build_info.version == torch_swizzle.__version__
    assert f'version = "{torch_swizzle.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert _build_info.torch_version == torch.__version__.split("+")[0]
    assert _build_info.cuda_version == torch.version.cuda
    assert re.fullmatch(r"\d+\.\d\S*( \d+\.\d\S*)*", _build_info.cuda_architectures)
    assert _build_info.source_hash == source_hash()


def test_operators_of_another_build_are_refused_in_one_sentence() -> None:
    done = python(
        "import torch\n"
        "library = torch.library.Library('swizzle', 'DEF')\n"
        "library.define('transpose(Tensor self) -> Tensor')\n"
        "import torch_swizzle\n"
    )
    assert done.returncode == 1
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith("ImportError: the operators swizzle::* are already registered by")


def test_missing_library_is_refused_in_one_sentence(tmp_path: Path) -> None:
    package = tmp_path / "torch_swizzle"
    package.mkdir()
    for source in PACKAGE.glob("*.py"):
        (package / source.name).write_bytes(source.read_bytes())
    command = [sys.executable, "-c", "import torch_swizzle"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "build it with 'pip install --no-build-isolation .'" in done.stderr.splitlines()[-1]
