"""Gradients: the backward of a transpose is the transpose again, to any order, saving nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from samples import (
    METHODS,
    SMALL_SAMPLES,
    Sample,
    assert_fresh_transpose,
    assert_same_bits,
    name_of,
    random_bits,
    reference,
    short,
)
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

import torch_swizzle

transpose = torch.ops.swizzle.transpose


def leaf_for(sample: Sample, dtype: torch.dtype, device: str) -> Tensor:
    """A one-dimensional leaf that `sample.view` turns into the input."""
    generator = torch.Generator().manual_seed(0)
    leaf = torch.randn(sample.base_numel, dtype=dtype, generator=generator).to(device)
    return leaf.requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=short)
@pytest.mark.parametrize("sample", SMALL_SAMPLES, ids=name_of)
def test_first_and_second_derivatives_match_finite_differences(
    sample: Sample, dtype: torch.dtype, device: str
) -> None:
    leaf = leaf_for(sample, dtype, device)

    def op(base: Tensor) -> Tensor:
        return torch.as_tensor(transpose(sample.view(base), *sample.dims))

    assert gradcheck(op, (leaf,))
    assert gradgradcheck(op, (leaf,))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_differentiable(method: str, device: str) -> None:
    x = torch.randn(4, 3, dtype=torch.float64, device=device, requires_grad=True)
    assert gradcheck(lambda x: torch_swizzle.transpose(x, method=method), (x,))
    assert gradgradcheck(lambda x: torch_swizzle.transpose(x, method=method), (x,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=short)
@pytest.mark.parametrize("dims", [(-2, -1), (0, 2), (1, 1)])
def test_gradient_is_the_transposed_incoming_gradient(
    dims: tuple[int, int], dtype: torch.dtype, device: str
) -> None:
    x = random_bits((3, 33, 17), dtype, device).requires_grad_()
    y = transpose(x, *dims)
    incoming = random_bits(tuple(y.shape), dtype, device, seed=1)
    (gradient,) = torch.autograd.grad(y, x, incoming)
    assert_fresh_transpose(gradient, incoming, reference(incoming, *dims))


def test_output_requires_grad_when_the_input_does(device: str) -> None:
    x = torch.randn(33, 17, device=device, requires_grad=True)
    for method in METHODS:
        y = transpose(x, method=method)
        assert y.requires_grad
        assert y.grad_fn is not None
        assert not y.is_leaf
    assert not transpose(x.detach()).requires_grad


def test_gradient_reaches_a_leaf_behind_a_view(device: str) -> None:
    x = torch.randn(33, 17, device=device, requires_grad=True)
    weight = torch.randn(33, 17, device=device)
    (transpose(x.t()) * weight).sum().backward()
    assert x.grad is not None
    assert_same_bits(x.grad, weight)


def test_gradient_of_a_sum_is_ones(device: str) -> None:
    x = torch.randn(3, 33, 17, device=device, requires_grad=True)
    transpose(x).sum().backward()
    assert x.grad is not None
    assert_same_bits(x.grad, torch.ones_like(x))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 0, 7)])
def test_gradient_of_an_empty_input_is_empty(shape: tuple[int, ...], device: str) -> None:
    x = torch.randn(shape, device=device, requires_grad=True)
    transpose(x).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape


def test_double_backward_is_right(device: str) -> None:
    x = torch.randn(9, 5, dtype=torch.float64, device=device, requires_grad=True)
    (first,) = torch.autograd.grad((transpose(x) ** 3).sum(), x, create_graph=True)
    assert first.requires_grad
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 6 * x.detach())


def test_nothing_is_saved_for_backward(device: str) -> None:
    x = torch.randn(33, 17, device=device, requires_grad=True)
    saved: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = transpose(x)
    with torch.no_grad():
        x.add_(1)  # would raise in backward, had x been saved
    y.sum().backward()
    assert not saved


def test_backward_calls_the_operator_again() -> None:
    calls: list[str] = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.randn(33, 17, requires_grad=True)
    y = transpose(x)
    incoming = torch.randn(17, 33)
    with Recorder():
        torch.autograd.grad(y, x, incoming)
    assert "swizzle.transpose.default" in calls
    assert not any(name.startswith("aten.transpose") for name in calls)


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_nothing_is_recorded_where_gradients_are_off(
    guard: type[torch.no_grad] | type[torch.inference_mode], device: str
) -> None:
    x = torch.randn(33, 17, device=device, requires_grad=True)
    with guard():
        y = transpose(x)
        assert not y.requires_grad
        assert y.grad_fn is None
        assert y.is_inference() == torch.is_inference_mode_enabled()
        assert_same_bits(y, reference(x.detach()))


def test_an_inference_tensor_is_a_fine_input(device: str) -> None:
    with torch.inference_mode():
        x = torch.randn(33, 17, device=device)
    assert_same_bits(transpose(x), reference(x))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8], ids=short)
def test_integers_carry_no_gradient(dtype: torch.dtype, device: str) -> None:
    y = transpose(random_bits((33, 17), dtype, device))
    assert not y.requires_grad


def test_changing_the_result_in_place_keeps_gradients_right(device: str) -> None:
    x = torch.randn(5, 7, dtype=torch.float64, device=device, requires_grad=True)
    y = transpose(x)
    y.mul_(3)
    y.sum().backward()
    assert x.grad is not None
    assert_same_bits(x.grad, torch.full_like(x, 3))


def test_accumulating_twice_adds_up(device: str) -> None:
    x = torch.randn(5, 7, device=device, requires_grad=True)
    for _ in range(2):
        transpose(x).sum().backward()
    assert x.grad is not None
    assert_same_bits(x.grad, torch.full_like(x, 2))


def test_a_long_chain_of_nodes_is_taken_apart_without_recursion(device: str) -> None:
    y = torch.ones(2, 2, device=device, requires_grad=True)
    for _ in range(50_000):
        y = transpose(y)
    del y  # nodes that free each other in a recursion would overflow the stack
