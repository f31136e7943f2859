"""Threads that share a place in memory: what to look for in an index before its speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["Collision", "find_collisions"]


@dataclass(frozen=True)
class Collision:
    """Threads that access one address; if they store, all values but one are lost."""

    address: int
    """Byte address."""
    threads: tuple[int, ...]
    """Linear indices of the threads, ascending."""


def find_collisions(
    addresses: Tensor | Sequence[Any], active: Tensor | Sequence[Any] | None = None
) -> tuple[Collision, ...]:
    """Find threads that access the same address, in one warp or in different ones.

    For stores of a tile each address must have one thread; an index that wraps around, as
    ``2 * i % 256`` over 256 threads, gives some of them two and loses a value for each.

    Args:
        addresses: Byte address of each thread, in order of the linear thread index, as integers of
            any shape. All accesses have one width and are aligned to it.
        active: Whether each thread takes part, in the shape of ``addresses``; default: all do.

    Returns:
        The addresses with more than one thread, ascending.

    Example:
        >>> found = find_collisions(4 * (2 * torch.arange(256) % 256))
        >>> len(found), found[0]
        (128, Collision(address=0, threads=(0, 128)))
    """
    numbers = torch.as_tensor(addresses, device="cpu").reshape(-1).tolist()
    live = [True] * len(numbers) if active is None else torch.as_tensor(active).reshape(-1).tolist()
    threads: dict[int, list[int]] = {}
    for thread, (address, takes_part) in enumerate(zip(numbers, live, strict=True)):
        if takes_part:
            threads.setdefault(address, []).append(thread)
    return tuple(
        Collision(address, tuple(found))
        for address, found in sorted(threads.items())
        if len(found) > 1
    )
