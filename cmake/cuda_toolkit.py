"""Finds a CUDA toolkit whose nvcc fits torch: the environment's, the system's, or pip's.

As a program it prints the toolkit's folder, or exits 1 if there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path


def torch_cuda_version() -> str | None:
    """Return the CUDA version of the installed torch ("13.0"), without importing torch."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    text = Path(spec.origin).with_name("version.py").read_text()
    found = re.search(r"^cuda\b.*= '([\d.]+)'", text, re.MULTILINE)
    return found.group(1) if found else None


def candidates() -> Iterator[Path]:
    """Yield the folders that may hold bin/nvcc, the most specific choice first."""
    if compiler := os.environ.get("CUDACXX"):
        yield Path(compiler).parent.parent
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home)
    if nvcc := shutil.which("nvcc"):
        yield Path(nvcc).resolve().parent.parent
    yield Path("/usr/local/cuda")
    namespace = find_spec("nvidia")
    for location in (namespace and namespace.submodule_search_locations) or ():
        yield from sorted(Path(location).glob("cu[0-9]*"), reverse=True)


def nvcc_version(home: Path) -> str | None:
    """Return the release that this toolkit's nvcc reports ("13.0"), or None if there is none."""
    if not (home / "include" / "cuda_runtime.h").exists():  # a link to nvcc, without its toolkit
        return None
    try:
        answer = subprocess.run(
            [home / "bin" / "nvcc", "--version"], capture_output=True, text=True
        )
    except OSError:
        return None
    found = re.search(r"release ([\d.]+)", answer.stdout)
    return found.group(1) if found else None


def find_cuda_home(torch_cuda: str | None = None) -> Path | None:
    """Return the first toolkit of the same CUDA major version as torch's, or None."""
    wanted = (torch_cuda or torch_cuda_version() or "").split(".")[0]
    for home in candidates():
        version = nvcc_version(home)
        if version and wanted in ("", version.split(".")[0]):
            return home
    return None


def add_linker_names(home: Path) -> None:
    """Give pip's toolkit, which has lib/libcudart.so.13 alone, the names that nvcc and CMake use.

    Adds the links lib64 -> lib and libNAME.so -> libNAME.so.VERSION.
    """
    library_folder = home / "lib"
    for library in library_folder.glob("lib*.so.*"):
        name = library_folder / f"{library.name.split('.so.')[0]}.so"
        if not name.exists():
            name.symlink_to(library.name)
    (home / "lib64").symlink_to("lib")


def cuda_environment(home: Path) -> dict[str, str]:
    """Return the environment variables by which CMake and torch find this toolkit."""
    if not (home / "lib64").exists():
        add_linker_names(home)
    return {
        "CUDACXX": str(home / "bin" / "nvcc"),
        "CUDA_HOME": str(home),
        "CUDA_PATH": str(home),
        "CUDAToolkit_ROOT": str(home),
    }


if __name__ == "__main__":
    found_home = find_cuda_home()
    if found_home is None:
        sys.exit("no nvcc found that fits the installed torch")
    print(found_home)
