"""Bank conflicts of shared-memory accesses, predicted on the CPU by the kernels' own bank model.

Shared memory has 32 banks of 4-byte words. A request is one access by the 32 lanes of a warp, which
are served in groups: one of 32 lanes for up to 4 bytes a lane, two for 8 bytes, four for 16. A
group takes as many wavefronts as the most distinct words that it wants from one bank. What exceeds
the least possible is the excess, which Nsight Compute calls bank conflicts. No GPU is needed:

    >>> import torch
    >>> from torch_swizzle import banks
    >>> column = banks.wavefronts(128 * torch.arange(32), width=4)  # any byte addresses
    >>> column.wavefronts, column.ideal, column.excess
    (32, 1, 31)
    >>> banks.layout_report("swizzled", (32, 32), 4).excess  # any tile, layout and access
    0
    >>> banks.tile_report("swizzled", tile="scalar32", element_bytes=4).excess  # our own kernels
    0

`translate` says which notations (CuTe, TMA, the article's, padding) mean the same layout, `advise`
which layouts a tile has to choose from. docs/banks.md explains banks from the beginning.
"""

from __future__ import annotations

from ._advice import Advice, Bound, Option, advise
from ._layout import Comparison, TileLayout, Translation, compare, describe_layout, translate
from ._picture import (
    Drawing,
    draw_report,
    draw_report_text,
    draw_request,
    draw_requests,
    draw_tile,
    draw_tile_text,
)
from ._report import (
    BankReport,
    Kind,
    Layout,
    Meeting,
    Phase,
    Request,
    Tile,
    assert_no_bank_conflicts,
    tile_report,
    wavefronts,
)
from ._tile import LayoutReport, layout_report

__all__ = [
    "Advice",
    "BankReport",
    "Bound",
    "Comparison",
    "Drawing",
    "Kind",
    "Layout",
    "LayoutReport",
    "Meeting",
    "Option",
    "Phase",
    "Request",
    "Tile",
    "TileLayout",
    "Translation",
    "advise",
    "assert_no_bank_conflicts",
    "compare",
    "describe_layout",
    "draw_report",
    "draw_report_text",
    "draw_request",
    "draw_requests",
    "draw_tile",
    "draw_tile_text",
    "layout_report",
    "tile_report",
    "translate",
    "wavefronts",
]
