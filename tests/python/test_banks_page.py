"""docs/banks.md: its commands print what it says, its examples hold, its pictures are fresh."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess

import pytest
from banks_page import PAGE, PICTURES, ROOT, render

TEXT = PAGE.read_text()
COMPILER = shutil.which("c++")


@pytest.fixture(scope="module")
def rendered() -> tuple[str, dict[str, str]]:
    return render(TEXT)


def test_every_command_prints_what_the_page_shows(rendered: tuple[str, dict[str, str]]) -> None:
    assert rendered[0].splitlines() == TEXT.splitlines()
    assert TEXT.count("\n$ torch-swizzle ") >= 20


def test_every_picture_is_the_tools_own(rendered: tuple[str, dict[str, str]]) -> None:
    shown = set(re.findall(r"\]\(pictures/([\w.]+)\)", TEXT))
    stored = {path.name for path in PICTURES.iterdir()}
    assert set(rendered[1]) == shown == stored
    for name, content in rendered[1].items():
        assert (PICTURES / name).read_text() == content, name


def test_every_python_example_holds() -> None:
    source = "\n".join(re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(source, {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 10
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_the_cpp_example_compiles_and_its_claims_are_checked() -> None:
    (example,) = re.findall(r"^```cpp\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert compile_core(example) == ""
    assert "static assertion failed" in compile_core(example.replace("33", "32"))


def compile_core(source: str) -> str:
    """Check the syntax of a source that uses the bank model, and return the errors."""
    done = subprocess.run(
        [str(COMPILER), "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'csrc'}", "-x", "c++", "-"],
        input=f'#include "core/bank_model.hpp"\n{source}',
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


def test_every_question_of_the_article_is_answered() -> None:
    section = TEXT.split("## The questions of the second article")[1].split("\n## ")[0]
    assert len(re.findall(r"^\*\*.*\?\*\*", section, re.MULTILINE)) == 15
