"""Host time of a small call from C++: bench/cpp_host.cpp, compiled against this process's torch."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from bench import timing
from bench.records import SCRATCH

SOURCE = Path(__file__).with_name("cpp_host.cpp")
LIBRARY = "libcpp_host.so"
TORCH = Path(torch.__file__).parent
# Which of the two calls, on the GPU or not, rows and columns, how often: seconds of a call.
SecondsPerCall = Callable[[bool, bool, int, int], float]


def compile_calls(folder: Path = SCRATCH) -> SecondsPerCall:
    """Compiles and loads the calls; the operators are those that the process has loaded.

    Raises:
        RuntimeError: there is no C++ compiler, or it fails; with its last line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / LIBRARY
    command: Sequence[str] = (
        *(os.environ.get("CXX", "c++"), "-O2", "-std=c++20", "-shared", "-fPIC"),
        *(f"-I{TORCH / 'include'}", str(SOURCE), "-o", str(library)),
        *(f"-L{TORCH / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{TORCH / 'lib'}"),
    )
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise RuntimeError(f"no C++ compiler: {command[0]} is not on PATH") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit status {error.returncode}"])[-1]
        raise RuntimeError(f"{command[0]} failed: {last}") from error
    seconds_per_call = ctypes.CDLL(str(library)).seconds_per_call
    seconds_per_call.argtypes = (ctypes.c_bool, ctypes.c_bool, ctypes.c_int64, ctypes.c_int64)
    seconds_per_call.restype = ctypes.c_double
    return seconds_per_call


def time_calls(
    device: torch.device, size: int, *, rounds: int, calls: int
) -> dict[str, timing.Timing]:
    """Time of a call from C++, `auto` and `torch` in alternating rounds.

    Raises:
        RuntimeError: the calls do not compile, or one of them gives a wrong result.
    """
    seconds_per_call = compile_calls()
    samples: dict[str, list[float]] = {"auto": [], "torch": []}
    for repetition in range(rounds + 1):
        for index in timing.balanced_order(2, repetition):
            variant = ("auto", "torch")[index]
            seconds = seconds_per_call(variant == "auto", device.type == "cuda", size, calls)
            if seconds < 0:
                raise RuntimeError(f"{variant}: the transpose called from C++ is wrong")
            if repetition > 0:  # the first round warms up
                samples[variant].append(seconds * 1e3)
    return {variant: timing.summarise(taken) for variant, taken in samples.items()}
