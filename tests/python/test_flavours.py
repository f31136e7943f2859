"""Unusual tensors: lazy conjugates and negatives, subclasses, and the kinds that are refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from samples import (
    METHODS,
    assert_fresh_transpose,
    assert_same_bits,
    random_bits,
    reference,
    short,
)
from torch import Tensor

import torch_swizzle

transpose = torch.ops.swizzle.transpose
LAZY_SHAPES = ((97, 2), (2, 97), (33, 65), (512, 512), (1, 40), (3, 33, 17))


@pytest.mark.setting("lazy conjugate and negative bits")
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=short)
@pytest.mark.parametrize("shape", LAZY_SHAPES)
def test_a_lazy_conjugate_is_resolved(
    shape: tuple[int, ...], dtype: torch.dtype, device: str
) -> None:
    x = random_bits(shape, dtype, device)
    expected = reference(x.conj().resolve_conj())
    assert x.conj().is_conj()
    for method in METHODS:
        actual = transpose(x.conj(), method=method)
        assert_fresh_transpose(actual, x, expected, method)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=short)
@pytest.mark.parametrize("shape", LAZY_SHAPES)
def test_a_lazy_negative_is_resolved(
    shape: tuple[int, ...], dtype: torch.dtype, device: str
) -> None:
    x = random_bits(shape, dtype, device).conj().imag
    assert x.is_neg()
    expected = reference(x.resolve_neg())
    for method in METHODS:
        assert_fresh_transpose(transpose(x, method=method), x, expected, method)


def test_a_forced_tile_resolves_lazy_bits_too(device: str) -> None:
    x = random_bits((33, 65), torch.complex64, device)
    actual = torch.ops.swizzle._transpose_with(x.conj(), "swizzled", "scalar32")
    assert_fresh_transpose(actual, x, reference(x.conj().resolve_conj()))


def test_a_conjugate_or_negative_out_reads_back_right(device: str) -> None:
    x = torch.randn(33, 65, dtype=torch.complex64, device=device)
    out = torch.zeros(65, 33, dtype=torch.complex64, device=device).conj()
    transpose(x, out=out)
    assert out.is_conj()
    assert torch.equal(out.resolve_conj(), reference(x))
    negative = torch.zeros(65, 33, dtype=torch.complex64, device=device).conj().imag
    transpose(x.real, out=negative)
    assert negative.is_neg()
    assert torch.equal(negative.resolve_neg(), reference(x.real))


def test_gradient_through_a_conjugate_is_torchs(device: str) -> None:
    x = torch.randn(5, 7, dtype=torch.complex128, device=device, requires_grad=True)
    incoming = torch.randn(7, 5, dtype=torch.complex128, device=device)
    (ours,) = torch.autograd.grad(transpose(x.conj()), x, incoming)
    (theirs,) = torch.autograd.grad(x.conj().t().contiguous(), x, incoming)
    assert_same_bits(ours.resolve_conj(), theirs.resolve_conj())


class Labelled(Tensor):
    """The plainest subclass."""


class Wrapper(Tensor):
    """A subclass that holds another tensor and records each operator that reaches it."""

    seen: list[str]
    held: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Wrapper:
        """Take over the shape and type of `inner`, but not its memory."""
        wrapper: Wrapper = Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device, strides=inner.stride()
        )
        wrapper.held = inner
        wrapper.seen = []
        return wrapper

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operator on the inner tensors and wrap its result."""
        for argument in args:
            if isinstance(argument, Wrapper):
                argument.seen.append(str(func))
        unwrapped = [arg.held if isinstance(arg, Wrapper) else arg for arg in args]
        return cls(func(*unwrapped, **(kwargs or {})))


def test_a_plain_subclass_comes_out_as_it_went_in(device: str) -> None:
    x = torch.randn(33, 65, device=device)
    y = transpose(x.as_subclass(Labelled))
    assert type(y) is Labelled
    assert_same_bits(y.as_subclass(Tensor), reference(x))


def test_a_wrapper_subclass_sees_the_operator_itself(device: str) -> None:
    x = Wrapper(torch.randn(33, 65, device=device))
    y = torch_swizzle.transpose(x, method="padded")
    assert isinstance(y, Wrapper)
    assert x.seen == ["swizzle.transpose.default"]
    assert_same_bits(y.held, reference(x.held))


def test_a_parameter_gives_a_plain_tensor_with_a_gradient(device: str) -> None:
    parameter = torch.nn.Parameter(torch.randn(33, 65, device=device))
    y = transpose(parameter)
    assert type(y) is Tensor
    y.sum().backward()
    assert parameter.grad is not None


def test_a_module_can_be_scripted_around_the_operator(device: str) -> None:
    def step(x: Tensor) -> Tensor:
        return torch.ops.swizzle.transpose(x, 0, 1, method="padded")

    x = torch.randn(33, 65, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.script(step)
    assert_same_bits(scripted(x), reference(x))


def float4(device: str) -> Tensor:
    """Two 4-bit values a byte: a byte is no element there."""
    return torch.empty(64, 32, dtype=torch.uint8, device=device).view(torch.float4_e2m1fn_x2)


def sparse_coo(device: str) -> Tensor:
    """Coordinates and values."""
    return torch.sparse_coo_tensor(size=(4, 5), device=device)


def sparse_csr(device: str) -> Tensor:
    """Compressed rows."""
    return torch.sparse_csr_tensor(
        torch.zeros(5, dtype=torch.int64, device=device),
        torch.zeros(0, dtype=torch.int64, device=device),
        torch.zeros(0, device=device),
        size=(4, 5),
    )


def quantised(device: str) -> Tensor:
    """Values behind a scale and a zero point."""
    return torch._empty_affine_quantized(
        (4, 5), scale=0.1, zero_point=0, dtype=torch.qint8, device=device
    )


def nested(device: str) -> Tensor:
    """Rows of unequal length."""
    parts = [torch.ones(2, 3, device=device), torch.ones(4, 3, device=device)]
    return torch.nested.nested_tensor(parts)


def jagged(device: str) -> Tensor:
    """Rows of unequal length, as a Python subclass."""
    parts = [torch.ones(2, 3, device=device), torch.ones(4, 3, device=device)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


def jagged_of_gradients(device: str) -> Tensor:
    """A jagged tensor that is a leaf of autograd."""
    return jagged(device).detach().requires_grad_()


def quantised_by_channel(device: str) -> Tensor:
    """Values behind a scale for each row."""
    values, scales = torch.ones(4, 5, device=device), torch.ones(4, device=device)
    return torch.quantize_per_channel(values, scales, torch.zeros_like(scales), 0, torch.qint8)


def sparse_csc(device: str) -> Tensor:
    """Compressed columns."""
    return torch.eye(4, device=device).to_sparse_csc()


def sparse_bsr(device: str) -> Tensor:
    """Compressed rows of blocks."""
    return torch.eye(4, device=device).to_sparse_bsr((2, 2))


def mkldnn(device: str) -> Tensor:
    """Memory in a layout of oneDNN's own."""
    return torch.ones(4, 5, device=device).to_mkldnn()


REFUSED = {
    "float4": (float4, ("cpu", "meta", "cuda")),
    "sparse_coo": (sparse_coo, ("cpu", "meta", "cuda")),
    "sparse_csr": (sparse_csr, ("cpu", "meta", "cuda")),
    "sparse_csc": (sparse_csc, ("cpu", "cuda")),
    "sparse_bsr": (sparse_bsr, ("cpu", "cuda")),
    "quantised": (quantised, ("cpu", "cuda")),
    "quantised_by_channel": (quantised_by_channel, ("cpu",)),
    "nested": (nested, ("cpu", "cuda")),
    "jagged": (jagged, ("cpu", "cuda")),
    "jagged_of_gradients": (jagged_of_gradients, ("cpu", "cuda")),
    "mkldnn": (mkldnn, ("cpu",)),
}


def refusal(call: Callable[[], object]) -> tuple[type[BaseException], str]:
    """How `call` refuses: its class and its one sentence, with the device left open."""
    with pytest.raises((NotImplementedError, TypeError)) as caught:
        call()
    message = re.sub(r" on (cpu|meta|cuda:\d+)$", " on DEVICE", str(caught.value))
    assert "swizzle::transpose" in message or "swizzle::_transpose_with" in message
    assert "\n" not in message
    assert len(message) < 250
    return caught.type, message


def refused_cases() -> list[Any]:
    """Each refused kind on each device that has it."""
    return [
        pytest.param(
            build,
            device,
            marks=[pytest.mark.cuda] if device == "cuda" else [],
            id=f"{name}-{device}",
        )
        for name, (build, devices) in REFUSED.items()
        for device in devices
    ]


@pytest.mark.setting(
    "sparse, quantised, nested, jagged, MKLDNN, float4", answer="NotImplementedError, one sentence"
)
@pytest.mark.parametrize(("build", "on"), refused_cases())
def test_a_kind_without_plain_elements_is_refused_in_one_sentence(
    build: Callable[[str], Tensor], on: str
) -> None:
    x = build(on)
    plain = refusal(lambda: transpose(x))
    assert refusal(lambda: torch_swizzle.transpose(x, 0, 1, method="naive")) == plain
    assert refusal(lambda: transpose(x, 0, 0)) == plain
    out = torch.zeros(5, 4, device=on)
    refusal(lambda: transpose(x, out=out))
    assert on == "meta" or not bool(out.any())


@pytest.mark.parametrize(("build", "on"), refused_cases())
def test_a_refusal_says_the_same_on_every_device(build: Callable[[str], Tensor], on: str) -> None:
    assert refusal(lambda: transpose(build(on))) == refusal(lambda: transpose(build("cpu")))


UNUSUAL_OUTS = [sparse_coo, sparse_csr, sparse_csc, mkldnn, nested, jagged, quantised]


@pytest.mark.parametrize("build", UNUSUAL_OUTS)
def test_an_unusual_out_is_refused_in_one_sentence(build: Callable[[str], Tensor]) -> None:
    _, message = refusal(lambda: transpose(torch.ones(5, 4), out=build("cpu")))
    assert message.startswith("swizzle::transpose(out=...): expected a ")


def test_no_tensor_at_all_is_refused() -> None:
    with pytest.raises(NotImplementedError):
        transpose(None)
    with pytest.raises(TypeError, match="swizzle::transpose: expected out to be a tensor"):
        transpose(torch.ones(5, 4), out=None)


def test_a_refused_kind_is_refused_with_gradients_too(device: str) -> None:
    x = torch.eye(4, device=device).to_sparse().requires_grad_()
    refusal(lambda: transpose(x))


@pytest.mark.setting("named tensors", answer="torch's own RuntimeError")
@pytest.mark.skipif(not hasattr(Tensor, "refine_names"), reason="this torch has no named tensors")
def test_named_tensors_are_refused_by_torch(device: str) -> None:
    x = torch.ones(3, 4, names=("rows", "columns"), device=device)
    with pytest.raises(RuntimeError, match=r"(?i)named tensors"):
        transpose(x)
