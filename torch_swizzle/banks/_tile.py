"""The requests of a thread block that goes over a tile, by access pattern and layout."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ._layout import TileLayout, describe_layout
from ._report import LANES, BankReport, Kind, Request, make_requests
from ._shown import Shown

_ACCESS = re.compile(r"(row|column|stride-(?P<stride>\d{1,7}))(:(?P<width>\d{1,3}))?")


@dataclass(frozen=True)
class Access:
    """A way over a tile. `parse` reads its name."""

    name: str
    """As it was given."""
    stride: int | None
    """Units from one thread to the next, where the access is by a stride."""
    is_column: bool
    """Whether threads follow the columns."""
    width: int
    """Bytes a lane."""

    @staticmethod
    def parse(name: str, element_bytes: int) -> Access:
        """Read ``row``, ``column`` or ``stride-K``, with ``:BYTES`` where a lane moves a vector."""
        found = _ACCESS.fullmatch(name)
        if found is None:
            raise ValueError(
                "expected an access: row[:BYTES], column[:BYTES] or stride-K[:BYTES], "
                f"got {name!r}."
            )
        width = int(found["width"]) if found["width"] else element_bytes
        if width == 0 or width % element_bytes:
            raise ValueError(
                f"expected an access of whole elements of {element_bytes} bytes, got {name!r}."
            )
        stride = int(found["stride"]) if found["stride"] else None
        return Access(name, stride, found[1] == "column", width)


@dataclass(frozen=True)
class LayoutReport(BankReport):
    """A report of a tile in a layout: its stores, then its loads."""

    layout: TileLayout
    """Where the tile's elements lie."""
    store: str
    """The access of the stores."""
    load: str
    """The access of the loads."""

    def to_dict(self) -> dict[str, Any]:
        """Return the tile, the layout and the sums of stores and loads, ready for JSON."""
        tile = {"rows": self.layout.rows, "cols": self.layout.cols}
        return {
            "tile": tile,
            "element_bytes": self.layout.element_bytes,
            "layout": self.layout.to_dict(),
            "store": {"access": self.store, **self.stores.to_dict()},
            "load": {"access": self.load, **self.loads.to_dict()},
        }

    def __str__(self) -> str:
        """Return the tile, the layout, and a table with a row for stores and one for loads."""
        tile = self.layout
        return (
            f"tile {tile.rows} x {tile.cols}, elements of {tile.element_bytes} bytes, store "
            f"{self.store}, load {self.load}\n{tile}\n\n{super().__str__()}"
        )

    def _repr_html_(self) -> str:
        """Return the table and the pictures, for notebooks."""
        from ._picture import draw_report  # which draws what this module reports

        return Shown._repr_html_(self) + draw_report(self).to_svg()


def layout_report(
    layout: str,
    shape: tuple[int, int],
    element_bytes: int = 4,
    *,
    store: str = "row",
    load: str = "column",
    block: tuple[int, ...] | None = None,
) -> LayoutReport:
    """Count the wavefronts of a thread block that writes a whole tile and reads it back.

    Threads follow the tile row by row or column by column; each 32 of them in that order are a
    warp. So a warp covers two rows of a tile 16 wide, and two columns of one 16 high.

    Args:
        layout: Where the tile's elements lie; a notation that `describe_layout` takes.
        shape: Rows and columns of the tile, in elements.
        element_bytes: Bytes of an element.
        store: How the tile is written: ``row``, ``column`` or ``stride-K`` (thread t takes every
            K-th element in row-major order; ``stride-0`` is a broadcast), with ``:BYTES`` where a
            lane moves a vector: ``row:16``.
        load: How it is read, likewise.
        block: Threads of the block, x first: ``(8, 32)``. Thread (x, y) then takes column x of row
            y or, by columns, row x of column y, and the block steps over the tile. Default: the
            threads are numbered along the tile.

    Returns:
        A report of the stores and the loads.

    Raises:
        ValueError: The layout or an access has no meaning for this tile, a vector would not be
            aligned in this layout, or the block does not divide the tile.

    Example:
        >>> report = banks.layout_report("naive", (32, 32), 4)
        >>> report.stores.per_request, report.loads.per_request
        ((1, 1), (32, 32))
        >>> banks.layout_report("padded", (32, 32), 4).loads.per_request
        (1, 1)
    """
    described = describe_layout(layout, shape, element_bytes)
    requests: list[Request] = []
    kinds: list[tuple[Kind, str]] = [("store", store), ("load", load)]
    for kind, name in kinds:
        access = Access.parse(name, element_bytes)
        addresses, active, warps = addresses_of(described, access, block)
        names = [(kind, index % warps) for index in range(len(addresses))]
        requests += make_requests(names, addresses, access.width, active)
    return LayoutReport(tuple(requests), described, store, load)


def addresses_of(
    layout: TileLayout, access: Access, block: tuple[int, ...] | None = None
) -> tuple[Tensor, Tensor, int]:
    """Return byte addresses and active lanes, (requests, 32) each, and the warps of the block."""
    if layout.chunk_bytes % access.width and access.width > layout.element_bytes:
        raise ValueError(
            f"expected vectors of at most {layout.chunk_bytes} bytes, which layout "
            f"{layout.notation} keeps whole and aligned, got {access.name!r}."
        )
    units = layout.offsets[:, :: access.width // layout.element_bytes]
    if access.stride is not None:
        in_order = units.reshape(-1)
        taken = in_order[:: access.stride] if access.stride else in_order[:1].expand(LANES)
        by_step = taken.reshape(1, -1)
    elif block is None:
        by_step = (units.t() if access.is_column else units).reshape(1, -1)
    else:
        by_step = _by_block(units.t() if access.is_column else units, block, access)
    missing = -by_step.shape[1] % LANES
    addresses = torch.nn.functional.pad(by_step, (0, missing), value=-1).view(-1, LANES)
    return addresses, addresses >= 0, (by_step.shape[1] + missing) // LANES


def _by_block(units: Tensor, block: tuple[int, ...], access: Access) -> Tensor:
    """Cut (y, x) units into the steps of a block, each in the order of the linear thread index."""
    across = block[0] if block else 0
    down = math.prod(block[1:])
    height, width = units.shape
    if not (1 <= len(block) <= 3 and across > 0 and down > 0) or width % across or height % down:
        raise ValueError(
            f"expected one to three sides of a block that divide {width} x {height}, the "
            f"{access.name} units of the tile across and down, got {'x'.join(map(str, block))}."
        )
    steps = units.reshape(height // down, down, width // across, across).permute(0, 2, 1, 3)
    return steps.reshape(-1, down * across)
