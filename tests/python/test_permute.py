"""swizzle::permute: values, gradients, tracing, out= and errors, all against torch.permute."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import permutations

import pytest
import torch
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from samples import (
    DTYPE_OF_SIZE,
    DTYPES,
    METHODS,
    Sample,
    assert_fresh_transpose,
    assert_same_bits,
    leave_stale_memory,
    random_bits,
    row_major,
    short,
    stale,
)
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import torch_swizzle

permute = torch.ops.swizzle.permute
transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with

Dims = tuple[int, ...]

# The permutes that models make, small: attention heads, K transposed, NCHW and NHWC, images,
# experts, reversed and odd sizes, five dimensions.
MODEL_CASES: list[tuple[Dims, Dims]] = [
    ((2, 33, 4, 64), (0, 2, 1, 3)),
    ((1, 37, 24, 16), (0, 2, 1, 3)),
    ((3, 2, 40, 24), (0, 1, 3, 2)),
    ((2, 64, 7, 7), (0, 2, 3, 1)),
    ((2, 7, 7, 64), (0, 3, 1, 2)),
    ((2, 54, 96, 3), (0, 3, 1, 2)),
    ((2, 3, 54, 96), (0, 2, 3, 1)),
    ((4, 63, 112), (0, 2, 1)),
    ((33, 101, 33), (2, 1, 0)),
    ((1, 46, 16, 8), (0, 2, 3, 1)),
    ((999, 2, 2), (0, 2, 1)),
    ((4, 16, 8, 12, 6), (4, 2, 0, 3, 1)),
    ((2, 3, 22, 16, 4), (0, 4, 1, 2, 3)),
]
SMALL_CASES: list[tuple[Dims, Dims]] = [
    ((), ()),
    ((4,), (0,)),
    ((4,), (-1,)),
    ((2, 3), (1, 0)),
    ((2, 3), (0, 1)),
    ((2, 3, 4), (2, 0, 1)),
    ((2, 1, 4), (-1, 0, -2)),
    ((0, 3, 2), (2, 1, 0)),
    ((2, 3, 2, 2), (3, 1, 0, 2)),
]


def reference(x: Tensor, dims: Dims) -> Tensor:
    """Torch's own permuted copy, in memory of its own and with canonical strides."""
    view = x.permute(dims)
    return torch.empty(view.shape, dtype=x.dtype, device=x.device).copy_(view)


def inverse(dims: Dims) -> Dims:
    """The order that undoes `dims`."""
    wrapped = [dim % len(dims) for dim in dims]
    return tuple(wrapped.index(dim) for dim in range(len(dims)))


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize(("shape", "dims"), [*MODEL_CASES, *SMALL_CASES])
def test_permutes_of_models_equal_torch(shape: Dims, dims: Dims, size: int, device: str) -> None:
    x = random_bits(shape, DTYPE_OF_SIZE[size], device)
    expected = reference(x, dims)
    for method in METHODS:
        leave_stale_memory(tuple(expected.shape), x.dtype, device)
        y = permute(x, dims, method=method)
        assert_fresh_transpose(y, x, expected, method)
        if dims:
            assert_same_bits(permute(y, inverse(dims), method=method), x, method)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_every_order_of_four_dims_equals_torch(dtype: torch.dtype, device: str) -> None:
    x = random_bits((3, 10, 4, 17), dtype, device)
    for dims in permutations(range(4)):
        assert_fresh_transpose(permute(x, dims), x, reference(x, dims), dims)


def test_transpose_is_the_case_that_exchanges_two_dims(device: str) -> None:
    x = random_bits((3, 33, 17, 5), torch.float16, device)
    assert_same_bits(permute(x, (0, 3, 2, 1)), transpose(x, 1, 3))
    assert_same_bits(permute(x, (0, 1, 2, 3)), transpose(x, 2, 2))


def test_function_and_operator_are_the_same(device: str) -> None:
    x = random_bits((3, 33, 65), torch.bfloat16, device)
    for dims in ((2, 0, 1), [2, 0, 1], [-1, 0, 1]):
        assert_same_bits(torch_swizzle.permute(x, dims), reference(x, (2, 0, 1)))
        assert_same_bits(torch_swizzle.permute(x, dims, method="padded"), permute(x, dims))


def test_result_never_shares_memory_with_the_input(device: str) -> None:
    x = random_bits((4, 5), torch.float32, device)
    before = x.clone()
    for dims in ((0, 1), (1, 0)):
        permute(x, dims).zero_()
        permute(x.t(), dims).zero_()
        assert_same_bits(x, before)


def test_conjugate_and_negative_bits_are_resolved(device: str) -> None:
    x = torch.randn(3, 5, 7, dtype=torch.complex64, device=device)
    for view in (x.conj(), x.conj().imag):
        y = permute(view, (2, 0, 1))
        assert_same_bits(y, reference(view.resolve_conj().resolve_neg(), (2, 0, 1)))


@st.composite
def permuted_samples(draw: st.DrawFn) -> tuple[Sample, Dims]:
    """Any rank to 8, dims in memory in any order, with gaps, repeats and an offset; any order."""
    rank = draw(st.integers(0, 8))
    longest = (1, 300, 90, 40, 13, 8, 5, 4, 3)[rank]
    sizes = tuple(draw(st.integers(1, longest)) for _ in range(rank))
    strides = [0] * rank
    step = 1
    for dim in draw(st.permutations(range(rank))):
        kind = draw(st.sampled_from(("dense", "dense", "dense", "gap", "repeat")))
        strides[dim] = 0 if kind == "repeat" else step
        step *= sizes[dim] if kind != "repeat" else 1
        step += draw(st.integers(1, 5)) if kind == "gap" else 0
    use_strides = rank > 0 and draw(st.booleans())
    layout = tuple(strides) if use_strides else row_major(sizes)
    sample = Sample("drawn", sizes, layout, draw(st.integers(0, 9)))
    return sample, tuple(draw(st.permutations(range(rank))))


drawn_300_times = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@drawn_300_times
@given(
    drawn=permuted_samples(),
    dtype=st.sampled_from(DTYPES),
    method=st.sampled_from(METHODS),
    seed=st.integers(0, 1000),
)
def test_any_strided_input_in_any_order_equals_torch(
    device: str, drawn: tuple[Sample, Dims], dtype: torch.dtype, method: str, seed: int
) -> None:
    sample, dims = drawn
    x = sample.tensor(dtype, device, seed)
    expected = reference(x, dims)
    leave_stale_memory(tuple(expected.shape), dtype, device)
    assert_fresh_transpose(permute(x, dims, method=method), x, expected)


@drawn_300_times
@given(
    drawn=permuted_samples().filter(lambda drawn: len(drawn[1]) >= 2),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 1000),
)
def test_a_box_never_gives_a_wrong_answer(
    device: str, drawn: tuple[Sample, Dims], dtype: torch.dtype, seed: int
) -> None:
    sample, dims = drawn
    x = sample.tensor(dtype, device, seed)
    expected = reference(x, dims)
    leave_stale_memory(tuple(expected.shape), dtype, device)
    try:
        actual = transpose_with(x.permute(dims).transpose(-2, -1), "auto", "box")
    except ValueError:
        reject()
    assert_fresh_transpose(actual, x, expected)


@pytest.mark.parametrize("size", DTYPE_OF_SIZE)
@pytest.mark.parametrize(
    ("shape", "dims", "row_pitch"),
    [
        ((3, 129, 24, 64), (0, 2, 1, 3), 64),
        ((3, 129, 24, 63), (0, 2, 1, 3), 64),
        ((3, 129, 24, 63), (0, 2, 1, 3), 65),
        ((2, 40, 16, 12, 6), (4, 2, 0, 3, 1), 6),
        ((33, 411, 33), (2, 1, 0), 33),
        ((1, 200, 1001), (0, 1, 2), 1003),
        ((7, 5003, 19), (1, 2, 0), 19),
        ((5003, 2, 3, 7), (0, 3, 2, 1), 7),
    ],
)
def test_boxes_are_right_at_any_pitch_and_offset(
    shape: Dims, dims: Dims, row_pitch: int, size: int, device: str
) -> None:
    *outer, inner = shape
    for start in (0, 1, 3):
        base = random_bits((*outer, row_pitch + 3), DTYPE_OF_SIZE[size], device)
        x = (
            base[..., start : start + inner]
            if row_pitch > inner
            else random_bits(shape, DTYPE_OF_SIZE[size], device)
        )
        y = transpose_with(x.permute(dims).transpose(-2, -1), "auto", "box")
        assert_same_bits(y, reference(x, dims), start)


def random_case(rng: random.Random, most_bytes: int) -> tuple[Dims, Dims, int]:
    """A shape of rank 0 to 8, an order and an element size; from a few bytes on."""
    rank = rng.randint(0, 8)
    size = rng.choice(list(DTYPE_OF_SIZE))
    elements = most_bytes ** rng.uniform(0.1, 1) / size
    weights = [rng.random() for _ in range(rank)]
    shape = tuple(max(1, round(elements ** (weight / sum(weights)))) for weight in weights)
    dims = list(range(rank))
    rng.shuffle(dims)
    return shape, tuple(dims), size


def assert_random_permutes_equal_torch(count: int, most_bytes: int, device: str) -> None:
    """`count` cases from the seeds 0, 1, ...; every third starts at an odd element."""
    pool = torch.empty(2 * most_bytes, dtype=torch.int64, device=device)
    pool.random_(-(2**63), None)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}

    def words(t: Tensor) -> Tensor:
        return torch.view_as_real(t).view(torch.int64) if t.is_complex() else t

    wrong = torch.zeros((), dtype=torch.int64, device=device)
    for seed in range(count):
        shape, dims, size = random_case(random.Random(seed), most_bytes)
        numel = 1
        for extent in shape:
            numel *= extent
        start = seed % 7 if seed % 3 == 0 else 0
        x = pool.view(bits[size])[start : start + numel].view(shape)
        y = permute(x, dims)
        assert y.is_contiguous()
        wrong += (words(y) != words(x.permute(dims))).any()
        if seed % 1000 == 999 or seed + 1 == count:  # one synchronisation for many cases
            assert int(wrong) == 0, f"a seed up to {seed}"


def test_random_permutes_equal_torch(device: str) -> None:
    assert_random_permutes_equal_torch(300, 2**14, device)


@pytest.mark.cuda
@pytest.mark.slow
def test_twenty_thousand_random_permutes_equal_torch() -> None:
    assert_random_permutes_equal_torch(20000, 2**23, "cuda")


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=short)
@pytest.mark.parametrize(("shape", "dims"), SMALL_CASES)
def test_first_and_second_derivatives_match_finite_differences(
    shape: Dims, dims: Dims, dtype: torch.dtype, device: str
) -> None:
    x = torch.randn(shape, dtype=dtype, device=device, requires_grad=True)
    assert gradcheck(lambda x: permute(x, dims), (x,))
    assert gradgradcheck(lambda x: permute(x, dims), (x,))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dims", [(2, 0, 1), (-1, -3, -2), (1, 2, 0)])
def test_gradient_is_the_incoming_one_in_the_inverse_order(
    dims: Dims, method: str, device: str
) -> None:
    x = random_bits((3, 33, 17), torch.float32, device).requires_grad_()
    y = permute(x, dims, method=method)
    incoming = random_bits(tuple(y.shape), torch.float32, device, seed=1)
    (gradient,) = torch.autograd.grad(y, x, incoming)
    assert_fresh_transpose(gradient, incoming, reference(incoming, inverse(dims)))


def test_nothing_is_saved_for_backward(device: str) -> None:
    x = torch.randn(3, 4, 5, device=device, requires_grad=True)
    y = permute(x, (2, 0, 1))
    with torch.no_grad():
        x.add_(1)  # would raise in backward, had x been saved
    y.sum().backward()
    assert x.grad is not None
    assert_same_bits(x.grad, torch.ones_like(x))


@pytest.mark.parametrize("with_gradient", [False, True], ids=["plain", "requires_grad"])
@pytest.mark.parametrize(("shape", "dims"), SMALL_CASES)
def test_opcheck_passes(shape: Dims, dims: Dims, with_gradient: bool, device: str) -> None:
    x = torch.randn(shape, device=device).requires_grad_(with_gradient)
    torch.library.opcheck(permute.default, (x, dims))
    out = torch.zeros_like(reference(x.detach(), dims))
    torch.library.opcheck(permute.out, (x.detach(), dims), {"out": out})


@pytest.mark.parametrize(("shape", "dims"), SMALL_CASES)
def test_meta_result_has_the_shape_and_strides_of_the_real_one(shape: Dims, dims: Dims) -> None:
    x = torch.empty(shape, dtype=torch.float16, device="meta")
    y = permute(x, dims)
    expected = tuple(x.permute(dims).shape)
    assert (y.device.type, y.dtype) == ("meta", torch.float16)
    assert (tuple(y.shape), y.stride()) == (expected, row_major(expected))
    out = torch.empty(expected, dtype=torch.float16, device="meta")
    assert permute(x, dims, out=out) is out


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("shape", "dims"), SMALL_CASES)
def test_traced_forward_and_backward_equal_eager(
    shape: Dims, dims: Dims, dynamic: bool, device: str
) -> None:
    torch.compiler.reset()
    compiled = torch.compile(
        lambda x: permute(x, dims), fullgraph=True, dynamic=dynamic, backend="aot_eager"
    )
    x = torch.randn(shape, device=device, requires_grad=True)
    y = compiled(x)
    assert_same_bits(y, reference(x.detach(), dims))
    incoming = torch.randn(y.shape, device=device)
    (gradient,) = torch.autograd.grad(y, x, incoming)
    assert_same_bits(gradient, reference(incoming, inverse(dims)))


def test_traced_out_variant_writes_out(device: str) -> None:
    torch.compiler.reset()

    def step(x: Tensor, out: Tensor) -> Tensor:
        permute(x, (2, 0, 1), out=out)
        return out + 1

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    x = torch.randn(3, 33, 65, device=device)
    out = torch.full((65, 3, 33), torch.nan, device=device)
    assert_same_bits(compiled(x, out), reference(x, (2, 0, 1)) + 1)
    assert_same_bits(out, reference(x, (2, 0, 1)))


@pytest.mark.parametrize(
    "layout",
    [
        Sample("dense", (17, 3, 33)),
        Sample("shifted", (17, 3, 33), offset=3),
        Sample("pitched", (17, 3, 33), (120, 40, 1)),
        Sample("column_major", (17, 3, 33), (1, 17, 51)),
    ],
    ids=lambda layout: layout.name,
)
def test_out_is_filled_whatever_its_layout(layout: Sample, device: str) -> None:
    x = random_bits((3, 33, 17), torch.float32, device)
    out = layout.view(stale((layout.base_numel,), torch.float32, device))
    assert torch_swizzle.permute(x, (2, 0, 1), out=out) is out
    assert_same_bits(out, reference(x, (2, 0, 1)))


def message_of(error: type[Exception], call: Callable[[], object]) -> str:
    """What `call` says when it raises exactly this class."""
    with pytest.raises(error) as caught:
        call()
    assert caught.type is error
    return str(caught.value)


@pytest.mark.parametrize(
    ("error", "dims"),
    [
        (RuntimeError, (0, 1)),
        (RuntimeError, ()),
        (RuntimeError, (0, 1, 2, 3)),
        (RuntimeError, (0, 1, 1)),
        (RuntimeError, (0, -1, 2)),
        (IndexError, (0, 1, 3)),
        (IndexError, (-4, 0, 1)),
        (IndexError, (2**40, 1, 0)),
    ],
)
def test_bad_dims_raise_what_torch_raises(
    error: type[Exception], dims: Dims, any_device: str
) -> None:
    x = torch.zeros(2, 3, 4, device=any_device)
    out = torch.empty(0, device=any_device)
    theirs = message_of(error, lambda: torch.permute(x, dims))
    assert message_of(error, lambda: permute(x, dims)) == theirs
    assert message_of(error, lambda: permute(x, dims, out=out)) == theirs
    assert message_of(error, lambda: torch_swizzle.permute(x, dims)) == theirs


def test_refusals_name_the_operator(device: str) -> None:
    x = torch.zeros(2, 3, device=device)
    for error, call in (
        (ValueError, lambda: permute(x, (1, 0), method="fast")),
        (NotImplementedError, lambda: permute(x.to_sparse(), (1, 0))),
        (RuntimeError, lambda: permute(x, (1, 0), out=x.new_empty(3, 2, dtype=torch.int8))),
        (NotImplementedError, lambda: permute(x.view((2, 3, *(1,) * 63)), range(65))),
    ):
        assert message_of(error, call).startswith("swizzle::permute: expected ")


def test_out_over_the_input_or_with_gradients_is_refused(device: str) -> None:
    x = torch.zeros(4, 4, device=device)
    message_of(RuntimeError, lambda: permute(x, (1, 0), out=x))
    leaf = x.clone().requires_grad_()
    message = message_of(RuntimeError, lambda: permute(leaf, (1, 0), out=torch.empty_like(x)))
    assert "don't support automatic differentiation" in message
