"""Reports on bank conflicts: what their authors could not tell, as claims about the model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from torch_swizzle import banks
from torch_swizzle.banks import assert_no_bank_conflicts

LANES = torch.arange(32)
SIZES = (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("width", "height", "store", "load"), [(16, 32, 2, 1), (32, 16, 1, 2), (32, 32, 1, 1)]
)
def test_the_shape_of_the_block_decides_whether_one_pad_is_enough(
    width: int, height: int, store: int, load: int
) -> None:
    """A transpose with one padding column still showed conflicts.

    https://forums.developer.nvidia.com/t/ncu-detects-bank-conflicts-in-matrix-transposition-after-padding/239100
    """
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    index = width * y + x  # the linear thread index, whose 32 neighbours are a warp
    pitch = width + 1
    stores = banks.wavefronts(4 * (pitch * y + x), width=4)
    loads = banks.wavefronts(4 * (pitch * (index % height) + index // height), width=4)
    assert len(stores.requests) == len(loads.requests) == width * height // 32
    assert (stores.per_request, loads.per_request) == ((store, store), (load, load))
    by_name = banks.layout_report("padded", (height, width), 4)
    assert (by_name.stores.per_request, by_name.loads.per_request) == (
        stores.per_request,
        loads.per_request,
    )


@pytest.mark.parametrize(
    ("addresses", "width", "wavefronts", "excess"),
    [
        (16 * LANES, 16, 4, 0),
        (128 * LANES, 16, 32, 28),
        (8 * LANES, 8, 2, 0),
        (0 * LANES, 4, 1, 0),
    ],
)
def test_the_wavefronts_that_a_wide_load_needs_are_no_conflicts(
    addresses: Tensor, width: int, wavefronts: int, excess: int
) -> None:
    """Whether the 4 wavefronts of a clean 16-byte load count as conflicts.

    https://forums.developer.nvidia.com/t/clarification-bank-conflicts-metric-vs-wavefronts-for-shared-memory-lds-128/359822
    """
    report = banks.wavefronts(addresses, width)
    assert (report.wavefronts, report.ideal, report.excess) == (
        wavefronts,
        wavefronts - excess,
        excess,
    )


def transpose_through(store: Tensor, load: Tensor) -> Tensor:
    """Write 0, 1, 2, ... row by row to one set of places, and read the columns from another."""
    values = torch.arange(store.numel())
    memory = torch.full((int(torch.maximum(store.max(), load.max())) + 1,), -1)
    memory[store.reshape(-1)] = values
    return memory[load.t().reshape(-1)].view(load.shape[1], load.shape[0])


@pytest.mark.parametrize("size", SIZES)
def test_a_swizzle_that_is_deleted_or_one_bit_short_fails_the_conflict_test(size: int) -> None:
    """Deleting a swizzle, or a mask one bit short, left every test of a library green.

    https://github.com/ROCm/rocm-libraries/pull/10845
    """
    whole = banks.layout_report("swizzled", (32, 32), size)
    assert_no_bank_conflicts(whole)
    xor = whole.layout
    for bits in range(xor.bits):
        fewer = banks.layout_report(f"cute:{bits},{xor.base},{xor.shift}", (32, 32), size)
        with pytest.raises(AssertionError, match="expected at most 0 excess wavefronts"):
            assert_no_bank_conflicts(fewer)


@pytest.mark.parametrize(("bits", "column"), [(5, 1), (4, 2), (3, 4), (2, 8)])
def test_every_bit_of_a_float_tiles_swizzle_counts(bits: int, column: int) -> None:
    """One swizzle bit lay above the bank field and bought nothing; here each halves a column.

    https://github.com/ROCm/rocm-libraries/pull/10845
    """
    report = banks.layout_report(f"cute:{bits},2,5", (32, 32), 4)
    assert report.loads.per_request == (column, column)
    assert report.stores.excess == 0


@pytest.mark.parametrize("size", SIZES)
def test_masks_that_differ_between_store_and_load_fail_the_value_test(size: int) -> None:
    """Different masks for store and load left every test of a library green.

    https://github.com/ROCm/rocm-libraries/pull/10845
    """
    right = banks.describe_layout("swizzled", (32, 32), size)
    one_bit_fewer = f"cute:{right.bits - 1},{right.base},{right.shift}"
    expected = torch.arange(1024).view(32, 32).t()
    assert torch.equal(transpose_through(right.offsets, right.offsets), expected)
    for other in (one_bit_fewer, "naive"):
        wrong = banks.describe_layout(other, (32, 32), size)
        assert not torch.equal(transpose_through(right.offsets, wrong.offsets), expected)
        assert not torch.equal(transpose_through(wrong.offsets, right.offsets), expected)
