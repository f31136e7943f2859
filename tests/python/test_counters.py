"""Counters beside the model, without a GPU: ncu's pages, the comparison, the command `profile`.

`ncu` is a script here that does what the real one does in each situation. The pages in ncu_pages/
are cut out of what ncu 2025.3 wrote on an H200: two launches, a bank probe of two ways and one of
one way over 8192 floats, the instructions of each listed twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from torch_swizzle import banks, counters
from torch_swizzle.__main__ import main
from torch_swizzle._commands import profile
from torch_swizzle.counters import Case, Instruction, Launch, Predicted

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).resolve().parent / "ncu_pages"
PROBE = ["profile", "bank_probe"]
TWO_WAYS = Case("bank_probe", (8192,), ways=2)
GPU = {"name": "NVIDIA H200", "multiprocessors": 132}

PERMISSION = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters"
SITUATIONS = {
    "no permission": (f"echo '{PERMISSION}' >> \"$log\"; exit 1", "ERR_NVGPUCTRPERM): run as root"),
    "no kernel": ("echo '==WARNING== No kernels were profiled.' >> \"$log\"", "saw no kernel that"),
    "program failed": (
        "echo 'RuntimeError: no memory' >&2; exit 9",
        "9: RuntimeError: no m",
    ),
    "ncu failed": (
        'echo "==ERROR== Failed to initialize the profiler: LibraryNotLoaded" >> "$log"; exit 255',
        "status 255: ==ERROR== Failed to initialize",
    ),
    "empty report": ('touch "$report"', "report holds no launch"),
}


def fake_ncu(folder: Path, collecting: str, pages: Path | None = None) -> Path:
    """A program `ncu` that runs a script where it would profile, and prints pages to import."""
    ncu = folder / "ncu"
    reading = f'cat {pages}/"$page".csv' if pages else "true"
    ncu.write_text(
        "#!/bin/sh\n"
        'while [ $# -gt 0 ]; do case "$1" in\n'
        '--import) importing=1;; --page) page="$2";; --export) report="$2";;\n'
        '--log-file) log="$2";; esac; shift; done\n'
        f'if [ "$importing" ]; then {reading}; exit; fi\n{collecting}\n'
    )
    ncu.chmod(0o755)
    return ncu


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that seems to have a GPU; a folder that is first on PATH."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(profile, "_gpu", lambda: GPU)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def recorded() -> list[Launch]:
    """The launches of the recorded pages."""
    return counters.join_pages(
        (PAGES / "raw.csv").read_text(encoding="utf-8"),
        (PAGES / "source.csv").read_text(encoding="utf-8"),
    )


def as_launch(predicted: list[Predicted]) -> Launch:
    """A launch that took what was predicted."""
    opcodes = {"load": "LDS", "store": "STS", "async copy": "LDGSTS"}
    return Launch(
        "tile_kernel",
        {},
        tuple(
            Instruction(
                16 * index,
                opcodes[one.access],
                one.access,
                one.width,
                one.requests,
                one.wavefronts,
                one.ideal,
            )
            for index, one in enumerate(predicted)
        ),
    )


def agreements(launch: Launch, predicted: list[Predicted]) -> set[str]:
    return {row.agreement for row in counters.compare(launch, predicted)}


def test_recorded_pages_are_read() -> None:
    two, one = recorded()
    assert "ProvenBankProbe<2>" in two.kernel
    assert [(i.sass, i.access) for i in two.instructions] == [
        ("@!P0  STS [R5], R2", "store"),
        ("LDS R0, [R0]", "load"),
    ]
    assert [(i.requests, i.wavefronts, i.ideal) for i in two.instructions] == [(256, 512, 256)] * 2
    assert (two.excess, one.excess) == (512, 0)
    assert two.metric("cycles") == 4260
    assert [two.metric(name) for name in ("load_conflicts", "store_conflicts")] == [256, 256]
    assert [one.metric(name) for name in ("load_conflicts", "store_conflicts")] == [0, 0]
    assert two.metric("async copy_conflicts") is None
    assert sum(two.samples.values()) > two.samples["stall_short_sb"] >= 0
    assert "stall_short_sb (Not Issued)" not in two.samples


def test_what_a_gpu_does_not_count_is_missing() -> None:
    page = '"ID","Kernel Name","a","b","c"\n"","","","",""\n"0","k","(!) n/a","n/a","1,024"\n'
    assert counters.parse_raw(page) == [("k", {"ID": 0, "c": 1024})]


def test_a_kernel_without_shared_memory_has_no_columns_for_it() -> None:
    page = '"Address","Source","stall_mio"\n"0x10","LDG.E R2, desc[UR8][R2.64]","3"\n'
    assert counters.parse_source(page) == [((), {"stall_mio": 3})]


def test_a_listing_that_differs_is_no_repetition() -> None:
    raw, source = ((PAGES / f"{page}.csv").read_text() for page in ("raw", "source"))
    place = source.rindex("LDS")
    with pytest.raises(counters.CountersError, match=r"of 2 launches .* of 4"):
        counters.join_pages(raw, source[:place] + "LDS.64" + source[place + 3 :])


def test_recorded_pages_agree_with_the_model() -> None:
    for launch, case in zip(recorded(), (TWO_WAYS, replace(TWO_WAYS, ways=1)), strict=True):
        assert agreements(launch, counters.predict(case)) == {"each"}
    assert agreements(recorded()[0], counters.predict(replace(TWO_WAYS, ways=4))) == {"no"}


@pytest.mark.parametrize(
    ("sass", "expected"),
    [
        ("LDS.U8 R1, [R2]", ("load", 1)),
        ("@P0 LDS.S16 R1, [R2]", ("load", 2)),
        ("@!P5 STS [R5+UR4], R2", ("store", 4)),
        ("STS.64 [R5], R2", ("store", 8)),
        ("LDS.128 R8, [R24+0x300]", ("load", 16)),
        ("@!P4 LDGSTS.E.BYPASS.128 [R25+0x800], desc[UR6][R16.64]", ("async copy", 16)),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R25], desc[UR6][R16.64]", ("async copy", 16)),
        ("ATOMS.ADD RZ, [R1], R2", ("other", 4)),
        ("@!PT LDS RZ, [RZ]", None),
        ("LDG.E.128 R4, desc[UR6][R2.64]", None),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", None),
    ],
)
def test_access_and_width_are_read_from_the_sass(
    sass: str, expected: tuple[str, int] | None
) -> None:
    shared = "0" if expected is None and "LDS" not in sass else "7"
    page = (
        '"Kernel Name","k"\n'
        '"Address","Source","Instructions Executed","L1 Wavefronts Shared",'
        '"L1 Wavefronts Shared Ideal"\n'
        f'"0x10","   {sass} ","1,024","{shared}","5"\n'
    )
    ((instructions, _),) = counters.parse_source(page)
    found = [(one.access, one.width) for one in instructions]
    assert found == ([] if expected is None else [expected])
    assert all(one.requests == 1024 and one.address == 16 for one in instructions)


@pytest.mark.parametrize(
    "page",
    ["", "==WARNING== nothing\n", '"Address","Source"\n"0x0","LDS R0, [R1]"\n'],
    ids=["empty", "a message", "columns missing"],
)
def test_a_source_page_without_counters_gives_one_sentence(page: str) -> None:
    with pytest.raises(counters.CountersError, match=r"^ncu's .*\.$"):
        counters.parse_source(page)


def test_pages_of_different_reports_are_refused() -> None:
    raw = (PAGES / "raw.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    source = (PAGES / "source.csv").read_text(encoding="utf-8")
    with pytest.raises(counters.CountersError, match=r"of 1 launches .* of 4"):
        counters.join_pages("".join(raw[:3]), source)


TILES = [
    *(Case("transpose", (64, 96), "float32", m, "scalar32") for m in ("naive", "swizzled")),
    Case("transpose", (128, 128), "uint8", "padded", "vector"),
    Case("transpose", (304, 515), "float16", "auto", "window"),
    Case("transpose", (31, 29, 515), "float16", "auto", "window", dims=(2, 0, 1)),
    Case("transpose", (8192, 12), "float64", "auto", "flat"),
    TWO_WAYS,
]


@pytest.mark.parametrize("case", TILES, ids=lambda case: case.label)
def test_a_launch_that_takes_what_was_predicted_agrees(case: Case) -> None:
    predicted = counters.predict(case)
    launch = as_launch(list(reversed(predicted)))  # in whatever order the compiler chose
    assert agreements(launch, predicted) == {"each"}
    assert [(one.wavefronts, one.ideal) for one in launch.instructions] == [
        (step.wavefronts, step.ideal) for _, step in counters.pair(launch, predicted) if step
    ]


def test_prediction_of_whole_tiles_is_the_tile_report_times_the_tiles() -> None:
    for method in ("naive", "padded", "swizzled"):
        tile = banks.tile_report(method)
        predicted = counters.predict(Case("transpose", (320, 96), "float32", method, "scalar32"))
        for access, part in (("load", tile.loads), ("store", tile.stores)):
            own = [one for one in predicted if one.access == access]
            assert sum(one.wavefronts for one in own) == 30 * part.wavefronts
            assert sum(one.ideal for one in own) == 30 * part.ideal


def test_prediction_of_the_article_case_is_the_articles_conflicts() -> None:
    predicted = counters.predict(Case("transpose", (8192, 8192), "float32", "naive", "scalar32"))
    loads = [one for one in predicted if one.access == "load"]
    assert sum(one.wavefronts - one.ideal for one in loads) == 65_011_712
    assert sum(one.requests for one in loads) == 2_097_152


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_prediction_of_boxes_has_every_element_once(dtype: str) -> None:
    size = counters.dtype_of(dtype).itemsize
    edge = 1024 // size
    predicted = counters.predict(Case("transpose", (edge, edge), dtype, "auto", "box"))
    copies = sum(one.requests for one in predicted if one.access == "async copy")
    assert copies * 32 * 16 == edge * edge * size
    # Before the elements a thread looks up a piece, a run and where the elements of a vector lie.
    loads = [one for one in predicted if one.access == "load"][2 + 16 // size :]
    assert sum(one.requests for one in loads) * 32 == edge * edge
    assert sum(one.wavefronts for one in loads) * 128 >= edge * edge * size


def test_a_kernel_without_shared_memory_has_nothing_to_compare() -> None:
    case = Case("transpose", (4096, 3), "uint8", "auto", "deinterleave")
    assert counters.compare(as_launch([]), counters.predict(case)) == []


def with_one_bit_fewer(bits: int) -> list[Predicted]:
    """The model of the scalar32 tile of floats with an XOR of fewer than its five bits."""
    accesses = torch.ops.swizzle._tile_accesses("swizzled", "scalar32", 4)
    offsets = accesses[:, 3:]
    dropped = (offsets // 128 % 32 * 4) & 0x7F & ~((4 << bits) - 1)
    report = banks.wavefronts(offsets ^ dropped, width=4)
    names = ["load" if is_load else "store" for is_load in accesses[:, 0].tolist()]
    return [
        Predicted(
            "load" if name == "load" else "store", 4, 1, one.wavefronts, one.ideal, one.excess
        )
        for name, one in zip(names, report.requests, strict=True)
    ]


@pytest.mark.parametrize(("bits", "wavefronts"), [(5, 1), (4, 2), (3, 4), (2, 8)])
def test_an_xor_of_fewer_bits_makes_the_check_fail(bits: int, wavefronts: int) -> None:
    launch = as_launch(with_one_bit_fewer(5))
    mutated = with_one_bit_fewer(bits)
    assert {one.wavefronts for one in mutated if one.access == "load"} == {wavefronts}
    verdicts = {row.access: row.agreement for row in counters.compare(launch, mutated)}
    assert verdicts == {"load": "each" if bits == 5 else "no", "store": "each"}


def test_unmodelled_instructions_make_the_check_fail() -> None:
    predicted = counters.predict(TWO_WAYS)
    launch = as_launch(predicted)
    atomic = Instruction(4096, "ATOMS.ADD RZ, [R1], R2", "other", 4, 8, 8, 8)
    more = replace(launch, instructions=(*launch.instructions, atomic))
    assert agreements(more, predicted) == {"each", "no"}
    assert agreements(replace(launch, instructions=()), predicted) == {"no"}


def test_the_hardware_counts_conflicts_otherwise_than_the_page_where_lanes_are_few() -> None:
    case = Case("transpose", (172, 236), "float32", "naive", "vector")
    loads = [one for one in counters.predict(case) if one.access == "load"]
    # As measured on an H200: sums over the instructions, and the counter of the launch.
    assert [sum(getattr(one, what) for one in loads) for what in ("wavefronts", "ideal")] == [
        10148,
        1300,
    ]
    assert sum(one.conflicts for one in loads) == 8732


def test_loops_agree_in_sum_and_no_closer() -> None:
    predicted = counters.predict(Case("transpose", (64, 64), "float32", "naive", "scalar32"))
    loads = [one for one in predicted if one.access == "load"]
    requests, wavefronts, ideal = counters.total(
        (one.requests, one.wavefronts, one.ideal) for one in loads
    )
    loop = Predicted("load", 4, requests, wavefronts, ideal, wavefronts - ideal)
    assert agreements(as_launch([loop]), loads) == {"sum"}
    assert agreements(as_launch([replace(loop, wavefronts=wavefronts + 1)]), loads) == {"no"}
    assert counters.pair(as_launch([loop]), loads)[0][1] is None


def test_profile_prints_measured_beside_predicted(
    with_gpu: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu(with_gpu, 'touch "$report"', PAGES)
    assert main([*PROBE, "--ways", "2"]) == 0
    text = capsys.readouterr().out
    for part in (
        "store            4  measured              256            512            256\n",
        "predicted             256            512            256  equal, each\n",
        "LDS R0, [R0]                                     256         512         256         512",
        "load conflicts: 256 (the same without conflicts, which is noise: 0)",
        "store conflicts: 256 (the same without conflicts, which is noise: 0)",
        "512 wavefronts in excess are 4 cycles of an SM of 4,260, 0.1%",
        "short scoreboard",
        "MIO throttle",
        "NVIDIA H200",
    ):
        assert part in text, text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_profile_prints_json(with_gpu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_ncu(with_gpu, 'touch "$report"', PAGES)
    assert main([*PROBE, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["agrees"] is True
    assert result["case"]["ways"] == 2
    assert [access["measured"]["excess"] for access in result["accesses"]] == [256, 256]
    assert result["instructions"][0]["predicted"] == result["instructions"][0]["measured"]
    assert result["hardware_conflicts"]["twin"] == {"load": 0, "store": 0}
    assert result["cost"]["excess_wavefronts"] == 512


def test_profile_says_what_the_counters_say_of_asynchronous_copies() -> None:
    case = Case("transpose", (128, 128), "float32", "padded", "vector")
    predicted = counters.predict(case)
    more = [
        replace(one, wavefronts=3 * one.wavefronts) if one.access == "async copy" else one
        for one in predicted
    ]
    launch = as_launch(more)
    result = profile.describe(case, predicted, [launch, as_launch(predicted)], GPU)
    assert result["agrees"] is True
    assert result["cost"]["excess_wavefronts"] == 0
    lines = profile._lines(case, predicted, launch, result)
    assert any(line.endswith("equal requests") for line in lines)
    start = next(i for i, line in enumerate(lines) if line.startswith("Asynchronous copies are"))
    assert " ".join(lines[start : start + 3]) == counters.ASYNC_COPIES
    assert all(len(line) <= 100 for line in lines[start : start + 3])


def test_profile_ends_with_1_where_counters_differ(
    with_gpu: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu(with_gpu, 'touch "$report"', PAGES)
    assert main([*PROBE, "--ways", "8"]) == 1
    assert "DIFFERENT" in capsys.readouterr().out


@pytest.mark.parametrize("situation", SITUATIONS)
def test_profile_says_in_one_sentence_why_nothing_was_measured(
    situation: str, with_gpu: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, sentence = SITUATIONS[situation]
    fake_ncu(with_gpu, script)
    assert main(PROBE) == 3
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert "predicted by the bank model, not measured" in captured.out
    assert main([*PROBE, "--json"]) == 3
    result = json.loads(capsys.readouterr().out)
    assert result["measured"] is None
    assert sentence in result["reason"]
    assert result["predicted"][0]["excess"] == 256


def test_profile_without_ncu_on_path(
    with_gpu: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(with_gpu))
    assert main(["profile", "transpose", "--shape", "64x64"]) == 3
    captured = capsys.readouterr()
    assert "ncu (Nsight Compute) is not on PATH: install it" in captured.err
    assert captured.err.count("\n") == 1
    assert "not measured" in captured.out


def test_profile_stops_an_ncu_that_hangs(
    with_gpu: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu(with_gpu, "exec sleep 60")
    monkeypatch.setattr(counters, "TIMEOUT_S", 0.2)
    assert main(PROBE) == 3
    assert "took longer than 0.2 s" in capsys.readouterr().err


def test_profile_without_a_gpu_in_a_process_of_its_own(tmp_path: Path) -> None:
    fake_ncu(tmp_path, 'touch "$report"', PAGES)
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "torch_swizzle", *PROBE]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "torch finds no GPU here: run this on a machine with an NVIDIA GPU" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "not measured" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["transpose", "--tile", "best"], "expected tile to be one of"),
        (["transpose", "--method", "fast"], "expected method to be one of"),
        (["transpose", "--dtype", "float33"], "expected the name of a torch dtype"),
        (["transpose", "--shape", "64by64"], "expected sizes as 8192x8192"),
        (["transpose", "--shape", "0x64"], "at least one"),
        (["transpose", "--shape", "33x65", "--tile", "vector"], "that tile 'vector' can serve"),
        (["transpose", "--method", "naive", "--tile", "flat"], "expected method 'auto'"),
        (["transpose", "--shape", "64"], "Dimension out of range"),
        (["bank_probe", "--ways", "3"], "expected ways to be 1, 2, 4, 8, 16 or 32"),
        (["sort"], "invalid choice"),
    ],
)
def test_a_wrong_call_of_profile_is_answered_in_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["profile", *arguments])
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert sentence in text
    assert text.count("\n") == 1


def test_profile_keeps_what_ncu_wrote(
    with_gpu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu(with_gpu, 'touch "$report"', PAGES)
    kept = tmp_path / "kept"
    assert main([*PROBE, "--keep", str(kept)]) == 0
    assert {path.name for path in kept.iterdir()} >= {"report.ncu-rep", "raw.csv", "source.csv"}


@pytest.mark.cuda
def test_the_profiled_process_runs_every_case(capfd: pytest.CaptureFixture[str]) -> None:
    listed: list[dict[str, Any]] = [
        {"op": "bank_probe", "shape": [300], "ways": 4},
        {"op": "transpose", "shape": [64, 64], "dtype": "float16", "method": "naive"},
    ]
    counters._main(json.dumps(listed))
    torch.cuda.synchronize()
    assert capfd.readouterr().err == ""
