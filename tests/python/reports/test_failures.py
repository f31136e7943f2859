"""Reports of crashes and failed launches elsewhere, each tried here (O08 to O13, O30)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from samples import (
    LAYOUTS,
    METHODS,
    assert_fresh_transpose,
    assert_same_bits,
    leave_stale_memory,
    random_bits,
    reference,
    short,
)

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with

FORCED = [
    *((layout, tile) for tile in ("scalar32", "vector", "vector128") for layout in LAYOUTS),
    *(("auto", tile) for tile in ("window", "deinterleave", "flat", "direct")),
]


class TestMisalignedStarts:
    """O08, https://github.com/apache/tvm/issues/8540: words read from an odd element."""

    @pytest.mark.parametrize("k", range(1, 8))
    @pytest.mark.parametrize(
        "dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32], ids=short
    )
    def test_any_first_element_is_right(self, dtype: torch.dtype, k: int, device: str) -> None:
        x = random_bits((64 * 64 + 8,), dtype, device)[k : k + 4096].view(64, 64)
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)

    @pytest.mark.parametrize(
        "dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32], ids=short
    )
    def test_an_odd_pitch_is_right(self, dtype: torch.dtype, device: str) -> None:
        x = random_bits((64, 67), dtype, device)[:, 1:65]
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)


class TestLargeBatches:
    """O09, https://github.com/facebookresearch/faiss/pull/1996: a batch beyond 65535 on grid y."""

    @pytest.mark.parametrize("shape", [(65535, 2, 2), (65536, 2, 2), (70000, 3, 5)])
    def test_batches_beyond_65535_are_right(self, shape: tuple[int, int, int], device: str) -> None:
        x = random_bits(shape, torch.float32, device)
        middle = x.transpose(0, 1)
        for view in (x, middle, middle.contiguous()):
            for method in METHODS:
                assert_fresh_transpose(transpose(view, method=method), view, reference(view))
        assert_fresh_transpose(transpose(x, 0, 2), x, reference(x, 0, 2))


class TestEmptyInputs:
    """O10, https://github.com/pytorch/FBGEMM/pull/3705: a launch of zero blocks.

    Under capture: test_streams.py. Under torch.compile: test_compile.py.
    """

    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (3, 0, 7), (0, 5, 7), (2, 0, 0)])
    def test_nothing_is_launched_for_nothing(self, shape: tuple[int, ...], device: str) -> None:
        x = torch.zeros(shape, device=device, requires_grad=True)
        for method in METHODS:
            y = transpose(x, method=method)
            assert y.shape == x.mT.shape
            (gradient,) = torch.autograd.grad(y.sum(), x)
            assert gradient.shape == x.shape
        other = random_bits((33, 65), torch.float32, device)
        assert_same_bits(transpose(other), reference(other))


class TestSharedMemory:
    """O11, https://github.com/NVIDIA/warp/issues/1701: more shared memory than the device grants.

    Every GPU of compute capability 8.0 and later grants 99 KiB; that no kernel asks for more is
    stated at compile time (csrc/kernels/transpose.cu).
    """

    @pytest.mark.parametrize(("method", "tile"), FORCED)
    def test_the_largest_tiles_of_the_widest_elements_launch(
        self, method: str, tile: str, device: str
    ) -> None:
        for dtype in (torch.complex128, torch.float64, torch.uint8):
            shape = (512, 512) if tile not in ("deinterleave", "flat") else (512, 4)
            x = random_bits(shape, dtype, device)
            leave_stale_memory(shape[::-1], dtype, device)
            try:
                actual = transpose_with(x, method, tile)
            except (
                ValueError
            ):  # the tile does not serve this element; test_errors.py reads the text
                actual = transpose(x)
            assert_fresh_transpose(actual, x, reference(x), dtype)


class TestTheDeviceOfTheInput:
    """O12, https://github.com/pytorch/pytorch/issues/54077: an extension without a device guard."""

    @pytest.mark.cuda
    @pytest.mark.two_gpus
    def test_the_other_gpu_is_used_and_the_current_one_stays(self) -> None:
        torch.cuda.set_device(0)
        x = torch.arange(1024 * 1000, dtype=torch.float32, device="cuda:1").view(1024, 1000)
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)
            assert torch.cuda.current_device() == 0

    @pytest.mark.cuda
    @pytest.mark.two_gpus
    def test_two_threads_alternate_between_devices(self) -> None:
        def work(first: int) -> None:
            for call in range(50):
                device = f"cuda:{(first + call) % 2}"
                x = random_bits((1024, 1000), torch.float32, device, call)
                assert_same_bits(transpose(x), reference(x))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, (0, 1)))


class TestCapture:
    """O13, https://github.com/pytorch/pytorch/issues/114048: launches outside the current stream.

    With a busy side stream, out= and backward: test_streams.py.
    """

    @pytest.mark.cuda
    @pytest.mark.parametrize("method", METHODS)
    def test_replays_see_new_data(self, method: str, recwarn: pytest.WarningsRecorder) -> None:
        x = torch.zeros(2048, 1000, dtype=torch.float16, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            transpose(x, method=method)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = transpose(x, method=method)
        assert not [warning for warning in recwarn if "empty" in str(warning.message)]
        for replay in range(10):
            x.copy_(random_bits((2048, 1000), torch.float16, "cuda", seed=replay))
            graph.replay()
            assert_same_bits(y, reference(x), replay)


class TestAlignmentOfTiles:
    """O30, https://github.com/tile-ai/tilelang/issues/2379: a copy engine's swizzle, misaligned.

    Bulk tensor copies with a swizzle want tiles on 1024 bytes. No kernel here makes one; whoever
    adds one replaces this test by that of its alignment.
    """

    def test_no_kernel_leaves_the_swizzle_to_the_copy_engine(self) -> None:
        sources = Path(__file__).resolve().parents[3] / "csrc"
        files = [path for path in sources.rglob("*") if path.suffix in (".cu", ".cuh", ".hpp")]
        assert files
        for path in files:
            text = path.read_text(encoding="utf-8")
            assert "cp.async.bulk.tensor" not in text, path
            assert "CUtensorMap" not in text, path
