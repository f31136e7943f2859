"""`python -m bench.accelerate`: torch's own copies with and without `torch_swizzle.accelerate()`.

Four questions: is `x.transpose(-2, -1).contiguous()` as fast as the operator, is any copy that is
taken slower than before, what does a copy that is left pay, and what do three programs gain.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional

from bench import timing
from bench.arms import bits, eager
from bench.grid import CPU_GROUPS, GRID, Case, random_bits
from bench.records import ACCELERATE_NAME, GRID_GROUP, RESULTS, SCRATCH, case_label
from bench.stamp import make_stamp
from bench.tables import make_console
from torch_swizzle import _accelerate

Call = Callable[[], Any]

PROGRAM_METHOD = "wall time of whole steps between synchronisations, with and without in turns"
HOST_METHOD = "host time of a call that nothing waits for, with and without in turns, median"
ROUNDS = 9
HOST_ROUNDS = 400  # with 40 the medians varied by as much as is looked for, 0.3 us
HOST_CALLS = 50  # enqueued between two synchronisations: fewer than a stream's queue holds


class Switch:
    """Turns acceleration on and off on one device; on the CPU it is the tests' private twin."""

    def __init__(self, device: torch.device):
        self._device = device

    def __call__(self, enabled: bool) -> None:
        """Switch."""
        _accelerate._switch(enabled, self._device)

    def around(self, call: Call) -> Call:
        """The call with acceleration on for its duration."""

        def accelerated() -> Any:
            self(True)
            try:
                return call()
            finally:
                self(False)

        return accelerated

    def taken(self, call: Call) -> tuple[int, int]:
        """How many copies of one call are taken, and how many there are."""
        before = _counts()
        torch.ops.swizzle._count_copies(True)
        self.around(call)()
        torch.ops.swizzle._count_copies(False)
        after = _counts()
        return after[0] - before[0], after[1] - before[1]


def _counts() -> tuple[int, int]:
    _, taken, calls, _ = torch.ops.swizzle._copy_counts()
    return sum(n for n, is_taken in zip(calls, taken, strict=True) if is_taken), sum(calls)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and records; returns 1 if a result was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.accelerate", description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="small cases, programs on the host")
    parser.add_argument("--budget", type=float, default=0.25, help="seconds per case")
    parser.add_argument("--out", type=Path, help=f"default: bench/results/{ACCELERATE_NAME}")
    options = parser.parse_args(argv)
    on_gpu = torch.cuda.is_available() and not options.cpu
    console = make_console()
    device = torch.device("cuda" if on_gpu else "cpu")
    clock = functools.partial(
        timing.time_kernels if on_gpu else timing.time_cpu, budget_s=options.budget
    )
    switch = Switch(device)
    try:
        record = {
            "stamp": make_stamp(timing.METHOD if on_gpu else timing.CPU_METHOD, on_gpu=on_gpu),
            "grid": measure_grid(device, switch, clock, console),
            "copies": measure_copies(device, switch, clock, console),
            "host_method": HOST_METHOD,
            "host": measure_host(device, switch, console),
            "program_method": PROGRAM_METHOD,
            "programs": measure_programs(device, switch, console),
        }
    except AssertionError as error:
        console.print(f"a result was wrong: {error}", markup=False)
        return 1
    out = options.out or ((RESULTS if on_gpu else SCRATCH) / ACCELERATE_NAME)
    save(record, out)
    console.print(f"results: {out}", soft_wrap=True)
    return 0


def save(record: dict[str, Any], path: Path) -> None:
    """Writes the record, one row a line."""
    parts = []
    for key, value in record.items():
        if isinstance(value, list):
            rows = ",\n".join("  " + json.dumps(row) for row in value)
            parts.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: " + json.dumps(value, indent=1).replace("\n", "\n "))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _same(actual: Tensor, expected: Tensor, what: str) -> None:
    assert actual.stride() == expected.stride(), f"{what}: strides {actual.stride()}"
    assert torch.equal(bits(actual), bits(expected)), f"{what}: wrong bits"


def _free(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()


def measure_grid(
    device: torch.device, switch: Switch, clock: Callable[..., Any], console: Console
) -> list[dict[str, Any]]:
    """Each case of the grid: the operator, torch's transposed copy without and with."""
    rows = []
    cases: list[Case] = GRID if device.type == "cuda" else CPU_GROUPS[GRID_GROUP][:3]
    for case in cases:
        x = case.build(device)
        call = functools.partial(eager, x)
        _same(switch.around(call)(), call(), case.label)
        arms = {
            "op": functools.partial(torch.ops.swizzle.transpose, x),
            "off": call,
            "on": switch.around(call),
        }
        times = clock(arms)
        row = {"case": case.label, **{f"{name}_ms": _short(times[name].ms) for name in arms}}
        rows.append(row)
        console.print(_line(row), markup=False)
        del x, arms, call
        _free(device)
    return rows


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _line(row: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in row.items())


def _matrix(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    count = 1
    for size in shape:
        count *= size
    return random_bits(count, dtype, device).view(shape)


def copies(device: torch.device) -> list[tuple[str, Call]]:
    """Copies other than the grid's that are taken: small ones, slices, memory formats, runs."""
    half, word, byte = torch.float16, torch.float32, torch.uint8
    cases: list[tuple[str, Call]] = []
    full = device.type == "cuda"
    for dtype in (byte, half, word):
        for side in (64, 128, 256, 512) if full else (64,):
            x = _matrix((side, side), dtype, device)
            if torch.ops.swizzle._copy_reason(torch.empty_like(x), x.t()) == "small":
                continue
            label = case_label(str(dtype).removeprefix("torch."), x.shape, "contiguous")
            cases.append((f"{label} transposed", functools.partial(eager, x)))
    scale = 1 if full else 8
    batch, heads, tokens = 16 // scale, 16 // scale, 2048 // scale
    x = _matrix((4096 // scale, 4096 // scale), word, device)
    whole = torch.zeros(4096 // scale, 8192 // scale, dtype=word, device=device)
    part = whole[:, 1000 // scale : 1000 // scale + x.shape[0]]
    cases.append(("float32 transposed into a slice", lambda: part.copy_(x.t())))
    for dtype, name in ((half, "float16"), (word, "float32"), (byte, "uint8")):
        y = _matrix((batch, tokens, heads, 64), dtype, device)
        cases.append((f"{name} heads of 64", functools.partial(_swap_heads, y)))
        image = _matrix((64 // scale, 256 // scale, 56, 56), dtype, device)
        last = image.contiguous(memory_format=torch.channels_last)
        cases.append((f"{name} NCHW to NHWC", functools.partial(_to_last, image)))
        cases.append((f"{name} NHWC to NCHW", functools.partial(Tensor.contiguous, last)))
        rgb = _matrix((64 // scale, 3, 224, 224), dtype, device)
        cases.append((f"{name} images NCHW to NHWC", functools.partial(_to_last, rgb)))
        rows = _matrix((8192 // scale, 8192), dtype, device)[:, :4096]
        cases.append((f"{name} rows at a pitch", rows.contiguous))
        axes = _matrix((64 // scale, 96, 80, 64), dtype, device).permute(3, 1, 0, 2)
        cases.append((f"{name} permuted (3, 1, 0, 2)", axes.contiguous))
    return cases


def _swap_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous()


def _to_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def measure_copies(
    device: torch.device, switch: Switch, clock: Callable[..., Any], console: Console
) -> list[dict[str, Any]]:
    """Kernel time of copies without and with, and whether they are taken."""
    rows = []
    for label, call in copies(device):
        expected = call().clone()
        _same(switch.around(call)().clone(), expected, label)
        times = clock({"off": call, "on": switch.around(call)})
        is_taken = switch.taken(call)[0] > 0
        row = {
            "case": label,
            "taken": is_taken,
            **{f"{name}_ms": _short(times[name].ms) for name in ("off", "on")},
        }
        rows.append(row)
        console.print(_line(row), markup=False)
    _free(device)
    return rows


def left_copies(device: torch.device) -> list[tuple[str, Call]]:
    """Copies that are left, one of each reason."""
    side = 8192 if device.type == "cuda" else 512

    def zeros(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(sizes, dtype=dtype, device=device)

    def copy(to: Tensor, source: Tensor) -> Call:
        return lambda: to.copy_(source)

    images = zeros(8, 16, 32, 32).to(memory_format=torch.channels_last)
    return [
        ("plain, 16 elements", copy(zeros(16), zeros(16))),
        ("plain, 256 x 256", copy(zeros(256, 256), zeros(256, 256))),
        (f"plain, {side} x {side}", copy(zeros(side, side), zeros(side, side))),
        ("cast, 16 elements", copy(zeros(16), zeros(16, dtype=torch.float16))),
        ("cast, 256 x 256", copy(zeros(256, 256), zeros(256, 256, dtype=torch.float16))),
        ("broadcast, 256 x 256", copy(zeros(256, 256), zeros(256))),
        ("small transposed, 30 x 30", copy(zeros(30, 30), zeros(30, 30).t())),
        ("channels_last to channels_last", copy(torch.empty_like(images), images)),
        ("rows of 255 at a pitch", copy(zeros(256, 255), zeros(256, 257)[:, 1:256])),
        (
            "five dimensions",
            copy(zeros(7, 6, 5, 4, 33), zeros(9, 8, 7, 6, 35)[:7, :6, :5, :4, 1:34]),
        ),
    ]


def measure_host(device: torch.device, switch: Switch, console: Console) -> list[dict[str, Any]]:
    """Host time of copies that are left, without and with."""
    rows = []
    for label, call in left_copies(device):
        assert switch.taken(call) == (0, 1), f"{label} was taken"
        times: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(HOST_ROUNDS):
            for enabled in (False, True) if turn % 2 else (True, False):
                switch(enabled)
                call()
                _synchronise(device)
                begin = time.perf_counter()
                for _ in range(HOST_CALLS):
                    call()
                times[enabled].append((time.perf_counter() - begin) / HOST_CALLS * 1e6)
                _synchronise(device)
        switch(False)
        off, on = statistics.median(times[False]), statistics.median(times[True])
        row = {"case": label, "off_us": _short(off), "on_us": _short(on)}
        rows.append(row)
        console.print(_line(row), markup=False)
    return rows


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def image_program(device: torch.device) -> dict[str, Call]:
    """A convolutional model, weights and images, from NCHW to NHWC."""
    full = device.type == "cuda"
    dtype = torch.float16 if full else torch.float32
    try:
        from torchvision.models import resnet50

        model: nn.Module = resnet50()
    except ImportError:
        model = nn.Sequential(*[nn.Conv2d(3 if i == 0 else 256, 256, 3) for i in range(8)])
    model = model.to(device, dtype).eval()
    weights = [p for p in model.parameters() if p.dim() == 4]
    batch, side = (256, 224) if full else (1, 32)
    images = torch.randn(batch, 3, side, side, device=device, dtype=dtype)
    maps = torch.randn(batch, 256, side // 4, side // 4, device=device, dtype=dtype)
    last = maps.to(memory_format=torch.channels_last)
    model = model.to(memory_format=torch.channels_last)
    plain = [weight.detach().contiguous() for weight in weights]

    def convert_weights() -> Tensor:
        return [weight.to(memory_format=torch.channels_last) for weight in plain][-1]

    def infer() -> Tensor:
        with torch.no_grad():
            result: Tensor = model(images.to(memory_format=torch.channels_last))
        return result

    return {
        "weights to NHWC": convert_weights,
        "images to NHWC": lambda: images.to(memory_format=torch.channels_last),
        "feature maps to NHWC": lambda: maps.to(memory_format=torch.channels_last),
        "feature maps to NCHW": lambda: last.contiguous(),
        "inference from NCHW images": infer,
    }


def attention_program(device: torch.device) -> dict[str, Call]:
    """An attention block that makes the heads of queries, keys and values contiguous."""
    full = device.type == "cuda"
    batch, tokens, heads, width = (8, 2048, 32, 128) if full else (1, 64, 2, 64)
    dtype = torch.float16 if full else torch.float32
    model_width = heads * width
    x = torch.randn(batch, tokens, model_width, device=device, dtype=dtype)
    project = nn.Linear(model_width, 3 * model_width, device=device, dtype=dtype)
    leave = nn.Linear(model_width, model_width, device=device, dtype=dtype)
    qkv = torch.randn(batch, tokens, 3, heads, width, device=device, dtype=dtype)

    def split(qkv: Tensor) -> Tensor:
        return qkv.permute(2, 0, 3, 1, 4).contiguous()

    def block() -> Tensor:
        with torch.no_grad():
            q, k, v = split(project(x).view(batch, tokens, 3, heads, width))
            mixed = functional.scaled_dot_product_attention(q, k, v)
            result: Tensor = leave(mixed.transpose(1, 2).reshape(batch, tokens, model_width))
        return result

    def keys_transposed() -> Tensor:
        return qkv[:, :, 1].permute(0, 2, 3, 1).contiguous()

    return {
        "heads made contiguous": lambda: split(qkv),
        "keys transposed and made contiguous": keys_transposed,
        "whole block": block,
    }


def float8_program(device: torch.device) -> dict[str, Call]:
    """The backward pass of a float8 linear layer, whose products need transposed operands.

    The hardware multiplies float8 matrices that are both contiguous along the summed dimension, so
    the gradient of the input needs the weight's transpose, that of the weight both others'.
    """
    full = device.type == "cuda"
    tokens, wide, out = (32768, 8192, 8192) if full else (64, 96, 128)
    dtype = torch.float8_e4m3fn

    def draw(*sizes: int) -> Tensor:
        return torch.randn(sizes, device=device).to(dtype)

    x, weight, gradient = draw(tokens, wide), draw(out, wide), draw(tokens, out)
    one = torch.ones((), device=device)

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        """A @ b.t() of two row-major matrices."""
        result: Tensor = torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)
        return result

    def backward() -> Tensor:
        of_input = multiply(gradient, weight.t().contiguous())
        multiply(gradient.t().contiguous(), x.t().contiguous())
        return of_input

    return {
        "operand transposed": lambda: x.t().contiguous().view(torch.uint8),
        "backward of the layer": backward,
    }


PROGRAMS: dict[str, Callable[[torch.device], dict[str, Call]]] = {
    "convolutional model": image_program,
    "attention block": attention_program,
    "float8 linear layer": float8_program,
}


def measure_programs(
    device: torch.device, switch: Switch, console: Console
) -> list[dict[str, Any]]:
    """Time of a step of each program, without and with."""
    rows = []
    for program, build in PROGRAMS.items():
        for step, call in build(device).items():
            expected, actual = call(), switch.around(call)()
            torch.testing.assert_close(actual, expected, rtol=1e-2, atol=1e-2, equal_nan=True)
            taken, copied = switch.taken(call)
            samples: dict[bool, list[float]] = {False: [], True: []}
            repeats = _repeats(call, device)
            for _ in range(ROUNDS):
                for enabled in samples:
                    switch(enabled)
                    samples[enabled].append(_time_steps(call, repeats, device))
            switch(False)
            row = {
                "program": program,
                "step": step,
                "copies": copied,
                "taken": taken,
                "off_ms": _short(statistics.median(samples[False])),
                "on_ms": _short(statistics.median(samples[True])),
            }
            rows.append(row)
            console.print(_line(row), markup=False)
        _free(device)
    return rows


def _repeats(call: Call, device: torch.device) -> int:
    """Steps that take about 40 ms together."""
    step_ms = min(_time_steps(call, 1, device) for _ in range(2))
    return min(max(int(40 / max(step_ms, 1e-3)), 1), 200)


def _time_steps(call: Call, repeats: int, device: torch.device) -> float:
    _synchronise(device)
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    _synchronise(device)
    return (time.perf_counter() - begin) / repeats * 1e3


if __name__ == "__main__":
    sys.exit(main())
