"""The bank model's view of a tile: wavefronts per warp-level access to shared memory.

The numbers come from `swizzle::_tile_wavefronts`, which counts on the kernels' own index code.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

WARP_LANES = 32


@dataclass(frozen=True)
class Accesses:
    """All requests of one direction (stores into or loads from shared memory) of one full tile."""

    requests: int
    wavefronts: int
    ideal: int
    worst: int  # wavefronts of the worst request
    worst_ideal: int  # the least that a request of that width takes
    bytes: int

    @property
    def excess(self) -> int:
        """Wavefronts beyond the least possible: what the hardware counts as bank conflicts."""
        return self.wavefronts - self.ideal


@dataclass(frozen=True)
class TileModel:
    """What the bank model predicts for one full tile."""

    store: Accesses
    load: Accesses

    def tiles(self, total_bytes: int) -> int:
        """Full tiles in a matrix of that many bytes: each byte enters shared memory once."""
        return total_bytes // self.store.bytes


def tile_model(method: str, tile: str, element_bytes: int) -> TileModel:
    """The model of one layout on one tile policy."""
    table = torch.ops.swizzle._tile_wavefronts(method, tile, element_bytes).tolist()
    return TileModel(
        store=_sum([row for row in table if not row[0]]),
        load=_sum([row for row in table if row[0]]),
    )


def _sum(rows: list[list[int]]) -> Accesses:
    return Accesses(
        requests=len(rows),
        wavefronts=sum(wavefronts for _, _, wavefronts, _ in rows),
        ideal=sum(ideal for _, _, _, ideal in rows),
        worst=max((wavefronts for _, _, wavefronts, _ in rows), default=0),
        worst_ideal=max((ideal for _, _, _, ideal in rows), default=0),
        bytes=sum(width * WARP_LANES for _, width, _, _ in rows),
    )
