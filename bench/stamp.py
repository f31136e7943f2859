"""What a recorded result carries: date, GPU, driver, torch, CUDA, and a hash of the sources."""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import subprocess
from typing import Any

import torch

from bench.records import ROOT


def make_stamp(method: str, *, on_gpu: bool) -> dict[str, Any]:
    """The stamp of results measured now, on the GPU or not, with the library that is loaded."""
    properties = torch.cuda.get_device_properties() if on_gpu else None
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "gpu": properties.name if properties else None,
        "driver": driver_version() if on_gpu else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "source_hash": library_hash(),
        "l2_bytes": properties.L2_cache_size if properties else None,
        "method": method,
    }


def driver_version() -> str:
    """The NVIDIA driver's version, or "unknown"."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip().splitlines()[0] if answer.stdout.strip() else "unknown"


def library_hash() -> str:
    """The hash of the sources that the loaded library was built from."""
    return str(importlib.import_module("torch_swizzle._build_info").source_hash)


def tree_hash() -> str:
    """The hash of the sources in this tree."""
    path = ROOT / "tests" / "source_hash.py"
    spec = importlib.util.spec_from_file_location("source_hash", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.source_hash(ROOT))
