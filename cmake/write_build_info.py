"""Writes torch_swizzle/_build_info.py: what the native library was built from and for.

Usage: write_build_info.py OUTPUT name=value...
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from source_hash import source_hash

FIELDS = ("version", "torch_version", "cuda_version", "cuda_architectures", "source_hash")


def main(output: str, *fields: str) -> None:
    """Write the fields and the hash of the sources as typed constants."""
    values = dict(field.split("=", 1) for field in fields)
    values["source_hash"] = source_hash()
    lines = ['"""What the native library was built from and for; written by every build."""', ""]
    lines += [f"{name}: str = {values[name]!r}" for name in FIELDS]
    Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
