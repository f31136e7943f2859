"""CUDA streams, graphs, devices and memory: the call behaves as torch's own kernels do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from processes import run_python
from samples import (
    DTYPE_OF_SIZE,
    DTYPES,
    LAYOUTS,
    METHODS,
    TILES_WITH_LAYOUT,
    Sample,
    assert_fresh_transpose,
    assert_same_bits,
    random_bits,
    reference,
    short,
)
from torch import Tensor

pytestmark = pytest.mark.cuda

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with


@pytest.fixture(autouse=True)
def device_0_is_current() -> Iterator[None]:
    """No test leaves another device current."""
    yield
    if torch.cuda.is_available():
        torch.cuda.set_device(0)


def keep_the_stream_busy() -> None:
    """Queue tens of milliseconds of work on the current stream."""
    a = torch.ones(4096, 4096, device="cuda")
    for _ in range(20):
        a = a @ a.clamp(max=1.0)


def test_out_variant_runs_on_the_current_stream() -> None:
    source = random_bits((2048, 1000), torch.float16, "cuda")
    x, out = torch.zeros_like(source), torch.zeros(1000, 2048, dtype=torch.float16, device="cuda")
    expected = reference(source)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        keep_the_stream_busy()
        x.copy_(source)
        transpose(x, out=out)
        x.zero_()
    side.synchronize()
    assert_same_bits(out, expected)


@pytest.mark.setting("CUDA graphs: capture and replay")
@pytest.mark.parametrize("method", METHODS)
def test_ten_graph_replays_see_new_data_each_time(method: str) -> None:
    x = torch.zeros(2048, 1000, dtype=torch.float16, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        transpose(x, method=method)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = transpose(x, method=method)
    for replay in range(10):
        x.copy_(random_bits((2048, 1000), torch.float16, "cuda", seed=replay))
        graph.replay()
        assert_same_bits(y, reference(x), replay)


# One input for each way in which a call may be served, with the tile that serves it by method auto.
ROUTES = {
    "vector": Sample("whole_chunks", (2048, 2048)),
    "vector with cut rows": Sample("columns_from_the_third_on", (2048, 1000), (1024, 1), offset=3),
    "vector128": Sample("few_whole_chunks", (1280, 1280)),
    "short_vector": Sample("few_short_vectors", (256, 514)),
    "window": Sample("odd_sides", (2049, 1999)),
    "scalar32": Sample("strided_columns", (300, 299), (900, 3)),
    "flat": Sample("short_rows", (20000, 12)),
    "scatter": Sample("few_rows", (8, 262144)),
    "deinterleave": Sample("three_columns", (20000, 3)),
    "direct": Sample("small_matrices", (5000, 2, 3)),
    "gather": Sample("rows_that_stay", (60, 70, 33), (33 * 80, 33, 1), dims=(0, 1)),
    "copy": Sample("one_row", (1, 5000)),
}


@pytest.mark.parametrize("sample", ROUTES.values(), ids=ROUTES)
def test_ten_replays_of_every_route_see_new_data(sample: Sample) -> None:
    x = sample.tensor(torch.float32, "cuda")
    transpose(x, *sample.dims)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = transpose(x, *sample.dims)
    for replay in range(10):
        x.copy_(sample.tensor(torch.float32, "cuda", seed=replay))
        graph.replay()
        assert_same_bits(y, sample.expected(x), replay)


@pytest.mark.parametrize("sample", ROUTES.values(), ids=ROUTES)
def test_every_route_keeps_its_place_on_a_side_stream(sample: Sample) -> None:
    source = sample.tensor(torch.float32, "cuda", seed=1)
    expected = sample.expected(source)
    x = sample.tensor(torch.float32, "cuda", seed=2)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        keep_the_stream_busy()
        x.copy_(source)
        torch.cuda.set_sync_debug_mode("error")
        try:
            y = transpose(x, *sample.dims)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        x.zero_()
    side.synchronize()
    assert_same_bits(y, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tile", ["scalar32", "vector"])
def test_forced_tiles_can_be_captured(tile: str, layout: str) -> None:
    x = torch.zeros(256, 512, device="cuda")
    transpose_with(x, layout, tile)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = transpose_with(x, layout, tile)
    x.copy_(random_bits((256, 512), torch.float32, "cuda"))
    graph.replay()
    assert_same_bits(y, reference(x))


def test_capture_takes_forward_backward_and_out() -> None:
    x = torch.randn(65, 33, device="cuda", requires_grad=True)
    out = torch.zeros(33, 65, device="cuda")
    incoming = torch.zeros(33, 65, device="cuda")

    def step() -> Tensor:
        transpose(x.detach(), out=out)
        return torch.autograd.grad(transpose(x), x, incoming)[0]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradient = step()
    incoming.copy_(torch.randn(33, 65, device="cuda"))
    with torch.no_grad():
        x.copy_(torch.randn(65, 33, device="cuda"))
    graph.replay()
    assert_same_bits(out, reference(x.detach()))
    assert_same_bits(gradient, reference(incoming))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 0, 7)])
def test_capture_takes_empty_inputs(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape, device="cuda")
    filler = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = transpose(x)
        filler.add_(1)
    graph.replay()
    assert y.shape == x.mT.shape
    assert_same_bits(filler, torch.ones_like(filler))


def test_the_call_does_not_synchronise() -> None:
    x = random_bits((513, 257), torch.float32, "cuda")
    expected = reference(x)
    torch.cuda.set_sync_debug_mode("error")
    try:
        results = [transpose(x, method=method) for method in METHODS]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for y in results:
        assert_same_bits(y, expected)


@pytest.mark.parametrize("method", METHODS)
def test_the_call_allocates_its_output_and_nothing_else(method: str) -> None:
    for x in (
        torch.zeros(96, 128, device="cuda"),
        torch.zeros(96, 384, device="cuda")[:, ::3],
        torch.zeros(128, device="cuda").expand(96, 128),
        torch.zeros(128, 96, device="cuda").t(),
    ):
        transpose(x, method=method)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        y = transpose(x, method=method)
        assert torch.cuda.max_memory_allocated() - before == y.numel() * y.element_size()


def test_many_threads_and_streams_agree() -> None:
    inputs = [random_bits((300 + k, 200 + 7 * k), torch.float32, "cuda", k) for k in range(8)]
    torch.cuda.synchronize()

    def work(x: Tensor) -> list[Tensor]:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            results = [transpose(x, method=method) for method in METHODS * 10]
        stream.synchronize()
        return results

    with ThreadPoolExecutor(8) as pool:
        for x, results in zip(inputs, pool.map(work, inputs), strict=True):
            for y in results:
                assert_same_bits(y, reference(x))


FIRST_CALLS = """
import torch, torch_swizzle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from samples import DTYPE_OF_SIZE, METHODS, assert_same_bits, random_bits, reference

def first_calls(device):
    # Tiles of more than 48 KiB, which each device must grant a kernel before its first launch.
    inputs = [random_bits((1024, 2048), dtype, device) for dtype in DTYPE_OF_SIZE.values()]
    expected = [reference(x) for x in inputs]
    barrier.wait()
    for x, y in zip(inputs, expected):
        for method in METHODS:
            assert_same_bits(torch.ops.swizzle._transpose_with(x, method, "vector"), y)

devices = {devices}
barrier = Barrier(len(devices) if {at_once} else 1)
with ThreadPoolExecutor(len(devices) if {at_once} else 1) as pool:
    list(pool.map(first_calls, devices))
"""


def test_eight_threads_may_make_the_first_call_at_once() -> None:
    run_python(FIRST_CALLS.format(devices=["cuda"] * 8, at_once=True))


@pytest.mark.setting("several GPUs, whichever is current")
@pytest.mark.two_gpus
@pytest.mark.parametrize("at_once", [False, True], ids=["in_turn", "at_once"])
@pytest.mark.parametrize("devices", [("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")], ids=str)
def test_each_device_is_granted_its_shared_memory(devices: tuple[str, str], at_once: bool) -> None:
    run_python(FIRST_CALLS.format(devices=devices, at_once=at_once))


@pytest.mark.two_gpus
@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize("method", METHODS)
def test_the_input_decides_the_device_and_the_current_one_stays(
    method: str, dtype: torch.dtype
) -> None:
    samples = [Sample("matrix", (1024, 1000)), *ROUTES.values()]
    if dtype is not torch.float32:
        samples = [sample for sample in samples if sample.base_numel < 2**21]
    for current, other in ((0, 1), (1, 0)):
        torch.cuda.set_device(current)
        for sample in samples:
            x = sample.tensor(dtype, f"cuda:{other}")
            y = transpose(x, *sample.dims, method=method)
            out = torch.zeros_like(y)
            transpose(x, *sample.dims, method=method, out=out)
            assert torch.cuda.current_device() == current
            assert_fresh_transpose(y, x, sample.expected(x), (sample.name, current))
            assert_same_bits(out, y, (sample.name, current))


@pytest.mark.two_gpus
@pytest.mark.parametrize("tile", TILES_WITH_LAYOUT)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_forced_tiles_run_on_the_device_of_the_input(layout: str, tile: str) -> None:
    torch.cuda.set_device(0)
    for dtype in DTYPE_OF_SIZE.values():
        x = random_bits((256, 512), dtype, "cuda:1")
        y = transpose_with(x, layout, tile)
        assert torch.cuda.current_device() == 0
        assert_fresh_transpose(y, x, reference(x), dtype)


@pytest.mark.two_gpus
def test_the_call_waits_on_the_current_stream_of_the_other_device() -> None:
    torch.cuda.set_device(0)
    source = random_bits((2048, 1000), torch.float16, "cuda:1")
    x, expected = torch.zeros_like(source), reference(source)
    side = torch.cuda.Stream("cuda:1")
    torch.cuda.synchronize("cuda:1")
    with torch.cuda.stream(side):
        keep_the_stream_busy()
        x.copy_(source)
        torch.cuda.set_device(0)  # the stream of cuda:1 stays what it is
        y = transpose(x)
        x.zero_()
    side.synchronize()
    assert_same_bits(y, expected)


@pytest.mark.two_gpus
def test_gradients_stay_on_the_device_of_the_input() -> None:
    torch.cuda.set_device(0)
    x = torch.randn(65, 33, device="cuda:1", requires_grad=True)
    incoming = torch.randn(33, 65, device="cuda:1")
    (gradient,) = torch.autograd.grad(transpose(x), x, incoming)
    assert torch.cuda.current_device() == 0
    assert_same_bits(gradient, reference(incoming))


@pytest.mark.two_gpus
def test_two_threads_can_alternate_between_devices() -> None:
    def work(first: int) -> None:
        for call in range(50):
            x = random_bits((257, 129), torch.float32, f"cuda:{(first + call) % 2}", call)
            assert_same_bits(transpose(x), reference(x))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (0, 1)))


@pytest.mark.two_gpus
def test_out_on_the_other_gpu_is_refused() -> None:
    x = torch.zeros(33, 65, device="cuda:0")
    with pytest.raises(RuntimeError, match="cuda:1"):
        transpose(x, out=torch.zeros(65, 33, device="cuda:1"))
