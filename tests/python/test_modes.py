"""Torch's modes: inference, autocast, determinism, function and dispatch modes, tracing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from samples import (
    METHODS,
    SAMPLES,
    Sample,
    assert_fresh_transpose,
    assert_same_bits,
    name_of,
    random_bits,
    reference,
    stale,
)
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import torch_swizzle

transpose = torch.ops.swizzle.transpose


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Deterministic algorithms alone, with uninitialised memory filled, which is their default."""
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.utils.deterministic.fill_uninitialized_memory
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.setting("torch.inference_mode, out= as well")
def test_inference_mode_takes_and_gives_inference_tensors(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device).requires_grad_()
    with torch.inference_mode():
        inner = random_bits((33, 65), torch.float32, device)
        for method in METHODS:
            for source in (x, inner):
                y = transpose(source, method=method)
                assert y.is_inference()
                assert_same_bits(y, reference(source))
            out = stale((65, 33), torch.float32, device)
            transpose(x, method=method, out=out)
            assert_same_bits(out, reference(x))
    assert_same_bits(transpose(inner), reference(inner))
    assert not transpose(inner).is_inference()


def test_an_inference_out_is_refused_outside_as_torchs_own(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    with torch.inference_mode():
        out = torch.zeros(65, 33, device=device)
    for call in (lambda: torch.transpose_copy(x, 0, 1, out=out), lambda: transpose(x, out=out)):
        with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
            call()


@pytest.mark.setting("torch.autocast")
@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
def test_autocast_lets_every_dtype_through(low: torch.dtype, device: str) -> None:
    layer = torch.nn.Linear(64, 32, device=device)
    x = torch.randn(16, 64, device=device)
    with torch.autocast(device, dtype=low):
        hidden = layer(x)
        assert hidden.dtype is low
        y = transpose(hidden)
        assert y.dtype is low
        assert_same_bits(y.detach(), reference(hidden.detach()))
        assert transpose(x).dtype is torch.float32
        y.float().sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.setting("torch.use_deterministic_algorithms")
def test_deterministic_mode_changes_no_bit(device: str) -> None:
    x = random_bits((3, 65, 129), torch.float32, device)
    with deterministic():
        for method in METHODS:
            assert_fresh_transpose(transpose(x, method=method), x, reference(x), method)
            out = torch.empty(0, device=device)
            transpose(x, method=method, out=out)
            assert_same_bits(out, reference(x), method)


@pytest.mark.setting("memory formats: channels_last and channels_last_3d inputs")
@pytest.mark.parametrize(
    ("shape", "memory_format"),
    [((2, 3, 17, 33), torch.channels_last), ((2, 3, 5, 17, 33), torch.channels_last_3d)],
)
def test_any_memory_format_gives_a_row_major_result(
    shape: tuple[int, ...], memory_format: torch.memory_format, device: str
) -> None:
    x = random_bits(shape, torch.float16, device).to(memory_format=memory_format)
    for dim in range(1, len(shape)):
        for method in METHODS:
            actual = transpose(x, 0, dim, method=method)
            assert_fresh_transpose(actual, x, reference(x, 0, dim), (dim, method))


class Functions(TorchFunctionMode):
    """Records what passes torch's function protocol."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the function and run it."""
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


class Dispatches(TorchDispatchMode):
    """Records what is dispatched."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the operator and run it."""
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.setting("__torch_function__ and __torch_dispatch__ modes")
def test_modes_see_the_operator_and_nothing_below_it(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    out = stale((65, 33), torch.float32, device)
    with Functions() as functions:
        assert_same = torch_swizzle.transpose(x)
    assert functions.seen == [torch.ops.swizzle.transpose.default]
    assert_same_bits(assert_same, reference(x))
    with Dispatches() as dispatches:
        transpose(x)
        transpose(x, out=out)
    assert dispatches.seen == [torch.ops.swizzle.transpose.default, torch.ops.swizzle.transpose.out]
    assert_same_bits(out, reference(x))


class Wrapped(Tensor):
    """A subclass that answers through __torch_function__ alone."""

    calls: list[object] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the function and answer as a plain subclass does."""
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.setting("tensor subclasses")
def test_a_subclass_is_asked_and_comes_out(device: str) -> None:
    x = torch.randn(33, 65, device=device).as_subclass(Wrapped)
    out = torch.empty(65, 33, device=device).as_subclass(Wrapped)
    Wrapped.calls.clear()
    y = torch_swizzle.transpose(x)
    torch_swizzle.transpose(x, out=out)
    assert Wrapped.calls[:2] == [
        torch.ops.swizzle.transpose.default,
        torch.ops.swizzle.transpose.out,
    ]
    assert type(y) is Wrapped
    assert_same_bits(y.as_subclass(Tensor), reference(x.as_subclass(Tensor)))
    assert_same_bits(out.as_subclass(Tensor), reference(x.as_subclass(Tensor)))


@pytest.mark.setting("fake tensors: shape, strides, dtype and device as the real result's")
@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_a_fake_result_is_like_the_real_one(sample: Sample, device: str) -> None:
    x = sample.tensor(torch.float16, device)
    with FakeTensorMode() as mode:
        fake_x = mode.from_tensor(x)
    for method in METHODS:
        real = transpose(x, *sample.dims, method=method)
        with mode:
            fake = transpose(fake_x, *sample.dims, method=method)
            out = torch.empty(0, dtype=x.dtype, device=device)
            transpose(fake_x, *sample.dims, method=method, out=out)
        for imagined in (fake, out):
            assert imagined.shape == real.shape
            assert imagined.stride() == real.stride()
            assert imagined.storage_offset() == real.storage_offset()
            assert (imagined.dtype, imagined.device) == (real.dtype, real.device)


@pytest.mark.setting("torch.fx, make_fx and torch.jit.trace")
def test_tracers_keep_the_operator_as_one_call(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    other = random_bits((7, 9), torch.float32, device)

    def step(z: Tensor) -> Any:
        return transpose(z, 0, 1, method="padded")

    traced: list[Callable[..., Any]] = [
        torch.fx.symbolic_trace(lambda z: transpose(z)),
        make_fx(step, tracing_mode="symbolic")(x),
        make_fx(step)(x),
        torch.jit.trace(step, (x,)),
    ]
    for module in traced:
        assert "transpose" in str(getattr(module, "code", ""))
        assert_same_bits(module(other), reference(other))
    assert "swizzle.transpose" in traced[1].code  # type: ignore[attr-defined]


def test_a_zero_tensor_is_transposed_as_zeros(device: str) -> None:
    zeros = torch._efficientzerotensor((4, 5), device=device)
    assert_same_bits(transpose(zeros), torch.zeros(5, 4, device=device))


def test_functional_tensors_pass_through(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    functional = torch._to_functional_tensor(x)
    assert_same_bits(torch._from_functional_tensor(transpose(functional)), reference(x))
