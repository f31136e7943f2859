"""Chooses the Python that the Makefile works with and installs what it lacks.

Usage: environment.py [--python PYTHON] --output FILE GROUP...

A GROUP is an extra of pyproject.toml, or `build`. Without --python: python3, if it has torch and
everything asked for or is a virtual environment with torch; else .venv, which is created. nvcc is
the system's where it fits torch, else pip's. FILE is for the shell to source: it sets PYTHON, PATH,
CMAKE_GENERATOR and the variables by which CMake and torch find CUDA.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from cuda_toolkit import cuda_environment, find_cuda_home, torch_cuda_version

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
TORCH = "torch==2.11.0"
TORCH_CUDA = "13.0"
OLDEST_CMAKE = (3, 24)


def extras() -> dict[str, list[str]]:
    """Return the optional dependencies that pyproject.toml names."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        from pip._vendor import tomli as tomllib
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]["optional-dependencies"]


def is_installed(requirement: str) -> bool:
    """Say whether this Python has a distribution, at its version where one is pinned."""
    name, _, pinned = re.sub(r">=.*", "", requirement).partition("==")
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return not pinned or version == pinned


def has_cmake() -> bool:
    """Say whether a recent enough CMake is in reach."""
    cmake = shutil.which("cmake")
    if cmake is None:
        return False
    answer = subprocess.run([cmake, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)\.(\d+)", answer)
    return found is not None and tuple(map(int, found.groups())) >= OLDEST_CMAKE


def toolkit_requirements(cuda: str) -> list[str]:
    """Return pip's CUDA toolkit with nvcc.

    nvvm is named because nvcc alone would bring its newest version, whose output ptxas refuses.
    """
    parts = "nvcc,cccl,crt,cudart,nvrtc,cublas,cusparse,cusolver,curand,cufft,nvtx,cupti"
    return [f"cuda-toolkit[{parts}]=={cuda}.*", f"nvidia-nvvm=={cuda}.*"]


def survey(groups: list[str]) -> dict[str, object]:
    """Return what the running Python has and lacks; printed as JSON for the Python that asked."""
    has_torch = is_installed("torch")
    cuda = (torch_cuda_version() if has_torch else None) or TORCH_CUDA
    home = find_cuda_home(cuda)
    known = extras() | {"build": ["setuptools", "wheel"]}
    missing = [
        requirement
        for group in groups
        for requirement in known[group]
        if not is_installed(requirement)
    ]
    if not has_torch:
        missing.append(TORCH)
    if "build" in groups:
        missing += [] if has_cmake() else ["cmake>=3.24"]
        missing += [] if shutil.which("ninja") else ["ninja"]
        missing += [] if home else toolkit_requirements(cuda)
    return {
        "torch": has_torch,
        "virtual": sys.prefix != sys.base_prefix,
        "missing": missing,
        "cuda": cuda_environment(home) if home else {},
    }


def search_path(python: str) -> str:
    """Return PATH with the programs of this Python's environment first."""
    return f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"


def ask(python: str, groups: list[str]) -> dict:
    """Run the survey under another Python."""
    answer = subprocess.run(
        [python, __file__, "--survey", "--output", "-", *groups],
        env=os.environ | {"PATH": search_path(python)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(answer.stdout)


def choose_python(groups: list[str]) -> str:
    """Return python3 if it will do, else the Python of .venv, which is created if need be."""
    at_hand = shutil.which("python3") or sys.executable
    state = ask(at_hand, groups)
    if state["torch"] and (state["virtual"] or not state["missing"]):
        return at_hand
    python = VENV / "bin" / "python"
    if not python.exists():
        print(f"Creating {VENV}", flush=True)
        subprocess.run([at_hand, "-m", "venv", VENV], check=True)
    return str(python)


def main() -> None:
    """Choose, install and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python")
    parser.add_argument("--output", required=True)
    parser.add_argument("--survey", action="store_true")
    parser.add_argument("groups", nargs="*")
    arguments = parser.parse_args()
    if arguments.survey:
        print(json.dumps(survey(arguments.groups)))
        return

    python = shutil.which(arguments.python) if arguments.python else choose_python(arguments.groups)
    if python is None:
        raise SystemExit(f"PYTHON={arguments.python} was not found.")
    python = os.path.abspath(python)
    state = ask(python, arguments.groups)
    if state["missing"]:
        print(f"Installing into {python}:", *state["missing"], flush=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *state["missing"]], check=True)
        state = ask(python, arguments.groups)
        if state["missing"]:
            raise SystemExit(f"{python} still lacks {', '.join(state['missing'])}.")

    variables = {
        "PYTHON": python,
        "PATH": search_path(python),
        "CMAKE_GENERATOR": "Ninja",
        **state["cuda"],
    }
    output = Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    )


if __name__ == "__main__":
    main()
