"""Devices and markers: what runs where, and what a missing GPU means.

Tests on CUDA tensors are skipped where there is no GPU. With TORCH_SWIZZLE_REQUIRE_CUDA=1, which a
GPU machine sets, they fail instead, so that a lost GPU can never pass for success; what runs on
several devices then runs on CUDA alone, since every other machine runs the rest.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
import settings_record
import torch

import torch_swizzle  # noqa: F401  (loads the operators for every test file)

REQUIRE_CUDA = os.environ.get("TORCH_SWIZZLE_REQUIRE_CUDA") == "1"

CUDA = pytest.param("cuda", marks=pytest.mark.cuda)


OUTCOMES: list[settings_record.Outcome] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Ask for a record of what works where."""
    parser.addoption(
        "--record-settings",
        action="store_true",
        help="write what the tests of each setting gave into tests/settings.json",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, so that the suite runs under any configuration file."""
    config.addinivalue_line("markers", "cuda: needs a CUDA device")
    config.addinivalue_line("markers", "also_cuda: runs on a CUDA device too where there is one")
    config.addinivalue_line("markers", "two_gpus: needs two CUDA devices")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "setting(name, answer): shows what happens in a setting")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a test's report say which setting it is for."""
    marker = item.get_closest_marker("setting")
    if marker:
        answer = marker.kwargs.get("answer", settings_record.WORKS)
        on = "cuda" if item.get_closest_marker("cuda") else "cpu"
        file = item.path.relative_to(settings_record.ROOT).as_posix()
        item.user_properties.append(("setting", [marker.args[0], answer, file, on]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the outcome of a test that is for a setting."""
    decides = report.when == "call" or report.outcome != "passed"
    for name, value in report.user_properties:
        if name == "setting" and decides:
            setting, answer, file, on = value  # type: ignore[misc]
            OUTCOMES.append((setting, answer, file, on, report.outcome))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the record, in the process that has every report."""
    is_worker = hasattr(session.config, "workerinput")
    if session.config.getoption("--record-settings") and not is_worker:
        old = settings_record.load() if settings_record.RECORD.exists() else {}
        settings_record.save(settings_record.merge(old, OUTCOMES))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs CUDA where there is none, or fail it where CUDA was promised."""
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        if REQUIRE_CUDA:
            pytest.fail("TORCH_SWIZZLE_REQUIRE_CUDA=1, but torch finds no CUDA device")
        pytest.skip("needs a CUDA device")
    if item.get_closest_marker("two_gpus"):
        item.user_properties.append(("two_gpus", "yes"))  # for the GPU record
        if torch.cuda.device_count() < 2:
            pytest.skip("needs two CUDA devices")


@pytest.fixture(params=[CUDA] if REQUIRE_CUDA else ["cpu", CUDA])
def device(request: pytest.FixtureRequest) -> str:
    """Each device that computes values."""
    name: str = request.param
    return name


@pytest.fixture(params=[CUDA] if REQUIRE_CUDA else ["cpu", "meta", CUDA])
def any_device(request: pytest.FixtureRequest) -> str:
    """Each device that the operators accept, meta tensors included."""
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def no_error_is_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """An asynchronous CUDA failure surfaces in the test that caused it, not in a later one."""
    yield
    if request.node.get_closest_marker("cuda"):
        torch.cuda.synchronize()


@pytest.fixture
def memory_is_given_back() -> Iterator[None]:
    """A test starts and ends with an empty cache, for inputs that need much of the device."""
    torch.cuda.empty_cache()
    yield
    torch.cuda.empty_cache()


@pytest.fixture(autouse=True)
def experimental_types_are_no_news() -> Iterator[None]:
    """Torch's own notices on prototype tensor types say nothing about these operators."""
    with warnings.catch_warnings():
        for notice in (
            "ComplexHalf support is experimental",
            "Named tensors and all their associated APIs",
            "The PyTorch API of nested tensors",
            "Sparse CSR tensor support",
            "Sparse invariant checks",
        ):
            warnings.filterwarnings("ignore", message=notice)
        yield
