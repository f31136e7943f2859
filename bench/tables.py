"""Tables on the terminal (rich): shares of a copy per case, and the bank model."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from bench.model import TileModel
from bench.records import (
    COPY,
    FAILED,
    NOT_APPLICABLE,
    PEERS,
    Row,
    best_peer,
    by_case,
    variants_of,
)

PIPE_WIDTH = 150  # columns when the output is not a terminal


def make_console() -> Console:
    """A console whose tables keep their columns when the output goes to a file."""
    return Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)


def share_text(row: Row | None) -> str:
    """Share of a copy with two decimals, or why there is none."""
    if row is None or row.status == NOT_APPLICABLE:
        return "-"
    if row.status == FAILED:
        return "FAILED"
    return "-" if row.share_of_copy is None else f"{row.share_of_copy:.2f}"


def share_table(rows: Iterable[Row], title: str) -> Table:
    """One line per case: GB/s of the copy, share of the copy per variant, best peer in bold."""
    rows = list(rows)
    variants = [variant for variant in variants_of(rows) if variant != COPY]
    has_peers = any(variant in PEERS for variant in variants)
    table = Table(title=title, caption="share of copy; * = best peer of the case")
    table.add_column("case", no_wrap=True)
    table.add_column("copy GB/s", justify="right")
    for variant in variants:
        table.add_column(variant, justify="right")
    if has_peers:
        table.add_column("auto / best peer", justify="right")
    for measured in by_case(rows).values():
        first = next(iter(measured.values()))
        peer = best_peer(measured)
        cells = [first.label, _gbps_text(measured.get(COPY))]
        for variant in variants:
            text = share_text(measured.get(variant))
            is_best = peer is not None and peer.variant == variant
            failed = text == "FAILED"
            cells.append(f"[bold]{text}*[/]" if is_best else f"[red]{text}[/]" if failed else text)
        if has_peers:
            cells.append(_ratio_text(measured.get("auto"), peer))
        table.add_row(*cells)
    return table


def _gbps_text(row: Row | None) -> str:
    return "-" if row is None or row.gbps is None else f"{row.gbps:.0f}"


def _ratio_text(row: Row | None, peer: Row | None) -> str:
    if row is None or peer is None or row.ms is None or peer.ms is None:
        return "-"
    return f"{peer.ms / row.ms:.2f}"


def model_table(models: dict[tuple[int, str], TileModel], tile: str) -> Table:
    """Predicted wavefronts per warp access, by element size and layout."""
    table = Table(
        title=f"bank model, tile {tile}: wavefronts per warp access to shared memory",
        caption="worst access of a full tile; in brackets the least possible",
    )
    table.add_column("element bytes", justify="right")
    methods = list(dict.fromkeys(method for _, method in models))
    for method in methods:
        table.add_column(f"{method}: write row", justify="right")
        table.add_column("read column", justify="right")
    for size in dict.fromkeys(size for size, _ in models):
        cells = [str(size)]
        for method in methods:
            model = models[size, method]
            for access in (model.store, model.load):
                text = f"{access.worst} ({access.worst_ideal})"
                cells.append(f"[bold]{text}[/]" if access.excess else text)
        table.add_row(*cells)
    return table
