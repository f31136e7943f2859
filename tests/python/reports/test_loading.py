"""Reports of operator libraries that end the process or fail to load, each tried here (O23, O25).

Every case is a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torch_swizzle

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "cmake"))

from cuda_toolkit import cuda_environment, find_cuda_home  # noqa: E402

PACKAGE = Path(torch_swizzle.__file__).parent
LIBRARY = Path(torch_swizzle.library_path)
USE = "print(torch_swizzle.transpose(torch.ones(2, 3, requires_grad=True)).shape)\n"
SHAPE = "torch.Size([3, 2])\n"


def python(code: str, folder: Path = PACKAGE.parent) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that finds the package in `folder`."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The same library in another folder."""
    path = tmp_path / "elsewhere" / LIBRARY.name
    path.parent.mkdir()
    path.write_bytes(LIBRARY.read_bytes())
    return path


@pytest.fixture
def other_build(copy: Path) -> Path:
    """A library that is not byte for byte ours, though it works as ours does."""
    with copy.open("ab") as file:
        file.write(b"another build")
    return copy


class TestTwoCopies:
    """O23, https://github.com/pytorch/pytorch/issues/80865: two registrations end the process."""

    @pytest.mark.setting(
        "a second copy of the library in the process", answer="registers nothing, says so"
    )
    def test_a_second_copy_registers_nothing_and_names_both(self, copy: Path) -> None:
        done = python(
            f"import torch, torch_swizzle\ntorch.ops.load_library({str(copy)!r})\n"
            "print(torch.ops.swizzle._library()[0])\n" + USE
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{LIBRARY}\n{SHAPE}"
        (warning,) = [line for line in done.stderr.splitlines() if "already registered" in line]
        assert f"by {LIBRARY} (torch_swizzle {torch_swizzle.__version__})" in warning
        assert f"so {copy} (torch_swizzle {torch_swizzle.__version__}) registers nothing" in warning
        assert "Overriding a previously registered kernel" not in done.stderr

    def test_a_third_copy_is_as_quiet_as_the_second(self, copy: Path) -> None:
        third = copy.with_name("libthird.so")
        third.write_bytes(copy.read_bytes())
        done = python(
            "import ctypes, torch, torch_swizzle\n"
            f"for path in ({str(copy)!r}, {str(third)!r}):\n"
            "    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)\n" + USE
        )
        assert (done.returncode, done.stdout) == (0, SHAPE), done.stderr

    def test_the_package_takes_the_same_library_loaded_before_it(self, copy: Path) -> None:
        done = python(
            f"import torch; torch.ops.load_library({str(copy)!r}); import torch_swizzle\n"
            "print(torch.ops.swizzle._library()[0])\n" + USE
        )
        assert (done.returncode, done.stdout) == (0, f"{copy}\n{SHAPE}"), done.stderr

    def test_the_package_refuses_another_build_loaded_before_it(self, other_build: Path) -> None:
        done = python(
            f"import torch; torch.ops.load_library({str(other_build)!r}); import torch_swizzle"
        )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"ImportError: the operators swizzle::* are already registered by {other_build} "
            f"(torch_swizzle {torch_swizzle.__version__}), so {LIBRARY} cannot be loaded as well: "
            "keep one of the two."
        )

    def test_import_twice_reload_and_a_second_package_are_fine(self, tmp_path: Path) -> None:
        second = tmp_path / "torch_swizzle"
        (second / "lib").mkdir(parents=True)
        for path in (*PACKAGE.glob("*.py"), LIBRARY):
            (second / path.relative_to(PACKAGE)).write_bytes(path.read_bytes())
        forget = "for name in [n for n in sys.modules if n.startswith('torch_swizzle')]:\n"
        done = python(
            "import importlib, sys, torch, torch_swizzle\n"
            "importlib.reload(torch_swizzle)\nimport torch_swizzle\n"
            f"{forget}    del sys.modules[name]\n"
            f"sys.path.insert(0, {str(tmp_path)!r})\nimport torch_swizzle\n"
            "print(torch_swizzle.__file__)\n" + USE
        )
        assert (done.returncode, done.stdout) == (0, f"{second / '__init__.py'}\n{SHAPE}"), (
            done.stderr
        )

    def test_every_registration_asks_who_owns_the_operators(self) -> None:
        sources = ROOT / "csrc" / "ops"
        blocks = 0
        for path in sources.glob("*.cpp"):
            for block in path.read_text(encoding="utf-8").split("\nTORCH_LIBRARY")[1:]:
                blocks += 1
                first = block.partition("{")[2].lstrip().splitlines()[0]
                assert first.endswith("owns_operators()) return;"), (path.name, block[:80])
        assert blocks > 5


class TestAnotherTorch:
    """O25, https://github.com/pytorch/pytorch/issues/152790: built against another torch wheel.

    From C++, find_package(torch_swizzle) refuses both in the same way.
    """

    @pytest.mark.setting(
        "another torch minor or CUDA build", answer="ImportError with both versions"
    )
    @pytest.mark.parametrize(
        ("change", "found"),
        [
            ("torch.__version__ = '2.99.1+cu130'", f"torch 2.99 with CUDA {torch.version.cuda}"),
            ("torch.__version__ = '1.13.0'", f"torch 1.13 with CUDA {torch.version.cuda}"),
            ("torch.version.cuda = '12.6'", "with CUDA 12.6"),
            ("torch.version.cuda = None", "without CUDA"),
        ],
    )
    def test_the_import_fails_with_both_versions(self, change: str, found: str) -> None:
        done = python(f"import torch; {change}; import torch_swizzle")
        assert done.returncode == 1
        sentence = done.stderr.splitlines()[-1]
        minor = ".".join(torch.__version__.split(".")[:2])
        built = f"torch {minor} with CUDA {torch.version.cuda}"
        assert sentence.startswith(f"ImportError: torch_swizzle was built for {built}, but this is")
        assert found in sentence
        assert "undefined symbol" not in done.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("ours", "other", "sentence"),
        [
            (
                "CUDA {cuda}",
                "CUDA 1.2",
                "for CUDA 1.2, but a torch with 'CUDA {cuda}' was found",
            ),
            (
                r"^{major}\\.{minor}",
                r"^1\\.2",
                "but torch {torch} was found",
            ),
        ],
        ids=["cuda", "torch"],
    )
    def test_find_package_refuses_with_both_versions(
        self, ours: str, other: str, sentence: str, tmp_path: Path
    ) -> None:
        """The package's CMake files, as if they had been built for another torch or CUDA."""
        major, minor = torch.__version__.split(".")[:2]
        found = {
            "cuda": torch.version.cuda,
            "major": major,
            "minor": minor,
            "torch": torch.__version__.split("+")[0],
        }
        files = tmp_path / "share" / "cmake" / "torch_swizzle"
        shutil.copytree(Path(torch_swizzle.cmake_prefix_path) / "torch_swizzle", files)
        config = files / "torch_swizzleConfig.cmake"
        text = config.read_text(encoding="utf-8")
        assert ours.format(**found) in text
        config.write_text(text.replace(ours.format(**found), other), encoding="utf-8")
        cuda_home = find_cuda_home(torch.version.cuda)
        assert cuda_home is not None
        done = subprocess.run(
            [
                *(shutil.which("cmake") or "cmake", "-S", ROOT / "tests" / "cpp_consumer"),
                *("-B", tmp_path / "build"),
                f"-DCMAKE_PREFIX_PATH={tmp_path / 'share' / 'cmake'};"
                f"{torch.utils.cmake_prefix_path}",
            ],
            env=os.environ | cuda_environment(cuda_home),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        words = " ".join(done.stderr.split())
        assert "torch_swizzle was built for" in words
        assert sentence.format(**found) in words
