"""The adviser: which layouts of a tile no other beats, and why no layout does better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ._layout import TileLayout, describe_layout
from ._shown import Shown
from ._tile import Access, addresses_of

_LINE = 128  # bytes
_MOST_PAD_WORDS = 32  # a longer pad has the banks of a shorter one


@dataclass(frozen=True)
class Bound:
    """What no layout of the tile can beat for an access, given what has to stay whole."""

    access: str
    """The access."""
    requests: int
    """Requests in which it goes over the tile."""
    wavefronts: int
    """The least wavefronts of all of them."""
    per_request: int
    """The most that one of them has to take at least."""
    ideal: int
    """The least for their width alone."""
    reason: str
    """Why, in a clause."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Option:
    """A layout that no other beats in wavefronts, bytes, vector width and TMA together."""

    layout: TileLayout
    """The layout; its ``period`` is the base alignment due where its XOR acts on addresses."""
    wavefronts: tuple[int, ...]
    """Wavefronts of each access over the whole tile, in the order that was asked."""

    @property
    def total(self) -> int:
        """Wavefronts of all accesses."""
        return sum(self.wavefronts)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return {
            "layout": self.layout.to_dict(),
            "wavefronts": list(self.wavefronts),
            "total": self.total,
        }


@dataclass(frozen=True)
class Advice(Shown):
    """What there is to choose from for a tile."""

    rows: int
    """Rows of the tile."""
    cols: int
    """Columns of the tile."""
    element_bytes: int
    """Bytes of an element."""
    options: tuple[Option, ...]
    """The Pareto set, fewest wavefronts first."""
    bounds: tuple[Bound, ...]
    """The lower bound of each access."""
    examined: int
    """Layouts that were counted."""

    @property
    def least(self) -> int:
        """The bounds' sum: no layout takes fewer wavefronts over the whole tile."""
        return sum(bound.wavefronts for bound in self.bounds)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return {
            "tile": {"rows": self.rows, "cols": self.cols},
            "element_bytes": self.element_bytes,
            "options": [option.to_dict() for option in self.options],
            "bounds": [bound.to_dict() for bound in self.bounds],
            "least": self.least,
            "examined": self.examined,
        }

    def __str__(self) -> str:
        """Return the bounds and a table of the options."""
        lines = [
            f"tile {self.rows} x {self.cols}, elements of {self.element_bytes} bytes, "
            f"{self.examined} layouts examined"
        ]
        for bound in self.bounds:
            lines += [
                f"{bound.access}: at least {bound.per_request} "
                f"wavefront{'s' if bound.per_request > 1 else ''} a request, {bound.wavefronts} in "
                f"{bound.requests}",
                f"  {bound.reason}",
            ]
        names = [bound.access for bound in self.bounds]
        widths = [max(10, len(name) + 2) for name in names]
        lines += [
            "",
            f"{'layout':<18}{'wavefronts':>10}"
            + "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
            + f"{'bytes':>8}{'vector':>8}{'XOR period':>12}{'TMA':>5}",
        ]
        for option in self.options:
            layout = option.layout
            counts = zip(option.wavefronts, widths, strict=True)
            lines.append(
                f"{layout.notation:<18}{option.total:>10}"
                + "".join(f"{count:>{width}}" for count, width in counts)
                + f"{layout.span_bytes:>8}{layout.vector_bytes:>8}{layout.period:>12}"
                + f"{'yes' if layout.tma_expressible else 'no':>5}"
            )
        best = self.options[0].total
        lines += [
            "",
            f"No layout takes fewer than {self.least}."
            + ("" if best == self.least else f" The best that was found takes {best}."),
        ]
        return "\n".join(lines)


def advise(
    shape: tuple[int, int],
    element_bytes: int = 4,
    accesses: Sequence[str] = ("row", "column"),
    *,
    block: tuple[int, ...] | None = None,
    max_bytes: int | None = None,
) -> Advice:
    """Find the layouts of a tile that no other beats.

    Every pad of up to 128 bytes and every XOR of up to five bits within lines or rows is counted
    by the bank model. A layout is in the answer unless another one is at least as good in
    wavefronts, bytes, widest vector and whether TMA can write it, and better in one of them.

    Args:
        shape: Rows and columns of the tile, in elements.
        element_bytes: Bytes of an element.
        accesses: What the kernel does, each over the whole tile: ``row``, ``column``,
            ``stride-K``, with ``:BYTES`` for vectors. Vectors have to stay whole and aligned.
        block: Threads of the block, x first; see `layout_report`.
        max_bytes: Shared memory that the tile may take.

    Raises:
        ValueError: An access has no meaning for this tile, or no layout fits in ``max_bytes``.

    Example:
        >>> advice = banks.advise((32, 32), 4, ["row:16", "column"])
        >>> advice.options[0].layout.notation, advice.options[0].wavefronts, advice.least
        ('tma:128', (32, 128), 160)
    """
    parsed = [Access.parse(name, element_bytes) for name in accesses]
    if not parsed:
        raise ValueError("expected at least one access, got none.")
    row_major = describe_layout("naive", shape, element_bytes)
    chunk = max(access.width for access in parsed)
    bounds = tuple(_bound(row_major, access, block, parsed) for access in parsed)
    candidates: list[Option] = []
    examined: set[tuple[int, ...]] = set()
    for notation in _candidates(row_major, chunk):
        try:
            layout = describe_layout(notation, shape, element_bytes)
        except ValueError:
            continue  # a notation that has no meaning for this tile
        too_long = max_bytes is not None and layout.span_bytes > max_bytes
        if layout.numbers in examined or layout.chunk_bytes < chunk or too_long:
            continue
        examined.add(layout.numbers)
        counts = (_count(layout, access, block) for access in parsed)
        candidates.append(Option(layout, tuple(counts)))
    if not candidates:
        raise ValueError(
            f"expected max_bytes to hold the tile, {row_major.span_bytes} bytes, got {max_bytes}."
        )
    options = _pareto(candidates)
    return Advice(*shape, element_bytes, options, bounds, len(candidates))


def _candidates(tile: TileLayout, chunk: int) -> Iterator[str]:
    """Name the layouts to look at; where two are the same map, the first name stands."""
    yield "naive"
    yield "padded"
    yield "swizzled"
    for mode in (32, 64, 128):
        yield f"tma:{mode}"
    chunks = [2**power for power in range(8)]
    for form in ("line", "article"):
        for size in chunks:
            yield f"{form}:{size}"
    rows_per_pad = [2**power for power in range(tile.rows.bit_length())]
    for words in range(1, _MOST_PAD_WORDS + 1):
        for rows in rows_per_pad:
            yield f"padded:{4 * words}" + (f"/{rows}" if rows > 1 else "")
    for bits in range(1, 6):
        for base in range(chunk.bit_length() - 1, 8 - bits):
            for shift in range(bits, 12):
                yield f"cute:{bits},{base},{shift}"


def _count(layout: TileLayout, access: Access, block: tuple[int, ...] | None) -> int:
    addresses, active, _ = addresses_of(layout, access, block)
    counts = torch.ops.swizzle._bank_wavefronts(addresses, access.width, active)
    return int(counts[:, 0].sum())


def _bound(
    row_major: TileLayout,
    access: Access,
    block: tuple[int, ...] | None,
    accesses: Sequence[Access],
) -> Bound:
    """Ask the core for the least that chunks of the widest access leave possible."""
    widest = max(accesses, key=lambda other: other.width)
    addresses, active, _ = addresses_of(row_major, access, block)
    least = torch.ops.swizzle._least_wavefronts(addresses, access.width, widest.width, active)
    ideal = int(torch.ops.swizzle._bank_wavefronts(addresses, access.width, active)[:, 1].sum())
    total = int(least.sum())
    reason = (
        f"while {widest.width}-byte chunks stay whole for {widest.name}: the words at one place in "
        f"them share {_LINE // widest.width} banks"
        if total > ideal
        else "that is what its width asks for"
    )
    return Bound(access.name, len(addresses), total, int(least.max()), ideal, reason)


def _pareto(candidates: list[Option]) -> tuple[Option, ...]:
    """Keep what nothing beats; of equals, the first."""

    def merits(option: Option) -> tuple[int, ...]:
        layout = option.layout
        return option.total, layout.span_bytes, -layout.vector_bytes, -int(layout.tma_expressible)

    first: dict[tuple[int, ...], Option] = {}
    for option in candidates:
        first.setdefault(merits(option), option)
    kept = [
        (own, option)
        for own, option in first.items()
        if not any(
            other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in first
        )
    ]
    return tuple(option for _, option in sorted(kept, key=lambda entry: entry[0]))
