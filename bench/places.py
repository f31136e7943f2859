"""Several places in memory for the input and the results of a small call.

A call of 5 us takes up to 6 % longer at one place than at another, most variants alike but not all
(one H200, ten places each, 2026-12-01: 4.67 to 4.96 us of float16 462 x 1024).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from bench.timing import stay

SMALL_BYTES = 4 << 20  # of the input: up to here a case is timed at several places
PLACES = 16
MOST_HELD = 8
GAP_BYTES = 160 << 10  # multiples of two and a half pages of 64 KiB lie between the copies


class Places:
    """Moves a tensor through copies of its memory, and what calls allocate behind blocks held.

    Example:
        places = Places(x)
        for _ in range(100):
            places.move()  # x has other memory now, and the same values
            y = x.t().contiguous()
    """

    def __init__(self, x: torch.Tensor, count: int = PLACES) -> None:
        self._x = x
        self._layout = (x.storage_offset(), x.size(), x.stride())
        self._result_bytes = x.numel() * x.element_size()
        memory = torch.empty(0, dtype=torch.uint8, device=x.device).set_(x.untyped_storage())
        self._memories = [memory]
        self._gaps = []
        for number in range(1, count):
            gap = torch.empty(number * GAP_BYTES, dtype=torch.uint8, device=x.device)
            self._gaps.append(gap)
            self._memories.append(memory.clone())
        self._held: list[torch.Tensor] = []
        self._step = 0

    def move(self) -> None:
        """Gives the tensor the next memory, and its results other blocks than before."""
        self._step += 1
        memory = self._memories[self._step % len(self._memories)]
        self._x.set_(memory.untyped_storage(), *self._layout)
        self._held = [
            torch.empty(self._result_bytes, dtype=torch.uint8, device=self._x.device)
            for _ in range(self._step % MOST_HELD)
        ]


def mover(x: torch.Tensor) -> Callable[[], None]:
    """What moves an input between repetitions: nothing where it is too large for it to matter."""
    return Places(x).move if x.untyped_storage().nbytes() <= SMALL_BYTES else stay
