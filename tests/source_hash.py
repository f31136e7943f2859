"""The hash that ties a built library, a GPU record and a benchmark to the sources they came from.

`python tests/source_hash.py` prints it; with `--built` it exits 1 if the library in torch_swizzle/
was not built from these sources. Needs no torch and no git.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("csrc", "torch_swizzle")
SUFFIXES = {".h", ".hpp", ".cuh", ".cu", ".cpp", ".py"}
BUILD_OUTPUTS = ("lib", "include", "share", "_build_info.py")


def sources(root: Path) -> list[str]:
    """Return the paths of the hashed files, relative to root, sorted."""
    outputs = tuple(root / "torch_swizzle" / name for name in BUILD_OUTPUTS)
    return sorted(
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in SUFFIXES
        and path.is_file()
        and not any(path == output or output in path.parents for output in outputs)
    )


def source_hash(root: Path | None = None) -> str:
    """Return the sha256 over paths and contents of csrc/ and torch_swizzle/ less build outputs."""
    root = ROOT if root is None else root
    digest = hashlib.sha256()
    for name in sources(root):
        content = (root / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def built_hash(root: Path = ROOT) -> str | None:
    """Return the hash that the library in torch_swizzle/ was built from; None without a library."""
    package = root / "torch_swizzle"
    info = package / "_build_info.py"
    if not info.exists() or not (package / "lib" / "libtorch_swizzle.so").exists():
        return None
    found = re.search(r"^source_hash: str = '(\w+)'$", info.read_text(), re.MULTILINE)
    return found.group(1) if found else None


if __name__ == "__main__":
    if sys.argv[1:] == ["--built"]:
        sys.exit(0 if built_hash() == source_hash() else 1)
    print(source_hash())
