"""Renders docs/banks.md: the output below every command in it, and its pictures.

`python tests/banks_page.py` writes them anew; the tests compare. A command stands in a console
block after `$ torch-swizzle`; what follows, up to the next command or the block's end, is output.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from pathlib import Path

from torch_swizzle.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "banks.md"
PICTURES = ROOT / "docs" / "pictures"
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def render(page: str) -> tuple[str, dict[str, str]]:
    """Return the page with fresh outputs, and name -> content of the pictures that it makes."""
    pictures: dict[str, str] = {}

    def render_block(block: re.Match[str]) -> str:
        commands = [line for line in block[0].splitlines() if line.startswith("$ ")]
        return "".join(f"{command}\n{_run(command, pictures)}" for command in commands)

    return _BLOCK.sub(render_block, page), pictures


def _run(command: str, pictures: dict[str, str]) -> str:
    """Return what a command prints; a picture goes to `pictures` instead of its file."""
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "torch-swizzle", command
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        file = Path(folder) / "picture"
        name = None
        if "--output" in arguments:
            place = arguments.index("--output") + 1
            name, arguments[place] = Path(arguments[place]).name, str(file)
        main(arguments)
        if name is not None:
            pictures[name] = file.read_text()
    return printed.getvalue()


def write() -> None:
    """Write the page and its pictures."""
    page, pictures = render(PAGE.read_text())
    PAGE.write_text(page)
    PICTURES.mkdir(exist_ok=True)
    for name, content in pictures.items():
        (PICTURES / name).write_text(content)


if __name__ == "__main__":
    write()
