"""Generated calls that end in `aten::copy_`, and what can be observed of each.

A case is built from its number alone, so that it can be run twice, with and without `accelerate`,
on equal tensors. What is compared: errors, values, the memory around the destination, strides,
offsets, lazy bits, versions and gradients.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from samples import DTYPES, random_bits, stale
from torch import Tensor

CALLS = ("copy_", "copy_", "copy_", "contiguous", "clone", "reshape", "memory_format", "within")


@dataclass(frozen=True)
class Outcome:
    """What a call did: the error that it raised, or the tensors that it left."""

    error: tuple[str, str] | None
    tensors: tuple[Tensor, ...]
    facts: tuple[Any, ...]

    def difference(self, other: Outcome) -> str | None:
        """One sentence on how another outcome differs; None if it does not."""
        if self.error != other.error:
            return f"error {other.error} instead of {self.error}"
        if self.facts != other.facts:
            return f"{other.facts} instead of {self.facts}"
        for index, (mine, theirs) in enumerate(zip(self.tensors, other.tensors, strict=True)):
            if not torch.equal(plain_bytes(mine), plain_bytes(theirs)):
                return f"wrong bits in tensor {index}"
        return None


def plain_bytes(x: Tensor) -> Tensor:
    """The bytes of the values of `x`, lazy bits resolved, in row-major order."""
    dense = x.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return dense.view(-1).view(torch.uint8)


class Case:
    """The call of a number: sizes, dtypes, layouts and the way to `aten::copy_`."""

    def __init__(self, number: int, device: str):
        self.device = device
        self._random = random.Random(number)
        self._seed = number
        choose = self._random.choice
        self.dtype = choose(DTYPES)
        self.sizes = self._draw_sizes()
        self.call = choose(CALLS)
        self.description = f"case {number}: {self.call} of {self.dtype} {self.sizes}"

    def run(self) -> Outcome:
        """Build the tensors anew and make the call."""
        state, seed = self._random.getstate(), self._seed
        try:
            return self._observe(self._prepare())
        finally:
            self._random.setstate(state)
            self._seed = seed

    def _draw_sizes(self) -> tuple[int, ...]:
        """One to four dimensions of a few thousand elements together, or none at all."""
        rank = self._random.choice((1, 2, 2, 2, 2, 3, 3, 3, 4))
        if self._random.random() < 0.04:
            return (*[5] * (rank - 1), 0)
        target = self._random.choice((64, 4096, 10000, 20000, 40000))
        sizes = [self._random.choice((1, 2, 3, 8, 16, 20, 31)) for _ in range(rank)]
        longest = self._random.randrange(rank)
        sizes[longest] = 1
        sizes[longest] = max(target // math.prod(sizes), 1)
        return tuple(sizes)

    def _view(
        self, sizes: tuple[int, ...], dtype: torch.dtype, *, written: bool = False
    ) -> tuple[Tensor, Tensor]:
        """A base and a view of it with these sizes: permuted, with gaps and an offset, or plain."""
        rank = len(sizes)
        usual = ["plain"] * 3 if written else ["permuted"] * 4
        kind = self._random.choice([*usual, "plain", "permuted", "gaps", "steps"])
        order = list(range(rank))
        if kind != "plain":
            self._random.shuffle(order)
        strides = [0] * rank
        step = self._random.choice((1, 1, 2, 3)) if kind == "steps" else 1
        for place, dim in enumerate(reversed(order)):
            strides[dim] = step
            step *= max(sizes[dim], 1)
            if kind == "gaps" and place < 2:
                step += self._random.choice((0, 1, 3, 16, 64))
        if rank and self._random.random() < (0.02 if written else 0.08):
            strides[self._random.randrange(rank)] = 0
        offset = self._random.choice((0, 0, 0, 1, 3, 8))
        reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        numel = offset + (reach + 1 if 0 not in sizes else 0)
        self._seed += 1
        base = (
            stale((numel,), dtype, self.device)
            if written
            else random_bits((numel,), dtype, self.device, self._seed)
        )
        view = base.as_strided(sizes, strides, offset)
        if dtype.is_complex and self._random.random() < 0.3:
            view = view.conj()
        if dtype.is_floating_point and dtype.itemsize >= 4 and self._random.random() < 0.1:
            view = torch._neg_view(view)
        return base, view

    def _prepare(self) -> Callable[[], tuple[list[Tensor], list[Tensor]]]:
        """The call; it returns its results and the memory that it may have written."""
        source_base, source = self._view(self.sizes, self.dtype)
        if self.call == "copy_":
            return self._prepare_copy(source)
        if self.call == "within":
            return self._prepare_copy_within(source_base)
        if source.is_floating_point() and self._random.random() < 0.3:
            source = source.detach().requires_grad_()
        if self.call == "contiguous":
            return lambda: ([source.transpose(0, -1).contiguous()], [source_base])
        if self.call == "clone":
            form = self._random.choice((torch.preserve_format, torch.contiguous_format))
            return lambda: ([source.clone(memory_format=form)], [source_base])
        if self.call == "reshape":
            return lambda: ([source.mT.reshape(-1) if source.dim() > 1 else source], [source_base])
        return lambda: ([source.to(memory_format=torch.channels_last)], [source_base])

    def _prepare_copy(self, source: Tensor) -> Callable[[], tuple[list[Tensor], list[Tensor]]]:
        sizes, dtype = list(self.sizes), self.dtype
        chance = self._random.random()
        if chance < 0.05 and 0 not in sizes:
            sizes = [3, *sizes]  # the source is broadcast
        elif chance < 0.1:
            sizes[0] += 1  # an error, unless the source has one there
        elif chance < 0.2:
            dtype = self._random.choice((torch.float32, torch.int64, torch.complex64))
        base, destination = self._view(tuple(sizes), dtype, written=True)
        non_blocking = self._random.random() < 0.5
        return lambda: ([destination.copy_(source, non_blocking)], [base])

    def _prepare_copy_within(self, base: Tensor) -> Callable[[], tuple[list[Tensor], list[Tensor]]]:
        """Source and destination in one storage, so that the result is defined or an error."""
        count = max(int((base.numel() // 2) ** 0.5), 1)
        base = random_bits((2 * count * count,), self.dtype, self.device, self._seed)
        halves = base.view(2, count, count)
        chance = self._random.random()
        if chance < 0.3:
            return lambda: ([halves[0].copy_(halves[1].t())], [base])
        if chance < 0.5:
            pairs = base.view(count, count, 2)
            return lambda: ([pairs[..., 0].copy_(pairs[..., 1].t())], [base])
        if chance < 0.7:
            return lambda: ([halves[0].copy_(halves[0])], [base])
        shifted = base[1 : 1 + count * count].view(count, count) if base.numel() > 2 else halves[0]
        return lambda: ([halves[0].copy_(shifted)], [base])

    def _observe(self, call: Callable[[], tuple[list[Tensor], list[Tensor]]]) -> Outcome:
        try:
            results, memory = call()
        except Exception as error:  # whatever torch raises is what must be raised again
            return Outcome((type(error).__name__, str(error)), (), ())
        facts = []
        for result in results:
            facts += [result.shape, result.stride(), result.storage_offset(), result.dtype]
            facts += [result.device, result.is_conj(), result.is_neg(), result._version]
            facts += [result.requires_grad, type(result.grad_fn).__name__]
        return Outcome(None, (*(result.detach() for result in results), *memory), tuple(facts))
