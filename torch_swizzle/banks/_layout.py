"""Layouts of any tile, by notation, and the translator between notations.

Every number comes from the C++ core (csrc/core/layout_notation.hpp); nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ._shown import Shown

_CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128)
_MODES = (32, 64, 128)


@dataclass(frozen=True)
class TileLayout(Shown):
    """Where the elements of a tile lie in shared memory, as the numbers behind every notation.

    The row-major tile, then a pad of unused bytes after some rows, then an XOR of offset bits:
    ``bits`` bits from bit ``base + shift`` up into the bits from ``base`` up.
    """

    notation: str
    """How the layout was spelled."""
    rows: int
    """Rows of the tile."""
    cols: int
    """Elements of a row."""
    element_bytes: int
    """Bytes of an element."""
    pad_bytes: int
    """Unused bytes after every ``rows_per_pad`` rows."""
    rows_per_pad: int
    """Rows between two pads."""
    bits: int
    """Bits that the XOR changes; 0 for no XOR."""
    base: int
    """The lowest of them: a chunk of 2 to the power ``base`` bytes stays whole."""
    shift: int
    """How far above them their sources lie."""
    period: int
    """Bytes after which the XOR starts anew: where it acts on addresses, as TMA's does and CuTe's
    on shared-memory pointers, the tile starts at a multiple of this. 1 without an XOR."""
    span_bytes: int
    """Bytes of shared memory, pads included."""
    chunk_bytes: int
    """The longest chunk that stays whole and aligned in every row."""
    tma_expressible: bool
    """Whether TMA can write the tile so, as one box: without an XOR or with one of its modes."""

    @property
    def offsets(self) -> Tensor:
        """Byte offset of each element from the tile's start, int64 of shape (rows, cols)."""
        offsets: Tensor = torch.ops.swizzle._layout_offsets(
            self.notation, self.rows, self.cols, self.element_bytes
        )
        return offsets

    @property
    def vector_bytes(self) -> int:
        """The widest access of a lane, at most 16 bytes, that is legal in every row."""
        return min(self.chunk_bytes, 16)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The map itself: pad, rows between pads, bits, base and shift; equal numbers, one map."""
        pad = (self.pad_bytes, self.rows_per_pad) if self.pad_bytes else (0, 1)
        return (*pad, *((self.bits, self.base, self.shift) if self.bits else (0, 0, 0)))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return dict(self.__dict__)

    def __str__(self) -> str:
        """Return the layout and what it costs, in a line."""
        return (
            f"layout {self.notation}: {self.span_bytes} bytes, vectors of up to "
            f"{self.vector_bytes} bytes, TMA {'can' if self.tma_expressible else 'cannot'} write it"
        )


@dataclass(frozen=True)
class Comparison(Shown):
    """Whether two layouts of a tile are the same map, and why or why not."""

    notation: str
    """The other layout, or the family of layouts that was searched."""
    is_equal: bool
    """Whether every element of the tile lies at the same offset."""
    reason: str
    """One clause."""
    base_alignment: int
    """Bytes that the tile's address must be a multiple of, so that the two are equal: the period of
    the XOR where one of them acts on addresses (TMA, CuTe on pointers), else 1. Vectors ask for
    their own alignment."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return dict(self.__dict__)

    def __str__(self) -> str:
        """Return a line of the translator's table."""
        due = f", base a multiple of {self.base_alignment} bytes" if self.base_alignment > 1 else ""
        return f"{'=' if self.is_equal else '≠'} {self.notation:<20} {self.reason}{due}"


@dataclass(frozen=True)
class Translation(Shown):
    """A layout in the other notations."""

    layout: TileLayout
    """The layout that was asked for."""
    spellings: tuple[Comparison, ...]
    """Its other spellings, or why it has none."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return {
            "layout": self.layout.to_dict(),
            "spellings": [spelling.to_dict() for spelling in self.spellings],
        }

    def __str__(self) -> str:
        """Return a line for the layout and one for each spelling."""
        return "\n".join([str(self.layout), *(f"  {spelling}" for spelling in self.spellings)])


def describe_layout(layout: str, shape: tuple[int, int], element_bytes: int = 4) -> TileLayout:
    """Say what a layout's notation means for a tile.

    Args:
        layout: ``naive``; ``padded`` (by one word or element, whichever is wider) or
            ``padded:BYTES[/ROWS]``, a pad after every ROWS rows; ``swizzled``, the XOR that suits
            scalar rows and columns; ``line:CHUNK`` and ``article:CHUNK[,COLUMNS]``, the line form
            and the article's form (TC, NX) with chunks of that many bytes; ``cute:B,M,S`` over
            bytes or ``cute-elements:B,M,S``; ``tma:32``, ``tma:64`` or ``tma:128``.
        shape: Rows and columns of the tile, in elements.
        element_bytes: Bytes of an element.

    Raises:
        ValueError: The notation has no meaning for this tile; the message says why.

    Example:
        >>> tile = banks.describe_layout("tma:64", (32, 16), element_bytes=4)
        >>> (tile.bits, tile.base, tile.shift), tile.period, tile.chunk_bytes
        ((2, 4, 3), 512, 16)
    """
    pad, rows_per_pad, bits, base, shift, period, span, chunk, is_tma = (
        torch.ops.swizzle._layout_numbers(layout, *shape, element_bytes)
    )
    return TileLayout(
        layout, *shape, element_bytes, pad, rows_per_pad, bits, base, shift, period, span, chunk,
        bool(is_tma),
    )  # fmt: skip


def compare(layout: str, other: str, shape: tuple[int, int], element_bytes: int = 4) -> Comparison:
    """Say whether two notations mean the same layout of a tile, and why or why not.

    Raises:
        ValueError: One of the notations has no meaning for this tile.

    Example:
        >>> banks.compare("article:16", "tma:64", (32, 16)).reason
        'its source bit is 6, not 7 as in tma:64'
    """
    return _compare(
        describe_layout(layout, shape, element_bytes), describe_layout(other, shape, element_bytes)
    )


def translate(layout: str, shape: tuple[int, int], element_bytes: int = 4) -> Translation:
    """Spell a layout in every other notation, or say why it cannot be.

    Args:
        layout: A notation that `describe_layout` takes.
        shape: Rows and columns of the tile, in elements.
        element_bytes: Bytes of an element.

    Raises:
        ValueError: The notation has no meaning for this tile.

    Example:
        >>> spellings = banks.translate("article:16", (32, 32)).spellings
        >>> [spelling.notation for spelling in spellings if spelling.is_equal]
        ['cute:3,4,3', 'cute-elements:3,2,3', 'line:16', 'tma:128']
    """
    given = describe_layout(layout, shape, element_bytes)
    spellings = (_spell(given, notations) for notations in _families(given))
    return Translation(given, tuple(s for s in spellings if s.notation != given.notation))


def _families(given: TileLayout) -> Iterator[list[str]]:
    """List, for each notation, the spellings that might be this layout."""
    bits, base, shift = given.numbers[2:]
    pad = f"padded:{given.pad_bytes}"
    yield ["naive"]
    yield [pad if given.rows_per_pad == 1 else f"{pad}/{given.rows_per_pad}", "padded"]
    yield [f"cute:{bits},{base},{shift}"]
    yield [f"cute-elements:{bits},{base_element},{shift}" for base_element in range(base, -1, -1)]
    yield [f"article:{chunk}" for chunk in _CHUNKS]
    yield [f"line:{chunk}" for chunk in _CHUNKS]
    yield [f"tma:{mode}" for mode in _MODES]


def _spell(given: TileLayout, notations: list[str]) -> Comparison:
    """Return the spelling that is the layout, else the nearest one with what tells them apart."""
    found = []
    refusal = ""
    for notation in notations:
        try:
            other = describe_layout(notation, (given.rows, given.cols), given.element_bytes)
        except ValueError as error:
            refusal = str(error).split(": ", 1)[1].rsplit(", got ", 1)[0]
        else:
            differences = [a != b for a, b in zip(given.numbers, other.numbers, strict=True)]
            found.append((differences, _compare(given, other)))
    if not found:
        return Comparison(notations[-1].split(":")[0], False, refusal, 1)
    # A pad, a chunk or a number of bits that differs says more than a source that does.
    return min(
        found, key=lambda entry: (not entry[1].is_equal, entry[0][0], entry[0][3], entry[0])
    )[1]


def _compare(given: TileLayout, other: TileLayout) -> Comparison:
    acts_on_addresses = any(
        layout.notation.startswith(("tma", "cute")) for layout in (given, other)
    )
    due = other.period if acts_on_addresses else 1
    if given.numbers == other.numbers:
        return Comparison(other.notation, True, "the same map", due)
    difference = _difference(given, other)
    if torch.equal(given.offsets, other.offsets):
        reason = f"the same for {given.rows} rows, not for more: {difference}"
        return Comparison(other.notation, True, reason, due)
    return Comparison(other.notation, False, difference, 1)


def _difference(given: TileLayout, other: TileLayout) -> str:
    """Say what tells two different maps apart."""
    name = other.notation
    if given.numbers[:2] != other.numbers[:2]:
        return (
            f"{_pad_of(given)}, {_pad_of(other, name)}"
            if given.pad_bytes and other.pad_bytes
            else f"it {'has a pad' if given.pad_bytes else 'has no pad'}, and {name} "
            f"{'has one' if other.pad_bytes else 'has none'}"
        )
    if not (given.bits and other.bits):
        return f"it {'XORs' if given.bits else 'has no XOR'}, and {name} " + (
            "XORs" if other.bits else "does not"
        )
    facts = (
        (1 << given.base, 1 << other.base, "its chunks have {} bytes, not {} as in {}"),
        (given.bits, other.bits, "it XORs {} bits, not {} as in {}"),
        (
            given.base + given.shift,
            other.base + other.shift,
            "its source bit is {}, not {} as in {}",
        ),
    )
    return "; ".join(text.format(a, b, name) for a, b, text in facts if a != b)


def _pad_of(layout: TileLayout, name: str = "it") -> str:
    rows = "every row" if layout.rows_per_pad == 1 else f"every {layout.rows_per_pad} rows"
    return f"{name} pads {layout.pad_bytes} bytes after {rows}"
