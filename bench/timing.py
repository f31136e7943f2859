"""Clocks: kernel time with a cold L2 for several callables in turns, and host time of a call."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

# torch.utils.benchmark loads the extension builder, which warns where there is nvcc but no GPU.
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
from torch.utils import benchmark  # noqa: E402

METHOD = (
    "kernel time by CUDA events, L2 flushed before each call (256 MB zeroed, as by triton's "
    "do_bench), arms in turns within one run, in an order balanced for what they follow, inputs of "
    "up to 4 MiB at 16 places in memory, median; spread is the 10th to 90th percentile"
)
CPU_METHOD = "wall time of CPU calls on one thread, arms in turns within one run, median"
HOST_METHOD = "torch.utils.benchmark Timer, blocked_autorange in alternating rounds, median"

FLUSH_BYTES = 256 * 10**6
MIN_REPETITIONS = 10
MAX_REPETITIONS = 200
BATCH_REPETITIONS = 10  # repetitions between two synchronisations
CYCLES_PER_US = 2000  # above the SM clock of any GPU so far, so that a pause is never too short
MIN_PAUSE_US = 100.0
MAX_PAUSE_US = 5000.0
WARMUP_CALLS = 3

Call = Callable[[], Any]


def stay() -> None:
    """Leaves inputs and results where they are."""


@dataclass(frozen=True)
class Timing:
    """Times of one callable, in milliseconds: the median, and the width from 10 to 90 %."""

    ms: float
    spread_ms: float
    repetitions: int


def summarise(samples_ms: Sequence[float]) -> Timing:
    """Median and spread of samples in milliseconds."""
    ordered = sorted(samples_ms)
    last = len(ordered) - 1
    spread = ordered[round(0.9 * last)] - ordered[round(0.1 * last)]
    return Timing(statistics.median(ordered), spread, len(ordered))


def balanced_order(count: int, repetition: int) -> list[int]:
    """Indices 0..count-1 in the order of one repetition: no arm has a fixed place or predecessor.

    Over `2 * count` repetitions each arm has each place, and within a repetition follows each other
    arm, equally often; fewer repetitions, or the step from one to the next, are not quite balanced.
    An arm that follows one with the same input is up to 9 % faster than behind a copy, although
    the L2 cache is flushed in between.

    Source: E. J. Williams, "Experimental designs balanced for the estimation of residual effects
    of treatments", Australian Journal of Scientific Research A 2, 1949.
    """
    shift = repetition // 2 % count
    zigzag = [(index + 1) // 2 if index % 2 else -(index // 2) for index in range(count)]
    order = [(step + shift) % count for step in zigzag]
    return order if repetition % 2 == 0 else order[::-1]


def time_kernels(
    calls: Mapping[str, Call], *, budget_s: float = 1.0, move: Callable[[], None] = stay
) -> dict[str, Timing]:
    """Kernel time of each callable on the current CUDA device, all with a cold L2.

    Args:
        calls: the arms; each call enqueues its work on the current stream.
        move: called before every repetition, in which each arm has its turn.
        budget_s: device time in seconds to spend on all arms together; at least
            `MIN_REPETITIONS` and at most `MAX_REPETITIONS` samples are taken of each.

    Returns:
        One `Timing` per arm, in milliseconds.
    """
    names = list(calls)
    flush_bytes = max(FLUSH_BYTES, 4 * torch.cuda.get_device_properties().L2_cache_size)
    flush = torch.empty(flush_bytes // 4, dtype=torch.int32, device="cuda")
    for call in calls.values():
        for _ in range(WARMUP_CALLS):
            call()
    torch.cuda.synchronize()

    pause_us = {name: _pause_us(calls[name]) for name in names}
    cost_ms = sum(_sample_cost_ms(calls[name], pause_us[name], flush) for name in names)
    repetitions = int(budget_s * 1000 / max(cost_ms, 1e-3))
    repetitions = min(max(repetitions, MIN_REPETITIONS), MAX_REPETITIONS)

    samples: dict[str, list[float]] = {name: [] for name in names}
    attempts = 0
    while min(len(taken) for taken in samples.values()) < repetitions:
        if attempts >= 3 * repetitions + BATCH_REPETITIONS:
            raise RuntimeError("the host was too slow to time kernels: no pause was long enough")
        batch: list[tuple[str, torch.cuda.Event, torch.cuda.Event, bool]] = []
        for _ in range(BATCH_REPETITIONS):
            move()
            for index in balanced_order(len(names), attempts):
                name = names[index]
                if len(samples[name]) < repetitions:
                    batch.append((name, *_record(calls[name], pause_us[name], flush)))
            attempts += 1
        torch.cuda.synchronize()
        for name, start, end, in_time in batch:
            if in_time:
                samples[name].append(start.elapsed_time(end))
            else:
                pause_us[name] = min(1.5 * pause_us[name], MAX_PAUSE_US)
    return {name: summarise(taken) for name, taken in samples.items()}


def _record(
    call: Call, pause_us: float, flush: torch.Tensor
) -> tuple[torch.cuda.Event, torch.cuda.Event, bool]:
    """Enqueues one sample: its events, and whether they enclose nothing but the call's kernels.

    The GPU sleeps before the start event while the host enqueues the event, the call and the end
    event. Without that pause the start event would pass at once and the interval would hold the
    host's work as well: a compiled function's guards, an allocation, a launch. If the start event
    has passed before the host is done, the pause was too short and the sample does not count.
    """
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    flush.zero_()
    torch.cuda._sleep(int(pause_us * CYCLES_PER_US))
    start.record()
    call()
    end.record()
    return start, end, not start.query()


def _pause_us(call: Call) -> float:
    """Microseconds for which the GPU has to sleep while the host enqueues the call."""
    slowest = 0.0
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        slowest = max(slowest, (time.perf_counter() - begin) * 1e6)
    torch.cuda.synchronize()
    return min(max(3 * slowest, MIN_PAUSE_US), MAX_PAUSE_US)


def _sample_cost_ms(call: Call, pause_us: float, flush: torch.Tensor) -> float:
    """Milliseconds that one sample takes, pause and flush included."""
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    _record(call, pause_us, flush)
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


def time_cpu(
    calls: Mapping[str, Call], *, budget_s: float = 0.2, move: Callable[[], None] = stay
) -> dict[str, Timing]:
    """Wall time of each callable on one CPU thread, in turns; caches are as the calls leave them.

    Args:
        calls: the arms.
        budget_s: seconds to spend on all arms together; at least three samples are taken of each.
        move: called before every repetition.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # waking others on a busy machine takes longer than the small cases
    try:
        return _time_in_turns(calls, budget_s, move)
    finally:
        torch.set_num_threads(threads)


def _time_in_turns(
    calls: Mapping[str, Call], budget_s: float, move: Callable[[], None]
) -> dict[str, Timing]:
    names = list(calls)
    for call in calls.values():
        call()
    samples: dict[str, list[float]] = {name: [] for name in names}
    begin = time.perf_counter()
    repetition = 0
    while repetition < 3 or (
        repetition < MAX_REPETITIONS and time.perf_counter() - begin < budget_s
    ):
        move()
        for index in balanced_order(len(names), repetition):
            started = time.perf_counter()
            calls[names[index]]()
            samples[names[index]].append((time.perf_counter() - started) * 1e3)
        repetition += 1
    return {name: summarise(taken) for name, taken in samples.items()}


def time_host(
    statements: Mapping[str, str],
    variables: Mapping[str, Any],
    *,
    label: str,
    rounds: int = 5,
    min_run_s: float = 0.2,
) -> tuple[dict[str, Timing], benchmark.Compare]:
    """Time per call of Python statements, the launch included, in alternating rounds.

    Calls follow each other without a synchronisation between them, so as long as a kernel is
    shorter than a call this is the host's time.

    Args:
        statements: name to Python statement.
        variables: names that the statements use.
        label: heading of the comparison.
        rounds: how often the statements take turns.
        min_run_s: seconds of each measurement.

    Returns:
        One `Timing` per statement, in milliseconds, and the comparison ready to print.
    """
    measured: dict[str, list[Any]] = {name: [] for name in statements}
    timers = {
        name: benchmark.Timer(
            stmt=statement,
            globals=dict(variables),
            label=label,
            sub_label=statement,
            description="host time",
        )
        for name, statement in statements.items()
    }
    for repetition in range(rounds):
        names = list(statements)
        for index in balanced_order(len(names), repetition):
            timer = timers[names[index]]
            measured[names[index]].append(timer.blocked_autorange(min_run_time=min_run_s))
    timings = {
        name: summarise([time_s * 1e3 for one in taken for time_s in one.times])
        for name, taken in measured.items()
    }
    return timings, benchmark.Compare([one for taken in measured.values() for one in taken])
