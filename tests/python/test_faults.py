"""Faults: no memory, a launch that fails. The call itself raises, and the next one works."""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from samples import METHODS, assert_same_bits, random_bits, reference

import torch_swizzle

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with

RELAXED_CAPTURE = 2  # cudaStreamCaptureModeRelaxed


@contextmanager
def launches_fail() -> Iterator[ctypes.CDLL]:
    """Within, every launch on the default stream fails; gives the CUDA runtime.

    A stream that waits for the default stream is captured meanwhile, and work that would tie a
    capture to the default stream is what CUDA refuses.
    """
    # Through our own library, so that the functions are those of the CUDA runtime that it calls.
    cuda = ctypes.CDLL(torch_swizzle.library_path)
    stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
    torch.cuda.synchronize()
    assert cuda.cudaStreamCreate(ctypes.byref(stream)) == 0
    assert cuda.cudaStreamBeginCapture(stream, RELAXED_CAPTURE) == 0
    try:
        yield cuda
    finally:
        cuda.cudaStreamEndCapture(stream, ctypes.byref(graph))
        cuda.cudaGetLastError()
        cuda.cudaStreamDestroy(stream)


@pytest.mark.parametrize("method", METHODS)
def test_an_output_beyond_all_memory_is_refused_and_the_next_call_works(
    method: str, device: str
) -> None:
    huge = torch.zeros(1, dtype=torch.uint8, device=device).expand(2**24, 2**24)
    x = random_bits((33, 65), torch.float32, device)
    for call in (
        lambda: transpose(huge, method=method),
        lambda: transpose_with(huge, method, "scalar32"),
    ):
        with pytest.raises(RuntimeError, match="memory"):
            call()
        assert_same_bits(transpose(x, method=method), reference(x))


@pytest.mark.cuda
def test_memory_that_runs_out_is_torchs_own_error_and_leaves_nothing_behind() -> None:
    x = torch.zeros(2**28, dtype=torch.uint8, device="cuda").view(2**14, 2**14)
    x.copy_(random_bits((2**14,), torch.uint8, "cuda"))
    gc.collect()  # or another test's garbage could go in between
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    _, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 2**27) / total)
    try:
        for method in METHODS:
            with pytest.raises(torch.OutOfMemoryError):
                transpose(x, method=method)
            assert torch.cuda.memory_allocated() == before
            small = x[:1024]
            assert_same_bits(transpose(small, method=method), reference(small), method)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert_same_bits(transpose(x), reference(x))


@pytest.mark.cuda
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(512, 1024), (301, 299)], ids=str)
def test_a_failed_launch_raises_from_the_call_and_the_next_one_works(
    shape: tuple[int, int], method: str
) -> None:
    x = random_bits(shape, torch.float32, "cuda")
    expected = reference(x)
    transpose(x, method=method)  # leaves a block of memory for the call below
    with launches_fail() as cuda:
        with pytest.raises(RuntimeError) as caught:
            transpose(x, method=method)
        assert cuda.cudaPeekAtLastError() == 0
    (sentence,) = str(caught.value).splitlines()[:1]
    said = re.fullmatch(
        r"swizzle::transpose: launching tile '\w+' in layout '\w+' over 1 x (\d+) x (\d+), "
        r"\d+ elements of 4 bytes, with (\d+) bytes of shared memory a block \(allowed: (\d+)\) "
        r"failed: .*captur.*",
        sentence,
    )
    assert said is not None, sentence
    rows, cols, asked, allowed = map(int, said.groups())
    assert (rows, cols) == shape
    assert 0 < asked <= allowed
    assert allowed == torch.cuda.get_device_properties().shared_memory_per_block_optin
    for again in METHODS:
        assert_same_bits(transpose(x, method=again), expected, again)


@pytest.mark.cuda
def test_a_failed_copy_raises_from_the_call_and_the_next_one_works() -> None:
    x = random_bits((1, 5000), torch.float32, "cuda")
    transpose(x)
    with launches_fail() as cuda:
        with pytest.raises(RuntimeError, match=r"launching a memory copy, .* captur"):
            transpose(x)
        assert cuda.cudaPeekAtLastError() == 0
    assert_same_bits(transpose(x), reference(x))
