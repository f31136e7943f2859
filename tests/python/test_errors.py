"""Refusals: one clear sentence, torch's own class, on every device alike, and no side effects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from samples import (
    LAYOUTS,
    METHODS,
    TILES_WITH_LAYOUT,
    assert_same_bits,
    bytes_of,
    random_bits,
    reference,
    stale,
)
from torch import Tensor

import torch_swizzle

transpose = torch.ops.swizzle.transpose
transpose_with = torch.ops.swizzle._transpose_with
tile_wavefronts = torch.ops.swizzle._tile_wavefronts

TILES = (
    *TILES_WITH_LAYOUT,
    *("window", "deinterleave", "flat", "scatter", "box", "direct"),
)
BAD_DIMS = [
    ((), (-2, -1)),
    ((), (0, 1)),
    ((), (-2, 0)),
    ((3,), (-2, -1)),
    ((3,), (0, 1)),
    ((3, 4), (0, 2)),
    ((3, 4), (2, 0)),
    ((3, 4), (-3, 0)),
    ((3, 4), (5, -7)),
    ((0, 4), (0, 2)),
    ((1, 1), (3, 3)),
    ((2, 3, 4), (0, 3)),
    ((2, 3, 4), (-4, 1)),
    ((2, 3, 4), (2**40, 1)),
]
BAD_NAMES = ("", "fast", "Naive", "naive ", "scalar32")


def message_of(error: type[Exception], call: Callable[[], object]) -> str:
    """What `call` says when it raises exactly this class."""
    with pytest.raises(error) as caught:
        call()
    assert caught.type is error
    return str(caught.value)


@pytest.mark.parametrize(("shape", "dims"), BAD_DIMS)
def test_bad_dims_raise_what_torch_raises(
    shape: tuple[int, ...], dims: tuple[int, int], any_device: str
) -> None:
    x = torch.zeros(shape, device=any_device)
    theirs = message_of(IndexError, lambda: torch.transpose(x, *dims))
    out = torch.empty(3, 4, device=any_device)
    assert message_of(IndexError, lambda: transpose(x, *dims)) == theirs
    assert message_of(IndexError, lambda: transpose(x, *dims, out=out)) == theirs
    assert message_of(IndexError, lambda: torch_swizzle.transpose(x, *dims)) == theirs


@pytest.mark.parametrize("shape", [(), (3,)])
def test_too_few_dims_for_the_defaults_raise_what_torch_raises(
    shape: tuple[int, ...], any_device: str
) -> None:
    x = torch.zeros(shape, device=any_device)
    theirs = message_of(IndexError, lambda: torch.transpose(x, -2, -1))
    assert message_of(IndexError, lambda: transpose(x)) == theirs
    assert message_of(IndexError, lambda: torch_swizzle.transpose(x)) == theirs
    assert message_of(IndexError, lambda: transpose_with(x, "naive", "scalar32")) == theirs


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (1, 4)])
def test_an_unknown_method_is_refused_with_the_names_there_are(
    shape: tuple[int, int], name: str, any_device: str
) -> None:
    x = torch.zeros(shape, device=any_device)
    out = torch.empty((shape[1], shape[0]), device=any_device)
    for call in (
        lambda: transpose(x, method=name),
        lambda: transpose(x, method=name, out=out),
        lambda: transpose(x, 0, 0, method=name),
        lambda: torch_swizzle.transpose(x, method=name),
    ):
        message = message_of(ValueError, call)
        assert "swizzle::transpose" in message
        assert all(method in message for method in METHODS)
        assert f"'{name}'" in message or f'"{name}"' in message
        assert "\n" not in message


@pytest.mark.parametrize("name", ["", "vector32", "Scalar32", "auto"])
def test_an_unknown_tile_is_refused_with_the_names_there_are(name: str, device: str) -> None:
    for shape in ((3, 4), (0, 4), (1, 4)):
        x = torch.zeros(shape, device=device)
        message = message_of(ValueError, lambda x=x: transpose_with(x, "naive", name))
        assert "swizzle::_transpose_with" in message
        assert all(tile in message for tile in TILES)
        assert name in message


def test_an_unknown_method_of_a_forced_tile_is_refused(device: str) -> None:
    x = torch.zeros(32, 32, device=device)
    for tile in TILES:
        message = message_of(ValueError, lambda tile=tile: transpose_with(x, "fast", tile))
        assert all(layout in message for layout in LAYOUTS)
        assert "fast" in message


@pytest.mark.parametrize("tile", ["window", "deinterleave", "flat", "scatter", "box", "direct"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tile_without_a_choice_of_layout_refuses_one(layout: str, tile: str, device: str) -> None:
    x = torch.zeros(64, 4, device=device)
    message = message_of(ValueError, lambda: transpose_with(x, layout, tile))
    assert tile in message
    assert layout in message


UNALIGNED = {
    "odd_rows": lambda x: x[:33],
    "odd_pitch": lambda x: x.view(-1)[: 64 * 67].view(64, 67)[:, :64],
    "strided_columns": lambda x: x[:, ::3],
    "odd_columns": lambda x: x[:, :65],
    "odd_base": lambda x: x.view(-1)[1:4097].view(64, 64),
}
REFUSED = {"vector128": tuple(UNALIGNED), "vector": ("odd_rows", "odd_pitch", "strided_columns")}


@pytest.mark.parametrize(
    ("tile", "kind"), [(tile, kind) for tile, kinds in REFUSED.items() for kind in kinds]
)
def test_a_tile_of_chunks_says_what_it_needs(tile: str, kind: str, device: str) -> None:
    x = UNALIGNED[kind](torch.zeros(128, 128, device=device))
    for layout in LAYOUTS:
        message = message_of(ValueError, lambda layout=layout: transpose_with(x, layout, tile))
        assert "swizzle::_transpose_with" in message
        assert f"'{tile}'" in message
        assert "16" in message


@pytest.mark.parametrize("element_bytes", [0, -1, 3, 32])
def test_the_bank_model_refuses_an_element_size_that_no_kernel_has(element_bytes: int) -> None:
    message = message_of(ValueError, lambda: tile_wavefronts("naive", "scalar32", element_bytes))
    assert "swizzle::_tile_wavefronts" in message
    assert str(element_bytes) in message


def test_the_bank_model_refuses_unknown_names() -> None:
    message_of(ValueError, lambda: tile_wavefronts("fast", "scalar32", 4))
    message_of(ValueError, lambda: tile_wavefronts("naive", "fast", 4))


BAD_CALLS: list[tuple[str, type[Exception], Callable[[Tensor, Tensor], object]]] = [
    ("method", ValueError, lambda x, out: transpose(x, method="fast", out=out)),
    ("dims", IndexError, lambda x, out: transpose(x, 0, 2, out=out)),
    ("dtype", RuntimeError, lambda x, out: transpose(x.to(torch.int32), out=out)),
    ("device", RuntimeError, lambda x, out: transpose(x.to("meta"), out=out)),
    ("overlap", RuntimeError, lambda x, out: transpose(out.t(), out=out)),
]


@pytest.mark.parametrize(
    ("error", "call"), [call[1:] for call in BAD_CALLS], ids=[call[0] for call in BAD_CALLS]
)
def test_a_refused_call_writes_nothing(
    error: type[Exception], call: Callable[[Tensor, Tensor], object], device: str
) -> None:
    x = random_bits((33, 65), torch.float32, device)
    out = stale((65, 33), torch.float32, device)
    before = bytes_of(out).clone()
    with pytest.raises(error):
        call(x, out)
    assert out.shape == (65, 33)
    assert torch.equal(bytes_of(out), before)


@pytest.mark.parametrize("method", METHODS)
def test_after_a_refusal_the_next_call_works(method: str, device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    for error, call in (
        (ValueError, lambda: transpose(x, method="fast")),
        (IndexError, lambda: transpose(x, 0, 2)),
        (ValueError, lambda: transpose_with(x, "naive", "vector")),
        (ValueError, lambda: transpose_with(x, "naive", "fast")),
    ):
        with pytest.raises(error):
            call()
        if device == "cuda":
            torch.cuda.synchronize()
        assert_same_bits(transpose(x, method=method), reference(x))


def test_more_dims_than_torch_can_copy_are_refused(any_device: str) -> None:
    x = torch.empty((1,) * 65, device=any_device)
    message = message_of(NotImplementedError, lambda: transpose(x))
    assert message == "swizzle::transpose: expected at most 64 dimensions, got 65"


def test_a_wrong_kind_of_argument_is_a_type_error_or_runtime_error() -> None:
    for call in (
        lambda: torch_swizzle.transpose([[1.0]]),
        lambda: torch_swizzle.transpose(torch.zeros(2, 2), "rows"),
        lambda: torch_swizzle.transpose(torch.zeros(2, 2), method=3),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            call()
