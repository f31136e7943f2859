"""Typed functions over the operators of libtorch_swizzle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Method = Literal["auto", "naive", "padded", "swizzled"]


def transpose(
    input: Tensor,
    dim0: int = -2,
    dim1: int = -1,
    *,
    method: Method = "auto",
    out: Tensor | None = None,
) -> Tensor:
    """Return a new, contiguous tensor with two dimensions of ``input`` exchanged.

    Equal bit by bit to ``input.transpose(dim0, dim1).contiguous()``, at the speed of a copy, and
    never an alias of ``input``. Differentiable; works under ``torch.compile``.

    Args:
        input: A dense tensor of any shape, strides and dtype whose elements have 1, 2, 4, 8 or 16
            bytes, on a CUDA, CPU or meta device.
        dim0: First dimension to exchange; negative values count from the end.
        dim1: Second dimension to exchange.
        method: ``"auto"`` takes the fastest kernel; ``"naive"``, ``"padded"`` and ``"swizzled"``
            choose the layout of the tile in shared memory and nothing else. CPU tensors take
            ATen's copy whatever the method.
        out: Tensor to write to, of the dtype and device of ``input``; resized as torch's own
            functions resize theirs.

    Returns:
        The transposed tensor, or ``out``.

    Raises:
        IndexError: A dimension is out of range.
        ValueError: ``method`` is not one of the four names.
        NotImplementedError: ``input`` is sparse, quantized, nested, MKLDNN or of a packed dtype.
        RuntimeError: ``out`` has another dtype or device, overlaps ``input`` or takes part in
            autograd.

    Example:
        >>> x = torch.arange(6).view(2, 3)
        >>> torch_swizzle.transpose(x)
        tensor([[0, 3],
                [1, 4],
                [2, 5]])
    """
    result: Tensor
    if out is None:
        result = torch.ops.swizzle.transpose.default(input, dim0, dim1, method=method)
    else:
        result = torch.ops.swizzle.transpose.out(input, dim0, dim1, method=method, out=out)
    return result


def permute(
    input: Tensor,
    dims: Sequence[int],
    *,
    method: Method = "auto",
    out: Tensor | None = None,
) -> Tensor:
    """Return a new, contiguous tensor with the dimensions of ``input`` in another order.

    Equal bit by bit to ``input.permute(dims).contiguous()``, at the speed of a copy, and never an
    alias of ``input``. Differentiable; works under ``torch.compile``.

    Args:
        input: A dense tensor as for :func:`transpose`.
        dims: For each dimension of the result, the dimension of ``input`` that it is; every one
            once, negative values count from the end.
        method: As for :func:`transpose`; matters where the input's innermost dimension moves.
        out: Tensor to write to, as for :func:`transpose`.

    Returns:
        The permuted tensor, or ``out``.

    Raises:
        IndexError: A dimension is out of range.
        ValueError: ``method`` is not one of the four names.
        NotImplementedError: ``input`` is sparse, quantized, nested, MKLDNN or of a packed dtype.
        RuntimeError: ``dims`` names a dimension twice or has another length than ``input`` has
            dimensions; ``out`` has another dtype or device, overlaps ``input`` or takes part in
            autograd.

    Example:
        >>> images = torch.zeros(16, 3, 224, 160)
        >>> torch_swizzle.permute(images, (0, 2, 3, 1)).shape
        torch.Size([16, 224, 160, 3])
    """
    result: Tensor
    if out is None:
        result = torch.ops.swizzle.permute.default(input, dims, method=method)
    else:
        result = torch.ops.swizzle.permute.out(input, dims, method=method, out=out)
    return result


def bank_probe(input: Tensor, ways: int) -> Tensor:
    """Return ``(input + 10) * 2``, computed through shared memory with conflicts of some ways.

    Each float is stored to and loaded from shared memory once, at an index such that in every full
    warp ``ways`` lanes want different words of one bank, on the store and on the load alike. Each
    request of a full warp then takes ``ways`` wavefronts where one would do, so 8192 floats (256
    requests each way) cost 256 * (ways - 1) conflicts on stores and as many on loads. The index is
    rotated, not folded, so no two threads share a word and the result is the same, bit by bit, for
    every ``ways``. Differentiable.

    Args:
        input: A dense float32 tensor of any shape and strides, on a CUDA, CPU or meta device. CPU
            tensors run the kernel's own code on the host.
        ways: 1 (no conflicts), 2, 4, 8, 16 or 32. Blocks have 256 threads, with 16 and 32 ways 512
            and 1024, since a bank must hold a word for each.

    Returns:
        A new, contiguous tensor of the shape of ``input``.

    Raises:
        ValueError: ``ways`` is none of these.
        NotImplementedError: ``input`` is of another dtype, or not dense.

    Example:
        >>> torch_swizzle.bank_probe(torch.arange(4.0), ways=2)
        tensor([20., 22., 24., 26.])
    """
    result: Tensor = torch.ops.swizzle.bank_probe.default(input, ways)
    return result
