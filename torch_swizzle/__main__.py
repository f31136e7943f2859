"""The command `torch-swizzle`, also `python -m torch_swizzle`.

Exit status: 0 if the command did its work; 1 if `info` finds a GPU on which the kernels fail,
`banks` more excess than was allowed, `translate` another map than the one asked for, or `profile`
counters that differ from the model's; 2 for a wrong call and 3 for counters that cannot be read,
each answered in one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import __version__
from ._commands import COMMANDS
from ._commands.options import Parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> Parser:
    parser = Parser(
        prog="torch-swizzle", description="Shared-memory bank conflicts, predicted without a GPU."
    )
    parser.add_argument("--version", action="version", version=f"torch-swizzle {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
