"""`accelerate`: torch's own copies of transposed tensors through the kernels, without edits."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import dataclass
from types import TracebackType

import torch

VARIABLE = "TORCH_SWIZZLE_ACCELERATE"
_VALUES = {"": None, "0": None, "1": False, "report": True}  # whether to report; None: leave it off

_DEVICE = torch.device("cuda")
_lock = threading.RLock()
_open_reports: list[CopyReport] = []


@dataclass(frozen=True)
class CopyCount:
    """Calls of ``aten::copy_`` with one fate.

    Attributes:
        reason: Why they were taken or left.
        taken: Whether the kernels of this package moved them.
        calls: How many there were.
        bytes: Bytes of their destinations.
    """

    reason: str
    taken: bool
    calls: int
    bytes: int


class CopyReport:
    """Calls of ``aten::copy_`` since a moment, by what became of them.

    ``str(report)`` is a table. Calls of all threads count, those inside CUDA graphs when they are
    captured; those that another library or a compiled kernel makes without ``aten::copy_`` do not.
    """

    def __init__(self) -> None:
        self._before = _read_counts()
        self._after: list[CopyCount] | None = None

    @property
    def counts(self) -> list[CopyCount]:
        """The reasons that occurred, the kernels' own first."""
        after = self._after or _read_counts()
        counts = [
            CopyCount(now.reason, now.taken, now.calls - then.calls, now.bytes - then.bytes)
            for now, then in zip(after, self._before, strict=True)
        ]
        return [count for count in counts if count.calls]

    def __str__(self) -> str:
        counts = self.counts
        width = max([len(count.reason) for count in counts] + [len("reason")])
        lines = [
            f"torch_swizzle: {sum(count.calls for count in counts if count.taken)} of "
            f"{sum(count.calls for count in counts)} copies taken",
            f"{'':<6}{'reason':<{width}}{'calls':>12}{'MB':>14}",
        ]
        lines += [
            f"{'taken' if count.taken else 'left':<6}{count.reason:<{width}}"
            f"{count.calls:>12}{count.bytes / 1e6:>14.2f}"
            for count in counts
        ]
        return "\n".join(lines)

    def _finish(self) -> None:
        """Stop counting and print the table."""
        self._after = _read_counts()
        print(self, file=sys.stderr)


class Acceleration:
    """What `accelerate` returns: a context manager that ends what the call began.

    Attributes:
        report: The counts, if a report was asked for.
    """

    def __init__(self, was_accelerated: bool, report: CopyReport | None, device: torch.device):
        self._was_accelerated = was_accelerated
        self._device = device
        self.report = report

    def __enter__(self) -> Acceleration:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _lock:
            _switch(self._was_accelerated, self._device)
            if self.report is not None:
                _close(self.report)


def accelerate(enabled: bool = True, *, report: bool = False) -> Acceleration:
    """Let torch's own copies go through the kernels of this package where these are faster.

    From the call on, ``x.t().contiguous()``, ``clone``, ``reshape`` after a permute,
    ``to(memory_format=...)``, ``copy_`` and whatever else ends in ``aten::copy_`` between CUDA
    tensors of one device and dtype is transposed or permuted by the kernels; every other copy goes
    where it went. Values, strides, autograd, streams, graph capture, compilation and errors stay as
    they are. ``torch.cat`` and ``torch.stack`` do not come to ``aten::copy_``: they keep kernels of
    their own.

    It is a kernel registered for ``aten::copy_`` under the dispatch key CUDA, so it holds for the
    whole process and for C++ too; ``accelerate(False)`` takes it back without a trace. As with any
    registration, do not switch while other threads copy. The profiler shows ``swizzle::copy_``
    below ``aten::copy_``. The environment variable ``TORCH_SWIZZLE_ACCELERATE``, set to ``1`` or
    to ``report``, makes the call when the package is imported.

    Args:
        enabled: False restores torch's own copies, and ends and prints every report.
        report: Count calls taken and left, by reason, and print a table to stderr at the end: of
            the ``with`` block, at ``accelerate(False)`` or when the program ends.

    Returns:
        A context manager that restores what was in effect before the call.

    Raises:
        RuntimeError: This torch is none that it was tried on, or another library has a kernel for
            ``aten::copy_`` under the key CUDA.

    Example:
        >>> with torch_swizzle.accelerate():
        ...     y = torch.arange(6).view(2, 3).t().contiguous()
        >>> y.tolist()
        [[0, 3], [1, 4], [2, 5]]
    """
    return _accelerate(enabled, report, _DEVICE)


def accelerate_as_asked() -> None:
    """Do what the environment variable says.

    Raises:
        ValueError: It is neither 0, 1 nor report.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in _VALUES:
        raise ValueError(f"torch_swizzle: expected {VARIABLE} to be 0, 1 or report, got {value!r}")
    report = _VALUES[value]
    if report is not None:
        accelerate(report=report)


def _accelerate(enabled: bool, report: bool, device: torch.device) -> Acceleration:
    """The same for a device; tests take the CPU, where the kernels' programs run on the host."""
    with _lock:
        was_accelerated: bool = torch.ops.swizzle._is_accelerated(device)
        _switch(enabled, device)
        if not enabled:
            for opened in list(_open_reports):
                _close(opened)
        return Acceleration(was_accelerated, _open() if enabled and report else None, device)


def _switch(enabled: bool, device: torch.device) -> None:
    torch.ops.swizzle._accelerate(enabled, str(torch.__version__), device)
    # Tracing remembers in Python which kernel a key has, and would call one that is gone.
    key = torch._C.DispatchKey.CUDA if device.type == "cuda" else torch._C.DispatchKey.CPU
    torch.ops.aten.copy_.default._uncache_dispatch(key)


def _open() -> CopyReport:
    torch.ops.swizzle._count_copies(True)
    report = CopyReport()
    _open_reports.append(report)
    return report


def _close(report: CopyReport) -> None:
    if report in _open_reports:
        _open_reports.remove(report)
        report._finish()
        torch.ops.swizzle._count_copies(bool(_open_reports))


@atexit.register
def _close_all() -> None:
    for report in list(_open_reports):
        _close(report)


def _read_counts() -> list[CopyCount]:
    return [CopyCount(*entry) for entry in zip(*torch.ops.swizzle._copy_counts(), strict=True)]
