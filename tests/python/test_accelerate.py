"""`accelerate`: what it takes, what it leaves, and that nothing but speed changes.

On CPU tensors a private twin is switched on, which runs the kernels' programs on the host.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from copy_cases import Case
from samples import (
    DTYPES,
    assert_same_bits,
    random_bits,
    row_major,
    short,
    stale,
)
from torch import Tensor

import torch_swizzle
from torch_swizzle import _accelerate

TRIED = str(torch.__version__).startswith("2.11.")
needs_tried_torch = pytest.mark.skipif(not TRIED, reason="accelerate refuses this torch")
copy_reason = torch.ops.swizzle._copy_reason
GENERATED_BLOCKS, BLOCK = 20, 100


def accelerate(device: str, *, report: bool = False) -> _accelerate.Acceleration:
    """The public call for CUDA, its private twin for the CPU."""
    return _accelerate._accelerate(True, report, torch.device(device))


def dispatcher_state() -> tuple[str, str]:
    """All that the dispatcher knows about copy_."""
    name = "aten::copy_"
    return torch._C._dispatch_dump(name), torch._C._dispatch_dump_table(name)


def taken(accelerated: _accelerate.Acceleration) -> dict[str, int]:
    """Calls taken so far, by reason."""
    assert accelerated.report is not None
    return {count.reason: count.calls for count in accelerated.report.counts if count.taken}


def left(accelerated: _accelerate.Acceleration) -> dict[str, int]:
    """Calls left so far, by reason."""
    assert accelerated.report is not None
    return {count.reason: count.calls for count in accelerated.report.counts if not count.taken}


@pytest.fixture
def on(device: str) -> Iterator[_accelerate.Acceleration]:
    """Accelerated, with a report, for the test's duration."""
    if not TRIED:
        pytest.skip("accelerate refuses this torch")
    before = dispatcher_state()
    with accelerate(device, report=True) as accelerated:
        yield accelerated
    assert dispatcher_state() == before


def ones(*sizes: int, **options: Any) -> Tensor:
    return torch.ones(sizes, **options)


REASONS: dict[str, list[Callable[[str], tuple[Tensor, Tensor]]]] = {
    "transposition": [
        lambda d: (ones(64, 65, device=d), ones(65, 64, device=d).t()),
        lambda d: (ones(65, 64, device=d).t(), ones(64, 65, device=d)),
        lambda d: (ones(64, 100, device=d)[:, 7:72], ones(65, 64, device=d).t()),
        lambda d: (ones(3, 64, 100, device=d)[:, :, 8:72], ones(3, 64, 80, device=d)[..., :64].mT),
        lambda d: (
            ones(2, 30, 17, 19, device=d),
            ones(2, 17, 19, 30, device=d).permute(0, 3, 1, 2),
        ),
        lambda d: (
            ones(2, 17, 19, 30, device=d).permute(0, 3, 1, 2),
            ones(2, 30, 17, 19, device=d),
        ),
    ],
    "permuted or pitched runs": [
        lambda d: (ones(2, 8, 16, 64, device=d), ones(2, 16, 8, 64, device=d).transpose(1, 2)),
        lambda d: (ones(64, 64, device=d), ones(64, 128, device=d)[:, 32:96]),
    ],
    "plain copy": [
        lambda d: (ones(64, 64, device=d), ones(64, 64, device=d)),
        lambda d: (ones(64, 65, device=d).t(), ones(64, 65, device=d).t()),
        lambda d: (ones(64, 1, 64, device=d), ones(64, 64, device=d).unsqueeze(1)),
    ],
    "nothing to transpose or to widen": [
        lambda d: (ones(64, 63, device=d), ones(64, 65, device=d)[:, 1:64]),
    ],
    "small": [
        lambda d: (ones(31, 33, device=d), ones(33, 31, device=d).t()),
        lambda d: (ones(0, 33, device=d), ones(33, 0, device=d).t()),
    ],
    "expanded source": [
        lambda d: (ones(64, 64, device=d), ones(64, 1, device=d).expand(64, 64)),
        lambda d: (ones(64, 64, device=d), ones(64, device=d).expand(64, 64)),
    ],
    "destination with gaps or overlaps": [
        lambda d: (ones(64, 130, device=d)[:, ::2], ones(65, 64, device=d).t()),
        lambda d: (ones(64, 100, device=d)[:, :64], ones(64, 64, device=d)),
        lambda d: (ones(64, device=d).expand(64, 64), ones(64, 64, device=d).t()),
        lambda d: (ones(200, device=d).as_strided((64, 64), (2, 1)), ones(64, 64, device=d).t()),
    ],
    "source and destination overlap": [
        lambda d: (lambda x: (x, x.t()))(ones(64, 64, device=d)),
        lambda d: (lambda x: (x[..., 0], x[..., 1].t()))(ones(64, 64, 2, device=d)),
    ],
    "another dtype": [
        lambda d: (ones(64, 65, device=d), ones(65, 64, device=d, dtype=torch.float16).t()),
        lambda d: (ones(64, 65, device=d, dtype=torch.int16), ones(65, 64, device=d).half().t()),
    ],
    "broadcast source": [
        lambda d: (ones(3, 64, 65, device=d), ones(65, 64, device=d).t()),
        lambda d: (ones(64, 64, device=d), ones(64, device=d)),
        lambda d: (ones(64, 65, device=d), ones(64, 66, device=d)),
    ],
    "conjugate or negative bits differ": [
        lambda d: (
            ones(64, 65, device=d, dtype=torch.complex64),
            ones(65, 64, device=d, dtype=torch.complex64).t().conj(),
        ),
        lambda d: (ones(64, 65, device=d), torch._neg_view(ones(65, 64, device=d).t())),
    ],
    "kind of tensor": [
        lambda d: (ones(64, 65, device=d), torch._efficientzerotensor((65, 64), device=d).t()),
        lambda d: (ones(64, 65, device=d), ones(65, 64, device=d).to_sparse()),
    ],
}


@pytest.mark.parametrize(
    ("reason", "build"), [(reason, build) for reason, builds in REASONS.items() for build in builds]
)
def test_each_copy_is_taken_or_left_for_its_reason(
    reason: str, build: Callable[[str], tuple[Tensor, Tensor]], device: str
) -> None:
    assert copy_reason(*build(device)) == reason


@pytest.mark.cuda
def test_copies_between_devices_are_left() -> None:
    x = ones(65, 64).t()
    assert copy_reason(ones(64, 65, device="cuda"), x) == "another device"
    assert copy_reason(ones(64, 65), x.cuda()) == "another device"


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_every_dtype_is_transposed(
    dtype: torch.dtype, device: str, on: _accelerate.Acceleration
) -> None:
    x = random_bits((65, 130), dtype, device)
    y = x.t().contiguous()
    assert taken(on) == {"transposition": 1}
    assert y.stride() == (65, 1)
    assert torch.equal(y.view(torch.uint8).cpu(), transposed_bytes(x))


def transposed_bytes(x: Tensor) -> Tensor:
    """The bytes of x.t(), moved by indexing, which is not a copy_."""
    raw = x.view(torch.uint8).cpu().view(*x.shape, x.element_size())
    rows, columns = x.shape
    index = torch.arange(rows * columns).view(rows, columns).t().reshape(-1)
    return raw.view(rows * columns, -1)[index].view(columns, -1)


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x.transpose(1, 3).contiguous(),
    "clone": lambda x: x.transpose(1, 3).clone(memory_format=torch.contiguous_format),
    "reshape": lambda x: x.transpose(1, 3).reshape(-1),
    "flatten": lambda x: x.transpose(1, 3).flatten(1),
    "to channels_last": lambda x: x.to(memory_format=torch.channels_last),
    "contiguous channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "out of channels_last": lambda x: x.permute(0, 3, 1, 2).clone(
        memory_format=torch.contiguous_format
    ),
    "copy_": lambda x: x.new_zeros(4, 12, 20, 16).copy_(x.transpose(1, 3)),
    "into a slice": lambda x: x.new_zeros(4, 12, 20, 30)[..., 5:21].copy_(x.transpose(1, 3)),
    "setitem": lambda x: set_slice(x.new_zeros(5, 12, 20, 16), x.transpose(1, 3)),
}


def set_slice(whole: Tensor, part: Tensor) -> Tensor:
    """What `whole[1:] = part` leaves."""
    whole[1:] = part
    return whole


@pytest.mark.parametrize("way", WAYS)
def test_library_code_ends_in_the_kernels(
    way: str, device: str, on: _accelerate.Acceleration
) -> None:
    x = random_bits((4, 16, 20, 12), torch.float32, device)
    y = WAYS[way](x)
    assert sum(taken(on).values()) == 1
    _accelerate._accelerate(False, False, torch.device(device))
    expected = WAYS[way](x)
    assert y.stride() == expected.stride()
    assert_same_bits(y, expected)


def test_memory_between_the_rows_of_a_slice_stays(
    device: str, on: _accelerate.Acceleration
) -> None:
    for dtype in (torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128):
        for rows, columns, pitch, start in ((64, 64, 80, 16), (65, 33, 90, 7), (130, 257, 300, 3)):
            x = random_bits((columns, rows), dtype, device)
            whole = stale((rows, pitch), dtype, device)
            untouched = whole.clone()
            whole[:, start : start + columns] = x.t()
            assert_same_bits(whole[:, :start], untouched[:, :start])
            assert_same_bits(whole[:, start + columns :], untouched[:, start + columns :])
            assert_same_bits(whole[:, start : start + columns].t(), x)
    assert taken(on)["transposition"] >= 15


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("block", range(GENERATED_BLOCKS))
@needs_tried_torch
def test_generated_calls_do_the_same_with_it_on(block: int, device: str) -> None:
    cases = [Case(number, device) for number in range(block * BLOCK, (block + 1) * BLOCK)]
    expected = [case.run() for case in cases]
    with accelerate(device, report=True) as accelerated:
        actual = [case.run() for case in cases]
        assert sum(taken(accelerated).values()) >= BLOCK // 20
        assert len(left(accelerated)) >= 5
    for case, without, with_it in zip(cases, expected, actual, strict=True):
        assert without.difference(with_it) is None, case.description


@needs_tried_torch
def test_on_and_off_again_leaves_no_trace(device: str) -> None:
    before = dispatcher_state()
    accelerated = accelerate(device)
    assert torch.ops.swizzle._is_accelerated(torch.device(device))
    key = "CUDA" if device == "cuda" else "CPU"
    lines = set(dispatcher_state()[0].splitlines()) - set(before[0].splitlines())
    assert [line.split(":")[0] for line in lines] == [key]
    assert "torch_swizzle" in lines.pop()
    accelerate(device)
    accelerated.__exit__(None, None, None)
    assert not torch.ops.swizzle._is_accelerated(torch.device(device))
    assert dispatcher_state() == before


@needs_tried_torch
def test_the_public_call_switches_the_key_cuda() -> None:
    before = dispatcher_state()
    torch_swizzle.accelerate()
    assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::copy_", "CUDA")
    torch_swizzle.accelerate(False)
    assert dispatcher_state() == before


@needs_tried_torch
def test_a_with_block_restores_what_was_in_effect(device: str) -> None:
    with accelerate(device):
        with accelerate(device):
            pass
        assert torch.ops.swizzle._is_accelerated(torch.device(device))
        with _accelerate._accelerate(False, False, torch.device(device)):
            assert not torch.ops.swizzle._is_accelerated(torch.device(device))
        assert torch.ops.swizzle._is_accelerated(torch.device(device))
    assert not torch.ops.swizzle._is_accelerated(torch.device(device))
    with pytest.raises(KeyError, match="from inside"), accelerate(device):
        raise KeyError("from inside")
    assert not torch.ops.swizzle._is_accelerated(torch.device(device))


def test_an_untried_torch_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dispatcher_state()
    for version in ("2.10.0", "2.12.1+cu130", "3.0.0a0", "2.110.0"):
        monkeypatch.setattr(torch, "__version__", version)
        with pytest.raises(RuntimeError) as caught:
            torch_swizzle.accelerate()
        message = str(caught.value)
        assert "torch_swizzle::accelerate: expected a torch that it was tried on" in message
        assert version in message
        assert "\n" not in message
    assert dispatcher_state() == before


@needs_tried_torch
def test_another_librarys_kernel_is_not_overridden() -> None:
    other = torch.library.Library("aten", "IMPL", "CUDA")
    other.impl("copy_", lambda self, src, non_blocking=False: self)
    try:
        before = dispatcher_state()
        with pytest.raises(
            RuntimeError, match=r"no kernel for CUDA, got one registered at .*test_"
        ):
            torch_swizzle.accelerate()
        assert dispatcher_state() == before
    finally:
        other._destroy()
    with torch_swizzle.accelerate():
        pass


@needs_tried_torch
@pytest.mark.filterwarnings("ignore:Warning only once for all operators")
def test_a_kernel_that_comes_later_outlives_the_acceleration() -> None:
    before = dispatcher_state()
    torch_swizzle.accelerate()
    other = torch.library.Library("aten", "IMPL", "CUDA")
    try:
        other.impl("copy_", lambda self, src, non_blocking=False: self)
        torch_swizzle.accelerate(False)
        lines = [line for line in dispatcher_state()[0].splitlines() if line.startswith("CUDA")]
        assert len(lines) == 1
        assert "test_accelerate.py" in lines[0]
    finally:
        torch_swizzle.accelerate(False)
        other._destroy()
    assert dispatcher_state() == before


def test_gradients_and_versions_are_torchs(device: str, on: _accelerate.Acceleration) -> None:
    x = torch.randn(33, 40, device=device, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(40, 33, device=device, dtype=torch.float64)
    (x.t().contiguous() * weight).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, weight.t())
    target = torch.zeros(40, 33, device=device, dtype=torch.float64)
    version = target._version
    target.copy_(x.t())
    assert target.requires_grad
    assert target._version == version + 1
    (gradient,) = torch.autograd.grad((target * weight).sum(), x)
    assert torch.equal(gradient, weight.t())
    leaf = torch.zeros(40, 33, device=device, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.copy_(x.t())
    assert taken(on)["transposition"] >= 2


def test_lazy_bits_that_agree_move_with_their_elements(
    device: str, on: _accelerate.Acceleration
) -> None:
    x = torch.randn(65, 33, dtype=torch.complex64, device=device)
    y = torch.zeros(33, 65, dtype=torch.complex64, device=device).conj()
    y.copy_(x.t().conj())
    assert y.is_conj()
    assert taken(on) == {"transposition": 1}
    assert torch.equal(
        torch.view_as_real(y.resolve_conj()), torch.view_as_real(x.t().conj().resolve_conj())
    )


def test_a_lazy_clone_is_written_apart(device: str, on: _accelerate.Acceleration) -> None:
    origin = torch.zeros(33, 65, device=device)
    lazy = torch._lazy_clone(origin)
    x = torch.randn(65, 33, device=device)
    lazy.copy_(x.t())
    assert taken(on) == {"transposition": 1}
    assert not origin.any()
    assert torch.equal(lazy.t(), x)


def test_the_profiler_names_the_kernels_owner(device: str, on: _accelerate.Acceleration) -> None:
    x = torch.randn(65, 33, device=device)
    with torch.profiler.profile(acc_events=True) as profiler:
        x.t().contiguous()
        x.clone()
    names = [event.name for event in profiler.events()]
    assert names.count("swizzle::copy_") == 1
    assert names.count("aten::copy_") == 2


def test_threads_copy_at_once(device: str, on: _accelerate.Acceleration) -> None:
    inputs = [random_bits((60 + k, 33 + k), torch.float32, device, k) for k in range(4)]

    def work(x: Tensor) -> list[Tensor]:
        return [x.t().contiguous() for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        for x, results in zip(inputs, pool.map(work, inputs), strict=True):
            for y in results:
                assert_same_bits(y.t(), x)
    assert taken(on)["transposition"] >= 80


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_code_gives_the_same(
    backend: str, device: str, on: _accelerate.Acceleration
) -> None:
    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y.copy_((x + 1).t())
        return x.t().contiguous() * 2, y.t().clone()

    torch.compiler.reset()
    x = torch.randn(65, 40, device=device)
    results = torch.compile(step, backend=backend)(x, torch.zeros(40, 65, device=device))
    for actual, expected in zip(results, step(x, torch.zeros(40, 65, device=device)), strict=True):
        assert actual.stride() == expected.stride()
        assert_same_bits(actual, expected)


@pytest.mark.slow
def test_a_generic_kernel_inside_compiled_code_is_taken_too(
    device: str, on: _accelerate.Acceleration
) -> None:
    import torch._inductor.config

    torch.compiler.reset()
    x = torch.randn(65, 40, device=device)
    with torch._inductor.config.patch(fallback_by_default=True):
        y = torch.compile(lambda x: x.t().contiguous(), fullgraph=True)(x)
    assert_same_bits(y.t(), x)
    assert taken(on)["transposition"] >= 1


@needs_tried_torch
@pytest.mark.parametrize("order", ["on, off", "off, on, off"])
def test_tracing_forgets_a_kernel_that_is_gone(order: str, device: str) -> None:
    done = run_program(
        "import torch, torch_swizzle\n"
        "from torch_swizzle import _accelerate\n"
        f"device = torch.device('{device}')\n"
        "x = torch.randn(65, 40, device=device)\n"
        "def step(x, y):\n"
        "    return y.copy_((x + 1).t()), x.t().contiguous() * 2\n"
        "def trace():\n"
        "    torch.compiler.reset()\n"
        "    y = torch.zeros(40, 65, device=device)\n"
        "    torch.compile(step, backend='aot_eager', fullgraph=True)(x, y)\n"
        "    torch.library.opcheck(torch.ops.swizzle.transpose.default, (x,))\n"
        "    return y\n"
        f"for state in '{order}'.split(', '):\n"
        "    _accelerate._accelerate(state == 'on', False, device)\n"
        "    assert torch.equal(trace(), (x + 1).t())\n"
    )
    assert done.returncode == 0, done.stderr


def run_program(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own."""
    return subprocess.run(
        [sys.executable, "-c", text],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(torch_swizzle.__file__).parents[1]),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


STATE = (
    "import torch, torch_swizzle; print(torch.ops.swizzle._is_accelerated(torch.device('cuda')))"
)


@needs_tried_torch
def test_the_environment_switches_it_on_at_import() -> None:
    for value, state in (("", "False"), ("0", "False"), ("1", "True"), ("report", "True")):
        done = run_program(STATE, TORCH_SWIZZLE_ACCELERATE=value)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == state
        assert ("0 of 0 copies taken" in done.stderr) == (value == "report")
        assert "Warning" not in done.stderr


def test_an_unknown_value_in_the_environment_is_refused() -> None:
    done = run_program(STATE, TORCH_SWIZZLE_ACCELERATE="yes")
    assert done.returncode != 0
    message = "expected TORCH_SWIZZLE_ACCELERATE to be 0, 1 or report, got 'yes'"
    assert done.stderr.strip().splitlines()[-1] == f"ValueError: torch_swizzle: {message}"


@needs_tried_torch
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_its_own_switch() -> None:
    done = run_program(
        "import os, torch, torch_swizzle\n"
        "from torch_swizzle import _accelerate\n"
        "cpu = torch.device('cpu')\n"
        "x = torch.randn(65, 64)\n"
        "_accelerate._accelerate(True, False, cpu)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert torch.equal(x.t().contiguous(), x.t())\n"
        "    _accelerate._accelerate(False, False, cpu)\n"
        "    assert not torch.ops.swizzle._is_accelerated(cpu)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert torch.ops.swizzle._is_accelerated(cpu)\n"
    )
    assert done.returncode == 0, done.stderr


def test_the_report_says_what_became_of_each_call(
    device: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if not TRIED:
        pytest.skip("accelerate refuses this torch")
    x = torch.randn(128, 64, device=device)
    with accelerate(device, report=True) as accelerated:
        x.t().contiguous()
        x.t().contiguous()
        x.clone()
        x.t()[:16].contiguous()
    x.t().contiguous()
    report = accelerated.report
    assert report is not None
    counts = {count.reason: (count.taken, count.calls, count.bytes) for count in report.counts}
    assert counts == {
        "transposition": (True, 3, 2 * 32768 + 8192),
        "plain copy": (False, 1, 32768),
    }
    table = capfd.readouterr().err
    assert table.strip() == str(report)
    assert "3 of 4 copies taken" in table


@needs_tried_torch
def test_reports_overlap_and_end_with_the_acceleration(
    device: str, capfd: pytest.CaptureFixture[str]
) -> None:
    x = torch.randn(128, 64, device=device)
    outer = accelerate(device, report=True)
    x.t().contiguous()
    with accelerate(device, report=True) as inner:
        x.t().contiguous()
    x.t().contiguous()
    _accelerate._accelerate(False, False, torch.device(device))
    assert taken(inner) == {"transposition": 1}
    assert taken(outer) == {"transposition": 3}
    assert capfd.readouterr().err.count("copies taken") == 2


def test_cat_and_stack_keep_their_own_kernels(device: str, on: _accelerate.Acceleration) -> None:
    x = torch.randn(64, 64, device=device)
    whole = torch.cat([x.t(), x.t()])
    torch.stack([x.t(), x.t()])
    assert taken(on) == {}
    assert_same_bits(whole[:64].t(), x)


@pytest.mark.cuda
def test_the_copy_waits_for_its_own_stream(on: _accelerate.Acceleration) -> None:
    source = random_bits((2048, 1000), torch.float16, "cuda")
    x, y = torch.zeros_like(source), torch.zeros(1000, 2048, dtype=torch.float16, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        x.copy_(source)
        y.copy_(x.t())
        x.zero_()
    side.synchronize()
    assert_same_bits(y.t(), source)


@pytest.mark.cuda
def test_graph_replays_see_new_data(on: _accelerate.Acceleration) -> None:
    x = torch.zeros(2048, 1000, dtype=torch.float16, device="cuda")
    x.t().contiguous()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x.t().contiguous()
    assert taken(on) == {"transposition": 2}
    for replay in range(3):
        x.copy_(random_bits((2048, 1000), torch.float16, "cuda", seed=replay))
        graph.replay()
        assert_same_bits(y.t(), x)


@pytest.mark.cuda
def test_the_copy_neither_synchronises_nor_allocates(on: _accelerate.Acceleration) -> None:
    x, y = torch.randn(513, 257, device="cuda"), torch.zeros(257, 513, device="cuda")
    y.copy_(x.t())
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.cuda.set_sync_debug_mode("error")
    try:
        y.copy_(x.t())
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.max_memory_allocated() == before
    assert_same_bits(y.t(), x)


@pytest.mark.cuda
def test_out_of_memory_is_raised_as_ever(on: _accelerate.Acceleration) -> None:
    x = torch.zeros(1, dtype=torch.uint8, device="cuda").expand(1 << 22, 1 << 22)
    with pytest.raises(torch.OutOfMemoryError):
        x.t().contiguous()
    y = torch.randn(65, 64, device="cuda")
    assert_same_bits(y.t().contiguous().t(), y)


@pytest.mark.two_gpus
@pytest.mark.cuda
def test_the_tensors_decide_the_device(on: _accelerate.Acceleration) -> None:
    torch.cuda.set_device(0)
    x = torch.randn(1024, 1000, device="cuda:1")
    y = x.t().contiguous()
    assert torch.cuda.current_device() == 0
    assert_same_bits(y.t(), x)
    assert_same_bits(y.to("cuda:0"), x.to("cuda:0").t())


def test_strides_of_a_clone_are_torchs(device: str, on: _accelerate.Acceleration) -> None:
    x = torch.randn(3, 40, 50, device=device)
    assert x.mT.clone().stride() == x.mT.stride()
    assert x.mT.contiguous().stride() == row_major((3, 50, 40))
