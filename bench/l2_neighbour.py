"""`python -m bench.l2_neighbour`: what the hint for the L2 cache costs those who come after.

Copies of large transposes ask the cache to evict last what they read. Does what follows find less
room? After a launch without such a hint (a copy, torch's transpose) and one with it (ours), a
buffer is read several times in a row: each reading is timed, and readings that miss the cache take
longer. Writes bench/results/l2_neighbour.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from bench import timing
from bench.records import L2_NEIGHBOUR_NAME, RESULTS

SIDE = 11585  # of a float32 matrix of 512 MiB, whose transpose asks for the hint
NEIGHBOUR_MIB = (8, 16, 24, 32, 48)
READINGS = 6
REPETITIONS = 15
PAUSE_US = 400  # while the host enqueues a launch and all readings
METHOD = f"CUDA events around each reading, median of {REPETITIONS}, launches in turns"


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table, writes the record; 1 and a sentence without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m bench.l2_neighbour", description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / L2_NEIGHBOUR_NAME)
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        print("bench.l2_neighbour: there is no CUDA device whose cache could be measured")
        return 1
    from bench.stamp import make_stamp

    stamp = make_stamp(METHOD, on_gpu=True)
    rows = measure()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"stamp": stamp, "rows": rows}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
    for row in rows:
        readings = "  ".join(f"{taken:6.1f}" for taken in row["reading_us"])
        print(f"{row['neighbour_mib']:3d} MiB after {row['launch']:22s} us: {readings}")
    print(f"written: {options.out}")
    return 0


def measure() -> list[dict[str, Any]]:
    """Times of the readings, in microseconds, by size of the buffer and launch before them."""
    x = torch.rand(SIDE, SIDE, device="cuda")
    y = torch.empty_like(x)
    if not torch.equal(torch.ops.swizzle.transpose(x), x.t()):
        raise RuntimeError("the transpose to be measured is wrong")
    launches: dict[str, Callable[[], object]] = {
        "y.copy_(x)": lambda: y.copy_(x),
        "x.t().contiguous()": x.t().contiguous,
        "swizzle.transpose(x)": lambda: torch.ops.swizzle.transpose(x),
    }
    rows = []
    for mib in NEIGHBOUR_MIB:
        buffer = torch.ones(mib << 18, dtype=torch.int32, device="cuda")
        samples: dict[str, list[list[float]]] = {name: [] for name in launches}
        for repetition in range(REPETITIONS + 1):
            for name, launch in launches.items():
                taken = _time_readings(launch, buffer)
                if repetition > 0:  # the first round warms up
                    samples[name].append(taken)
        rows += [
            {
                "neighbour_mib": mib,
                "launch": name,
                "reading_us": [statistics.median(column) for column in zip(*taken, strict=True)],
            }
            for name, taken in samples.items()
        ]
    return rows


def _time_readings(launch: Callable[[], object], buffer: torch.Tensor) -> list[float]:
    events = [torch.cuda.Event(enable_timing=True) for _ in range(READINGS + 1)]
    torch.cuda._sleep(int(PAUSE_US * timing.CYCLES_PER_US))
    launch()
    events[0].record()
    for event in events[1:]:
        buffer.max()
        event.record()
    torch.cuda.synchronize()
    return [first.elapsed_time(last) * 1e3 for first, last in pairwise(events)]


if __name__ == "__main__":
    sys.exit(main())
