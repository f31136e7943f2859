"""Tiles by notation: published counts, thread blocks, the translator, the adviser, pictures."""

from __future__ import annotations

import html
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from torch_swizzle import banks
from torch_swizzle.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
SIZES = (1, 2, 4, 8, 16)

# Scalar accesses: element bytes and tile; then row write / column read as they are, with a pad of
# an element and of a word; then the column read of the article's form and of the line form with
# chunks of 4, 8 and 16 bytes. A range: it depends on the column; -: a chunk below an element.
SCALAR_TABLE = """
1   32x32   1/8  1/1-2 1/1 | 4 8 8 | 1 2 4
1   32x16   1/4  1/2-3 1/1 | 4 4 4 | 1 2 4
1   64x32   1/8  1/1-2 1/1 | 4 8 8 | 1 2 4
1   64x64   1/16 1/2   1/1 | 2 4 8 | 1 2 4
1   128x128 1/32 1/4   1/1 | 1 2 4 | 1 2 4
2   32x32   1/16 1/1-2 1/1 | 2 4 8 | 1 2 4
2   32x16   1/8  1/2   1/1 | 4 8 8 | 1 2 4
2   64x32   1/16 1/1-2 1/1 | 2 4 8 | 1 2 4
2   64x64   1/32 1/2   1/1 | 1 2 4 | 1 2 4
2   128x128 1/32 1/2   1/1 | 1 2 4 | 1 2 4
4   32x32   1/32 1/1   1/1 | 1 2 4 | 1 2 4
4   32x16   1/16 2/1   2/1 | 2 4 8 | 1 2 4
4   64x32   1/32 1/1   1/1 | 1 2 4 | 1 2 4
4   64x64   1/32 1/1   1/1 | 1 2 4 | 1 2 4
4   128x128 1/32 1/1   1/1 | 1 2 4 | 1 2 4
4   16x32   1/16 1/2   1/2 | 2 1 2 | 2 1 2
8   32x32   2/32 2/2   2/2 | - 2 4 | - 2 4
8   32x16   2/32 2/2   2/2 | - 2 4 | - 2 4
8   64x32   2/32 2/2   2/2 | - 2 4 | - 2 4
8   64x64   2/32 2/2   2/2 | - 2 4 | - 2 4
8   128x128 2/32 2/2   2/2 | - 2 4 | - 2 4
16  32x32   4/32 4/4   4/4 | - - 4 | - - 4
16  32x16   4/32 4/4   4/4 | - - 4 | - - 4
16  64x32   4/32 4/4   4/4 | - - 4 | - - 4
16  64x64   4/32 4/4   4/4 | - - 4 | - - 4
16  128x128 4/32 4/4   4/4 | - - 4 | - - 4
"""

# Vector accesses over 32 rows: bytes a lane and a row; the row as it is and padded by a vector; the
# column as it is, padded, in the article's form and in the line form.
VECTOR_TABLE = """
8  16  2 4 4  2 4 2
8  32  2 4 8  2 8 2
8  64  2 4 16 2 4 2
8  128 2 2 32 2 2 2
8  256 2 2 32 2 2 2
8  512 2 2 32 2 2 2
16 32  4 8 8  4 8 4
16 64  4 8 16 4 8 4
16 128 4 4 32 4 4 4
16 256 4 4 32 4 4 4
16 512 4 4 32 4 4 4
"""


def rows_of(table: str) -> list[list[str]]:
    return [line.replace("|", " ").split() for line in table.strip().splitlines()]


def shape_of(tile: str) -> tuple[int, int]:
    rows, cols = map(int, tile.split("x"))
    return rows, cols


def name_of(counts: tuple[int, int]) -> str:
    fewest, most = counts
    return str(most) if fewest == most else f"{fewest}-{most}"


@pytest.mark.parametrize("row", rows_of(SCALAR_TABLE), ids=lambda row: f"{row[0]}-{row[1]}")
def test_scalar_accesses_take_the_published_wavefronts(row: list[str]) -> None:
    size, shape = int(row[0]), shape_of(row[1])
    ideal = {1: "1", 2: "1", 4: "1", 8: "2", 16: "4"}[size]
    for layout, cell in zip(
        ("naive", f"padded:{size}", f"padded:{max(4, size)}"), row[2:5], strict=True
    ):
        report = banks.layout_report(layout, shape, size)
        counts = f"{name_of(report.stores.per_request)}/{name_of(report.loads.per_request)}"
        assert counts == cell, layout
    forms = [f"{form}:{chunk}" for form in ("article", "line") for chunk in (4, 8, 16)]
    for layout, cell in zip(forms, row[5:], strict=True):
        if cell == "-":
            with pytest.raises(ValueError, match="the chunk at least an element"):
                banks.layout_report(layout, shape, size)
            continue
        report = banks.layout_report(layout, shape, size)
        assert name_of(report.stores.per_request) == ideal, layout
        assert name_of(report.loads.per_request) == cell, layout


@pytest.mark.parametrize("row", rows_of(VECTOR_TABLE), ids=lambda row: f"{row[0]}-{row[1]}")
def test_vector_accesses_take_the_published_wavefronts(row: list[str]) -> None:
    width, row_bytes, *cells = map(int, row)
    layouts = ("naive", f"padded:{width}", f"article:{width}", f"line:{width}")
    reports = [
        banks.layout_report(
            layout, (32, row_bytes // 4), 4, store=f"row:{width}", load=f"column:{width}"
        )
        for layout in layouts
    ]
    rows = [report.stores.per_request for report in reports]
    columns = [report.loads.per_request for report in reports]
    assert rows == [(count, count) for count in (cells[0], cells[1], cells[0], cells[0])]
    assert columns == [(count, count) for count in cells[2:]]


def test_the_line_form_of_16_byte_chunks_is_tmas_mode_of_the_row() -> None:
    for mode in (32, 64, 128):
        assert banks.compare("line:16", f"tma:{mode}", (32, mode // 4)).is_equal


@pytest.mark.parametrize("bits", range(6))
def test_each_bit_of_the_xor_halves_a_column_read_of_floats(bits: int) -> None:
    report = banks.layout_report(f"cute-elements:{bits},0,5", (32, 32), 4)
    assert report.loads.per_request == (2 ** (5 - bits),) * 2
    assert report.stores.excess == 0


def test_the_row_modulo_8_leaves_a_32_wide_float_tile_4_wavefronts() -> None:
    row, col = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    stored = 4 * (32 * row + (col ^ (row & 7)))
    assert torch.equal(banks.describe_layout("cute:3,2,5", (32, 32), 4).offsets, stored)
    assert banks.layout_report("cute:3,2,5", (32, 32), 4).loads.per_request == (4, 4)


@pytest.mark.parametrize(
    ("layout", "store", "load", "expected"),
    [
        ("naive", "row:16", "column:16", ((4, 0), (32, 28))),
        ("naive", "stride-0", "stride-2", ((1, 0), (2, 1))),
        ("naive", "stride-0:16", "stride-1:8", ((2, 0), (2, 0))),
        ("naive", "stride-32", "stride-33", ((32, 31), (1, 0))),
    ],
)
def test_wavefronts_and_excess_are_told_apart(
    layout: str, store: str, load: str, expected: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    report = banks.layout_report(layout, (32, 32), 4, store=store, load=load)
    worst = [(part.worst.wavefronts, part.worst.excess) for part in (report.stores, report.loads)]
    assert tuple(worst) == expected


def test_a_stride_takes_every_kth_element_in_order() -> None:
    report = banks.layout_report("naive", (1, 512), 4, store="stride-2", load="stride-3:4")
    assert [len(part.requests) for part in (report.stores, report.loads)] == [8, 6]
    assert report.stores.requests[1].addresses == tuple(8 * i for i in range(32, 64))
    assert report.loads.requests[5].addresses[:11] == tuple(12 * i for i in range(160, 171))
    assert report.loads.requests[5].addresses[11:] == (None,) * 21


@pytest.mark.parametrize(
    ("block", "stores", "loads"), [(None, 2, 1), ((16, 2), 2, 2), ((8, 2, 2), 2, 2), ((4, 8), 2, 2)]
)
def test_the_shape_of_a_block_decides_which_threads_are_a_warp(
    block: tuple[int, ...] | None, stores: int, loads: int
) -> None:
    report = banks.layout_report("padded", (32, 16), 4, block=block)
    assert report.stores.per_request[1] == stores
    assert report.loads.per_request[1] == loads


def test_a_block_steps_over_the_tile_in_the_order_of_its_linear_index() -> None:
    report = banks.layout_report("naive", (8, 32), 4, block=(8, 8))
    first = report.stores.requests[0]
    assert first.addresses == tuple(128 * (i // 8) + 4 * (i % 8) for i in range(32))
    assert [request.warp for request in report.stores.requests] == [0, 1] * 4
    assert report.loads.requests[0].addresses == tuple(
        128 * (i % 8) + 4 * (i // 8) for i in range(32)
    )
    assert sorted(a for r in report.loads.requests for a in r.addresses if a is not None) == sorted(
        a for r in report.stores.requests for a in r.addresses if a is not None
    )


def test_a_block_that_is_no_multiple_of_a_warp_leaves_lanes_idle() -> None:
    report = banks.layout_report("naive", (8, 24), 4, store="row", load="row", block=(24, 2))
    assert len(report.stores.requests) == 8
    assert report.stores.requests[1].addresses[16:] == (None,) * 16


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", ["naive", "padded", "swizzled"])
def test_a_tile_by_layout_is_the_scalar_kernel_of_that_layout(layout: Any, size: int) -> None:
    kernel = banks.tile_report(layout, "scalar32", size)
    tile = banks.layout_report(layout, (32, 32), size)
    for kind in ("loads", "stores"):
        ours, theirs = (
            {request.addresses for request in getattr(report, kind).requests}
            for report in (tile, kernel)
        )
        assert ours == theirs


@pytest.mark.parametrize("width", SIZES)
def test_phases_hold_every_lane_once_and_add_up(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    addresses = width * torch.randint(0, 1024, (32, 32), generator=generator)
    active = torch.rand(32, 32, generator=generator) < 0.8
    for request, live in zip(
        banks.wavefronts(addresses, width, active).requests, active.tolist(), strict=True
    ):
        lanes = [lane for phase in request.phases for lane in phase.lanes]
        assert lanes == [lane for lane in range(32) if live[lane]]
        assert sum(phase.wavefronts for phase in request.phases) == request.wavefronts
        assert len(request.phases) == request.ideal
        wanted = {(group, bank, word) for words in request.words for group, word, bank in words}
        assert sum(sum(phase.words_per_bank) for phase in request.phases) == len(wanted)


def test_paired_lanes_make_fewer_phases() -> None:
    linear = banks.wavefronts(16 * torch.arange(32), 16).worst
    paired = banks.wavefronts(16 * (torch.arange(32) // 2), 16).worst
    assert [phase.lanes for phase in linear.phases] == [
        tuple(range(n, n + 8)) for n in (0, 8, 16, 24)
    ]
    assert [phase.lanes for phase in paired.phases] == [tuple(range(16)), tuple(range(16, 32))]


# The translator.


@pytest.mark.parametrize(
    ("layout", "shape", "size", "equal"),
    [
        ("article:4", (32, 32), 4, ["cute:5,2,5", "cute-elements:5,0,5", "line:4"]),
        ("article:16", (32, 32), 4, ["cute:3,4,3", "cute-elements:3,2,3", "line:16", "tma:128"]),
        ("tma:64", (32, 16), 4, ["cute:2,4,3", "cute-elements:2,2,3", "line:16"]),
        ("article:16", (32, 16), 4, ["cute:2,4,2", "cute-elements:2,2,2"]),
        ("cute:1,4,3", (32, 16), 2, ["cute-elements:1,3,3", "line:16", "tma:32"]),
        ("naive", (32, 32), 4, ["cute:0,0,0", "cute-elements:0,0,0", "article:128", "line:128"]),
        ("padded", (32, 32), 2, ["padded:4"]),
        ("padded:16/4", (32, 32), 4, []),
        ("swizzled", (16, 32), 4, ["cute:4,3,4", "cute-elements:4,1,4", "article:8", "line:8"]),
    ],
)
def test_a_layout_is_spelled_in_every_notation_that_has_it(
    layout: str, shape: tuple[int, int], size: int, equal: list[str]
) -> None:
    translation = banks.translate(layout, shape, size)
    found = [spelling.notation for spelling in translation.spellings if spelling.is_equal]
    assert found == equal
    for notation in equal:
        same = banks.describe_layout(notation, shape, size)
        assert torch.equal(same.offsets, translation.layout.offsets)


@pytest.mark.parametrize(
    ("layout", "other", "shape", "reason"),
    [
        ("article:16", "tma:64", (32, 16), "its source bit is 6, not 7 as in tma:64"),
        ("article:16", "tma:32", (32, 8), "its source bit is 5, not 7 as in tma:32"),
        ("line:4", "tma:128", (32, 32), "its chunks have 4 bytes, not 16 as in tma:128; it XORs 5 "
         "bits, not 3 as in tma:128"),
        ("cute:4,2,5", "swizzled", (32, 32), "it XORs 4 bits, not 5 as in swizzled"),
        ("naive", "swizzled", (32, 32), "it has no XOR, and swizzled XORs"),
        ("swizzled", "naive", (32, 32), "it XORs, and naive does not"),
        ("swizzled", "padded", (32, 32), "it has no pad, and padded has one"),
        ("padded:4", "padded:8/2", (32, 32), "it pads 4 bytes after every row, padded:8/2 pads 8 "
         "bytes after every 2 rows"),
    ],
)  # fmt: skip
def test_two_layouts_that_differ_are_told_apart_in_a_clause(
    layout: str, other: str, shape: tuple[int, int], reason: str
) -> None:
    found = banks.compare(layout, other, shape)
    assert not found.is_equal
    assert found.reason == reason
    assert found.base_alignment == 1


def test_layouts_that_agree_on_few_rows_alone_are_said_to() -> None:
    found = banks.compare("cute:3,2,5", "cute:5,2,5", (8, 32))
    assert found.is_equal
    assert found.reason.startswith("the same for 8 rows, not for more: it XORs 3 bits, not 5")
    assert not banks.compare("cute:3,2,5", "cute:5,2,5", (9, 32)).is_equal


@pytest.mark.parametrize(("mode", "period"), [(32, 256), (64, 512), (128, 1024)])
def test_tma_is_due_a_base_that_is_a_multiple_of_its_period(mode: int, period: int) -> None:
    found = banks.compare("line:16", f"tma:{mode}", (32, mode // 4))
    assert (found.is_equal, found.base_alignment) == (True, period)
    assert banks.compare(f"tma:{mode}", "line:16", (32, mode // 4)).base_alignment == period
    assert banks.compare("line:16", "line:16", (32, mode // 4)).base_alignment == 1
    assert banks.compare("naive", "cute:0,4,3", (32, 32)).base_alignment == 1


def test_what_no_spelling_of_a_notation_can_be_has_the_reason_of_its_refusal() -> None:
    spellings = {s.notation: s for s in banks.translate("line:16", (32, 64), 4).spellings}
    assert "no longer than the mode (here 256 bytes" in spellings["tma"].reason
    spellings = {s.notation: s for s in banks.translate("cute:3,4,3", (32, 24), 4).spellings}
    assert "powers of two" in spellings["article"].reason


# The adviser.


def test_the_bound_says_why_fewer_is_impossible() -> None:
    advice = banks.advise((32, 32), 4, ["row:16", "column"])
    row, column = advice.bounds
    assert (row.per_request, row.wavefronts, row.ideal) == (4, 32, 32)
    assert (column.per_request, column.wavefronts, column.ideal) == (4, 128, 32)
    assert column.reason.startswith("while 16-byte chunks stay whole for row:16")
    assert advice.options[0].total == advice.least == 160
    assert advice.options[0].layout.tma_expressible


@pytest.mark.parametrize("shape", [(32, 32), (32, 16), (16, 32), (64, 64), (8, 32), (33, 20)])
@pytest.mark.parametrize("accesses", [("row", "column"), ("row:16", "column"), ("column:8", "row")])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_no_option_beats_another_or_the_bound(
    shape: tuple[int, int], accesses: tuple[str, str], size: int
) -> None:
    if shape == (33, 20) and "row:16" in accesses and size == 2:
        shape = (33, 24)  # rows of whole vectors
    advice = banks.advise(shape, size, accesses)
    merits = [
        (o.total, o.layout.span_bytes, -o.layout.vector_bytes, not o.layout.tma_expressible)
        for o in advice.options
    ]
    assert merits == sorted(merits)
    for one in merits:
        assert one[0] >= advice.least
        assert not any(
            o != one and all(a <= b for a, b in zip(o, one, strict=True)) for o in merits
        )
    for option in advice.options:
        counted = [
            banks.layout_report(option.layout.notation, shape, size, store=name, load=name).stores
            for name in accesses
        ]
        assert option.wavefronts == tuple(report.wavefronts for report in counted)


def test_a_cap_on_bytes_leaves_out_what_is_above_it() -> None:
    advice = banks.advise((32, 32), 4, max_bytes=4096)
    assert {option.layout.span_bytes for option in advice.options} == {4096}
    with pytest.raises(ValueError, match="to hold the tile, 4096 bytes, got 4095"):
        banks.advise((32, 32), 4, max_bytes=4095)


def test_a_pad_is_advised_where_no_xor_will_do() -> None:
    advice = banks.advise((32, 33), 4)
    assert advice.options[0].layout.notation == "naive"
    advice = banks.advise((32, 48), 4)
    assert advice.options[0].layout.notation.startswith(("padded", "cute"))
    assert advice.options[0].total == advice.least


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"layout": "fast"}, "expected a layout: naive, padded"),
        (
            {"layout": "padded", "load": "column:16"},
            "vectors of at most 4 bytes, which layout padded",
        ),
        ({"layout": "swizzled", "shape": (32, 24)}, "to be powers of two"),
        ({"load": "diagonal"}, "expected an access: row[:BYTES], column[:BYTES] or stride-K"),
        ({"load": "column:6"}, "whole elements of 4 bytes, got 'column:6'"),
        ({"load": "column:0"}, "whole elements of 4 bytes"),
        ({"load": "row:32"}, "1, 2, 4, 8 or 16 bytes, got 32"),
        ({"block": (5, 5)}, "divide 32 x 32, the row units of the tile across and down, got 5x5"),
        ({"block": (0, 5)}, "got 0x5"),
        ({"block": (1, 1, 1, 1)}, "one to three sides"),
        ({"shape": (0, 32)}, "expected a tile of 1 to 1048576 bytes, got 0 x 32"),
        ({"shape": (1 << 20, 32)}, "expected a tile of 1 to 1048576 bytes"),
        ({"element_bytes": 0}, "element_bytes to be 1 to 16, got 0"),
    ],
)
def test_a_tile_without_meaning_is_refused_in_one_sentence(
    arguments: dict[str, Any], said: str
) -> None:
    given = {"layout": "naive", "shape": (32, 32)} | arguments
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        banks.layout_report(**given)
    assert "\n" not in str(caught.value)


def test_the_operator_checks_the_chunk_of_the_bound() -> None:
    lanes = torch.zeros(1, 32, dtype=torch.int64)
    for chunk in (0, 2, 6, 1 << 20):
        with pytest.raises(ValueError, match="expected chunk_bytes to be a power of two"):
            torch.ops.swizzle._least_wavefronts(lanes, 4, chunk)
    assert torch.ops.swizzle._least_wavefronts(lanes, 4, 4).tolist() == [1]


# The commands.


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    status = main([*arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("layout", "column"), [("naive", 32), ("padded", 1), ("swizzled", 1)])
def test_the_textbook_tile_from_the_command_line(
    layout: str, column: int, capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = run_json(capsys, "banks", "32x32", "--element", "4", "--layout", layout)
    assert status == 0
    assert result["tile"] == {"rows": 32, "cols": 32}
    assert (result["store"]["access"], result["load"]["access"]) == ("row", "column")
    assert result["store"]["worst"]["wavefronts"] == 1
    assert result["load"]["worst"]["wavefronts"] == column
    assert result["load"]["per_request"] == [column, column]
    assert result["load"]["worst"]["phases"][0]["wavefronts"] == column
    assert result["layout"]["notation"] == layout


def test_the_exit_status_guards_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["banks", "32x32", "--max-excess", "992"]) == 0
    assert main(["banks", "32x32", "--max-excess", "991"]) == 1
    assert main(["banks", "32x32", "--layout", "swizzled", "--max-excess", "0"]) == 0
    assert main(["banks", "--tile", "vector", "--max-excess", "0"]) == 1
    assert main(["translate", "line:16", "--to", "tma:128"]) == 0
    assert main(["translate", "line:16", "32x16", "--to", "article:16"]) == 1
    capsys.readouterr()


def test_translate_and_advise_print_json(capsys: pytest.CaptureFixture[str]) -> None:
    _, result = run_json(capsys, "translate", "tma:128")
    assert result["layout"]["period"] == 1024
    assert result == banks.translate("tma:128", (32, 32), 4).to_dict()
    status, result = run_json(capsys, "translate", "tma:128", "--to", "article:4")
    assert (status, result["spellings"][0]["is_equal"]) == (1, False)
    _, result = run_json(capsys, "advise", "32x16", "--access", "row", "--access", "column:8")
    assert result == banks.advise((32, 16), 4, ["row", "column:8"]).to_dict()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["banks", "32"], "expected ROWSxCOLS, as 32x32, got '32'"),
        (["banks", "32x32", "--tile", "vector"], "expected TILE or --tile, got both"),
        (["banks", "--load", "column"], "expected a TILE with --load, got none"),
        (["banks", "32x32", "--block", "8by8"], "expected XxY or XxYxZ"),
        (["banks", "32x32", "--layout", "line"], "expected line:CHUNK, got 'line'"),
        (["banks", "32x24", "--layout", "swizzled"], "powers of two"),
        (["translate", "fast"], "expected a layout: naive"),
        (["translate", "naive", "--to", "fast"], "expected a layout: naive"),
        (["advise", "32x32", "--access", "fast"], "expected an access: row"),
        (["advise"], "TILE"),
    ],
)
def test_a_wrong_call_has_status_2_and_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "swizzle::" not in err
    assert err.count("\n") == 1


# Pictures.

COLUMN_PICTURE = """\
tile 4 x 8, elements of 4 bytes, store row, load column
layout tma:32: 128 bytes, vectors of up to 16 bytes, TMA can write it

load of warp 0, 4 bytes a lane: wavefronts 1, ideal 1, excess 0
                bank 0         1         2         3
group lane   address 01234567890123456789012345678901
    0    0         0 1...............................
    0    1        32 ........1.......................
    0    2        64 ................1...............
    0    3        96 ........................1.......
    0    4         4 .1..............................
"""

STORED_PICTURE = """\
tile as stored, layout padded:8: a line of 128 bytes a row; each word by its number in
the tile's row, > where the load wants it
bank  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
   0>00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19  .  .>00 01 02 03 04 05 06 07 08 09
   1 10 11 12 13 14 15 16 17 18 19  .  .>00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19
"""


def test_text_pictures_are_the_golden_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["banks", "4x8", "--layout", "tma:32", "--picture", "text", "--part", "load"]) == 0
    assert capsys.readouterr().out.startswith(COLUMN_PICTURE)
    column = ["--load", "column", "--block", "20x3"]
    stored = ["banks", "3x20", "--layout", "padded:8", "--picture", "text", "--part", "tile"]
    assert main([*stored, "--load", "stride-20"]) == 0
    assert capsys.readouterr().out.split("\n\n")[1] == STORED_PICTURE
    with pytest.raises(SystemExit):
        main([*stored, *column])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", ["naive", "padded", "swizzled"])
def test_text_pictures_fit_a_terminal_of_100_columns(layout: str, size: int) -> None:
    report = banks.layout_report(layout, (64, 64), size)
    lines = "\n".join(banks.draw_report_text(report)).splitlines()
    assert max(map(len, lines)) <= 100
    assert len([line for line in lines if re.match(r" {0,3}\d+[ >]", line)]) >= 32


def test_a_picture_stops_after_64_lines_and_says_so() -> None:
    report = banks.layout_report("naive", (128, 64), 4)
    text = banks.draw_tile_text(report.layout, report.loads.worst)
    assert text.endswith("\n192 more lines")
    assert len(text.splitlines()) == 3 + 64 + 1
    assert ">192 more lines</text>" in banks.draw_report(report).to_svg()


def test_a_tile_is_drawn_where_its_elements_lie() -> None:
    report = banks.layout_report("article:4", (32, 32), 4)
    drawn = banks.draw_tile_text(report.layout, report.loads.worst).splitlines()[3:]
    for row, line in enumerate(drawn):
        cells = [line[4 + 3 * bank : 7 + 3 * bank] for bank in range(32)]
        assert [int(cell[1:]) for cell in cells] == [row ^ bank for bank in range(32)]
        assert [bank for bank, cell in enumerate(cells) if cell[0] == ">"] == [row]


@pytest.mark.parametrize("size", SIZES)
def test_svg_pictures_are_well_formed_and_the_same_every_time(size: int) -> None:
    report = banks.layout_report("swizzled", (32, 32), size)
    drawing = banks.draw_report(report)
    root = ElementTree.fromstring(drawing.to_svg())
    assert (int(root.attrib["width"]), int(root.attrib["height"])) == (
        drawing.width,
        drawing.height,
    )
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text is not None
    assert title.text.startswith("store of warp 0")
    assert drawing.to_svg() == banks.draw_report(report).to_svg()
    for shape in root.iter("{http://www.w3.org/2000/svg}rect"):
        right = float(shape.attrib.get("x", 0)) + float(shape.attrib["width"])
        assert right <= drawing.width


def lightness(colour: str) -> float:
    """Relative luminance of #rrggbb, which every kind of colour vision sees alike enough."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_turns_get_darker_and_their_numbers_stay_readable() -> None:
    drawing = banks.draw_requests([banks.layout_report("naive", (32, 32)).loads.worst])
    root = ElementTree.fromstring(drawing.to_svg())
    space = "{http://www.w3.org/2000/svg}"
    fills = [r.attrib["fill"] for r in root.iter(f"{space}rect") if r.attrib["width"] == "24"]
    inks = [
        t.attrib.get("fill", "#000000")
        for t in root.iter(f"{space}text")
        if t.attrib["x"] == "118.5" and t.attrib.get("font-size") == "9"
    ]
    assert len(fills) == len(inks) == 32
    shades = [lightness(fill) for fill in fills]
    assert shades == sorted(set(shades), reverse=True)
    for fill, ink in zip(fills, inks, strict=True):
        lighter, darker = sorted((lightness(fill), lightness(ink)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5  # WCAG 2.1, AA


def test_png_pictures_have_the_size_of_the_drawing() -> None:
    image = pytest.importorskip("PIL.Image")
    drawing = banks.draw_report(banks.layout_report("padded", (8, 32)))
    with image.open(io.BytesIO(drawing.to_png(scale=1))) as picture:
        assert picture.format == "PNG"
        assert picture.size == (drawing.width, drawing.height)
        assert len(picture.getcolors(1 << 16)) > 5


def test_a_picture_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "tile.svg"
    assert main(["banks", "8x32", "--picture", "svg", "--output", str(svg)]) == 0
    assert capsys.readouterr().out == ""
    assert svg.read_text() == banks.draw_report(banks.layout_report("naive", (8, 32))).to_svg()
    assert main(["banks", "--tile", "vector", "--picture", "svg"]) == 0
    assert "<title>store of warp 0, 16 bytes a lane" in capsys.readouterr().out


def test_png_without_pillow_is_answered_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SystemExit) as caught:
        main(["banks", "8x32", "--picture", "png"])
    assert caught.value.code == 2
    assert (
        capsys.readouterr().err
        == "torch-swizzle banks: --picture png needs Pillow: pip install pillow\n"
    )


def test_reports_show_themselves_in_notebooks() -> None:
    for report in (
        banks.layout_report("naive", (32, 32)),
        banks.tile_report("padded"),
        banks.wavefronts(8 * torch.arange(32), 4),
    ):
        shown = report._repr_html_()
        assert shown.startswith("<pre>")
        assert shown.count("<svg") == 1
    assert banks.wavefronts(torch.arange(0), 4)._repr_html_().count("<svg") == 0
    for answer in (banks.translate("tma:128", (32, 32)), banks.advise((32, 32))):
        assert answer._repr_html_() == f"<pre>{html.escape(str(answer))}</pre>"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["banks", "128x128", "--element", "16", "--layout", "swizzled", "--picture", "svg"],
        ["translate", "swizzled", "128x128"],
        ["advise", "128x128", "--element", "2", "--access", "row:16", "--access", "column"],
        ["info"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_takes_less_than_two_seconds_after_the_import_of_torch(
    arguments: list[str],
) -> None:
    timed = (
        "import sys, time, torch; start = time.process_time(); "
        "from torch_swizzle.__main__ import main; main(sys.argv[1:]); "
        "print(time.process_time() - start, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", timed, *arguments],
        cwd=ROOT,
        env={"PATH": "", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stderr.splitlines()[-1]) < 2
