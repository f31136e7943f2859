"""The out= variant: where it writes, what it resizes, and what it refuses, as torch's own do."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from samples import (
    DTYPES,
    METHODS,
    SAMPLES,
    STALE_BYTE,
    Sample,
    assert_same_bits,
    bytes_of,
    name_of,
    random_bits,
    reference,
    row_major,
    short,
    stale,
)
from torch import Tensor

import torch_swizzle

transpose = torch.ops.swizzle.transpose

RESIZED = "An output with one or more elements was resized"

OUT_LAYOUTS = (
    *(Sample(f"starts_at_element_{k}", (65, 33), (33, 1), k) for k in range(1, 8)),
    Sample("pitched", (65, 33), (40, 1)),
    Sample("odd_pitch_and_offset", (65, 33), (37, 1), 3),
    Sample("column_major", (65, 33), (1, 65)),
    Sample("every_second_column", (65, 33), (70, 2)),
    Sample("every_third_row", (65, 33), (99, 1)),
)


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_out_is_filled_and_returned(sample: Sample, device: str) -> None:
    x = sample.tensor(torch.float32, device)
    expected = sample.expected(x)
    for method in METHODS:
        out = stale(tuple(expected.shape), x.dtype, device)
        address = out.data_ptr()
        result = transpose(x, *sample.dims, method=method, out=out)
        assert result is out
        assert out.data_ptr() == address
        assert_same_bits(out, expected, method)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_out_takes_every_dtype(dtype: torch.dtype, device: str) -> None:
    x = random_bits((33, 65), dtype, device)
    out = stale((65, 33), dtype, device)
    assert torch_swizzle.transpose(x, out=out) is out
    assert_same_bits(out, reference(x))


@pytest.mark.parametrize("layout", OUT_LAYOUTS, ids=name_of)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.complex128], ids=short)
def test_a_pitched_strided_or_offset_out_is_written_and_nothing_around_it(
    layout: Sample, dtype: torch.dtype, device: str
) -> None:
    x = random_bits((33, 65), dtype, device)
    for method in METHODS:
        base = stale((layout.base_numel + 100,), dtype, device)
        written = torch.zeros(base.numel(), dtype=torch.bool, device=device)
        layout.view(written).fill_(True)
        out = layout.view(base)
        assert transpose(x, method=method, out=out) is out
        assert out.stride() == layout.strides
        assert_same_bits(out, reference(x), method)
        margin = bytes_of(base).view(base.numel(), -1)[~written]
        assert bool((margin == STALE_BYTE).all()), "wrote outside of out"


def warned(call: Callable[[], object], capfd: pytest.CaptureFixture[str]) -> str:
    """All that `call` warns of; below torch.ops a C++ warning goes to stderr, not to Python."""
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return capfd.readouterr().err + "".join(str(warning.message) for warning in caught)


def test_out_of_another_shape_is_resized_with_torchs_warning(
    any_device: str, capfd: pytest.CaptureFixture[str]
) -> None:
    x = torch.zeros(33, 65, device=any_device)
    for shape in ((33, 65), (3,), (65, 33, 1), (1000, 1000)):
        out = torch.empty(shape, device=any_device)
        assert RESIZED in warned(lambda out=out: transpose(x, out=out), capfd)
        assert out.shape == (65, 33)
        assert out.stride() == row_major((65, 33))


def test_out_that_fits_or_is_empty_is_taken_in_silence(
    device: str, capfd: pytest.CaptureFixture[str]
) -> None:
    x = random_bits((33, 65), torch.float32, device)
    for shape in ((65, 33), (0,), (0, 7)):
        out = torch.empty(shape, device=device)
        assert warned(lambda out=out: transpose(x, out=out), capfd) == ""
        assert_same_bits(out, reference(x))


def test_resizing_keeps_the_values_right(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    for shape in ((1000, 1000), (2, 2)):
        out = stale(shape, torch.float32, device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transpose(x, out=out)
        assert_same_bits(out, reference(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32], ids=short)
def test_out_of_another_dtype_is_refused(dtype: torch.dtype, any_device: str) -> None:
    x = torch.zeros(33, 65, device=any_device)
    out = torch.empty(65, 33, dtype=dtype, device=any_device)
    with pytest.raises(RuntimeError, match="swizzle::transpose") as caught:
        transpose(x, out=out)
    assert caught.type is RuntimeError


@pytest.mark.parametrize("other", ["cpu", "meta", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_out_on_another_device_is_refused(any_device: str, other: str) -> None:
    if any_device == other:
        return
    x = torch.zeros(33, 65, device=any_device)
    out = torch.empty(65, 33, device=other)
    with pytest.raises(RuntimeError) as caught:
        transpose(x, out=out)
    assert caught.type is RuntimeError
    assert any_device in str(caught.value)
    assert other in str(caught.value)


def overlapping_pairs(device: str) -> list[tuple[Tensor, Tensor]]:
    """Inputs and outputs that share elements: all, some, and through interleaved strides."""
    base = random_bits((8192,), torch.float32, device)
    square = base[:1024].view(32, 32)
    return [
        (square, square),
        (square, square.t()),
        (base[:1024].view(32, 32), base[512:1536].view(32, 32)),
        (base[1:1025].view(32, 32), base[:1024].view(32, 32)),
        (base[:1024].view(1, 1024), base[:1024].view(1024, 1)),
    ]


@pytest.mark.parametrize("case", range(5))
def test_out_over_the_input_is_refused(case: int, device: str) -> None:
    x, out = overlapping_pairs(device)[case]
    before = bytes_of(x).clone()
    for method in METHODS:
        with pytest.raises(RuntimeError, match=r"(?i)overlap|single memory location"):
            transpose(x, method=method, out=out)
        assert torch.equal(bytes_of(x), before)


def test_out_beside_the_input_in_one_storage_is_fine(device: str) -> None:
    base = random_bits((2048,), torch.float32, device)
    x, out = base[:1024].view(16, 64), base[1024:].view(64, 16)
    expected = reference(x)
    transpose(x, out=out)
    assert_same_bits(out, expected)


def test_an_expanded_out_is_refused(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    out = torch.zeros(1, 33, device=device).expand(65, 33)
    with pytest.raises(RuntimeError):
        transpose(x, out=out)
    assert not bool(out.any())


@pytest.mark.parametrize("which", ["input", "out"])
def test_out_does_not_take_part_in_autograd(which: str, device: str) -> None:
    x = torch.zeros(33, 65, device=device, requires_grad=which == "input")
    out = torch.zeros(65, 33, device=device, requires_grad=which == "out")
    with pytest.raises(RuntimeError, match=r"out=\.\.\. arguments don't support automatic diff"):
        transpose(x, out=out)
    assert not bool(out.any())


def test_out_with_gradients_is_fine_where_nothing_is_recorded(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device).requires_grad_()
    out = stale((65, 33), torch.float32, device)
    with torch.no_grad():
        transpose(x, out=out)
    assert_same_bits(out, reference(x.detach()))


def test_empty_out_is_fine(device: str) -> None:
    for shape in ((0, 5), (5, 0), (3, 0, 7)):
        x = torch.empty(shape, device=device)
        out = torch.empty((*shape[:-2], shape[-1], shape[-2]), device=device)
        assert transpose(x, out=out) is out
        assert out.shape == x.mT.shape


def test_writing_into_out_bumps_its_version(device: str) -> None:
    x = random_bits((33, 65), torch.float32, device)
    out = torch.empty(65, 33, device=device)
    version = out._version
    transpose(x, out=out)
    assert out._version > version


class Plain(Tensor):
    """A subclass that adds nothing."""


# What torch's own copying transpose does with each of these, ours does: the same answer, or the
# same class of error.
OUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "fits": lambda x: torch.empty(65, 33, device=x.device),
    "nothing": lambda x: torch.empty(0, device=x.device),
    "too_large": lambda x: torch.empty(70, 90, device=x.device),
    "too_small": lambda x: torch.empty(2, device=x.device),
    "other_rank": lambda x: torch.empty(65, 33, 1, device=x.device),
    "view_of_a_large_storage": lambda x: torch.zeros(9999, device=x.device)[:10],
    "wider_dtype": lambda x: torch.empty(65, 33, dtype=torch.float64, device=x.device),
    "integers": lambda x: torch.empty(65, 33, dtype=torch.int32, device=x.device),
    "complex": lambda x: torch.empty(65, 33, dtype=torch.complex64, device=x.device),
    "meta_device": lambda x: torch.empty(65, 33, device="meta"),
    "column_major": lambda x: torch.empty(33, 65, device=x.device).t(),
    "every_second_column": lambda x: torch.empty(65, 66, device=x.device)[:, ::2],
    "expanded": lambda x: torch.empty(1, 33, device=x.device).expand(65, 33),
    "requires_grad": lambda x: torch.empty(65, 33, device=x.device, requires_grad=True),
    "parameter": lambda x: torch.nn.Parameter(torch.empty(65, 33, device=x.device)),
    "subclass": lambda x: torch.empty(65, 33, device=x.device).as_subclass(Plain),
    "partly_the_input": lambda x: x.view(-1)[1:].as_strided((65, 33), (33, 1)),
}
REFUSED_FOR_OVERLAP = "partly_the_input"  # torch's own writes a wrong answer there


@pytest.mark.setting("out= of any shape, dtype, device, stride or overlap, as torch's own")
@pytest.mark.parametrize("name", OUTS)
def test_out_is_treated_as_torchs_own_copy_treats_it(name: str, device: str) -> None:
    results: list[object] = []
    for op in (transpose, torch.transpose_copy):
        x = torch.arange(33 * 65 + 1.0, device=device)[:-1].view(33, 65)
        out = OUTS[name](x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                assert op(x, 0, 1, out=out) is out
            except RuntimeError as error:
                results.append((type(error), out.shape))
            else:
                results.append((out.shape, out.stride(), out.storage_offset(), out.tolist()))
    if name == REFUSED_FOR_OVERLAP:
        assert results[0] == (RuntimeError, torch.Size((65, 33)))
    else:
        assert results[0] == results[1]


def test_out_in_memory_that_cannot_grow_is_refused_as_torchs_own(device: str) -> None:
    if device != "cpu":
        return  # such memory is a NumPy array's
    x = torch.zeros(33, 65)
    small = torch.frombuffer(bytearray(16), dtype=torch.float32)
    for op in (transpose, torch.transpose_copy):
        with pytest.raises(RuntimeError, match="not resizable"):
            op(x, 0, 1, out=small.view(2, 2))
