"""Sharding rules of the operators for DTensor, registered once torch.distributed.tensor is there.

Importing that module takes half as long as importing torch, so nothing here imports it: the rules
are registered right after whoever needs it has imported it.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

_DTENSOR = "torch.distributed.tensor"

# A way to run an operator on shards: placements of the results, then of the arguments.
Sharding = tuple[list[Any], list[Any]]


def register_when_imported() -> None:
    """Register the rules now if DTensor has been imported, else as soon as it is."""
    if _DTENSOR in sys.modules:
        _register()
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds DTensor's module where the others find it, and has the rules registered after it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _DTENSOR:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)
        return spec


class _RegisteringLoader(importlib.abc.Loader):
    """A module's own loader, with the registration behind it."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _register()


def _register() -> None:
    _register_rule(torch.ops.swizzle.transpose.default, _shard_transpose)
    _register_rule(torch.ops.swizzle.transpose.out, _shard_transpose_out)
    _register_rule(torch.ops.swizzle.permute.default, _shard_permute)
    _register_rule(torch.ops.swizzle.permute.out, _shard_permute_out)


def _register_rule(operator: Any, rule: Callable[..., list[Sharding]]) -> None:
    """Register a rule, and what DTensor must compare before it uses the rule's answer again.

    DTensor keeps the answer for each combination of inputs and of the arguments that the operator
    declares. register_sharding declares those of type int and nothing else: two permutes of one
    tensor would share an answer whatever their dims, as would two calls whose ``out`` lies
    differently, and the results would be wrong without an error. So every positional argument
    after the input is declared, and ``out``. Where torch no longer keeps the declarations here,
    this fails, which is better than such results.
    """
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.experimental import register_sharding

    register_sharding(operator)(rule)
    declared = DTensor._op_dispatcher.sharding_propagator.op_to_schema_info
    declared[operator] = dataclasses.replace(
        declared[operator], static_argnum=1, static_kwargkey=["out"]
    )


def _shard_transpose(
    input: Any, dim0: int = -2, dim1: int = -1, *, method: str = "auto"
) -> list[Sharding]:
    followed = _follow(input, _exchanged(input.ndim, dim0, dim1))
    return [([result], [placement, None, None]) for placement, result in followed]


def _shard_transpose_out(
    input: Any, dim0: int = -2, dim1: int = -1, *, method: str = "auto", out: Any
) -> list[Sharding]:
    followed = _follow(input, _exchanged(input.ndim, dim0, dim1))
    return [([result], [placement, None, None, result]) for placement, result in followed]


def _shard_permute(input: Any, dims: Sequence[int], *, method: str = "auto") -> list[Sharding]:
    followed = _follow(input, _counted_from_front(input.ndim, dims))
    return [([result], [placement, None]) for placement, result in followed]


def _shard_permute_out(
    input: Any, dims: Sequence[int], *, method: str = "auto", out: Any
) -> list[Sharding]:
    followed = _follow(input, _counted_from_front(input.ndim, dims))
    return [([result], [placement, None, result]) for placement, result in followed]


def _exchanged(rank: int, dim0: int, dim1: int) -> list[int]:
    """The input's dimensions in the order of a transpose's result."""
    order = list(range(rank))
    if rank:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return order


def _counted_from_front(rank: int, dims: Sequence[int]) -> list[int]:
    """The input's dimensions in the order of a permute's result; ``dims`` may be negative."""
    return [range(rank)[dim] for dim in dims]


def _follow(input: Any, order: Sequence[int]) -> list[tuple[Any, Any]]:
    """Pairs of placements, of an input and of its permutation, that need no communication.

    Args:
        input: The sharded input, as register_sharding hands it over.
        order: The input's dimensions in the order of the result.

    Returns:
        Replicated, sharded along each dimension, and every kind of placement that the input has.
    """
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.placement_types import _StridedShard

    def moved(placement: Any) -> Any:
        if isinstance(placement, Shard):
            return Shard(order.index(placement.dim))
        if isinstance(placement, _StridedShard):
            to = order.index(placement.dim)
            return _StridedShard(to, split_factor=placement.split_factor)
        return placement  # replicated or partial: a permutation commutes with any reduction

    placements = [Replicate(), *(Shard(dim) for dim in range(input.ndim))]
    placements += [placement for placement in input.placements if placement not in placements]
    return [(placement, moved(placement)) for placement in placements]
