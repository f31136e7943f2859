"""An optional pass for `torch.compile`: transposes that are written to memory go to the operator.

Inductor fuses a transpose with what reads or makes it, and is at its best there. Where a transposed
copy stands between memory and memory (a graph's input or output, a matrix product), nothing is
fused, and the operator is faster for elements of 1, 2 and 16 bytes and for rows at odd pitches.
The pass replaces those copies and no others. Off unless `use_transpose` is called.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import fx
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

aten = torch.ops.aten

# What Inductor calls rather than fuses, so that its arguments and results lie in memory anyway.
_CALLED = (
    aten.mm.default,
    aten.bmm.default,
    aten.addmm.default,
    aten.baddbmm.default,
    aten._scaled_mm.default,
    aten.convolution.default,
)
_VIEWS = (aten.view.default, aten.reshape.default, aten.permute.default)

# Below, a launch costs more than the difference: float16 1024 x 1024 took 5.8 us here and 6.2 us
# compiled, uint8 256 x 256 4.9 and 4.4 (bench/results/grid.json, H200, 2026-11-29).
_MIN_BYTES = 2 << 20
_CHUNK_BYTES = 16


class TransposePass(CustomGraphPass):
    """Replaces transposed copies from memory to memory, after a pass that was there before.

    Attributes:
        replaced: How many copies were replaced so far; code from Inductor's cache does not count.
    """

    def __init__(
        self, previous: Any, min_bytes: int = _MIN_BYTES, device_types: Collection[str] = ("cuda",)
    ):
        self.previous = previous
        self.replaced = 0
        self._min_bytes = min_bytes
        self._device_types = tuple(device_types)

    def __call__(self, graph: fx.Graph) -> None:
        """Change a graph in place."""
        if self.previous is not None:
            self.previous(graph)
        for node in list(graph.nodes):
            dims = self._dims_of(node)
            if dims is None:
                continue
            source = node.args[0].args[0]
            with graph.inserting_before(node):
                ours = graph.call_function(
                    torch.ops.swizzle.transpose.default, args=(source, *dims)
                )
            ours.meta.update(node.meta)
            node.replace_all_uses_with(ours)
            graph.erase_node(node)
            self.replaced += 1

    def uuid(self) -> Any:
        """What cached code depends on; None, which means no caching, after a pass without one."""
        own = (get_hash_for_files((__file__,)), self._min_bytes, self._device_types)
        if self.previous is None:
            return own
        before = self.previous.uuid() if isinstance(self.previous, CustomGraphPass) else None
        return None if before is None else (own, before)

    def _dims_of(self, copy: fx.Node) -> tuple[int, int] | None:
        """The dimensions that a copy exchanges, if it is one to replace."""
        if copy.target is not aten.clone.default:
            return None
        if copy.kwargs.get("memory_format") is not torch.contiguous_format:
            return None
        view = copy.args[0]
        if not isinstance(view, fx.Node) or view.target is not aten.permute.default:
            return None
        source, order = view.args
        assert isinstance(source, fx.Node)
        assert isinstance(order, list | tuple)
        moved = [dim for dim, place in enumerate(order) if dim != place % len(order)]
        if len(moved) != 2 or not self._is_faster(source.meta.get("val"), moved):
            return None
        if not _comes_from_memory(source) or not _goes_to_memory(copy):
            return None
        return moved[0], moved[1]

    def _is_faster(self, x: object, moved: list[int]) -> bool:
        if not isinstance(x, torch.Tensor) or x.device.type not in self._device_types:
            return False
        numbers = (*x.shape, *x.stride())
        if not all(isinstance(number, int) for number in numbers):
            return False  # the choice must not add a guard to a graph of dynamic shapes
        if moved[1] != x.dim() - 1 or x.stride(-1) != 1 or x.stride(moved[0]) <= 1:
            return False
        if x.numel() * x.itemsize < self._min_bytes:
            return False
        pitches = (x.stride(moved[0]), x.shape[moved[0]])  # of rows in the input and in the output
        return x.itemsize in (1, 2, 16) or any(
            pitch * x.itemsize % _CHUNK_BYTES != 0 for pitch in pitches
        )


def _comes_from_memory(node: fx.Node) -> bool:
    while node.op == "call_function" and node.target in _VIEWS:
        parent = node.args[0]
        assert isinstance(parent, fx.Node)
        node = parent
    return node.op in ("placeholder", "get_attr") or node.target in _CALLED


def _goes_to_memory(node: fx.Node) -> bool:
    return all(
        user.op == "output"
        or user.target in _CALLED
        or (user.target in _VIEWS and _goes_to_memory(user))
        for user in node.users
    )


def use_transpose(enabled: bool = True) -> TransposePass | None:
    """Let compiled code use the operator for transposes from memory to memory.

    Sets ``torch._inductor.config.post_grad_custom_post_pass``, and calls the pass that was set
    before first. Holds for what is compiled from then on, on CUDA tensors of known shapes.

    Args:
        enabled: False restores what was set before.

    Returns:
        The pass, whose ``replaced`` counts; None if it is off.

    Example:
        >>> import torch_swizzle.inductor
        >>> transposes = torch_swizzle.inductor.use_transpose()
        >>> transposes.replaced
        0
        >>> torch_swizzle.inductor.use_transpose(False)
    """
    current = config.post_grad_custom_post_pass
    if not enabled:
        if isinstance(current, TransposePass):
            config.post_grad_custom_post_pass = current.previous
        return None
    if not isinstance(current, TransposePass):
        current = TransposePass(current)
        config.post_grad_custom_post_pass = current
    return current
