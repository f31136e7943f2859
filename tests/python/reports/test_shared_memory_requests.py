"""Reports on launches that asked for more shared memory than there was."""

from __future__ import annotations

import pytest
import torch
from samples import (
    LAYOUTS,
    TILES_WITH_LAYOUT,
    assert_fresh_transpose,
    leave_stale_memory,
    random_bits,
    reference,
)
from test_faults import launches_fail

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("tile", TILES_WITH_LAYOUT)
def test_the_largest_tiles_of_the_widest_elements_are_granted(
    tile: str, dtype: torch.dtype, device: str
) -> None:
    """https://github.com/NVIDIA/warp/issues/1701: a tile too large for a block was not refused.

    No tile asks for more than the 99 KiB that every supported GPU grants, which the build of the
    kernels asserts; so each of them runs, and none leaves its output as it was.
    """
    x = random_bits((512, 1024), dtype, device)
    for layout in LAYOUTS:
        leave_stale_memory((1024, 512), dtype, device)
        assert_fresh_transpose(transpose_with(x, layout, tile), x, reference(x), layout)


@pytest.mark.cuda
def test_a_refused_launch_names_the_bytes_asked_and_allowed() -> None:
    """https://github.com/NVIDIA/warp/issues/1701: a bare invalid argument, without the figures."""
    x = random_bits((2048, 2048), torch.complex128, "cuda")
    transpose(x)
    allowed = torch.cuda.get_device_properties().shared_memory_per_block_optin
    said = rf"with \d+ bytes of shared memory a block \(allowed: {allowed}\) failed"
    with launches_fail(), pytest.raises(RuntimeError, match=said):
        transpose(x)
    assert_fresh_transpose(transpose(x), x, reference(x))
