"""The command `torch-swizzle`, also `python -m torch_swizzle`.

Exit status: 0 if the command did its work, 1 if `info` finds a GPU on which the kernels fail or
`profile` counters that differ from the model's, 2 for a wrong call and 3 for counters that cannot
be read, each answered in one sentence.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from . import __version__, _build_info, _profile_command, banks, transpose


class _Parser(argparse.ArgumentParser):
    """Answers a wrong call in one sentence instead of with the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="torch-swizzle", description="Shared-memory bank conflicts, predicted without a GPU."
    )
    parser.add_argument("--version", action="version", version=f"torch-swizzle {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    banks_parser = commands.add_parser(
        "banks",
        help="wavefronts of a transpose kernel's tile: taken, ideal, excess, and who meets whom",
        description="Count the wavefronts of one full tile of a transpose kernel, on the CPU.",
    )
    banks_parser.add_argument(
        "--tile", default="scalar32", help="scalar32, vector or vector128 (default: scalar32)"
    )
    banks_parser.add_argument(
        "--layout", default="naive", help="naive, padded or swizzled (default: naive)"
    )
    banks_parser.add_argument(
        "--element",
        type=int,
        default=4,
        metavar="BYTES",
        help="size of an element: 1, 2, 4, 8 or 16 bytes (default: 4)",
    )
    form = banks_parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--picture", choices=["text"], help="draw lanes against banks, of the worst store and load"
    )
    banks_parser.set_defaults(run=_run_banks, parser=banks_parser)

    _profile_command.add_parser(commands)

    info_parser = commands.add_parser(
        "info",
        help="versions, architectures built, GPUs found, and what works here",
        description="Print versions, architectures built, GPUs found, and what works here.",
    )
    info_parser.add_argument("--json", action="store_true", help="print JSON")
    info_parser.set_defaults(run=_run_info)
    return parser


def _run_banks(options: argparse.Namespace) -> int:
    try:
        report = banks.tile_report(options.layout, options.tile, options.element)
    except ValueError as error:
        options.parser.error(str(error))
    if options.json:
        result = {
            "tile": options.tile,
            "layout": options.layout,
            "element_bytes": options.element,
            "store": report.stores.to_dict(),
            "load": report.loads.to_dict(),
        }
        print(json.dumps(result))
        return 0
    print(f"tile {options.tile}, layout {options.layout}, elements of {options.element} bytes\n")
    if options.picture:
        print(banks.draw_request(report.stores.worst))
        print()
        print(banks.draw_request(report.loads.worst))
    else:
        print(report)
    return 0


def _run_info(options: argparse.Namespace) -> int:
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


if __name__ == "__main__":
    sys.exit(main())
