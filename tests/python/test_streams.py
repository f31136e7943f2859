"""CUDA streams, graphs, devices and memory: the call behaves as torch's own kernels do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from samples import (
    LAYOUTS,
    METHODS,
    assert_fresh_transpose,
    assert_same_bits,
    random_bits,
    reference,
)
from torch import Tensor

pytestmark = pytest.mark.cuda

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with


def keep_the_stream_busy() -> None:
    """Queue tens of milliseconds of work on the current stream."""
    a = torch.ones(4096, 4096, device="cuda")
    for _ in range(20):
        a = a @ a.clamp(max=1.0)


@pytest.mark.setting("side streams")
@pytest.mark.parametrize("method", METHODS)
def test_the_call_waits_for_work_queued_on_a_side_stream(method: str) -> None:
    source = random_bits((2048, 1000), torch.float16, "cuda")
    x = torch.zeros_like(source)
    expected = reference(source)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        keep_the_stream_busy()
        x.copy_(source)
        y = transpose(x, method=method)
        x.zero_()
    side.synchronize()
    assert_same_bits(y, expected)


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


@pytest.mark.setting("several GPUs, whichever is current")
@pytest.mark.two_gpus
@pytest.mark.parametrize("method", METHODS)
def test_the_input_decides_the_device_and_the_current_one_stays(method: str) -> None:
    torch.cuda.set_device(0)
    x = torch.arange(1024 * 1000, dtype=torch.float32, device="cuda:1").view(1024, 1000)
    y = transpose(x, method=method)
    out = torch.zeros_like(y)
    transpose(x, method=method, out=out)
    assert torch.cuda.current_device() == 0
    assert_fresh_transpose(y, x, reference(x))
    assert_same_bits(out, reference(x))
    torch.cuda.synchronize("cuda:1")


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
