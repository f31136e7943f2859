"""The benchmark without a GPU: cases, checks, records, report, comparison, profile pages."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("rich", reason="the extra `bench` is not installed")
pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")

from bench import __main__ as bench_main
from bench import (
    arms,
    compare,
    contract,
    cutensor,
    grid,
    l2_neighbour,
    places,
    profile,
    records,
    removal,
    report,
    runner,
    stamp,
    timing,
)
from torch_swizzle import counters
from torch_swizzle.counters import Case, CountersError, Instruction, Launch

TILES = (
    *contract.TILES_WITH_LAYOUT,
    *("window", "deinterleave", "flat", "scatter", "box"),
)
ALL_CASES = [case for group in grid.GROUPS.values() for case in group]
QUICK = ["--cpu", "--quick", "--budget", "0.001", "--group", "article", "grid"]
STAMP = {"gpu": "G", "driver": "1", "torch": "2", "cuda": "3", "date": "2030-01-01T", "method": "M"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one quick run on CPU tensors."""
    folder = tmp_path_factory.mktemp("results")
    assert bench_main.main([*QUICK, "--dtype", "float32", "--out", str(folder)]) == 0
    return folder


def small(case: grid.Case) -> grid.Case:
    """The same layout at a small size."""
    layout = case.layout
    if layout.row_pitch is not None and layout.row_pitch > 1:
        layout = dataclasses.replace(layout, row_pitch=64)
    return dataclasses.replace(case, shape=(*[2] * (len(case.shape) - 2), 17, 33), layout=layout)


def test_groups_hold_distinct_cases_under_their_own_name() -> None:
    assert len(set(ALL_CASES)) == len(ALL_CASES)
    for name, cases in grid.GROUPS.items():
        assert cases
        assert {case.group for case in cases} == {name}


def test_cutensor_joins_permutes_alone_and_declines_without_its_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    permute = next(case for case in grid.GROUPS["permute"] if case.dtype == "float16")
    assert "cutensor" in {arm.variant for arm in arms.arms_for(permute, peers=True)}
    assert "cutensor" not in {arm.variant for arm in arms.arms_for(permute)}
    transpose = grid.GROUPS["large-aligned"][0]
    assert "cutensor" not in {arm.variant for arm in arms.arms_for(transpose, peers=True)}
    monkeypatch.setattr(cutensor, "_locations", lambda: ["no-such-library.so"])
    cutensor._library.cache_clear()
    cutensor._handle.cache_clear()
    for dtype, reason in ((torch.float16, "not found"), (torch.int16, "floats of 2 to 8 bytes")):
        with pytest.raises(arms.NotApplicable, match=reason):
            cutensor.prepare(permute, torch.zeros(2, 3, 4, 5, dtype=dtype))
    cutensor._library.cache_clear()


def test_a_nan_in_one_part_of_a_complex_number_excuses_not_the_other() -> None:
    nan = float("nan")
    expected = torch.tensor([complex(nan, 1.0), complex(2.0, nan)])
    payload = expected.clone()
    torch.view_as_real(payload).view(torch.int32)[0, 0] += 1
    assert arms.difference(payload, expected, keeps_nan_payloads=False) is None
    assert arms.difference(payload, expected) is not None
    spread = torch.tensor([complex(nan, nan), complex(2.0, nan)])
    assert arms.difference(spread, expected, keeps_nan_payloads=False) is not None


def test_first_grid_is_complete() -> None:
    dtypes = {case.dtype for case in grid.GRID}
    assert dtypes >= {"float32", "float16", "uint8", "float64", "complex128"}
    assert len(grid.GRID) == len(dtypes) * 8


@pytest.mark.parametrize(
    "case",
    dict.fromkeys(small(case) for case in ALL_CASES),  # those that differed in size are one
    ids=lambda case: f"{case.group} {case.label}",
)
def test_inputs_have_the_strides_and_bits_that_they_say(case: grid.Case) -> None:
    x = case.build(torch.device("cpu"))
    assert x.shape == case.shape
    assert x.dtype == case.torch_dtype
    assert x.stride() == case.layout.strides(case.shape)
    assert x.storage_offset() == case.layout.offset
    call = arms.arms_for(dataclasses.replace(case, group="grid"))[0].prepare(case, x)
    assert arms.difference(call(), arms.eager(x, case.dims)) is None


def test_random_bits_hold_nans_with_different_payloads() -> None:
    values = grid.random_bits(1 << 16, torch.float32, torch.device("cpu"))
    payloads = values[values.isnan()].view(torch.int32)
    assert payloads.unique().numel() > 100


def test_random_permutes_are_drawn_from_their_seeds() -> None:
    cases = grid.GROUPS[records.RANDOM_GROUP]
    assert [case.seed for case in cases] == list(range(200))
    assert {case.element_bytes for case in cases} == {1, 2, 4, 8, 16}
    assert {len(case.shape) for case in cases} == {3, 4, 5, 6}
    for case in cases:
        assert 16 << 20 <= case.result_bytes <= 256 << 20, case.label
        assert case == grid.random_permute(case.seed or 0)


@pytest.mark.parametrize(
    ("layout", "moved"),
    [
        (grid.CONTIGUOUS, 2 * 64 * 64 * 4),
        (grid.COLUMN_MAJOR, 2 * 64 * 64 * 4),
        (grid.pitched(128), 2 * 64 * 64 * 4),
        (grid.Layout("expanded rows", row_pitch=0), 64 * 4 + 64 * 64 * 4),
        (grid.Layout("expanded columns", row_pitch=1, col_step=0), 64 * 4 + 64 * 64 * 4),
        (grid.Layout("every third column", col_step=3), 4 * 64 * 64 * 4),
        (grid.Layout("every hundredth column", col_step=100), 9 * 64 * 64 * 4),
    ],
    ids=lambda value: value.name if isinstance(value, grid.Layout) else "",
)
def test_moved_bytes_count_what_must_move(layout: grid.Layout, moved: int) -> None:
    assert grid.Case("grid", "float32", (64, 64), layout).moved_bytes == moved


def test_run_checks_and_records_every_variant(results: Path) -> None:
    record = records.load(results / "grid.json")
    assert record.stamp.keys() >= {"date", "gpu", "driver", "torch", "cuda", "source_hash"}
    assert record.stamp["gpu"] is None
    for variants in records.by_case(record.rows).values():
        assert list(variants) == ["copy", "auto", "naive", "padded", "swizzled", "torch"]
        for row in variants.values():
            assert row.checked
            assert row.ms is not None
            assert row.gbps is not None
            assert row.share_of_copy is not None
    assert (results / "plots" / "share.svg").exists()


def test_article_case_runs_the_forced_tile(results: Path) -> None:
    rows = records.load(results / "article.json").rows
    ops = {row.variant: row.op for row in rows}
    assert all(ops[method] == f"_transpose_with {arms.ARTICLE_TILE}" for method in arms.METHODS)


def test_interrupted_run_leaves_the_old_record(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (results / "grid.json").read_text()
    (tmp_path / "grid.json").write_text(old)
    taken: list[object] = []

    def stop_at_second(*arguments: object) -> list[records.Row]:
        taken.append(arguments)
        if len(taken) == 2:
            raise KeyboardInterrupt
        return records.load(results / "grid.json").rows[:6]

    monkeypatch.setattr(bench_main, "run_case", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        bench_main.main(["--cpu", "--quick", "--group", "grid", "--out", str(tmp_path)])
    assert (tmp_path / "grid.json").read_text() == old
    assert len(records.load(tmp_path / "grid.json.part").rows) == 6


def _arm(result: object, *, is_peer: bool = False) -> arms.Arm:
    """An arm called "padded" whose call gives a tensor or raises an exception."""

    def call(x: torch.Tensor) -> torch.Tensor:
        if isinstance(result, Exception):
            raise result
        flipped = arms.eager(x)
        arms.bits(flipped).view(-1)[7] ^= 1
        return flipped

    return arms.Arm("padded", "wrong", lambda case, x: lambda: call(x), is_peer=is_peer)


def test_wrong_arm_is_reported_and_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = arms.arms_for(grid.GRID[0])[0]
    monkeypatch.setattr(arms, "arms_for", lambda case, peers: [right, _arm("one wrong bit")])
    status = bench_main.main([*QUICK, "--dtype", "float32", "--out", str(tmp_path)])
    assert status == 1
    assert "wrong bits in 1 of 65536 places, the first at flat index 7" in capsys.readouterr().out
    rows = {row.variant: row for row in records.load(tmp_path / "grid.json").rows}
    assert not rows["padded"].checked
    assert rows["padded"].ms is None
    assert rows["auto"].checked


def test_raising_arm_fails_and_unable_peer_does_not() -> None:
    case = grid.Case("grid", "int32", (5, 6))
    cpu = torch.device("cpu")
    error = ValueError("cannot\nserve")
    ours, peer = (
        runner.run_case(case, [_arm(error, is_peer=is_peer)], cpu, timing.time_cpu)[-1]
        for is_peer in (False, True)
    )
    assert (ours.status, peer.status) == (records.FAILED, records.NOT_APPLICABLE)
    assert ours.note == peer.note == "ValueError: cannot serve"


def test_a_small_input_moves_through_several_places_and_keeps_its_values() -> None:
    base = torch.arange(48).view(6, 8)
    x = base[1:, 2:5]
    expected = x.clone()
    mover = places.Places(x, count=4)
    addresses = set()
    for _ in range(8):
        mover.move()
        addresses.add(x.data_ptr())
        assert torch.equal(x, expected)
        assert x.stride() == (8, 1)
    assert len(addresses) == 4


@pytest.mark.parametrize("dims", [None, (2, 0, 1)])
def test_every_arm_reads_the_input_where_it_was_moved(
    dims: tuple[int, ...] | None, device: str
) -> None:
    case = grid.Case("grid", "float32", (3, 8, 4), dims=dims)
    x = case.build(torch.device(device)).nan_to_num_()
    on_gpu = device == "cuda"
    for arm in arms.arms_for(case, peers=on_gpu):
        if not (arm.cpu or on_gpu):
            continue
        try:
            call = arm.prepare(case, x)
        except arms.NotApplicable:
            continue
        call()
        places.Places(x).move()
        x.random_(100)
        assert arms.difference(call(), arms.eager(x, dims)) is None, arm.variant


def test_only_small_inputs_move() -> None:
    moves = []

    def clock(calls: Any, move: Any) -> Any:
        moves.append(move is not timing.stay)
        return timing.time_cpu(calls, budget_s=0.001, move=move)

    for shape in ((64, 64), (2049, 2048)):
        case = grid.Case("grid", "uint8", shape)
        rows = runner.run_case(case, arms.arms_for(case)[:1], torch.device("cpu"), clock)
        assert all(row.checked and row.ms for row in rows)
    assert moves == [True, False]


def test_wrong_peer_is_a_failure() -> None:
    case = grid.Case("grid", "int32", (5, 6))
    arm = _arm("one wrong bit", is_peer=True)
    row = runner.run_case(case, [arm], torch.device("cpu"), timing.time_cpu)[-1]
    assert row.status == records.FAILED


def test_difference_sees_payloads_unless_told_not_to() -> None:
    quiet = torch.tensor([0x7FC00000, 1], dtype=torch.int32).view(torch.float32)
    other = torch.tensor([0x7FC00001, 1], dtype=torch.int32).view(torch.float32)
    assert arms.difference(quiet, other) is not None
    assert arms.difference(quiet, other, keeps_nan_payloads=False) is None
    assert arms.difference(quiet, -other, keeps_nan_payloads=False) is not None
    assert arms.difference(quiet, quiet.double()) is not None
    square = torch.arange(4).view(2, 2)
    assert "strides" in (arms.difference(square.t(), square.t()) or "")


def test_eager_arm_copies_where_contiguous_would_alias() -> None:
    x = torch.arange(6.0).view(2, 3).t()
    y = arms.eager(x)
    assert y.is_contiguous()
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("count", range(1, 10))
def test_arms_take_turns_and_follow_each_other_equally_often(count: int) -> None:
    orders = [timing.balanced_order(count, repetition) for repetition in range(2 * count)]
    assert all(sorted(order) == list(range(count)) for order in orders)
    for place in range(count):
        assert sorted(order[place] for order in orders) == sorted(2 * list(range(count)))
    pairs = Counter(pair for order in orders for pair in itertools.pairwise(order))
    assert set(pairs.values()) <= {2}
    assert len(pairs) == count * (count - 1)


def test_summary_is_median_and_percentiles() -> None:
    timed = timing.summarise([float(value) for value in range(11)])
    assert (timed.ms, timed.spread_ms, timed.repetitions) == (5.0, 8.0, 11)


def test_host_time_compares_ours_with_torch() -> None:
    rows, comparisons = runner.run_host(torch.device("cpu"), quick=True)
    assert [row.variant for row in rows] == ["auto", "torch"] * (len(runner.HOST_CASES) + 1)
    assert [row.op for row in rows[-2:]] == [
        "C++, swizzle::transpose(x)",
        "C++, x.t().contiguous()",
    ]
    assert all(row.checked and row.ms and row.group == "host" for row in rows)
    operators = ("transpose(x)", "permute(x, ", "permute(x, ")
    for op, comparison in zip(operators, comparisons, strict=True):
        assert f"torch.ops.swizzle.{op}" in str(comparison)


def test_without_gpu_one_line_says_so_and_the_model_is_printed(
    results: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert bench_main.main([*QUICK[1:], "--dtype", "none", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert sum("No GPU found" in line for line in printed.splitlines()) == 1
    for prediction in ("8 (1)", "16 (1)", "32 (1)", "32 (2)", "32 (4)"):
        assert prediction in printed


def test_cpu_results_do_not_enter_the_recorded_ones() -> None:
    assert bench_main.main(["--cpu", "--out", str(records.RESULTS)]) == 2
    options = bench_main.parse_arguments(["--cpu"])
    assert bench_main._out_folder(options, on_gpu=False) == records.SCRATCH


def test_selection_follows_groups_dtypes_and_quick() -> None:
    everything = [*grid.GROUPS, records.HOST_GROUP]
    assert grid.select(everything, on_gpu=True) == ALL_CASES
    some = grid.select(["article", "grid"], ["float32"], on_gpu=True, quick=True)
    assert grid.ARTICLE_CASE in some
    assert {case.shape for case in some if case.group == "grid"} == {
        *((side, side) for side in (256, 1024, 4096)),
    }
    for case in grid.select(everything, on_gpu=False):
        assert case.result_bytes <= 1 << 24


@pytest.mark.parametrize("argument", ["--quick", "--dtype=uint8", "--variant=auto"])
def test_partial_gpu_runs_do_not_replace_recorded_groups(argument: str) -> None:
    options = bench_main.parse_arguments([argument])
    assert bench_main._out_folder(options, on_gpu=True) == records.SCRATCH


def test_whole_gpu_run_is_recorded_in_all_groups_asked_for() -> None:
    options = bench_main.parse_arguments([])
    assert bench_main._out_folder(options, on_gpu=True) == records.RESULTS
    assert bench_main._groups(options, on_gpu=True) == ["article", "grid", "host"]
    everything = bench_main.parse_arguments(["--group", "all"])
    assert bench_main._groups(everything, on_gpu=True) == [*grid.GROUPS, "host"]


def test_record_round_trip(tmp_path: Path) -> None:
    row = records.Row("uint8", (2, 3), "contiguous", "grid", "transpose", "auto", ms=0.25)
    record = records.Record({"gpu": "G"}, [row, dataclasses.replace(row, variant="torch")])
    records.save(record, tmp_path / "a.json")
    assert records.load(tmp_path / "a.json") == record
    assert records.load(tmp_path) == record


@pytest.mark.parametrize("text", ["", "[]", '{"stamp": {}}', '{"stamp": {}, "rows": [{}]}'])
def test_bad_record_gives_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a\.json is not a results file"):
        records.load(tmp_path / "a.json")


def test_geometric_mean() -> None:
    assert records.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert records.geometric_mean([]) is None


def _report(results: Path, folder: Path, *more: str) -> int:
    return report.main(
        [
            *("--results", str(results), "--readme", str(folder / "README.md")),
            *("--details", str(folder / "RESULTS.md"), "--plots", str(folder / "plots"), *more),
        ]
    )


def test_report_writes_what_check_accepts(results: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    assert _report(results, tmp_path, "--check") == 1
    assert _report(results, tmp_path) == 0
    assert _report(results, tmp_path, "--check") == 0
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| grid | float32 |" in text
    assert "(plots/share.svg)" in text
    assert (tmp_path / "plots" / "bandwidth.svg").exists()
    readme.write_text(text.replace("| grid | float32 | 2 |", "| grid | float32 | 3 |"))
    assert _report(results, tmp_path, "--check") == 1


def test_report_needs_its_markers(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("no markers\n")
    assert _report(results, tmp_path) == 1
    assert "README.md needs one line <!-- bench:begin -->" in capsys.readouterr().out


def test_report_shows_counters_beside_the_model(results: Path) -> None:
    counted = {"load_conflicts": 65_011_712.0, "store_conflicts": 7.0}
    model = {f"model_{what}_conflicts": 5 for what in ("load", "store")}
    row = {"tile": "scalar32", "method": "naive", **counted, **model}
    recorded = {"stamp": {"gpu": "G", "date": "2030-01-01T"}, "rows": [row]}
    text = report.summary_text(
        records.load_folder(results), recorded, plots="plots", details="RESULTS.md"
    )
    assert "| `scalar32` | `naive` | 65,011,712 | 5 |" in text


def test_report_names_the_cases_in_which_a_peer_is_ahead() -> None:
    def rows(shape: tuple[int, ...], **ms: float) -> list[records.Row]:
        return [
            records.Row("uint8", shape, "contiguous", "thin", name, name, ms=time)
            for name, time in ms.items()
        ]

    auto = rows((2, 3), auto=1.04, torch=2.0, triton=1.0, geam=1.03)
    level = rows((4, 5), auto=1.02, torch=1.0)
    text = report.details_text([records.Record(STAMP, [*auto, *level])])
    sentence = "A peer is ahead by more than 2 % in 1 of 2 cases: uint8 (2, 3) (`triton` 4.0 %)."
    assert sentence in text
    alone = report.details_text([records.Record(STAMP, rows((2, 3), auto=1.0, naive=0.5))])
    assert "ahead" not in alone


def test_report_says_what_the_tests_found_on_a_gpu(results: Path) -> None:
    record = {
        "gpu": "G",
        "gpus": 2,
        "date": "2030-01-01T",
        "tests": {"passed": 1234, "failed": 1, "two_gpus": {"passed": 5}},
        "load": {"cases": 20_000, "comparisons": 7, "differences": 2, "calls": 9, "grown": ["x"]},
        "sanitizers": {"memcheck": {"errors": 3}, "racecheck": {"errors": 4}},
    }
    text = report.summary_text(
        records.load_folder(results), None, plots="plots", details="RESULTS.md", gpu_record=record
    )
    assert "(2 G, 2030-01-01, `tests/gpu_record.json`): 1,234 passed and 1 failed, 5 of" in text
    assert "7 comparisons bit by bit, 2 of which differed; 9 calls" in text
    assert "grown in 1 places; 2 tools of compute-sanitizer, 7 errors." in text
    record["sanitizers"] = {"memcheck": {"errors": 3}, "racecheck": {"errors": None}}
    text = report.summary_text(
        records.load_folder(results), None, plots="plots", details="RESULTS.md", gpu_record=record
    )
    assert "1 tools of compute-sanitizer, 3 errors; racecheck did not end in time." in text


def test_compare_shows_what_changed(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = records.load(results / "grid.json")
    slower = [
        dataclasses.replace(row, ms=2 * row.ms, ms_spread=0.0)
        if row.variant == "auto" and row.ms
        else row
        for row in old.rows
        if row.variant != "naive"
    ]
    records.save(records.Record(old.stamp, slower), tmp_path / "new.json")
    assert compare.main([str(results / "grid.json"), str(tmp_path / "new.json")]) == 0
    printed = capsys.readouterr().out
    assert "0.500" in printed
    assert "2 only in A, 0 only in B" in printed


def test_compare_needs_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    assert "cannot read" in capsys.readouterr().out


def article_launch(method: str, load_conflicts: float) -> Launch:
    """A launch of the article's case with every counter, of which one matters."""
    metrics = dict.fromkeys(counters.METRICS.values(), 7.0)
    return Launch(method, {**metrics, counters.METRICS["load_conflicts"]: load_conflicts}, ())


def test_profile_without_a_counter_gives_one_sentence() -> None:
    launch = article_launch("naive", 0)
    del launch.metrics[counters.METRICS["time_ns"]]  # type: ignore[attr-defined]
    with pytest.raises(CountersError, match=r"^ncu's report lacks the metric gpu__time_dur.*\.$"):
        profile.make_row(profile.article_case("naive", "scalar32"), launch)


def test_profile_without_a_gpu_gives_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert profile.main(["--out", str(tmp_path / "profile.json")]) == 1
    assert capsys.readouterr().out.count("\n") == 1
    assert not (tmp_path / "profile.json").exists()


def test_profile_records_counters_beside_the_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        counters,
        "measure",
        lambda cases: [article_launch(case.method, 65_011_712) for case in cases],
    )
    monkeypatch.setattr(stamp, "make_stamp", lambda method, on_gpu: {"gpu": "G"})
    out = tmp_path / "profile.json"
    assert profile.main(["--tile", "scalar32", "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert [row["method"] for row in rows] == ["naive", "padded", "swizzled"]
    assert [profile.agrees(row, "load") for row in rows] == [True, False, False]
    assert "65,011,712 | 65,011,712" in capsys.readouterr().out


def test_contract_has_a_case_for_every_kernel_that_is_shipped() -> None:
    cases = contract.shipped_cases()
    assert len({case.label for case in cases}) == len(cases)
    tiles = {(case.tile, case.dtype, case.method) for case in cases if case.op == "transpose"}
    for tile in contract.TILES_WITH_LAYOUT:
        for dtype in contract.DTYPES.values():
            assert all((tile, dtype, method) in tiles for method in contract.METHODS)
    assert {tile for tile, _, _ in tiles} == {*TILES, "direct"}
    for case in cases:
        predicted = counters.predict(case)
        assert bool(predicted) == (case.tile not in ("deinterleave", "direct")), case.label


def contract_launches() -> list[Launch]:
    """Launches that take what the model predicts of each case and pattern."""
    launches = []
    for case in contract.shipped_cases():
        steps = enumerate(counters.predict(case))
        launches.append(
            Launch(
                "k",
                {},
                tuple(
                    Instruction(16 * i, "", s.access, s.width, s.requests, s.wavefronts, s.ideal)
                    for i, s in steps
                ),
            )
        )
    for access, width in contract.CALIBRATIONS:
        instructions = []
        for times, offsets in enumerate(contract.patterns(width).values(), start=1):
            wavefronts, _, ideal = contract.predict_request(access, width, offsets)
            taken = (times, times * wavefronts, times * ideal)
            instructions.append(Instruction(16 * times, "", access, width, *taken))
        launches.append(Launch("calibration_kernel", {}, tuple(reversed(instructions))))
    return launches


def test_contract_holds_for_launches_that_take_what_is_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        stamp, "make_stamp", lambda method, on_gpu: {"gpu": "G", "driver": "1", "date": "2026"}
    )
    out = tmp_path / "contract.json"
    launches = contract_launches()
    cases = contract.shipped_cases()
    assert contract.compare_and_print(cases, launches, out) == 0
    capsys.readouterr()
    page = tmp_path / "page.md"
    page.write_text(f"before\n{contract.BEGIN}\nold\n{contract.END}\nafter\n")
    assert contract.main(["--out", str(out), "--markdown", "--page", str(page)]) == 0
    printed = capsys.readouterr().out
    placed = f"before\n{contract.BEGIN}\n{printed}{contract.END}\nafter\n"
    assert page.read_text() == placed
    assert contract.place_tables(placed, printed.rstrip("\n")) == placed
    assert "| bank_probe, 32-way | load | 1 | 256 / 256 | 8,192 / 8,192 | 256 / 256 |" in printed
    assert "| a line apart | 32, 1 | 32, 1 | 32, 1 | 32, 2 | 32, 4 | 32, 1 |" in printed
    record = json.loads(out.read_text())
    patterns = len(contract.patterns(4))
    assert len(record["calibration"]) == patterns * len(contract.CALIBRATIONS)

    first = launches[0].instructions[0]
    more = dataclasses.replace(first, wavefronts=first.wavefronts + 1)
    changed = dataclasses.replace(launches[0], instructions=(more, *launches[0].instructions[1:]))
    assert contract.compare_and_print(cases, [changed, *launches[1:]], out) == 1
    no_pattern = dataclasses.replace(launches[-1], instructions=launches[-1].instructions[1:])
    assert contract.compare_and_print(cases, [*launches[:-1], no_pattern], out) == 1


def test_contract_holds_the_hardware_counter_to_the_noise_of_the_twin() -> None:
    cases = [Case("bank_probe", (8192,), ways=ways) for ways in (8, 1)]
    steps = [counters.predict(case) for case in cases]
    for counted, of_twin, expected in (
        *((1792, 0, True), (1800, 0, True), (1900, 0, False), (1700, 0, False)),
        *((1900, 110, True), (1792, 110, False)),
    ):
        launches = [
            Launch("k", {counters.METRICS["load_conflicts"]: number}, ())
            for number in (counted, of_twin)
        ]
        noises = contract.noises_of(cases, launches, steps)
        rows = contract.judge(cases[0], launches[0], steps[0], noises[cases[1]])
        assert contract.beyond_noise(rows) == ([] if expected else rows[:1])
        assert rows[0]["predicted_conflicts"] == 1792


def test_contract_allows_for_copies_that_arrive_while_a_kernel_stores() -> None:
    case = Case("transpose", (8, 64, 32), "complex128", tile="box")
    steps = counters.predict(case)
    for counted, expected in ((0, True), (132, True), (400, False)):
        launch = Launch("k", {counters.METRICS["store_conflicts"]: counted}, ())
        beyond = contract.beyond_noise(contract.judge(case, launch, steps, None))
        assert {row["access"] for row in beyond} == (set() if expected else {"store"})


def test_contract_reads_pages_that_were_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "contract.json"
    arguments = ["--import", str(tmp_path), "--out", str(out)]
    assert contract.main(arguments) == 3
    assert "raw.csv cannot be read" in capsys.readouterr().err
    for page in (Path(__file__).parent / "ncu_pages").iterdir():
        (tmp_path / page.name).write_text(page.read_text())
    assert contract.main(arguments) == 3
    assert "2 launches where" in capsys.readouterr().err
    assert not out.exists()


def test_contract_without_a_gpu_gives_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert contract.main(["--out", str(tmp_path / "contract.json")]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "contract.json").exists()


def test_calibration_patterns_fit_the_memory_and_the_widths() -> None:
    for width in contract.WIDTHS:
        for name, offsets in contract.patterns(width).items():
            assert len(offsets) == 32, name
            for offset in offsets:
                assert offset is None or offset % width == 0, name
                assert offset is None or offset + width <= contract.SHARED_BYTES, name


def test_prediction_of_the_article_case() -> None:
    conflicts = {
        method: profile.prediction(profile.article_case(method, "scalar32"))["model_load_conflicts"]
        for method in profile.METHODS
    }
    assert conflicts == {"naive": 65_011_712, "padded": 0, "swizzled": 0}


def test_recorded_files_are_json_with_a_stamp() -> None:
    for path in records.RESULTS.glob("*.json"):
        assert json.loads(path.read_text())["stamp"]["gpu"]


def test_readme_is_what_the_records_give() -> None:
    if not report.README.exists():
        pytest.skip("no README in this tree")
    assert report.main(["--check"]) == 0


@pytest.mark.parametrize("command", [l2_neighbour.main, removal.main])
def test_what_times_kernels_alone_needs_a_gpu_and_says_so(
    command: Callable[[list[str]], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command(["--out", str(tmp_path / "record.json")]) == 1
    assert "no CUDA device" in capsys.readouterr().out
    assert not (tmp_path / "record.json").exists()


def test_a_group_loses_what_the_best_of_the_other_tiles_is_behind() -> None:
    cases = [
        removal.CaseTimes("thin", "a", {"copy": 1.0, "auto": 1.0, "flat": 1.0, "vector": 4.0}),
        removal.CaseTimes("thin", "b", {"copy": 1.0, "auto": 1.0, "flat": 2.0, "vector": 1.0}),
    ]
    lost = {loss.kernel: round(loss.points) for loss in removal.losses(cases)}
    assert lost == {"flat": 50, "tile": 29}
    assert "| thin | 2 | 1.000 | 29.3 | 50.0 |" in removal.table(removal.losses(cases))
    alone = removal.CaseTimes("small", "c", {"copy": 1.0, "auto": 1.0, "flat": 1.0})
    assert [loss.points for loss in removal.losses([alone])] == [100.0]


def test_every_tile_is_a_kernel_whose_removal_is_measured() -> None:
    tiles = [tile for tiles in removal.KERNELS.values() for tile in tiles]
    assert sorted(tiles) == sorted((*TILES, "direct"))
    case = grid.Case("thin", "uint8", (48, 32))
    timed = removal.time_case(case, torch.device("cpu"), 0.001)
    assert {"copy", "auto", "direct", "scalar32", "vector", "flat"} <= timed.ms.keys()
    assert not timed.ms.keys() & {"scatter", "deinterleave"}


def test_the_record_of_removals_is_not_taken_for_results(tmp_path: Path) -> None:
    (tmp_path / records.REMOVAL_NAME).write_text('{"stamp": {}, "rows": [{"group": "thin"}]}')
    assert records.load_folder(tmp_path) == []


@pytest.mark.parametrize("compiler", ["/nonexistent/c++", "false"])
def test_calls_from_cpp_that_do_not_compile_are_failed_rows_with_the_reason(
    compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", compiler)
    rows, _ = runner.run_host(torch.device("cpu"), quick=True)
    assert all(row.status == "failed" and compiler in row.note for row in rows[-2:])
