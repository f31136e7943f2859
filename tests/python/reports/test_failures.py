"""Reports of crashes and failed launches elsewhere, each tried here (O08 to O10, O30)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from samples import (
    METHODS,
    assert_fresh_transpose,
    assert_same_bits,
    random_bits,
    reference,
    short,
)

transpose = torch.ops.swizzle.transpose


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
