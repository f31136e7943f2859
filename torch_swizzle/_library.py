"""Loads libtorch_swizzle.so, after checking that it fits the torch in this process."""

from __future__ import annotations

import filecmp
from pathlib import Path

import torch

_PACKAGE = Path(__file__).resolve().parent
_REBUILD = "'pip install --no-build-isolation .' or 'make build' in the sources"

library_path = str(_PACKAGE / "lib" / "libtorch_swizzle.so")
"""The native library, for programs that load it themselves."""

cmake_prefix_path = str(_PACKAGE / "share" / "cmake")
"""Where CMake's find_package(torch_swizzle) looks; used with torch.utils.cmake_prefix_path."""

try:
    from ._build_info import cuda_version as _built_cuda
    from ._build_info import torch_version as _built_torch
except ImportError:
    raise ImportError(
        f"torch_swizzle has no native library in {_PACKAGE}: build it with {_REBUILD}."
    ) from None


def load_library() -> None:
    """Register the operators `swizzle::*`, once per process.

    Raises:
        ImportError: the library is missing, was built for another torch or CUDA, or another copy of
            it has registered the operators.
    """
    if library_path in torch.ops.loaded_libraries:
        return
    _check_torch()
    if not Path(library_path).exists():
        raise ImportError(f"torch_swizzle misses {library_path}: build it with {_REBUILD}.")
    if hasattr(torch.ops.swizzle, "transpose"):
        _check_loaded_copy()
        return
    torch.ops.load_library(library_path)


def _check_torch() -> None:
    """Refuse another torch minor or CUDA version: the C++ interface changes with each of them."""
    built = _describe(_built_torch, _built_cuda)
    found = _describe(str(torch.__version__), torch.version.cuda)
    if built != found:
        raise ImportError(
            f"torch_swizzle was built for {built}, but this is {found}: rebuild it with {_REBUILD}."
        )


def _describe(torch_version: str, cuda_version: str | None) -> str:
    minor = ".".join(torch_version.split("+")[0].split(".")[:2])
    return (
        f"torch {minor} with CUDA {cuda_version}" if cuda_version else f"torch {minor} without CUDA"
    )


def _check_loaded_copy() -> None:
    """Accept operators that this very library registered, for example linked into the program."""
    is_ours = hasattr(torch.ops.swizzle, "_library")
    file, version = torch.ops.swizzle._library() if is_ours else ("", "")
    if not is_ours or not filecmp.cmp(file, library_path, shallow=False):
        owner = f"{file} (torch_swizzle {version})" if is_ours else "another library"
        raise ImportError(
            f"the operators swizzle::* are already registered by {owner}, so {library_path} cannot "
            "be loaded as well: keep one of the two."
        )
