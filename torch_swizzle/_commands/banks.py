"""`torch-swizzle banks`: wavefronts of a tile, who meets whom, and pictures of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .. import banks
from ..banks import BankReport, LayoutReport
from .options import add_block, add_element, add_json, one_sentence, tile_shape

_PARTS = ("store", "load", "tile")


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "banks",
        help="wavefronts of a tile in shared memory: taken, ideal, excess, and who meets whom",
        description="Count the wavefronts of a thread block that writes a tile and reads it back: "
        "of any tile, or with --tile of one of this package's kernels, whose own code is run on "
        "the CPU. Exit status 1 if the excess is above --max-excess.",
    )
    parser.add_argument(
        "shape", metavar="TILE", nargs="?", type=tile_shape, help="rows x columns, as 32x32"
    )
    parser.add_argument(
        "--tile",
        help="instead of TILE, a kernel's tile: scalar32, vector, vector128 or short_vector "
        "(default: scalar32)",
    )
    add_element(parser)
    parser.add_argument(
        "--layout",
        default="naive",
        help="naive (default), padded or swizzled; of a TILE also padded:BYTES[/ROWS], line:CHUNK, "
        "article:CHUNK[,COLUMNS], cute:B,M,S, cute-elements:B,M,S or tma:32|64|128",
    )
    for kind, default in (("store", "row"), ("load", "column")):
        parser.add_argument(
            f"--{kind}",
            metavar="ACCESS",
            help=f"the {kind}s of a TILE: row, column or stride-K (0: a broadcast), with :BYTES "
            f"for vectors (default: {default})",
        )
    add_block(parser)
    parser.add_argument(
        "--max-excess",
        type=int,
        metavar="WAVEFRONTS",
        help="exit with status 1 if all requests together take more beyond the ideal",
    )
    form = parser.add_mutually_exclusive_group()
    add_json(form)
    form.add_argument(
        "--picture",
        choices=["text", "svg", "png"],
        help="draw lanes against banks, of the worst store and load, and a TILE as it is stored",
    )
    parser.add_argument(
        "--part", action="append", choices=_PARTS, help="draw this part alone; may be repeated"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write there instead of to standard output"
    )
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print the report or the pictures."""
    try:
        report = _report(options)
    except ValueError as error:
        options.parser.error(one_sentence(error))
    result = _answer(options, report)
    if options.output is not None:
        options.output.write_bytes(result if isinstance(result, bytes) else result.encode())
    elif isinstance(result, bytes):
        sys.stdout.buffer.write(result)
    else:
        sys.stdout.write(result)
    is_over = options.max_excess is not None and report.excess > options.max_excess
    return 1 if is_over else 0


def _report(options: argparse.Namespace) -> BankReport:
    if options.shape is None:
        for name in ("store", "load", "block"):
            if getattr(options, name) is not None:
                raise ValueError(f"expected a TILE with --{name}, got none")
        return banks.tile_report(options.layout, options.tile or "scalar32", options.element)
    if options.tile is not None:
        raise ValueError("expected TILE or --tile, got both")
    return banks.layout_report(
        options.layout,
        options.shape,
        options.element,
        store=options.store or "row",
        load=options.load or "column",
        block=options.block,
    )


def _answer(options: argparse.Namespace, report: BankReport) -> str | bytes:
    """Return what is asked for, as the text or the file's bytes."""
    parts = options.part or _PARTS
    if options.json:
        return json.dumps(_json(options, report)) + "\n"
    if options.picture == "svg":
        return banks.draw_report(report, parts).to_svg()
    if options.picture == "png":
        try:
            return banks.draw_report(report, parts).to_png()
        except ImportError:
            options.parser.error("--picture png needs Pillow: pip install pillow")
    blocks = [] if isinstance(report, LayoutReport) else [_kernel_line(options)]
    if options.picture == "text":
        blocks = [str(report).split("\n\n")[0]] if isinstance(report, LayoutReport) else blocks
        blocks += banks.draw_report_text(report, parts)
    else:
        blocks.append(str(report))
    return "\n\n".join(blocks) + "\n"


def _kernel_line(options: argparse.Namespace) -> str:
    tile = options.tile or "scalar32"
    return f"tile {tile}, layout {options.layout}, elements of {options.element} bytes"


def _json(options: argparse.Namespace, report: BankReport) -> dict[str, Any]:
    if isinstance(report, LayoutReport):
        return report.to_dict()
    return {
        "tile": options.tile or "scalar32",
        "layout": options.layout,
        "element_bytes": options.element,
        "store": report.stores.to_dict(),
        "load": report.loads.to_dict(),
    }
