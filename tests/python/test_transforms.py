"""torch.func and forward mode: each transform gives what it gives for torch's own transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from samples import (
    METHODS,
    SMALL_SAMPLES,
    Sample,
    assert_same_bits,
    name_of,
    random_bits,
    reference,
    row_major,
)
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from torch.utils._python_dispatch import TorchDispatchMode

import torch_swizzle

transpose = torch.ops.swizzle.transpose

VMAP_SHAPE = (8, 33, 65)


def torchs(x: Tensor, dim0: int = -2, dim1: int = -1) -> Tensor:
    """What every transform of ours is compared with."""
    return x.transpose(dim0, dim1).contiguous()


class Calls(TorchDispatchMode):
    """Records which operators run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the operator and run it."""
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))

    @property
    def ours(self) -> int:
        """How often one of our operators ran."""
        return sum(name.startswith("swizzle.") for name in self.names)


def cubes(op: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """A scalar function of a matrix whose derivatives of every order to the third matter."""

    def total(x: Tensor) -> Tensor:
        weight = torch.arange(x.numel(), dtype=x.dtype, device=x.device).reshape(x.mT.shape)
        return (op(x) ** 3 * weight).sum()

    return total


def products(op: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """A matrix function of a matrix whose Jacobian is not constant."""
    return lambda x: op(x) * x.mT


@pytest.mark.setting("torch.func.vmap, any in_dims and out_dims")
@pytest.mark.parametrize("out_dim", [0, 1, -1])
@pytest.mark.parametrize("in_dim", [0, 1, 2, -1, -3])
def test_vmap_is_one_call_over_any_dimension(in_dim: int, out_dim: int, device: str) -> None:
    x = random_bits(VMAP_SHAPE, torch.float32, device)
    for method in METHODS:
        with Calls() as calls:
            y = vmap(lambda z, method=method: transpose(z, method=method), in_dim, out_dim)(x)
        assert calls.ours == 1, "a loop"
        assert_same_bits(y, reference(x.movedim(in_dim, 0)).movedim(0, out_dim), method)


@pytest.mark.parametrize("sample", SMALL_SAMPLES, ids=name_of)
@pytest.mark.parametrize("last", [False, True], ids=["batch_first", "batch_last"])
def test_vmap_takes_every_layout(sample: Sample, last: bool, device: str) -> None:
    rank = len(sample.sizes)
    parts = [sample.tensor(torch.float32, device, seed) for seed in range(3)]
    x = torch.stack(parts, rank if last else 0)
    y = vmap(lambda z: transpose(z, *sample.dims), rank if last else 0)(x)
    assert_same_bits(y, torch.stack([sample.expected(part) for part in parts]))
    assert y.stride() == row_major(tuple(y.shape))


def test_vmap_of_vmap_is_one_call(device: str) -> None:
    x = random_bits((3, 4, 5, 6, 7), torch.int16, device)
    with Calls() as calls:
        y = vmap(vmap(lambda z: transpose(z, 0, 2), in_dims=1), in_dims=3)(x)
    assert calls.ours == 1
    expected = vmap(vmap(lambda z: z.transpose(0, 2), in_dims=1), in_dims=3)(x)
    assert_same_bits(y, expected.contiguous())


def test_vmap_in_chunks_and_over_one_of_two_arguments(device: str) -> None:
    x = random_bits((8, 5, 7), torch.float64, device)
    assert_same_bits(vmap(transpose, chunk_size=3)(x), reference(x))
    single = torch.randn(5, 7, device=device)
    shifts = torch.randn(4, 1, 1, device=device)
    y = vmap(lambda z, shift: transpose(z) + shift, in_dims=(None, 0))(single, shifts)
    assert_same_bits(y, single.t() + shifts)


def test_vmap_refuses_bad_arguments_as_without_vmap(device: str) -> None:
    x = torch.zeros(3, 4, 5, device=device)
    with pytest.raises(IndexError) as theirs:
        vmap(lambda z: z.transpose(0, 2))(x)
    with pytest.raises(IndexError) as ours:
        vmap(lambda z: transpose(z, 0, 2))(x)
    assert str(ours.value) == str(theirs.value)
    with pytest.raises(ValueError, match="swizzle::transpose: expected method"):
        vmap(lambda z: transpose(z, method="fast"))(x)


@pytest.mark.setting("out= under torch.func.vmap", answer="refused by torch, for every operator")
def test_vmap_refuses_out_as_it_refuses_torchs_own(device: str) -> None:
    x, out = torch.zeros(3, 4, 5, device=device), torch.zeros(3, 5, 4, device=device)
    with pytest.raises(RuntimeError) as theirs:
        vmap(lambda z, o: torch.neg(z, out=o))(x, torch.zeros_like(x))
    with pytest.raises(RuntimeError) as ours:
        vmap(lambda z, o: transpose(z, out=o))(x, out)
    assert str(ours.value) == str(theirs.value).replace("aten::neg", "swizzle::transpose")


@pytest.mark.setting("torch.func.grad, vjp, grad of grad, vmap of grad")
def test_grad_and_its_compositions_equal_torchs(device: str) -> None:
    x = torch.randn(5, 7, dtype=torch.float64, device=device)
    batch = torch.randn(4, 5, 7, dtype=torch.float64, device=device)
    for compose in (
        lambda op: grad(cubes(op))(x),
        lambda op: grad(lambda z: grad(cubes(op))(z).sin().sum())(x),
        lambda op: vmap(grad(cubes(op)))(batch),
        lambda op: vmap(grad(cubes(op)), in_dims=1)(batch),
        lambda op: grad(lambda z: vmap(cubes(op))(z).sum())(batch),
        lambda op: vjp(op, x)[1](torch.ones(7, 5, dtype=x.dtype, device=device))[0],
    ):
        torch.testing.assert_close(compose(transpose), compose(torchs))


def test_grad_of_a_sum_under_vmap_is_ones(device: str) -> None:
    x = torch.randn(VMAP_SHAPE, device=device)
    assert_same_bits(vmap(grad(lambda z: transpose(z).sum()))(x), torch.ones_like(x))


@pytest.mark.setting("torch.func.jacrev, jacfwd, hessian")
@pytest.mark.parametrize("jacobian", [jacrev, jacfwd, hessian])
def test_jacobians_equal_torchs(jacobian: Callable[..., Any], device: str) -> None:
    x = torch.randn(3, 4, dtype=torch.float64, device=device)
    function = cubes if jacobian is hessian else products
    torch.testing.assert_close(jacobian(function(transpose))(x), jacobian(function(torchs))(x))
    for outer in (jacrev, jacfwd):
        ours = outer(jacobian(function(transpose)))(x)
        torch.testing.assert_close(ours, outer(jacobian(function(torchs)))(x))


def test_a_jacobian_is_one_batched_call(device: str) -> None:
    x = torch.randn(3, 4, device=device)
    for jacobian in (jacrev, jacfwd):
        with Calls() as calls:
            jacobian(transpose)(x)
        assert calls.ours == 2, "one for the value, one for all the rows or columns"


@pytest.mark.setting("forward mode: torch.func.jvp, linearize, dual tensors")
@pytest.mark.parametrize("sample", SMALL_SAMPLES, ids=name_of)
def test_a_tangent_is_transposed_as_its_value_is(sample: Sample, device: str) -> None:
    x = sample.tensor(torch.float32, device, seed=1).nan_to_num()
    tangent = torch.randn(sample.sizes, device=device)
    expected = reference(tangent, *sample.dims)
    for method in METHODS:

        def op(z: Tensor, method: str = method) -> Tensor:
            return torch_swizzle.transpose(z, *sample.dims, method=method)

        value, pushed = jvp(op, (x,), (tangent,))
        assert_same_bits(value, sample.expected(x))
        assert_same_bits(pushed, expected)
        with forward_ad.dual_level():
            dual = forward_ad.unpack_dual(op(forward_ad.make_dual(x, tangent)))
            assert_same_bits(dual.primal, sample.expected(x))
            assert_same_bits(dual.tangent, expected)
    assert_same_bits(linearize(lambda z: transpose(z, *sample.dims), x)[1](tangent), expected)


def test_a_dual_tensor_that_requires_grad_has_both_derivatives(device: str) -> None:
    x = torch.randn(5, 7, dtype=torch.float64, device=device, requires_grad=True)
    tangent = torch.randn(5, 7, dtype=torch.float64, device=device)
    with forward_ad.dual_level():
        y = transpose(forward_ad.make_dual(x, tangent)) ** 2
        pushed = forward_ad.unpack_dual(y).tangent
        (mixed,) = torch.autograd.grad(pushed.sum(), x)
    torch.testing.assert_close(pushed, (2 * x * tangent).t())
    torch.testing.assert_close(mixed, 2 * tangent)


@pytest.mark.setting("finite differences in forward, reverse and mixed modes (gradcheck)")
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("dims", [(-2, -1), (0, 2), (1, 1)])
def test_derivatives_of_every_mode_match_finite_differences(
    dims: tuple[int, int], dtype: torch.dtype, device: str
) -> None:
    x = torch.randn(2, 3, 4, dtype=dtype, device=device, requires_grad=True)
    assert gradcheck(
        lambda z: transpose(z, *dims),
        (x,),
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    assert gradgradcheck(
        lambda z: transpose(z, *dims),
        (x,),
        check_fwd_over_rev=True,
        check_rev_over_rev=True,
        check_batched_grad=True,
    )


@pytest.mark.setting("torch.autograd.grad(is_grads_batched=True), functional.jacobian")
def test_a_batch_of_gradients_is_one_call(device: str) -> None:
    x = torch.randn(5, 7, device=device, requires_grad=True)
    y = transpose(x)
    incoming = torch.randn(6, 7, 5, device=device)
    with Calls() as calls:
        (gradient,) = torch.autograd.grad(y, x, incoming, is_grads_batched=True)
    assert calls.ours == 1
    assert_same_bits(gradient, reference(incoming))
    for strategy in ("reverse-mode", "forward-mode"):
        ours, theirs = (
            torch.autograd.functional.jacobian(
                products(op), x.detach(), vectorize=True, strategy=strategy
            )
            for op in (transpose, torchs)
        )
        torch.testing.assert_close(ours, theirs)


@pytest.mark.setting("torch.func.functionalize, out= as well")
def test_functionalize_gives_the_same_bits(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)

    def into_out(z: Tensor) -> Tensor:
        out = torch.empty(65, 33, device=device)
        transpose(z, out=out)
        return out

    assert_same_bits(functionalize(transpose)(x), reference(x))
    assert_same_bits(functionalize(into_out)(x), reference(x))


def test_compiled_vmap_of_grad_equals_eager(device: str) -> None:
    step = vmap(grad(cubes(transpose)))
    x = torch.randn(4, 5, 7, dtype=torch.float64, device=device)
    torch.compiler.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), step(x))


def test_out_refuses_a_tangent_as_torchs_own_do(device: str) -> None:
    x, out = torch.zeros(5, 7, device=device), torch.zeros(7, 5, device=device)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        with pytest.raises(NotImplementedError, match=r"forward AD"):
            torch.neg(dual, out=torch.zeros_like(x))
        with pytest.raises(NotImplementedError, match=r"swizzle::transpose: .*forward AD"):
            transpose(dual, out=out)
        with pytest.raises(NotImplementedError, match=r"swizzle::transpose: .*forward AD"):
            transpose(x, out=forward_ad.make_dual(out, torch.ones_like(out)))
