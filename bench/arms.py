"""What is compared: a copy, our methods, torch eager, torch.compile, and peers behind a flag.

An arm turns a case and its input into a callable without arguments that returns the transposed
tensor. Every arm's result is checked bit by bit before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from bench.grid import Case, Shape, random_bits
from bench.records import ARTICLE_GROUP, MANY_GROUPS, OURS

Call = Callable[[], torch.Tensor]
Prepare = Callable[[Case, torch.Tensor], Call]

ARTICLE_TILE = "scalar32"
METHODS = ("naive", "padded", "swizzled")
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}


class NotApplicable(Exception):
    """A peer cannot serve a case; the message says why."""


@dataclass(frozen=True)
class Arm:
    """One variant of the comparison.

    Attributes:
        variant: its name in records, tables and plots.
        op: what it calls.
        prepare: makes the callable for a case; raises `NotApplicable` for a case it cannot serve.
        is_peer: somebody else's code, whose inability is not our failure.
        keeps_nan_payloads: False where arithmetic may change the payload of a NaN.
        cpu: it runs on CPU tensors too.
    """

    variant: str
    op: str
    prepare: Prepare
    is_peer: bool = False
    keeps_nan_payloads: bool = True
    cpu: bool = True


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as integers (16-byte elements as pairs), so that NaNs compare by payload."""
    return tensor.view(_BITS[tensor.element_size()])


def eager(x: torch.Tensor, dims: Shape | None = None) -> torch.Tensor:
    """Torch's transpose of the last two dimensions, or permute, into new memory.

    `contiguous()` returns its own input where nothing needs to move (a column-major input); a copy
    of that is made, as our op makes one.
    """
    y = x.transpose(-2, -1) if dims is None else x.permute(dims)
    if y.is_contiguous():
        return y.clone(memory_format=torch.contiguous_format)
    return y.contiguous()


def difference(
    result: torch.Tensor, expected: torch.Tensor, *, keeps_nan_payloads: bool = True
) -> str | None:
    """One sentence on how a result differs from the expected one; None if it does not."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return (
            f"expected {expected.dtype} {tuple(expected.shape)}, "
            f"got {result.dtype} {tuple(result.shape)}"
        )
    if not result.is_contiguous():
        return f"expected a contiguous result, got strides {result.stride()}"
    if not keeps_nan_payloads and result.is_complex():  # a NaN in one part excuses not the other
        result, expected = torch.view_as_real(result), torch.view_as_real(expected)
    got, wanted = bits(result), bits(expected)
    if torch.equal(got, wanted):
        return None
    wrong = got != wanted
    if not keeps_nan_payloads and result.is_floating_point():
        wrong &= ~(result.isnan() & expected.isnan())
    count = int(wrong.sum())
    if count == 0:
        return None
    first = int(wrong.flatten().to(torch.uint8).argmax())
    return f"wrong bits in {count} of {wrong.numel()} places, the first at flat index {first}"


def copy_source(case: Case, x: torch.Tensor) -> torch.Tensor:
    """What the copy arm reads: dense, aligned, half of all bytes that the transpose must move."""
    if x.is_contiguous() and x.storage_offset() == 0:
        return x
    return random_bits(case.moved_bytes // 2, torch.uint8, x.device)


def copy_call(source: torch.Tensor) -> Call:
    """`y.copy_(source)`: the usual ceiling."""
    return lambda: torch.empty_like(source).copy_(source)


def _method_arm(method: str) -> Arm:
    def prepare(case: Case, x: torch.Tensor) -> Call:
        return lambda: torch.ops.swizzle.transpose(x, method=method)

    return Arm(method, "transpose", prepare)


def _prepare_permute(case: Case, x: torch.Tensor) -> Call:
    return lambda: torch.ops.swizzle.permute(x, case.dims)


def tile_arm(method: str, tile: str) -> Arm:
    """One layout on a forced tile policy (on CPU tensors the tile program runs on the host)."""

    def prepare(case: Case, x: torch.Tensor) -> Call:
        return lambda: torch.ops.swizzle._transpose_with(x, method, tile)

    return Arm(method, f"_transpose_with {tile}", prepare)


def _prepare_eager(case: Case, x: torch.Tensor) -> Call:
    return lambda: eager(x, case.dims)


def _prepare_compiled(case: Case, x: torch.Tensor) -> Call:
    torch._dynamo.reset()  # each case is compiled on its own, whatever the recompile limit
    compiled = torch.compile(eager, dynamic=False, fullgraph=True)
    return lambda: compiled(x, case.dims)


TORCH = Arm("torch", "x.transpose(-2, -1).contiguous()", _prepare_eager, is_peer=True)
COMPILE = Arm(
    "compile",
    "torch.compile of x.transpose(-2, -1).contiguous()",
    _prepare_compiled,
    is_peer=True,
    cpu=False,
)


PERMUTE = Arm("auto", "permute", _prepare_permute)
PERMUTE_TORCH = replace(TORCH, op="x.permute(dims).contiguous()")
PERMUTE_COMPILE = replace(COMPILE, op="torch.compile of x.permute(dims).contiguous()")


def arms_for(case: Case, *, peers: bool = False) -> list[Arm]:
    """The arms of a case, in the order of columns; the article's case forces the article's tile.

    Random permutes and sides are many, and each takes seconds to compile: torch.compile joins them
    as a peer.
    """
    is_quick = case.group in MANY_GROUPS and not peers
    if case.dims is not None:
        ours, of_torch = [PERMUTE], [PERMUTE_TORCH, PERMUTE_COMPILE]
    elif case.group == ARTICLE_GROUP:
        ours = [_method_arm("auto"), *(tile_arm(method, ARTICLE_TILE) for method in METHODS)]
        of_torch = [TORCH, COMPILE]
    else:
        ours, of_torch = [_method_arm(method) for method in OURS], [TORCH, COMPILE]
    arms = [*ours, *(of_torch[:1] if is_quick else of_torch)]
    if peers:
        from bench.peers import PERMUTE_PEERS, TRANSPOSE_PEERS  # need libraries of CUDA

        arms += TRANSPOSE_PEERS if case.dims is None else PERMUTE_PEERS
    return arms
