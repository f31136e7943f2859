"""The bank report: published facts, tiles, the guard for tests, pictures and the command line."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
from samples import (
    LAYOUTS,
    TILES_WITH_LAYOUT,
)
from torch import Tensor

import torch_swizzle
from torch_swizzle import banks
from torch_swizzle.__main__ import main
from torch_swizzle.banks import BankReport, Meeting, assert_no_bank_conflicts

LANES = torch.arange(32)
ROOT = Path(__file__).resolve().parents[2]
SIZES = (1, 2, 4, 8, 16)

NAIVE_TABLE = """\
tile scalar32, layout naive, elements of 4 bytes

        requests  wavefronts  ideal  excess  worst of a request
store         32          32     32       0  1, ideal 1
load          32        1024     32     992  32, ideal 1
load of warp 0, 4 bytes a lane: wavefronts 32, ideal 1, excess 31
  group 0, bank 0: lanes 0-31 want 32 words
"""

PICTURE = """\
access of warp 0, 8 bytes a lane: wavefronts 6, ideal 2, excess 4
                bank 0         1         2         3
group lane   address 01234567890123456789012345678901
    0    0         0 11..............................
    0    1       128 22..............................
    0    2       256 33..............................
    0    3       384 44..............................
    0    4        32 ........11......................
    0    5        40 ..........11....................
    0    6        48 ............11..................
    0    7        56 ..............11................
    -    8         - ................................
    -    9         - ................................
    -   10         - ................................
    -   11         - ................................
    -   12         - ................................
    -   13         - ................................
    -   14         - ................................
    -   15         - ................................
    1   16       136 ..11............................
    1   17       136 ..11............................
    1   18       136 ..11............................
    1   19       136 ..11............................
    1   20       136 ..11............................
    1   21       136 ..11............................
    1   22       136 ..11............................
    1   23       136 ..11............................
    1   24       136 ..11............................
    1   25       136 ..11............................
    1   26       136 ..11............................
    1   27       136 ..11............................
    1   28       136 ..11............................
    1   29       136 ..11............................
    1   30       136 ..11............................
    1   31         8 ..22............................"""


def counts(report: BankReport) -> tuple[int, int]:
    """Wavefronts and excess of a report with one request."""
    (request,) = report.requests
    assert request.excess == report.excess
    return request.wavefronts, request.excess


@pytest.mark.parametrize(
    ("addresses", "width", "expected"),
    [
        (16 * LANES, 16, (4, 0)),
        (128 * LANES, 16, (32, 28)),
        (8 * LANES, 8, (2, 0)),
        (0 * LANES, 4, (1, 0)),
        (0 * LANES, 8, (1, 0)),
        (0 * LANES, 16, (2, 0)),
        (16 * (LANES // 2), 16, (2, 0)),
        (LANES, 1, (1, 0)),
        (2 * LANES, 2, (1, 0)),
        (128 * LANES, 4, (32, 31)),
        (128 * LANES, 8, (32, 30)),
        (132 * LANES, 4, (1, 0)),
        (8 * LANES, 4, (2, 1)),
        (4096 + 8 * LANES, 4, (2, 1)),
    ],
)
def test_published_counts_come_out(
    addresses: Tensor, width: int, expected: tuple[int, int]
) -> None:
    assert counts(banks.wavefronts(addresses, width)) == expected


@pytest.mark.parametrize("stride", range(1, 70))
def test_a_stride_of_words_meets_as_often_as_its_common_factor_with_the_banks(stride: int) -> None:
    report = banks.wavefronts(4 * stride * LANES, 4)
    assert report.wavefronts == torch.gcd(torch.tensor(stride), torch.tensor(32)).item()


@pytest.mark.parametrize(
    ("block", "pitch", "expected"),
    [((32, 16), 17, (2, 1)), ((16, 32), 33, (1, 2)), ((32, 32), 33, (1, 1))],
)
def test_warps_follow_the_linear_thread_index(
    block: tuple[int, int], pitch: int, expected: tuple[int, int]
) -> None:
    y, x = torch.meshgrid(torch.arange(block[0]), torch.arange(block[1]), indexing="ij")
    store = banks.wavefronts(4 * (pitch * y + x), 4)
    # The load takes the tile's transposed position: thread index runs down the columns.
    index = y * block[1] + x
    load = banks.wavefronts(4 * (pitch * (index % block[0]) + index // block[0]), 4)
    for report, each in zip((store, load), expected, strict=True):
        assert len(report.requests) == block[0] * block[1] // 32
        assert {request.wavefronts for request in report.requests} == {each}
    assert [request.warp for request in store.requests] == list(range(len(store.requests)))


@pytest.mark.parametrize("bits", range(6))
def test_each_missing_bit_of_the_xor_doubles_a_column_read(bits: int) -> None:
    column = 128 * LANES + 4 * (LANES % 2**bits)
    assert banks.wavefronts(column, 4).wavefronts == 2 ** (5 - bits)


def test_the_lanes_that_meet_are_named() -> None:
    (request,) = banks.wavefronts(8 * LANES, 4).requests
    assert request.meetings == tuple(
        Meeting(group=0, bank=2 * k, lanes=(k, k + 16), words=(2 * k, 2 * k + 32))
        for k in range(16)
    )
    assert banks.wavefronts(4 * LANES, 4).worst.meetings == ()
    assert banks.wavefronts(0 * LANES, 4).worst.meetings == ()


@pytest.mark.parametrize("width", SIZES)
def test_meetings_add_up_to_the_wavefronts(width: int) -> None:
    generator = torch.Generator().manual_seed(width)
    addresses = width * torch.randint(0, 4096, (64, 32), generator=generator)
    active = torch.rand(64, 32, generator=generator) < 0.7
    for request in banks.wavefronts(addresses, width, active).requests:
        ways = dict.fromkeys(range(request.ideal), 1)
        for meeting in request.meetings:
            ways[meeting.group] = max(ways[meeting.group], meeting.ways)
        assert sum(ways.values()) == request.wavefronts


@pytest.mark.parametrize("width", [8, 16])
def test_neighbours_at_one_address_merge_loads_and_not_stores(width: int) -> None:
    taken = {
        kind: banks.wavefronts(width * (LANES // 2), width, kind=kind)  # type: ignore[arg-type]
        for kind in ("load", "access", "store")
    }
    assert [report.wavefronts for report in taken.values()] == [width // 8, width // 8, width // 4]
    assert {report.excess for report in taken.values()} == {0}
    for report in taken.values():
        assert sum(phase.wavefronts for phase in report.worst.phases) == report.wavefronts


def test_loads_and_stores_of_a_word_take_the_same_and_are_told_apart() -> None:
    for kind in ("load", "store", "access"):
        report = banks.wavefronts(128 * LANES, 4, kind=kind)  # type: ignore[arg-type]
        assert report.worst.kind == kind
        assert (report.wavefronts, report.excess) == (32, 31)
        parts = [len(part.requests) for part in (report.loads, report.stores)]
        assert parts == [int(kind == "load"), int(kind == "store")]


def test_inactive_lanes_ask_for_nothing() -> None:
    half = banks.wavefronts(16 * LANES, 16, active=LANES < 8)
    assert (half.wavefronts, half.ideal) == (1, 1)
    assert half.worst.addresses[7:9] == (112, None)
    none = banks.wavefronts(16 * LANES, 16, active=[False] * 32)
    assert (none.wavefronts, none.ideal, none.worst.meetings) == (0, 0, ())


def test_an_incomplete_warp_has_inactive_lanes() -> None:
    report = banks.wavefronts(4 * torch.arange(40), 4)
    assert [len([a for a in r.addresses if a is not None]) for r in report.requests] == [32, 8]
    assert banks.wavefronts(LANES[:0], 4).requests == ()
    assert banks.wavefronts([0, 128, 256], 4).wavefronts == 3


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.uint8])
def test_addresses_may_be_any_integers(dtype: torch.dtype) -> None:
    assert banks.wavefronts((4 * LANES).to(dtype), 4).wavefronts == 1
    assert banks.wavefronts((4 * LANES).to(dtype).tolist(), 4).wavefronts == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_textbook_tile_conflicts_in_naive_columns_alone(layout: Any) -> None:
    report = banks.tile_report(layout)
    worst = (32, 31) if layout == "naive" else (1, 0)
    assert (report.stores.worst.wavefronts, report.stores.excess) == (1, 0)
    assert (report.loads.worst.wavefronts, report.loads.worst.excess) == worst
    assert report.requests == report.stores.requests + report.loads.requests
    if layout == "naive":
        (meeting,) = report.loads.worst.meetings
        assert meeting.lanes == tuple(range(32))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tile", TILES_WITH_LAYOUT)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tile_report_is_the_kernels_own_count(layout: Any, tile: Any, size: int) -> None:
    report = banks.tile_report(layout, tile, size)
    expected = torch.ops.swizzle._tile_wavefronts(layout, tile, size).tolist()
    assert [[r.kind == "load", r.width, r.wavefronts, r.ideal] for r in report.requests] == expected
    assert (report.excess > 0) == (layout == "naive")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tile", TILES_WITH_LAYOUT)
@pytest.mark.parametrize("layout", ["padded", "swizzled"])
def test_the_kernels_that_claim_no_conflicts_pass_the_guard(
    layout: Any, tile: Any, size: int
) -> None:
    assert_no_bank_conflicts(banks.tile_report(layout, tile, size))


def test_the_guard_passes_and_fails() -> None:
    assert_no_bank_conflicts(banks.tile_report("swizzled", "vector", 2))
    assert_no_bank_conflicts(banks.tile_report("naive"), max_excess=992)
    with pytest.raises(AssertionError) as caught:
        assert_no_bank_conflicts(banks.tile_report("naive"), max_excess=991)
    assert str(caught.value) == (
        "expected at most 991 excess wavefronts, got 992 in 64 requests\n"
        "load of warp 0, 4 bytes a lane: wavefronts 32, ideal 1, excess 31\n"
        "  group 0, bank 0: lanes 0-31 want 32 words"
    )


@pytest.mark.parametrize(
    ("addresses", "width", "active", "said"),
    [
        (4 * LANES, 3, None, "expected width to be 1, 2, 4, 8 or 16 bytes, got 3"),
        (4 * LANES, 8, None, "multiples of the width, 8 bytes, in 0 to 2147483647, got 4"),
        (-4 * LANES, 4, None, "in 0 to 2147483647, got -4"),
        (4 * LANES + 2**31, 4, None, "got 2147483648"),
        (4.0 * LANES, 4, None, "expected addresses to be integers (bytes), got torch.float32"),
        (4 * LANES, 4, [True], "the shape of addresses, (32,), got (1,)"),
    ],
)
def test_wrong_addresses_are_refused_in_one_sentence(
    addresses: Tensor, width: int, active: list[bool] | None, said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        banks.wavefronts(addresses, width, active)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["_bank_wavefronts", "_bank_words"])
@pytest.mark.parametrize(
    ("addresses", "active", "said"),
    [
        (LANES, None, "expected addresses to have shape (requests, 32), got [32]"),
        (torch.zeros(2, 16, dtype=torch.int64), None, "got [2, 16]"),
        (torch.zeros(1, 32), None, "expected addresses to be a dense CPU tensor of dtype Long"),
        (torch.zeros(1, 32, dtype=torch.int64, device="meta"), None, "on meta"),
        (torch.zeros(2, 32, dtype=torch.int64), torch.ones(1, 32) > 0, "got [1, 32]"),
        (
            torch.zeros(1, 32, dtype=torch.int64),
            torch.ones(1, 32),
            "of dtype Bool, got dtype Float",
        ),
    ],
)
def test_the_operators_check_their_tensors(
    name: str, addresses: Tensor, active: Tensor | None, said: str
) -> None:
    op = getattr(torch.ops.swizzle, name)
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        op(addresses, 4, active)
    assert str(caught.value).startswith(f"swizzle::{name}: expected ")
    assert "\n" not in str(caught.value)


def test_the_operators_take_any_strides() -> None:
    addresses = (128 * torch.arange(64)).view(32, 2).t()
    assert not addresses.is_contiguous()
    op = torch.ops.swizzle._bank_wavefronts
    assert torch.equal(op(addresses, 4), op(addresses.contiguous(), 4))
    active = (torch.arange(64) % 3 == 0).view(32, 2).t()
    assert torch.equal(op(addresses, 4, active), op(addresses, 4, active.contiguous()))


@pytest.mark.parametrize(
    ("layout", "tile", "element_bytes", "said"),
    [
        ("fast", "scalar32", 4, "got 'fast'"),
        ("auto", "scalar32", 4, "got 'auto'"),
        ("naive", "fast", 4, "got 'fast'"),
        ("naive", "window", 4, "expected a tile that leaves a choice of layout, got 'window'"),
        ("naive", "scalar32", 3, "got 3"),
    ],
)
def test_tiles_that_do_not_exist_are_refused(
    layout: Any, tile: Any, element_bytes: int, said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        banks.tile_report(layout, tile, element_bytes)


def test_the_picture_is_the_golden_one() -> None:
    addresses = 8 * LANES
    addresses[:4] = 128 * LANES[:4]
    addresses[16:] = 136
    addresses[31] = 8
    report = banks.wavefronts(addresses, 8, active=(LANES < 8) | (LANES >= 16))
    assert banks.draw_request(report.worst) == PICTURE


@pytest.mark.parametrize("module", ["", "._advice", "._layout", "._picture", "._report", "._tile"])
def test_the_examples_in_the_documentation_are_right(module: str) -> None:
    documented = importlib.import_module(f"torch_swizzle.banks{module}")
    names = {"banks": banks, "torch": torch}
    result = doctest.testmod(documented, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_pictures_have_a_sign_for_every_turn_and_fit_a_terminal() -> None:
    lines = banks.draw_request(banks.tile_report("naive").loads.worst).splitlines()
    assert "".join(line.split()[3][0] for line in lines[3:]) == "123456789abcdefghijklmnopqrstuvw"
    assert max(map(len, lines)) <= 100


def test_the_command_prints_the_golden_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["banks", "--tile", "scalar32", "--element", "4", "--layout", "naive"]) == 0
    assert capsys.readouterr().out == NAIVE_TABLE


def test_banks_that_the_same_lanes_share_are_told_together() -> None:
    assert str(banks.wavefronts(128 * LANES, 16)).splitlines()[3:] == [
        f"  group {group}, banks 0-3: lanes {8 * group}-{8 * group + 7} want 8 words"
        for group in range(4)
    ]


@pytest.mark.parametrize(("layout", "load"), [("naive", 32), ("padded", 1), ("swizzled", 1)])
def test_the_command_prints_json(
    layout: str, load: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["banks", "--layout", layout, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["tile"], result["layout"], result["element_bytes"]) == ("scalar32", layout, 4)
    assert result["store"]["worst"]["wavefronts"] == 1
    worst = result["load"]["worst"]
    assert (worst["wavefronts"], worst["ideal"], worst["excess"]) == (load, 1, load - 1)
    assert result["load"]["wavefronts"] == 32 * load
    meetings = [(meeting["bank"], meeting["lanes"]) for meeting in worst["meetings"]]
    assert meetings == ([(0, list(range(32)))] if layout == "naive" else [])


def test_the_command_draws_the_worst_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["banks", "--layout", "swizzled", "--picture", "text"]) == 0
    report = banks.tile_report("swizzled")
    pictures = [banks.draw_request(part.worst) for part in (report.stores, report.loads)]
    assert capsys.readouterr().out.split("\n\n")[1:] == [pictures[0], pictures[1] + "\n"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["banks", "--layout", "fast"], "got 'fast'"),
        (["banks", "--tile", "flat"], "got 'flat'"),
        (["banks", "--element", "3"], "got 3"),
        (["banks", "--element", "four"], "invalid int value: 'four'"),
        (["banks", "--picture", "gif"], "'gif'"),
        (["banks", "--json", "--picture", "text"], "not allowed with"),
        (["bank"], "'bank'"),
        ([], "COMMAND"),
    ],
)
def test_a_wrong_call_is_answered_in_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("torch-swizzle")
    assert said in err
    assert err.count("\n") == 1


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m torch_swizzle` where no GPU can be seen."""
    return subprocess.run(
        [sys.executable, "-m", "torch_swizzle", *arguments],
        cwd=ROOT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_info_without_a_gpu() -> None:
    done = command("info", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    info = json.loads(done.stdout)
    assert info["torch_swizzle"] == torch_swizzle.__version__
    assert info["torch"] == torch.__version__
    assert info["architectures"]
    assert info["gpus"] == []
    assert info["works"] == {"cpu_tensors": True, "bank_model": True, "cuda_tensors": False}


def test_info_is_readable_without_a_gpu() -> None:
    done = command("info")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nGPU            none found\n" in done.stdout
    assert done.stdout.endswith(
        "bank model     works\nCPU tensors    works\nCUDA tensors   does not work here\n"
    )


@pytest.mark.cuda
def test_info_finds_the_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["gpus"][0]["name"] == torch.cuda.get_device_name(0)
    assert info["gpus"][0]["error"] is None
    assert info["works"]["cuda_tensors"]


def test_info_reports_a_gpu_on_which_kernels_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = {"name": "Old GPU", "capability": "7.0", "error": "expected a GPU of the architectures"}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr("torch_swizzle._commands.info._describe_gpu", lambda index: gpu)
    assert main(["info"]) == 1
    out = capsys.readouterr().out
    assert "\nGPU            Old GPU (7.0): expected a GPU of the architectures\n" in out
    assert "CUDA tensors   does not work here" in out


def test_a_wrong_call_ends_the_process_with_status_2() -> None:
    done = command("banks", "--element", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_the_installed_command_is_this_one() -> None:
    (target,) = re.findall(
        r'^torch-swizzle = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert EntryPoint("torch-swizzle", target, "console_scripts").load() is main
