"""Options that several sub-commands share, and how they answer a wrong call."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Answers a wrong call in one sentence instead of with the usage."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and the sentence."""
        self.exit(2, f"{self.prog}: {message}\n")


def tile_shape(text: str) -> tuple[int, int]:
    """Read ROWSxCOLS."""
    found = re.fullmatch(r"(\d{1,7})x(\d{1,7})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected ROWSxCOLS, as 32x32, got {text!r}")
    return int(found[1]), int(found[2])


def block_shape(text: str) -> tuple[int, ...]:
    """Read XxY or XxYxZ."""
    if re.fullmatch(r"\d{1,5}(x\d{1,5}){0,2}", text) is None:
        raise argparse.ArgumentTypeError(f"expected XxY or XxYxZ, as 32x8, got {text!r}")
    return tuple(map(int, text.split("x")))


def add_tile(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add TILE, required unless it has a default, and --element."""
    parser.add_argument(
        "shape",
        metavar="TILE",
        type=tile_shape,
        nargs="?" if default else None,
        default=default,
        help="rows x columns, as 32x32" + (f" (default: {default})" if default else ""),
    )
    add_element(parser)


def add_element(parser: argparse.ArgumentParser) -> None:
    """Add --element."""
    parser.add_argument(
        "--element",
        type=int,
        default=4,
        metavar="BYTES",
        help="size of an element: 1, 2, 4, 8 or 16 bytes (default: 4)",
    )


def add_block(parser: argparse.ArgumentParser) -> None:
    """Add --block."""
    parser.add_argument(
        "--block",
        type=block_shape,
        metavar="XxY",
        help="threads of the block, x first; it steps over the tile, and columns are taken with x "
        "and y exchanged (default: threads numbered along the tile)",
    )


def add_json(parser: Any) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def one_sentence(error: ValueError) -> str:
    """Return an error's message without the operator's name and the full stop."""
    return re.sub(r"^swizzle::\w+: ", "", str(error)).rstrip(".")
