"""Reports of slow transposes elsewhere, asked of the recorded benchmark (O14 to O16).

The figures are those of bench/results/reports.json, which `python -m bench --group reports` makes
on a GPU; each result was checked bit by bit before it was timed.
"""

from __future__ import annotations

import pytest

from bench.records import COPY, OURS, RESULTS, Row, by_case, load

RECORD = RESULTS / "reports.json"
MINIMUM_SHARE = 0.7  # of a copy of the same bytes, which is what the reports ask for
TILED = tuple(variant for variant in OURS if variant != "naive")

Cases = dict[tuple[str, tuple[int, ...]], dict[str, Row]]


@pytest.fixture(scope="module")
def cases() -> Cases:
    """The recorded rows by dtype and shape."""
    if not RECORD.exists():
        pytest.skip("no GPU has recorded the group yet")
    return {(key[1], key[2]): rows for key, rows in by_case(load(RECORD).rows).items()}


def milliseconds(row: Row) -> float:
    """The time of a row that was measured after its result was checked."""
    assert row.checked, row.label
    assert row.ms is not None, (row.label, row.note)
    return row.ms


class TestFloat8:
    """O14, https://github.com/pytorch/pytorch/issues/113560: one byte a thread, in eager mode."""

    def test_a_large_float8_matrix_runs_near_the_speed_of_a_copy(self, cases: Cases) -> None:
        rows = cases["float8_e4m3fn", (32768, 8192)]
        assert milliseconds(rows["auto"]) <= milliseconds(rows[COPY]) / MINIMUM_SHARE

    def test_no_size_is_slower_than_torch(self, cases: Cases) -> None:
        sides = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
        for dtype in ("uint8", "float16", "float32"):
            for side in sides:
                rows = cases[dtype, (side, side)]
                noise = (rows["auto"].ms_spread or 0.0) + (rows["torch"].ms_spread or 0.0)
                ours, theirs = milliseconds(rows["auto"]), milliseconds(rows["torch"])
                assert ours <= theirs + noise, rows["auto"].label


class TestLongSides:
    """O15, https://github.com/ggml-org/llama.cpp/pull/16841: one direction was not coalesced."""

    @pytest.mark.parametrize("dtype", ["float16", "float32"])
    def test_both_directions_cost_about_the_same(self, dtype: str, cases: Cases) -> None:
        times = [
            milliseconds(cases[dtype, shape]["auto"]) for shape in ((256, 786432), (786432, 256))
        ]
        assert max(times) <= 1.5 * min(times)

    @pytest.mark.parametrize("variant", TILED)
    @pytest.mark.parametrize(
        "case",
        [
            *(
                (dtype, shape)
                for dtype in ("float16", "float32")
                for shape in ((256, 786432), (786432, 256))
            ),
            ("float16", (256, 1024, 768)),
        ],
    )
    def test_long_sides_and_batches_run_near_the_speed_of_a_copy(
        self, case: tuple[str, tuple[int, ...]], variant: str, cases: Cases
    ) -> None:
        rows = cases[case]
        if variant not in rows:
            pytest.skip("no GPU has recorded this variant yet")
        assert milliseconds(rows[variant]) <= milliseconds(rows[COPY]) / MINIMUM_SHARE


class TestSidesThatNoTileDivides:
    """O16, https://github.com/JuliaGPU/CUDA.jl/pull/3015: a generic kernel for odd sides."""

    @pytest.mark.parametrize(
        ("shape", "nearest"),
        [
            ((1000, 10000), (1024, 10240)),
            ((10000, 1000), (10240, 1024)),
            ((5000, 50000), (5120, 50176)),
        ],
    )
    def test_there_is_no_cliff_beside_the_nearest_multiples(
        self, shape: tuple[int, int], nearest: tuple[int, int], cases: Cases
    ) -> None:
        odd, even = cases["float32", shape]["auto"], cases["float32", nearest]["auto"]
        per_byte = milliseconds(odd) / (shape[0] * shape[1])
        assert per_byte <= 1.15 * milliseconds(even) / (nearest[0] * nearest[1])
