"""cuTENSOR's permutation as a peer, where its library is found (it is never a dependency).

The library is looked for as any shared library is (LD_LIBRARY_PATH) and in the `cutensor` package
that pip installs. Declarations follow cuTENSOR 2's cutensor.h.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from bench.arms import Call, NotApplicable
from bench.grid import Case

LIBRARY = "libcutensor.so.2"
# cudaDataType_t and the name of the compute descriptor.
_TYPES = {
    torch.float16: (2, "32F"),
    torch.bfloat16: (14, "32F"),
    torch.float32: (0, "32F"),
    torch.float64: (1, "64F"),
}
_IDENTITY, _DEFAULT_ALGORITHM, _NO_JIT = 1, -1, 0
_MOST_ALIGNMENT = 256


def _locations() -> list[str]:
    package = importlib.util.find_spec("cutensor")
    folders = package.submodule_search_locations if package else None
    return [LIBRARY, *(str(Path(folder) / "lib" / LIBRARY) for folder in folders or [])]


@functools.cache
def _library() -> Any:
    for location in _locations():
        try:
            return ctypes.CDLL(location)
        except OSError:
            continue
    raise NotApplicable(f"{LIBRARY} was not found")


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_library(), name)(*arguments)
    if status != 0:
        raise NotApplicable(f"{name} returned status {status}")


@functools.cache
def _handle() -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _call("cutensorCreate", ctypes.byref(handle))
    return handle


def _descriptor(sizes: Sequence[int], strides: Sequence[int], tensor: torch.Tensor) -> Any:
    rank, address = len(sizes), tensor.data_ptr()
    numbers = ctypes.c_int64 * rank
    descriptor = ctypes.c_void_p()
    _call(
        "cutensorCreateTensorDescriptor",
        _handle(),
        ctypes.byref(descriptor),
        ctypes.c_uint32(rank),
        numbers(*sizes),
        numbers(*strides),
        ctypes.c_int(_TYPES[tensor.dtype][0]),
        ctypes.c_uint32(min(address & -address, _MOST_ALIGNMENT)),
    )
    return descriptor


def _make_plan(x: torch.Tensor, y: torch.Tensor, dims: Sequence[int]) -> ctypes.c_void_p:
    modes = ctypes.c_int32 * x.dim()
    compute = ctypes.c_void_p.in_dll(_library(), f"CUTENSOR_COMPUTE_DESC_{_TYPES[x.dtype][1]}")
    operation, preference, plan = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _call(
        "cutensorCreatePermutation",
        _handle(),
        ctypes.byref(operation),
        _descriptor(x.shape, x.stride(), x),
        modes(*range(x.dim())),
        ctypes.c_int(_IDENTITY),
        _descriptor(y.shape, y.stride(), y),
        modes(*dims),
        compute,
    )
    _call(
        "cutensorCreatePlanPreference",
        _handle(),
        ctypes.byref(preference),
        ctypes.c_int(_DEFAULT_ALGORITHM),
        ctypes.c_int(_NO_JIT),
    )
    _call(
        "cutensorCreatePlan",
        _handle(),
        ctypes.byref(plan),
        operation,
        preference,
        ctypes.c_uint64(0),
    )
    return plan


def prepare(case: Case, x: torch.Tensor) -> Call:
    """The call for a case, planned once; NotApplicable without the library or for other dtypes.

    Complex numbers are moved as pairs of reals: a product with a complex one would spread a NaN
    from one part to the other.
    """
    if case.dims is None:
        raise NotApplicable("cuTENSOR is a peer of permutes")
    dims = case.dims
    is_complex = x.is_complex()
    real = torch.view_as_real(x) if is_complex else x
    if is_complex:
        dims = (*dims, x.dim())
    if real.dtype not in _TYPES:
        raise NotApplicable("cuTENSOR permutes floats of 2 to 8 bytes and pairs of them only")
    dtype = real.dtype
    shape = [real.shape[dim] for dim in dims]
    # Memory of torch begins at multiples of 512 bytes, so one plan serves all of it.
    plan = _make_plan(real, torch.empty(shape, dtype=dtype, device=x.device), dims)
    one = (ctypes.c_double if dtype is torch.float64 else ctypes.c_float)(1.0)

    def call() -> torch.Tensor:
        y = torch.empty(shape, dtype=dtype, device=x.device)
        _call(
            "cutensorPermute",
            _handle(),
            plan,
            ctypes.byref(one),
            ctypes.c_void_p(x.data_ptr()),
            ctypes.c_void_p(y.data_ptr()),
            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
        )
        return torch.view_as_complex(y) if is_complex else y

    return call
