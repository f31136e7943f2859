"""Builds the wheel and the editable install by driving CMake, which has the list of sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70
    from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "cmake"
INSTALLED = ("lib", "include", "share", "_build_info.py")

sys.path.insert(0, str(ROOT / "cmake"))

from cuda_toolkit import cuda_environment, find_cuda_home  # noqa: E402


def program(name: str) -> str | None:
    """Return the path of a program, from this Python's environment first."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def drop_foreign_cache(torch_dir: str) -> None:
    """Delete the CMake cache if it was made with another torch, whose libraries it remembers."""
    cache = BUILD / "CMakeCache.txt"
    if cache.exists():
        found = re.search(r"^Torch_DIR:\w+=(.*)$", cache.read_text(), re.MULTILINE)
        if found is None or found.group(1) != torch_dir:
            shutil.rmtree(BUILD)


class CMakeBuild(build_ext):
    """Configures, builds and installs the CMake project into the package folder."""

    def run(self) -> None:
        if not sys.platform.startswith("linux"):
            name = {"win32": "Windows", "darwin": "macOS"}.get(sys.platform, sys.platform)
            raise SystemExit(f"torch_swizzle does not support {name}: build it on Linux.")
        try:
            import torch
        except ImportError:
            raise SystemExit(
                "torch_swizzle is built against the installed torch: install torch first, then run "
                "'pip install --no-build-isolation .'."
            ) from None
        cmake = program("cmake")
        if cmake is None:
            raise SystemExit("torch_swizzle needs CMake 3.24 or later: 'pip install cmake'.")
        cuda_home = find_cuda_home(torch.version.cuda)
        if cuda_home is None:
            raise SystemExit(
                f"torch_swizzle needs nvcc of CUDA {torch.version.cuda}, the version of this "
                "torch: set CUDA_HOME, or let 'make build' install it."
            )

        torch_dir = f"{torch.utils.cmake_prefix_path}/Torch"
        drop_foreign_cache(torch_dir)
        environment = os.environ | cuda_environment(cuda_home)
        configure = [
            cmake,
            "-S",
            str(ROOT),
            "-B",
            str(BUILD),
            f"-DTorch_DIR={torch_dir}",
            f"-DPython3_EXECUTABLE={sys.executable}",
            f"-DCMAKE_BUILD_TYPE={'Debug' if self.debug else 'Release'}",
            *os.environ.get("CMAKE_ARGS", "").split(),
        ]
        ninja = program("ninja")
        if ninja and not (BUILD / "CMakeCache.txt").exists():
            configure += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        jobs = os.environ.get("MAX_JOBS") or str(os.cpu_count() or 1)
        subprocess.check_call(configure, env=environment)
        subprocess.check_call([cmake, "--build", str(BUILD), "--parallel", jobs], env=environment)
        self.install(cmake)

    def install(self, cmake: str) -> None:
        """Install into the wheel's package folder or, if editable, into the source tree."""
        in_tree = self.inplace or getattr(self, "editable_mode", False)
        package = (ROOT if in_tree else Path(self.build_lib)) / "torch_swizzle"
        for name in INSTALLED:
            old = package / name
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        command = [cmake, "--install", str(BUILD), "--prefix", str(package.resolve())]
        subprocess.check_call(command)
        subprocess.check_call([*command, "--component", "python"])

    def get_outputs(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}


class PlatformWheel(bdist_wheel):
    """The library is bound to the platform and to torch, but to no Python version."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class NativeDistribution(Distribution):
    """Makes setuptools run build_ext although the extension is CMake's."""

    def has_ext_modules(self) -> bool:
        return True


def torch_requirement() -> str:
    """Return the torch that the library will work with: the installed minor version."""
    try:
        major, minor = metadata.version("torch").split(".")[:2]
    except metadata.PackageNotFoundError:
        return "torch"
    return f"torch=={major}.{minor}.*"


setup(
    distclass=NativeDistribution,
    license="BSD-3-Clause",
    install_requires=[torch_requirement()],
    cmdclass={"build_ext": CMakeBuild, "bdist_wheel": PlatformWheel},
)
