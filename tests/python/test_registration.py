"""Registration: schemas, dispatch keys, tags, meta results, and torch's own opcheck on samples."""

from __future__ import annotations

import pytest
import torch
import torch._functorch.config
from samples import (
    DTYPES,
    METHODS,
    SAMPLES,
    SMALL_SAMPLES,
    TEMPTING_ALIASES,
    Sample,
    finite,
    name_of,
    row_major,
    short,
)

ops = torch.ops.swizzle
OPCHECK_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_static",
    "test_aot_dispatch_dynamic",
)
# One of each kind of layout beyond the small ones; bitwise equality of all: test_values.py.
OPCHECK_SAMPLES = tuple(
    sample
    for sample in SAMPLES
    if sample.name
    in (
        *("tall", "one_row", "one_column", "neither", "two_batch_dims", "twelve_strided_dims"),
        *("runs_of_four", "odd_pitch_square", "strided_in_both", "both_expanded"),
        *("batch_innermost", "one_row_absurd_stride", "unit_batch_absurd_stride"),
    )
)
SCHEMAS = {
    "transpose.default": (
        'swizzle::transpose(Tensor self, int dim0=-2, int dim1=-1, *, str method="auto") -> Tensor'
    ),
    "transpose.out": (
        "swizzle::transpose.out(Tensor self, int dim0=-2, int dim1=-1, *, "
        'str method="auto", Tensor(a!) out) -> Tensor(a!)'
    ),
    "permute.default": (
        'swizzle::permute(Tensor self, int[] dims, *, str method="auto") -> Tensor'
    ),
    "permute.out": (
        'swizzle::permute.out(Tensor self, int[] dims, *, str method="auto", '
        "Tensor(a!) out) -> Tensor(a!)"
    ),
    "_transpose_with.default": (
        "swizzle::_transpose_with(Tensor self, str method, str tile) -> Tensor"
    ),
    "_tile_wavefronts.default": (
        "swizzle::_tile_wavefronts(str method, str tile, int element_bytes) -> Tensor"
    ),
    "_tile_accesses.default": (
        "swizzle::_tile_accesses(str method, str tile, int element_bytes) -> Tensor"
    ),
    "_bank_wavefronts.default": (
        "swizzle::_bank_wavefronts(Tensor addresses, int width, Tensor? active=None, "
        "bool is_store=False) -> Tensor"
    ),
    "_library.default": "swizzle::_library() -> str[]",
    "_bank_words.default": (
        "swizzle::_bank_words(Tensor addresses, int width, Tensor? active=None, "
        "bool is_store=False) -> Tensor"
    ),
    "_bank_loads.default": (
        "swizzle::_bank_loads(Tensor addresses, int width, Tensor? active=None, "
        "bool is_store=False) -> Tensor"
    ),
    "_least_wavefronts.default": (
        "swizzle::_least_wavefronts(Tensor addresses, int width, int chunk_bytes, "
        "Tensor? active=None, bool is_store=False) -> Tensor"
    ),
    "_layout_numbers.default": (
        "swizzle::_layout_numbers(str layout, int rows, int cols, int element_bytes) -> int[]"
    ),
    "_layout_offsets.default": (
        "swizzle::_layout_offsets(str layout, int rows, int cols, int element_bytes) -> Tensor"
    ),
}


def overload(name: str) -> torch._ops.OpOverload:
    """The overload of this dotted name."""
    packet, _, variant = name.partition(".")
    found: torch._ops.OpOverload = getattr(getattr(ops, packet), variant)
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_the_published_one(name: str) -> None:
    assert str(overload(name)._schema) == SCHEMAS[name]


@pytest.mark.parametrize(
    "name",
    [
        *("swizzle::transpose", "swizzle::transpose.out"),
        *("swizzle::permute", "swizzle::permute.out"),
    ],
)
@pytest.mark.parametrize("key", ["CPU", "CUDA", "Meta"])
def test_each_backend_has_a_kernel_of_its_own(name: str, key: str) -> None:
    assert torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def test_autograd_is_registered_in_the_library() -> None:
    for name in ("transpose", "transpose.out", "permute", "permute.out"):
        assert "Autograd[alias]: registered" in torch._C._dispatch_dump(f"swizzle::{name}")


@pytest.mark.parametrize(
    "name", ["transpose.default", "transpose.out", "permute.default", "permute.out"]
)
def test_public_operators_are_tagged_compliant(name: str) -> None:
    assert torch.Tag.pt2_compliant_tag in overload(name).tags


@pytest.mark.setting("torch.library.opcheck, every sub-test and sample")
@pytest.mark.parametrize("with_gradient", [False, True], ids=["plain", "requires_grad"])
@pytest.mark.parametrize("sample", [*SMALL_SAMPLES, *OPCHECK_SAMPLES], ids=name_of)
def test_opcheck_passes(sample: Sample, with_gradient: bool, device: str) -> None:
    x = finite(sample, device).requires_grad_(with_gradient)
    torch.library.opcheck(ops.transpose.default, (x, *sample.dims), test_utils=OPCHECK_TESTS)


@pytest.mark.parametrize("method", METHODS)
def test_opcheck_passes_for_every_method(method: str, device: str) -> None:
    x = torch.randn(3, 5, device=device, requires_grad=True)
    torch.library.opcheck(ops.transpose.default, (x,), {"method": method}, test_utils=OPCHECK_TESTS)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int16, torch.bfloat16, torch.complex64], ids=short
)
def test_opcheck_passes_for_other_dtypes(dtype: torch.dtype, device: str) -> None:
    x = torch.ones(3, 5, device=device).to(dtype)
    torch.library.opcheck(ops.transpose.default, (x,), test_utils=OPCHECK_TESTS)


@pytest.mark.parametrize("sample", TEMPTING_ALIASES, ids=name_of)
def test_no_result_is_an_alias_in_torchs_eyes(sample: Sample, device: str) -> None:
    x = finite(sample, device)
    with torch._functorch.config.patch(error_on_custom_op_aliasing=True):
        torch.library.opcheck(ops.transpose.default, (x,), test_utils=OPCHECK_TESTS)


@pytest.mark.parametrize("sample", [*SMALL_SAMPLES, *OPCHECK_SAMPLES], ids=name_of)
def test_opcheck_passes_for_the_out_variant(sample: Sample, device: str) -> None:
    x = finite(sample, device)
    out = torch.zeros_like(sample.expected(x))
    torch.library.opcheck(
        ops.transpose.out, (x, *sample.dims), {"out": out}, test_utils=OPCHECK_TESTS
    )


def test_opcheck_passes_for_the_forced_tile(device: str) -> None:
    x = torch.randn(33, 65, device=device)
    torch.library.opcheck(
        ops._transpose_with.default, (x, "swizzled", "scalar32"), test_utils=OPCHECK_TESTS
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_meta_result_has_the_shape_and_strides_of_the_real_one(
    sample: Sample, dtype: torch.dtype
) -> None:
    x = torch.empty(sample.base_numel, dtype=dtype, device="meta")
    shape = tuple(sample.view(x).transpose(*sample.dims).shape)
    for method in METHODS:
        y = ops.transpose(sample.view(x), *sample.dims, method=method)
        assert y.device.type == "meta"
        assert y.dtype is dtype
        assert tuple(y.shape) == shape
        assert y.stride() == row_major(shape)
        assert y.storage_offset() == 0
    out = torch.empty(shape, dtype=dtype, device="meta")
    assert ops.transpose(sample.view(x), *sample.dims, out=out) is out


def test_meta_tensors_may_be_larger_than_any_memory() -> None:
    x = torch.empty(2**30, 2**31, dtype=torch.uint8, device="meta")
    y = ops.transpose(x)
    assert y.shape == (2**31, 2**30)
    assert y.stride() == (2**30, 1)
