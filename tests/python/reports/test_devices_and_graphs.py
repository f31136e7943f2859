"""Reports on kernels that ran on the wrong GPU or the wrong stream."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from samples import METHODS, assert_fresh_transpose, assert_same_bits, random_bits, reference
from test_streams import keep_the_stream_busy

pytestmark = pytest.mark.cuda

transpose = torch.ops.swizzle.transpose


@pytest.mark.two_gpus
def test_a_tensor_on_another_gpu_is_served_there() -> None:
    """https://github.com/pytorch/pytorch/issues/54077: no device guard in extensions."""
    torch.cuda.set_device(0)
    x = torch.arange(1024 * 1000, dtype=torch.float32, device="cuda:1").view(1024, 1000)
    for method in METHODS:
        y = transpose(x, method=method)
        assert y.device == x.device
        assert torch.cuda.current_device() == 0
        assert_fresh_transpose(y, x, reference(x), method)
    torch.cuda.synchronize("cuda:1")

    def alternate(first: int) -> None:
        for call in range(50):
            device = f"cuda:{(first + call) % 2}"
            z = random_bits((1024, 1000), torch.float32, device, call)
            assert_fresh_transpose(transpose(z), z, reference(z), (first, call))
            assert torch.cuda.current_device() == 0

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(alternate, (0, 1)))


@pytest.mark.parametrize("method", METHODS)
def test_a_captured_graph_holds_the_kernel(method: str) -> None:
    """https://github.com/pytorch/pytorch/issues/114048: captured kernels became no-ops.

    Capture on a side stream gives no warning of an empty graph, and each of ten replays transposes
    what is in the input by then.
    """
    x = random_bits((2048, 1000), torch.float16, "cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        transpose(x, method=method)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The CUDA Graph is empty")
        with torch.cuda.graph(graph, stream=side):
            y = transpose(x, method=method)
    for replay in range(10):
        x.copy_(random_bits((2048, 1000), torch.float16, "cuda", seed=replay))
        graph.replay()
        assert_same_bits(y, reference(x), replay)


@pytest.mark.setting("side streams")
@pytest.mark.parametrize("method", METHODS)
def test_a_side_stream_is_not_overtaken(method: str) -> None:
    """https://github.com/pytorch/pytorch/issues/114048: kernels left PyTorch's current stream."""
    source = random_bits((2048, 1000), torch.float16, "cuda")
    x, expected = torch.zeros_like(source), reference(source)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        keep_the_stream_busy()
        x.copy_(source)
        y = transpose(x, method=method)
        x.zero_()
    side.synchronize()
    assert_same_bits(y, expected)
