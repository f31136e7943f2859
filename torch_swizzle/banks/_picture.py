"""Pictures of requests and tiles: text, SVG and PNG, the same for the same input everywhere."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ._layout import TileLayout
from ._report import BankReport, Request, headline
from ._tile import LayoutReport

_TURNS = "123456789abcdefghijklmnopqrstuvw"
_BANKS = 32
_LINE = 128
_WORD = 4
_MOST_LINES = 64  # of a tile in a picture

# One hue from light to dark: the order shows without colour vision, and every cell has its number.
_LIGHTEST = (222, 235, 247)
_DARKEST = (8, 48, 107)
_INK = "#000000"
_PAPER = "#ffffff"
_RULE = "#9a9a9a"
_MARK = "#d55e00"  # a vermilion that differs from the blues in lightness and to every kind of eye


@dataclass(frozen=True)
class _Box:
    x: float
    y: float
    width: float
    height: float
    fill: str = "none"
    stroke: str = ""
    stroke_width: float = 1


@dataclass(frozen=True)
class _Label:
    x: float
    y: float
    text: str
    size: float = 9.5
    anchor: str = "middle"
    fill: str = _INK


@dataclass
class Drawing:
    """Boxes and labels on white."""

    title: str
    """What it shows, for those who cannot see it."""
    width: int = 0
    """Pixels."""
    height: int = 0
    """Pixels."""
    shapes: list[_Box | _Label] = field(default_factory=list)

    def to_svg(self) -> str:
        """Return an SVG document."""
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" font-size="9.5" '
            'text-anchor="middle" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">',
            f"<title>{html.escape(self.title)}</title>",
            f'<rect width="{self.width}" height="{self.height}" fill="{_PAPER}"/>',
        ]
        for shape in self.shapes:
            attributes = [f'x="{shape.x:g}" y="{shape.y:g}"']
            if isinstance(shape, _Box):
                attributes.append(
                    f'width="{shape.width:g}" height="{shape.height:g}" fill="{shape.fill}"'
                )
                if shape.stroke:
                    attributes.append(
                        f'stroke="{shape.stroke}" stroke-width="{shape.stroke_width:g}"'
                    )
                lines.append(f"<rect {' '.join(attributes)}/>")
            else:
                defaults = (("font-size", 9.5), ("text-anchor", "middle"), ("fill", _INK))
                for (name, usual), value in zip(
                    defaults, (shape.size, shape.anchor, shape.fill), strict=True
                ):
                    if value != usual:
                        attributes.append(f'{name}="{value}"')
                lines.append(f"<text {' '.join(attributes)}>{html.escape(shape.text)}</text>")
        return "\n".join([*lines, "</svg>", ""])

    def to_png(self, scale: int = 2) -> bytes:
        """Return a PNG file. Needs the package ``pillow``.

        Raises:
            ImportError: Pillow is not installed.
        """
        from PIL import Image, ImageDraw, ImageFont

        image = Image.new("RGB", (self.width * scale, self.height * scale), _PAPER)
        pen = ImageDraw.Draw(image)
        anchors = {"middle": "ms", "start": "ls", "end": "rs"}
        for shape in self.shapes:
            if isinstance(shape, _Box):
                corners = (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
                pen.rectangle(
                    [round(scale * corner) for corner in corners],
                    fill=None if shape.fill == "none" else shape.fill,
                    outline=shape.stroke or None,
                    width=max(1, round(scale * shape.stroke_width)),
                )
            else:
                pen.text(
                    (scale * shape.x, scale * shape.y),
                    shape.text,
                    fill=shape.fill,
                    font=ImageFont.load_default(scale * shape.size),
                    anchor=anchors[shape.anchor],
                )
        file = io.BytesIO()
        image.save(file, format="png")
        return file.getvalue()

    def _repr_html_(self) -> str:
        """Return the SVG, for notebooks."""
        return self.to_svg()


def draw_request(request: Request) -> str:
    """Draw the lanes of a request against the banks, as text that fits 80 columns.

    A sign stands where a lane wants a word from a bank: the turn (1 to 9, then a to w) in which
    the bank serves that word. Lanes of a group that share a word share its turn.

    Args:
        request: One of a report's requests, for example the worst.

    Returns:
        Lines for the 32 lanes: group, lane, byte address, banks 0 to 31. No newline at the end.

    Example:
        >>> print(banks.draw_request(banks.wavefronts([0, 128, 4], width=4).worst))
        access of warp 0, 4 bytes a lane: wavefronts 2, ideal 1, excess 1
                        bank 0         1         2         3
        group lane   address 01234567890123456789012345678901
            0    0         0 1...............................
            0    1       128 2...............................
            0    2         4 .1..............................
            -    3         - ................................
        ...
    """
    lines = [
        headline(request),
        "                bank 0         1         2         3",
        "group lane   address 01234567890123456789012345678901",
    ]
    for lane, entries in enumerate(_turns(request)):
        row = ["."] * _BANKS
        for _, bank, turn in entries:
            row[bank] = _TURNS[turn]
        group = str(entries[0][0]) if entries else "-"
        address = "-" if request.addresses[lane] is None else str(request.addresses[lane])
        lines.append(f"{group:>5}{lane:>5}{address:>10} {''.join(row)}")
    return "\n".join(lines)


def draw_requests(requests: Sequence[Request]) -> Drawing:
    """Draw requests as lane x bank x phase, one above the other.

    A cell stands where a lane wants a word from a bank. It carries the turn in which the bank
    serves that word, darker the later; a rule parts the phases.

    Args:
        requests: Requests of a report, for example the worst of its loads.

    Returns:
        A drawing: ``to_svg()``, ``to_png()``, and itself in a notebook.

    Example:
        >>> banks.draw_requests([banks.wavefronts([0, 128, 4], width=4).worst]).title
        'access of warp 0, 4 bytes a lane: wavefronts 2, ideal 1, excess 1'
    """
    drawing = Drawing("; ".join(map(headline, requests)), width=_PICTURE_WIDTH)
    for request in requests:
        _add_request(drawing, request)
    return drawing


def draw_tile(layout: TileLayout, request: Request) -> Drawing:
    """Draw a tile as it is stored: a row for each 128-byte line, a column for each bank.

    Every word carries row,column of its first element and is the darker the higher the column;
    the words that the request wants are framed. Lines beyond the 64th are left out.

    Args:
        layout: The layout of the tile.
        request: A request over the tile, for example the worst of its loads.

    Example:
        >>> report = banks.layout_report("swizzled", (32, 32))
        >>> banks.draw_tile(report.layout, report.loads.worst).title
        'tile 32 x 32 as stored by layout swizzled; framed: load of warp 0'
    """
    drawing = Drawing(_tile_title(layout, request), width=_PICTURE_WIDTH)
    _add_tile(drawing, layout, request)
    return drawing


def draw_report(report: BankReport, parts: Sequence[str] = ("store", "load", "tile")) -> Drawing:
    """Draw the worst store, the worst load, and the tile with what that load wants.

    Args:
        report: A report. One of a tile by layout also has the tile as stored.
        parts: What to draw, in this order.
    """
    drawing = Drawing("", width=_PICTURE_WIDTH)
    titles = []
    for part, requests in (("store", report.stores), ("load", report.loads)):
        if part in parts and requests.requests:
            _add_request(drawing, requests.worst)
            titles.append(headline(requests.worst))
    if "tile" in parts and isinstance(report, LayoutReport):
        _add_tile(drawing, report.layout, report.loads.worst)
        titles.append(_tile_title(report.layout, report.loads.worst))
    drawing.title = "; ".join(titles)
    return drawing


def draw_report_text(
    report: BankReport, parts: Sequence[str] = ("store", "load", "tile")
) -> list[str]:
    """Return what `draw_report` draws as texts that fit 100 columns."""
    texts = [
        draw_request(requests.worst)
        for part, requests in (("store", report.stores), ("load", report.loads))
        if part in parts and requests.requests
    ]
    if "tile" in parts and isinstance(report, LayoutReport):
        texts.append(draw_tile_text(report.layout, report.loads.worst))
    return texts


def draw_tile_text(layout: TileLayout, request: Request) -> str:
    """Draw a tile as it is stored, as text that fits 100 columns.

    A line of text is a line of 128 bytes; each word has the number that it has in its row of the
    tile (the column, for elements of 4 bytes; the last two digits), after ``>`` where the request
    wants it. Unused words are dots.
    """
    header = "".join(f"{bank:>3}" for bank in range(_BANKS))
    lines = [
        f"tile as stored, layout {layout.notation}: a line of 128 bytes a row; each word by its "
        "number in",
        f"the tile's row, > where the {request.kind} wants it",
        f"bank{header}",
    ]
    wanted = _words(request)
    for line, words in _stored_lines(layout).items():
        cells = [
            f"{'>' if line * _BANKS + bank in wanted else ' '}{_word_number(layout, word):02}"
            if word is not None
            else "  ."
            for bank, word in enumerate(words)
        ]
        lines.append(f"{line:>4}{''.join(cells)}")
    return "\n".join([*lines, *_left_out(layout)])


_LABEL_WIDTH = 106
_CELL_WIDTH = 25
_PICTURE_WIDTH = _LABEL_WIDTH + _BANKS * _CELL_WIDTH + 12
_LANE_HEIGHT = 14
_LINE_HEIGHT = 17


def _tile_title(layout: TileLayout, request: Request) -> str:
    return (
        f"tile {layout.rows} x {layout.cols} as stored by layout {layout.notation}; framed: "
        f"{request.kind} of warp {request.warp}"
    )


def _turns(request: Request) -> list[list[tuple[int, int, int]]]:
    """For each lane, (group, bank, turn) of the words that it wants; turns count from 0."""
    served: dict[tuple[int, int], list[int]] = {}
    result = []
    for entries in request.words:
        row = []
        for group, word, bank in entries:
            words = served.setdefault((group, bank), [])
            if word not in words:
                words.append(word)
            row.append((group, bank, words.index(word)))
        result.append(row)
    return result


def _shade(place: int, places: int) -> tuple[str, str]:
    """Return fill and ink of a place on the scale from light to dark."""
    share = place / (places - 1) if places > 1 else 0.0
    mixed = [
        round(light + share * (dark - light))
        for light, dark in zip(_LIGHTEST, _DARKEST, strict=True)
    ]
    return f"#{mixed[0]:02x}{mixed[1]:02x}{mixed[2]:02x}", _PAPER if share > 0.615 else _INK


def _add_cell(
    drawing: Drawing, bank: int, y: float, height: float, text: str, shade: tuple[str, str]
) -> None:
    """Add a word of a bank, a hair smaller than its place so that neighbours stay apart."""
    fill, ink = shade
    x = _LABEL_WIDTH + bank * _CELL_WIDTH
    size = round(min(9, 36 / len(text)), 1)
    drawing.shapes.append(_Box(x + 0.5, y + 0.5, _CELL_WIDTH - 1, height - 1, fill))
    drawing.shapes.append(_Label(x + _CELL_WIDTH / 2, y + height - 4, text, size, fill=ink))


def _add_heading(drawing: Drawing, text: str, labels: dict[int, str]) -> float:
    """Add a headline and the columns' names, and return where the first row starts."""
    top = drawing.height + 22
    drawing.shapes.append(_Label(8, top, text, 13, "start"))
    for x, label in labels.items():
        drawing.shapes.append(_Label(x, top + 20, label, anchor="end"))
    for bank in range(_BANKS):
        drawing.shapes.append(
            _Label(_LABEL_WIDTH + (bank + 0.5) * _CELL_WIDTH, top + 20, str(bank))
        )
    return top + 26


def _add_frame(drawing: Drawing, y: float, height: float) -> None:
    """Add the outline of the banks, with a rule after every fourth."""
    for bank in range(0, _BANKS, 4):
        x = _LABEL_WIDTH + bank * _CELL_WIDTH
        drawing.shapes.append(_Box(x, y, 4 * _CELL_WIDTH, height, stroke=_RULE, stroke_width=0.5))


def _add_request(drawing: Drawing, request: Request) -> None:
    turns = _turns(request)
    latest = max((turn for entries in turns for _, _, turn in entries), default=0)
    columns = {36: "phase", 66: "lane", _LABEL_WIDTH - 6: "bank"}
    top = y = _add_heading(drawing, headline(request), columns)
    rules = []
    group_above = None
    for lane, entries in enumerate(turns):
        group = entries[0][0] if entries else group_above
        if group_above is not None and group != group_above:
            rules.append(_Box(8, y, drawing.width - 20, 0, stroke=_INK, stroke_width=1.5))
        group_above = group
        phase = str(group) if entries else "idle"
        drawing.shapes.append(_Label(36, y + 10.5, phase, anchor="end"))
        drawing.shapes.append(_Label(66, y + 10.5, str(lane), anchor="end"))
        for _, bank, turn in entries:
            _add_cell(drawing, bank, y, _LANE_HEIGHT, str(turn + 1), _shade(turn, latest + 1))
        y += _LANE_HEIGHT
    _add_frame(drawing, top, y - top)
    drawing.shapes += rules
    drawing.height = int(y + 14)


def _add_tile(drawing: Drawing, layout: TileLayout, request: Request) -> None:
    heading = (
        f"tile {layout.rows} x {layout.cols} as stored, layout {layout.notation}: row,column of "
        f"each word; framed: what the {request.kind} wants"
    )
    top = y = _add_heading(drawing, heading, {36: "line", _LABEL_WIDTH - 6: "bank"})
    wanted = _words(request)
    frames = []
    words_of_row = -(-layout.cols * layout.element_bytes // _WORD)
    for line, words in _stored_lines(layout).items():
        drawing.shapes.append(_Label(36, y + 12, str(line), anchor="end"))
        for bank, word in enumerate(words):
            if word is None:
                continue
            row, byte = word
            shade = _shade(byte // _WORD, 3 * words_of_row)  # the lightest third, under dark ink
            text = f"{row},{byte // layout.element_bytes}"
            _add_cell(drawing, bank, y, _LINE_HEIGHT, text, shade)
            if line * _BANKS + bank in wanted:
                x = _LABEL_WIDTH + bank * _CELL_WIDTH
                frames.append(_Box(x + 1, y + 1, _CELL_WIDTH - 2, _LINE_HEIGHT - 2,
                                   stroke=_MARK, stroke_width=2))  # fmt: skip
        y += _LINE_HEIGHT
    _add_frame(drawing, top, y - top)
    drawing.shapes += frames
    for text in _left_out(layout):
        drawing.shapes.append(_Label(8, y + 14, text, anchor="start"))
        y += 16
    drawing.height = int(y + 14)


def _stored_lines(layout: TileLayout) -> dict[int, list[tuple[int, int] | None]]:
    """Return line -> its 32 words, each as (row, byte in the row) of the first byte it holds."""
    lines: dict[int, list[tuple[int, int] | None]] = {}
    for row, offsets in enumerate(layout.offsets.tolist()):
        for col, offset in enumerate(offsets):
            for part in range(0, layout.element_bytes, _WORD):
                line, place = divmod(offset + part, _LINE)
                if line >= _MOST_LINES:
                    continue
                words = lines.setdefault(line, [None] * _BANKS)
                if words[place // _WORD] is None:
                    words[place // _WORD] = row, col * layout.element_bytes + part
    return dict(sorted(lines.items()))


def _left_out(layout: TileLayout) -> Iterable[str]:
    lines = -(-layout.span_bytes // _LINE)
    return [f"{lines - _MOST_LINES} more lines"] if lines > _MOST_LINES else []


def _word_number(layout: TileLayout, word: tuple[int, int]) -> int:
    return word[1] // _WORD % 100


def _words(request: Request) -> set[int]:
    """The words that a request wants."""
    return {word for entries in request.words for _, word, _ in entries}
