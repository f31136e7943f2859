"""`torch-swizzle advise`: the layouts of a tile that no other beats, and the lower bound."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import banks
from .options import add_block, add_json, add_tile, one_sentence


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "advise",
        help="layouts to choose from for a tile and its accesses, and why none is better",
        description="List the layouts that no other beats in wavefronts, bytes, widest vector and "
        "whether TMA can write them, with a lower bound for any layout.",
    )
    add_tile(parser)
    parser.add_argument(
        "--access",
        action="append",
        metavar="ACCESS",
        help="row, column or stride-K, with :BYTES for vectors; repeat it for each access that "
        "goes over the tile (default: row and column)",
    )
    add_block(parser)
    parser.add_argument(
        "--max-bytes", type=int, metavar="BYTES", help="shared memory that the tile may take"
    )
    add_json(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print the advice."""
    try:
        advice = banks.advise(
            options.shape,
            options.element,
            options.access or ("row", "column"),
            block=options.block,
            max_bytes=options.max_bytes,
        )
    except ValueError as error:
        options.parser.error(one_sentence(error))
    print(json.dumps(advice.to_dict()) if options.json else advice)
    return 0
