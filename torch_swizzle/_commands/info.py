"""`torch-swizzle info`: versions, architectures built, GPUs found, and what works here."""

from __future__ import annotations

import argparse
import json
import platform
from typing import Any

import torch

from .. import __version__, _build_info, transpose
from .options import add_json


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "info",
        help="versions, architectures built, GPUs found, and what works here",
        description="Print versions, architectures built, GPUs found, and what works here.",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what there is; the status is 1 if a GPU fails."""
    gpus = [_describe_gpu(index) for index in range(torch.cuda.device_count())]
    info: dict[str, Any] = {
        "torch_swizzle": __version__,
        "torch": str(torch.__version__),
        "cuda": _build_info.cuda_version,
        "python": platform.python_version(),
        "architectures": _build_info.cuda_architectures.split(),
        "gpus": gpus,
        "works": {
            "cpu_tensors": True,
            "bank_model": True,
            "cuda_tensors": bool(gpus) and all(gpu["error"] is None for gpu in gpus),
        },
    }
    if options.json:
        print(json.dumps(info))
    else:
        print("\n".join(_info_lines(info)))
    return 1 if any(gpu["error"] for gpu in gpus) else 0


def _describe_gpu(index: int) -> dict[str, Any]:
    """Name a GPU and try a transpose on it; `error` is None if that worked."""
    major, minor = torch.cuda.get_device_capability(index)
    error = None
    try:
        transpose(torch.zeros(64, 64, device=f"cuda:{index}")).cpu()
    except RuntimeError as failure:
        error = str(failure).splitlines()[0]
    return {
        "name": torch.cuda.get_device_name(index),
        "capability": f"{major}.{minor}",
        "error": error,
    }


def _info_lines(info: dict[str, Any]) -> list[str]:
    lines = [
        f"torch_swizzle  {info['torch_swizzle']}",
        f"torch          {info['torch']}",
        f"CUDA           {info['cuda']}",
        f"Python         {info['python']}",
        f"built for      {', '.join(info['architectures'])}",
    ]
    for gpu in info["gpus"]:
        state = "kernels run" if gpu["error"] is None else gpu["error"]
        lines.append(f"GPU            {gpu['name']} ({gpu['capability']}): {state}")
    if not info["gpus"]:
        lines.append("GPU            none found")
    lines.append("")
    for name, key in (
        ("bank model", "bank_model"),
        ("CPU tensors", "cpu_tensors"),
        ("CUDA tensors", "cuda_tensors"),
    ):
        lines.append(f"{name:<15}{'works' if info['works'][key] else 'does not work here'}")
    return lines
