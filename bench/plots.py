"""Plots of recorded results (matplotlib, SVG): share of a copy per case and side, bandwidth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from bench import sides
from bench.records import (
    COPY,
    GRID_GROUP,
    MANY_GROUPS,
    PEERS,
    SIDES_GROUP,
    Row,
    by_case,
    variants_of,
)

SHARE_PLOT = "share.svg"
BANDWIDTH_PLOT = "bandwidth.svg"
SIDES_PLOT = "sides.svg"

STYLE = {
    "copy": ("0.4", "|"),
    "auto": ("#d62728", "o"),
    "naive": ("#c7c7c7", "s"),
    "padded": ("#ff9896", "d"),
    "swizzled": ("#e377c2", "^"),
    "torch": ("#1f77b4", "x"),
    "compile": ("#2ca02c", "+"),
    "triton": ("#9467bd", "v"),
    "geam": ("#8c564b", "<"),
    "cutensor": ("#bcbd22", ">"),
}
SETTINGS: dict[str, Any] = {"svg.hashsalt": "torch_swizzle", "svg.fonttype": "none", "font.size": 8}


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draws what the rows allow into `folder`; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    with pyplot.rc_context(SETTINGS):
        drawn = [
            _draw_share(rows, folder / SHARE_PLOT),
            _draw_bandwidth(rows, folder / BANDWIDTH_PLOT),
            _draw_sides(rows, folder / SIDES_PLOT),
        ]
    return [path for path in drawn if path is not None]


def _style(variant: str) -> tuple[str, str]:
    return STYLE.get(variant, ("black", "."))


def _draw_share(rows: Sequence[Row], path: Path) -> Path | None:
    """Share of a copy per case: one line per case, one mark per variant, a panel per group."""
    shown_rows = (row for row in rows if row.group not in MANY_GROUPS)
    cases = by_case(row for row in shown_rows if row.share_of_copy is not None)
    groups = list(dict.fromkeys(key[0] for key in cases))
    if not groups:
        return None
    counts = [sum(key[0] == group for key in cases) for group in groups]
    figure, panels = pyplot.subplots(
        len(groups),
        1,
        figsize=(8, 0.9 + 0.17 * sum(counts) + 0.55 * len(groups)),
        squeeze=False,
        sharex=True,
        gridspec_kw={"height_ratios": [count + 1 for count in counts]},
        layout="constrained",
    )
    shown = [variant for variant in variants_of(rows) if variant != COPY]
    for panel, group in zip(panels[:, 0], groups, strict=True):
        lines = [variants for key, variants in cases.items() if key[0] == group]
        for variant in shown:
            points = [
                (variants[variant].share_of_copy, -index)
                for index, variants in enumerate(lines)
                if variant in variants
            ]
            if points:
                color, marker = _style(variant)
                panel.plot(
                    [x for x, _ in points],
                    [y for _, y in points],
                    linestyle="none",
                    color=color,
                    marker=marker,
                    markersize=5 if variant == "auto" or variant in PEERS else 3.5,
                    label=variant,
                )
        panel.axvline(1.0, color="0.4", linewidth=0.8)
        panel.set_yticks(
            [-index for index in range(len(lines))],
            [next(iter(variants.values())).label for variants in lines],
        )
        panel.set_ylim(-len(lines) + 0.3, 0.7)
        panel.set_title(group, loc="left", fontsize=8)
        panel.grid(axis="x", linewidth=0.3)
    panels[0, 0].set_xlim(left=0)
    panels[-1, 0].set_xlabel("share of a copy of the same bytes (1 = copy speed)")
    handles: dict[str, Artist] = {}
    for panel in panels[:, 0]:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper center", ncols=8, frameon=False
    )
    return _save(figure, path)


def _draw_bandwidth(rows: Sequence[Row], path: Path) -> Path | None:
    """Bandwidth against size over the square matrices of the grid, a panel per dtype."""
    squares = [
        row
        for row in rows
        if row.group == GRID_GROUP
        and row.gbps is not None
        and len(row.shape) == 2
        and row.shape[0] == row.shape[1]
    ]
    dtypes = list(dict.fromkeys(row.dtype for row in squares))
    if not dtypes:
        return None
    columns = min(len(dtypes), 3)
    lines = math.ceil(len(dtypes) / columns)
    figure, panels = pyplot.subplots(
        lines,
        columns,
        figsize=(3 * columns, 2.3 * lines + 0.4),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    for panel in panels.flat[len(dtypes) :]:
        panel.set_visible(False)
    for panel, dtype in zip(panels.flat, dtypes, strict=False):
        of_dtype = sorted((row for row in squares if row.dtype == dtype), key=lambda row: row.shape)
        for variant in variants_of(of_dtype):
            points = [row for row in of_dtype if row.variant == variant]
            color, marker = _style(variant)
            panel.plot(
                [row.shape[0] for row in points],
                [row.gbps for row in points],
                color=color,
                marker=marker,
                markersize=4,
                linewidth=1.6 if variant == "auto" else 0.9,
                linestyle="--" if variant == COPY else "-",
                label=variant,
            )
        sides = sorted({row.shape[0] for row in of_dtype})
        panel.set_xscale("log", base=2)
        panel.set_xticks(sides, [str(side) for side in sides])
        panel.set_title(dtype, fontsize=8)
        panel.set_xlabel("side of the square matrix")
        panel.grid(linewidth=0.3)
    for line in panels[:, 0]:
        line.set_ylabel("GB/s, read + written")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=8, frameon=False)
    return _save(figure, path)


def _draw_sides(rows: Sequence[Row], path: Path) -> Path | None:
    """Share of a copy against the short side, a panel per dtype and direction."""
    of_group = [row for row in rows if row.group == SIDES_GROUP and row.share_of_copy is not None]
    shown = {
        variant: sides.lines(of_group, variant)
        for variant in variants_of(of_group)
        if variant != COPY
    }
    keys = list(dict.fromkeys(key for lines in shown.values() for key in lines))
    if not keys:
        return None
    dtypes = list(dict.fromkeys(dtype for dtype, _ in keys))
    directions = (sides.TALL, sides.WIDE)
    figure, panels = pyplot.subplots(
        len(dtypes),
        len(directions),
        figsize=(9, 1.7 * len(dtypes) + 0.6),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for variant, lines in shown.items():
        for (dtype, direction), by_side in lines.items():
            panels[dtypes.index(dtype), directions.index(direction)].plot(
                list(by_side),
                [row.share_of_copy for row in by_side.values()],
                color=_style(variant)[0],
                linewidth=1.2 if variant == "auto" else 0.8,
                label=variant,
            )
    for line, dtype in zip(panels, dtypes, strict=True):
        for panel, direction in zip(line, directions, strict=True):
            panel.axhline(1.0, color="0.4", linewidth=0.8)
            panel.set_title(f"{dtype}, {direction}", loc="left", fontsize=8)
            panel.grid(linewidth=0.3)
        line[0].set_ylabel("share of a copy")
    panels[0, 0].set_ylim(bottom=0)
    panels[0, 0].xaxis.set_major_locator(MultipleLocator(16))
    for panel in panels[-1]:
        panel.set_xlabel("short side")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=8, frameon=False)
    return _save(figure, path)


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
