"""Optional peers on CUDA tensors: an autotuned Triton kernel, cuBLAS geam, cuTENSOR."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch

from bench import cutensor
from bench.arms import Arm, Call, NotApplicable
from bench.grid import Case

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def as_batch(x: torch.Tensor) -> torch.Tensor:
    """A (batch, rows, cols) view of the same memory; NotApplicable if leading dims do not fuse."""
    if x.dim() == 2:
        return x.unsqueeze(0)
    try:
        return x.view(-1, *x.shape[-2:])
    except RuntimeError as error:
        raise NotApplicable("the batch dimensions do not fuse into one") from error


def _prepare_triton(case: Case, x: torch.Tensor) -> Call:
    if case.element_bytes not in _INTEGERS:
        raise NotApplicable("Triton has no 16-byte element")
    try:
        from bench.triton_kernel import launch_tuned
    except ImportError as error:
        raise NotApplicable("triton is not installed") from error
    integer = _INTEGERS[case.element_bytes]
    batch, rows, cols = as_batch(x).shape

    def call() -> torch.Tensor:
        y = torch.empty((*x.shape[:-2], cols, rows), dtype=x.dtype, device=x.device)
        launch_tuned(as_batch(x.view(integer)), y.view(integer).view(batch, cols, rows))
        return y

    return call


@functools.cache
def _cublas() -> Any:
    """CuBLAS as torch has loaded it; its soname carries the major version of CUDA."""
    major = (torch.version.cuda or "").split(".")[0]
    try:
        return ctypes.CDLL(f"libcublas.so.{major}")
    except OSError as error:
        raise NotApplicable(f"libcublas.so.{major} was not found") from error


def _prepare_geam(case: Case, x: torch.Tensor) -> Call:
    names = {torch.float32: "cublasSgeam", torch.float64: "cublasDgeam"}
    if x.dtype not in names:
        raise NotApplicable("geam keeps the bits of float32 and float64 only")
    if x.dim() != 2 or x.stride(1) != 1 or x.stride(0) < x.size(1):
        raise NotApplicable("geam takes one matrix with dense rows")
    geam = getattr(_cublas(), names[x.dtype])
    geam.restype = ctypes.c_int
    scalar = ctypes.c_float if x.dtype == torch.float32 else ctypes.c_double
    one, zero = scalar(1.0), scalar(0.0)
    transposed, plain = 1, 0  # CUBLAS_OP_T, CUBLAS_OP_N
    rows, cols = x.shape

    def call() -> torch.Tensor:
        # To cuBLAS, which counts by columns, x is cols x rows with leading dimension x.stride(0),
        # and the result rows x cols. The second matrix is not read, as its factor is zero.
        y = torch.empty((cols, rows), dtype=x.dtype, device=x.device)
        output = ctypes.c_void_p(y.data_ptr())
        status = geam(
            ctypes.c_void_p(torch.cuda.current_blas_handle()),
            ctypes.c_int(transposed),
            ctypes.c_int(plain),
            ctypes.c_int(rows),
            ctypes.c_int(cols),
            ctypes.byref(one),
            ctypes.c_void_p(x.data_ptr()),
            ctypes.c_int(x.stride(0)),
            ctypes.byref(zero),
            output,
            ctypes.c_int(rows),
            output,
            ctypes.c_int(rows),
        )
        if status != 0:
            raise RuntimeError(f"{names[x.dtype]} returned status {status}")
        return y

    return call


TRANSPOSE_PEERS = [
    Arm("triton", "Triton tile kernel, autotuned", _prepare_triton, is_peer=True, cpu=False),
    Arm(
        "geam",
        "cublasSgeam, cublasDgeam",
        _prepare_geam,
        is_peer=True,
        keeps_nan_payloads=False,
        cpu=False,
    ),
]
PERMUTE_PEERS = [
    Arm(
        "cutensor",
        "cutensorPermute",
        cutensor.prepare,
        is_peer=True,
        keeps_nan_payloads=False,
        cpu=False,
    ),
]
