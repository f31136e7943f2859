"""`torch-swizzle translate`: which notations mean the same layout, and why others do not."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import banks
from .options import add_json, add_tile, one_sentence


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "translate",
        help="a layout in the notations of CuTe, TMA, the article and padding",
        description="Spell a layout in every notation, or say why it cannot be. Exit status 1 if "
        "--to names a layout that is another map.",
    )
    parser.add_argument(
        "layout",
        metavar="LAYOUT",
        help="naive, padded[:BYTES[/ROWS]], swizzled, line:CHUNK, article:CHUNK[,COLUMNS], "
        "cute:B,M,S, cute-elements:B,M,S or tma:32|64|128",
    )
    add_tile(parser, default="32x32")
    parser.add_argument("--to", metavar="LAYOUT", help="compare with this layout alone")
    add_json(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print the spellings, or the comparison with `--to`."""
    try:
        if options.to is None:
            translation = banks.translate(options.layout, options.shape, options.element)
            print(json.dumps(translation.to_dict()) if options.json else translation)
            return 0
        layout = banks.describe_layout(options.layout, options.shape, options.element)
        found = banks.compare(options.layout, options.to, options.shape, options.element)
    except ValueError as error:
        options.parser.error(one_sentence(error))
    if options.json:
        print(json.dumps({"layout": layout.to_dict(), "spellings": [found.to_dict()]}))
    else:
        print(f"{layout}\n  {found}")
    return 0 if found.is_equal else 1
