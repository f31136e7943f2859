"""The report: requests, phases, who meets whom; of any addresses and of the kernels' own tiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from ._shown import Shown

Kind = Literal["access", "load", "store"]
Layout = Literal["naive", "padded", "swizzled"]
Tile = Literal["scalar32", "vector", "vector128", "short_vector"]

LANES = 32
_MOST_MEETINGS = 8  # lines of text; the fields have all of them


@dataclass(frozen=True)
class Meeting:
    """Lanes that want different words of one bank, so that the bank serves them in turns."""

    group: int
    """Which lanes are served together: a number from 0."""
    bank: int
    """0 to 31."""
    lanes: tuple[int, ...]
    """The lanes, ascending."""
    words: tuple[int, ...]
    """The word that each of them wants: its byte address divided by 4."""

    @property
    def ways(self) -> int:
        """Distinct words, each of which takes a wavefront. Lanes with one word share it."""
        return len(set(self.words))


@dataclass(frozen=True)
class Phase:
    """Lanes that are served together: 32 for accesses of up to 4 bytes, 16 for 8, 8 for 16.

    Twice as many where neighbouring lanes load from the same addresses.
    """

    group: int
    """Number of the phase, from 0."""
    lanes: tuple[int, ...]
    """Its active lanes, ascending; there is at least one."""
    words_per_bank: tuple[int, ...]
    """Distinct words that they want from each of the 32 banks."""

    @property
    def wavefronts(self) -> int:
        """Wavefronts that the phase takes: the words of its busiest bank."""
        return max(self.words_per_bank)


@dataclass(frozen=True)
class Request:
    """One access to shared memory by one warp."""

    kind: Kind
    """``"load"`` or ``"store"``; ``"access"`` where that is not known."""
    warp: int
    """Number of the warp in its thread block."""
    width: int
    """Bytes a lane."""
    addresses: tuple[int | None, ...]
    """Byte address of each of the 32 lanes; None for an inactive one."""
    wavefronts: int
    """Wavefronts that the request takes."""
    ideal: int
    """The least that its width and its active lanes allow."""

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """Lanes that are served together, and what they want from each bank."""
        (loads,) = torch.ops.swizzle._bank_loads(*self._operands).tolist()
        lanes: dict[int, list[int]] = {}
        for lane, entries in enumerate(self.words):
            if entries:
                lanes.setdefault(entries[0][0], []).append(lane)
        return tuple(
            Phase(group, tuple(members), tuple(loads[group]))
            for group, members in sorted(lanes.items())
        )

    @cached_property
    def meetings(self) -> tuple[Meeting, ...]:
        """Who meets whom, by group and bank; empty if no bank is asked for more than one word."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for lane, entries in enumerate(self.words):
            for group, word, bank in entries:
                found.setdefault((group, bank), []).append((lane, word))
        meetings = (
            Meeting(group, bank, tuple(lane for lane, _ in pairs), tuple(word for _, word in pairs))
            for (group, bank), pairs in sorted(found.items())
        )
        return tuple(meeting for meeting in meetings if meeting.ways > 1)

    @cached_property
    def words(self) -> tuple[tuple[tuple[int, int, int], ...], ...]:
        """What each lane wants: (group, word, bank) for each word of its access; () if inactive."""
        (lanes,) = torch.ops.swizzle._bank_words(*self._operands).tolist()
        return tuple(
            tuple((group, word, bank) for group, word, bank in entries if bank >= 0)
            for entries in lanes
        )

    @property
    def _operands(self) -> tuple[Tensor, int, Tensor, bool]:
        addresses = torch.tensor([[-1 if a is None else a for a in self.addresses]])
        return addresses, self.width, addresses >= 0, self.kind == "store"

    @property
    def excess(self) -> int:
        """Wavefronts beyond the ideal."""
        return self.wavefronts - self.ideal

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the excess as plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "warp": self.warp,
            "width": self.width,
            "wavefronts": self.wavefronts,
            "ideal": self.ideal,
            "excess": self.excess,
            "addresses": list(self.addresses),
            "phases": [
                {
                    "group": phase.group,
                    "lanes": list(phase.lanes),
                    "wavefronts": phase.wavefronts,
                    "words_per_bank": list(phase.words_per_bank),
                }
                for phase in self.phases
            ],
            "meetings": [
                {
                    "group": meeting.group,
                    "bank": meeting.bank,
                    "lanes": list(meeting.lanes),
                    "words": list(meeting.words),
                }
                for meeting in self.meetings
            ],
        }


@dataclass(frozen=True)
class BankReport(Shown):
    """The requests of a tile or of a set of addresses, in the order in which they are made."""

    requests: tuple[Request, ...]

    @property
    def wavefronts(self) -> int:
        """Wavefronts of all requests."""
        return sum(request.wavefronts for request in self.requests)

    @property
    def ideal(self) -> int:
        """The least that all requests could take."""
        return sum(request.ideal for request in self.requests)

    @property
    def excess(self) -> int:
        """Wavefronts of all requests beyond the ideal."""
        return self.wavefronts - self.ideal

    @property
    def loads(self) -> BankReport:
        """The loads alone."""
        return BankReport(tuple(r for r in self.requests if r.kind == "load"))

    @property
    def stores(self) -> BankReport:
        """The stores alone."""
        return BankReport(tuple(r for r in self.requests if r.kind == "store"))

    @property
    def per_request(self) -> tuple[int, int]:
        """Fewest and most wavefronts of a request; (0, 0) without one."""
        counts = [request.wavefronts for request in self.requests]
        return min(counts, default=0), max(counts, default=0)

    @property
    def worst(self) -> Request:
        """The first of the requests with the most excess.

        Raises:
            ValueError: The report has no request.
        """
        return max(self.requests, key=lambda request: request.excess)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums and the worst request as plain values, ready for JSON."""
        return {
            "requests": len(self.requests),
            "wavefronts": self.wavefronts,
            "ideal": self.ideal,
            "excess": self.excess,
            "per_request": list(self.per_request),
            "worst": self.worst.to_dict() if self.requests else None,
        }

    def __str__(self) -> str:
        """Return a table with a row for each kind of request, and who meets whom in the worst."""
        kinds, parts = self._by_kind()
        lines = ["        requests  wavefronts  ideal  excess  worst of a request"]
        for kind, part in zip(kinds, parts, strict=True):
            lines.append(
                f"{kind:<6}{len(part.requests):>10}{part.wavefronts:>12}{part.ideal:>7}"
                f"{part.excess:>8}  {part.worst.wavefronts}, ideal {part.worst.ideal}"
            )
        lines += [line for part in parts if part.excess for line in _describe(part.worst)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table and a picture of the worst request of each kind, for notebooks."""
        from ._picture import draw_requests  # which draws what this module reports

        _, parts = self._by_kind()
        pictures = draw_requests([part.worst for part in parts]).to_svg() if parts else ""
        return super()._repr_html_() + pictures

    def _by_kind(self) -> tuple[list[Kind], list[BankReport]]:
        """Return the kinds of request that there are, stores first, and a report of each."""
        kinds = sorted({request.kind for request in self.requests}, reverse=True)
        return kinds, [
            BankReport(tuple(r for r in self.requests if r.kind == kind)) for kind in kinds
        ]


def wavefronts(
    addresses: Tensor | Sequence[Any],
    width: int,
    active: Tensor | Sequence[Any] | None = None,
    *,
    kind: Kind = "access",
) -> BankReport:
    """Count the wavefronts of accesses at any addresses.

    Args:
        addresses: Byte address of each thread, in order of the linear thread index (x fastest),
            as integers of any shape: (32,) for a warp, (block_y, block_x) for a thread block,
            (requests, 32) for many requests. Every 32 threads in that order are a warp; lanes that
            the last one lacks are inactive. Addresses are multiples of the width.
        width: Bytes that a lane accesses: 1, 2, 4, 8 or 16.
        active: Whether each thread takes part, in the shape of ``addresses``; default: all do.
        kind: ``"load"`` or ``"store"``; ``"access"`` takes what a load takes. They differ where
            neighbouring lanes have the same address and 8 or 16 bytes each: loads merge, stores
            do not.

    Returns:
        A report with a request for each warp.

    Raises:
        ValueError: The width is none of those, an address is negative or not a multiple of it,
            addresses are not integers, or the shapes differ.

    Example:
        >>> banks.wavefronts(16 * torch.arange(32), width=16).worst.wavefronts
        4
        >>> y, x = torch.meshgrid(torch.arange(16), torch.arange(32), indexing="ij")
        >>> banks.wavefronts(4 * (17 * x + y), width=4).excess  # a column of a tile of pitch 17
        0
    """
    numbers = torch.as_tensor(addresses, device="cpu")
    if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype is torch.bool:
        raise ValueError(
            f"wavefronts: expected addresses to be integers (bytes), got {numbers.dtype}."
        )
    live = (
        torch.ones(numbers.shape, dtype=torch.bool)
        if active is None
        else torch.as_tensor(active, dtype=torch.bool, device="cpu")
    )
    if live.shape != numbers.shape:
        raise ValueError(
            f"wavefronts: expected active to have the shape of addresses, {tuple(numbers.shape)}, "
            f"got {tuple(live.shape)}."
        )
    missing = -numbers.numel() % LANES
    by_warp = torch.nn.functional.pad(numbers.reshape(-1).to(torch.int64), (0, missing))
    live_by_warp = torch.nn.functional.pad(live.reshape(-1), (0, missing))
    warps = range(by_warp.numel() // LANES)
    return BankReport(
        make_requests(
            [(kind, warp) for warp in warps],
            by_warp.view(-1, LANES),
            width,
            live_by_warp.view(-1, LANES),
        )
    )


def tile_report(layout: Layout, tile: Tile = "scalar32", element_bytes: int = 4) -> BankReport:
    """Count the wavefronts of a full tile of this package's transpose kernels.

    The kernel's own code is run on the CPU for every thread, and each of its accesses recorded.

    Args:
        layout: Where the tile's rows lie in shared memory: ``"naive"``, ``"padded"`` or
            ``"swizzled"``.
        tile: ``"scalar32"`` (32 x 32 elements, one a lane), ``"vector"`` or ``"vector128"`` (16
            bytes a lane), or ``"short_vector"`` (two elements a lane, four of a byte).
        element_bytes: Size of an element: 1, 2, 4, 8 or 16 bytes.

    Returns:
        A report of the tile's stores (input rows into shared memory) and loads (its columns).

    Raises:
        ValueError: There is no such layout, tile or element size.

    Example:
        >>> report = banks.tile_report("naive")
        >>> report.stores.worst.wavefronts, report.loads.worst.wavefronts
        (1, 32)
    """
    accesses = torch.ops.swizzle._tile_accesses(layout, tile, element_bytes)
    names: list[tuple[Kind, int]] = [
        ("load" if is_load else "store", warp) for is_load, _, warp in accesses[:, :3].tolist()
    ]
    (width,) = accesses[:, 1].unique().tolist()
    addresses = accesses[:, 3:]
    return BankReport(make_requests(names, addresses, width, addresses >= 0))


def assert_no_bank_conflicts(report: BankReport, *, max_excess: int = 0) -> None:
    """Fail a test whose accesses conflict. Needs no GPU.

    Args:
        report: What `wavefronts` or `tile_report` returned.
        max_excess: Wavefronts beyond the ideal, over all requests, that are still accepted.

    Raises:
        AssertionError: There are more; the message says which lanes meet in the worst request.

    Example:
        >>> def test_my_tile_has_no_conflicts():
        ...     y, x = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
        ...     assert_no_bank_conflicts(banks.wavefronts(4 * (33 * x + y), width=4))
    """
    __tracebackhide__ = True
    if report.excess > max_excess:
        raise AssertionError(
            f"expected at most {max_excess} excess wavefronts, got {report.excess} in "
            f"{len(report.requests)} requests\n" + "\n".join(_describe(report.worst))
        )


def make_requests(
    names: Sequence[tuple[Kind, int]], addresses: Tensor, width: int, active: Tensor
) -> tuple[Request, ...]:
    """Ask the model for each row of (requests, 32) addresses; names are (kind, warp)."""
    counts = {
        is_store: torch.ops.swizzle._bank_wavefronts(addresses, width, active, is_store).tolist()
        for is_store in {kind == "store" for kind, _ in names}
    }
    taken = [counts[kind == "store"][index] for index, (kind, _) in enumerate(names)]
    rows = zip(names, addresses.tolist(), active.tolist(), taken, strict=True)
    return tuple(
        Request(
            kind=kind,
            warp=warp,
            width=width,
            addresses=tuple(a if live else None for a, live in zip(row, lives, strict=True)),
            wavefronts=actual,
            ideal=ideal,
        )
        for (kind, warp), row, lives, (actual, ideal, _) in rows
    )


def headline(request: Request) -> str:
    """Return what a request is and takes, in a line."""
    return (
        f"{request.kind} of warp {request.warp}, {request.width} bytes a lane: "
        f"wavefronts {request.wavefronts}, ideal {request.ideal}, excess {request.excess}"
    )


def _describe(request: Request) -> list[str]:
    """Say who meets whom; banks in which the same lanes meet share a line."""
    banks: dict[tuple[int, tuple[int, ...], int], list[int]] = {}
    for meeting in request.meetings:
        banks.setdefault((meeting.group, meeting.lanes, meeting.ways), []).append(meeting.bank)
    lines = [
        f"  group {group}, bank{'s' if len(numbers) > 1 else ''} {_ranges(numbers)}: "
        f"lanes {_ranges(lanes)} want {ways} words"
        for (group, lanes, ways), numbers in banks.items()
    ]
    more = len(lines) - _MOST_MEETINGS
    if more > 0:
        lines[_MOST_MEETINGS:] = [f"  and {more} more like these"]
    return [headline(request), *lines]


def _ranges(numbers: Iterable[int]) -> str:
    """Shorten ascending numbers: 0-3, 8, 12-15."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
