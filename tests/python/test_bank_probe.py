"""The bank probe: values, exact ways, gradients, refusals; and the article's index."""

from __future__ import annotations

import doctest

import pytest
import torch
from samples import STALE_BYTE, assert_same_bits, leave_stale_memory, random_bits, row_major
from test_registration import OPCHECK_TESTS
from torch import Tensor

import torch_swizzle
from torch_swizzle import banks, collisions, counters
from torch_swizzle.collisions import Collision, find_collisions

bank_probe = torch.ops.swizzle.bank_probe
WAYS = (1, 2, 4, 8, 16, 32)
SIZES = (0, 1, 31, 33, 255, 256, 257, 511, 513, 1023, 1025, 4097, 8192)


def requests(size: int, ways: int) -> dict[str, tuple[int, int, int]]:
    """Requests, wavefronts and ideal of the loads and of the stores."""
    found = counters.predict(counters.Case("bank_probe", (size,), ways=ways))
    assert all(one.width == 4 for one in found)
    return {one.access: (one.requests, one.wavefronts, one.ideal) for one in found}


@pytest.mark.parametrize("size", SIZES)
def test_every_size_gives_what_torch_gives_for_every_ways(size: int, device: str) -> None:
    x = torch.randn(size, device=device)
    for ways in WAYS:
        leave_stale_memory((size,), torch.float32, device)
        y = bank_probe(x, ways)
        assert_same_bits(y, (x + 10) * 2, ways)


def test_every_ways_gives_the_same_bits_of_any_input(device: str) -> None:
    x = random_bits((8192,), torch.float32, device)
    first = bank_probe(x, 1)
    for ways in WAYS[1:]:
        assert_same_bits(bank_probe(x, ways), first, ways)
    assert first.isnan().any()
    assert bool((first.view(torch.uint8) != STALE_BYTE).any())


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(12.0).view(3, 4).t(),
        torch.arange(100.0)[1::3],
        torch.tensor(2.5),
        torch.arange(5.0).expand(7, 5),
        torch.zeros(3, 0, 2),
        torch.complex(torch.arange(6.0), torch.ones(6)).conj().imag,
    ],
    ids=["transposed", "strided", "scalar", "expanded", "empty", "negative bit"],
)
def test_any_shape_and_strides_give_a_contiguous_result(x: Tensor, device: str) -> None:
    x = x.to(device)
    y = torch_swizzle.bank_probe(x, 4)
    assert torch.equal(y, (x + 10) * 2)
    assert y.stride() == row_major(tuple(x.shape))
    assert not y.is_neg()


def test_meta_result_has_shape_and_dtype() -> None:
    y = bank_probe(torch.empty(2**20, 2**20, device="meta"), 32)
    assert (y.device.type, y.dtype, y.shape) == ("meta", torch.float32, (2**20, 2**20))


@pytest.mark.parametrize(
    ("ways", "conflicts"), [(1, 0), (2, 256), (4, 768), (8, 1792), (16, 3840), (32, 7936)]
)
def test_conflicts_of_8192_floats_are_exact_on_both_sides(ways: int, conflicts: int) -> None:
    assert requests(8192, ways) == {
        "load": (256, 256 + conflicts, 256),
        "store": (256, 256 + conflicts, 256),
    }


def test_a_part_of_a_warp_takes_no_more_than_its_lanes_ask_for() -> None:
    assert requests(1, 32)["load"] == (1, 1, 1)
    assert requests(33, 2)["load"] == (2, 3, 2)
    assert requests(257, 8)["store"] == (9, 8 * 8 + 1, 9)


def test_the_articles_folded_index_loses_half_of_the_values() -> None:
    thread = torch.arange(256)
    folded = 2 * thread % 256
    x = torch.randperm(8192).float().view(32, 256)
    shared = torch.full((32, 256), float("nan"))
    shared[:, folded] = x + 10  # the last thread to write a word wins
    y = shared[:, folded] * 2
    assert int((y != (x + 10) * 2).sum()) == 4096


def test_the_colliding_pair_is_found_although_it_is_in_two_warps() -> None:
    thread = torch.arange(256)
    found = find_collisions(4 * (2 * thread % 256))
    assert found == tuple(Collision(8 * i, (i, i + 128)) for i in range(128))
    rotated = 4 * (2 * thread % 256 + 2 * thread // 256)
    assert find_collisions(rotated) == ()
    for addresses in (4 * (2 * thread % 256), rotated):  # both are two-way: speed does not tell
        assert banks.wavefronts(addresses, width=4).excess == 8


def test_meeting_lanes_of_two_ways_are_those_of_the_article() -> None:
    report = banks.wavefronts(4 * (2 * torch.arange(256) % 256), width=4)
    met = {meeting.bank: meeting.lanes for meeting in report.requests[0].meetings}
    assert met == {2 * k: (k, k + 16) for k in range(16)}


def test_inactive_threads_do_not_collide() -> None:
    assert find_collisions([0, 0, 4], [True, False, True]) == ()
    assert find_collisions([[4, 0], [0, 4]]) == (Collision(0, (1, 2)), Collision(4, (0, 3)))


def test_documented_examples_are_true() -> None:
    names = {"torch": torch, "find_collisions": find_collisions, "torch_swizzle": torch_swizzle}
    assert doctest.testmod(collisions, extraglobs=names).failed == 0
    finder = doctest.DocTestFinder(recurse=False)
    for test in finder.find(torch_swizzle.bank_probe, globs=names):
        assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("ways", [-1, 0, 3, 5, 6, 33, 64, 2**40])
def test_other_ways_are_refused(ways: int, any_device: str) -> None:
    x = torch.zeros(4, device=any_device)
    with pytest.raises(
        ValueError, match=r"^swizzle::bank_probe: expected ways to be 1, 2, 4"
    ) as caught:
        bank_probe(x, ways)
    assert str(ways) in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.complex64])
def test_other_dtypes_are_refused(dtype: torch.dtype, any_device: str) -> None:
    x = torch.zeros(4, dtype=dtype, device=any_device)
    with pytest.raises(NotImplementedError, match=r"^swizzle::bank_probe: expected .* dtype Float"):
        bank_probe(x, 2)


def test_sparse_and_quantized_tensors_are_refused() -> None:
    for x in (
        torch.eye(3).to_sparse(),
        torch.eye(3).to_sparse_csr(),
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    ):
        with pytest.raises(NotImplementedError, match=r"^swizzle::bank_probe: expected a"):
            bank_probe(x, 2)


@pytest.mark.parametrize("with_gradient", [False, True], ids=["plain", "requires_grad"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (), (0, 2)])
def test_opcheck_passes(shape: tuple[int, ...], with_gradient: bool, device: str) -> None:
    x = torch.randn(shape, device=device, requires_grad=with_gradient)
    torch.library.opcheck(bank_probe.default, (x, 4), test_utils=OPCHECK_TESTS)


def test_gradient_is_that_of_the_formula(device: str) -> None:
    x = torch.randn(300, device=device, requires_grad=True)
    weights = torch.randn(300, device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad((bank_probe(x, 8) * weights).sum(), x, create_graph=True)
    assert torch.equal(gradient, 2 * weights)
    (second,) = torch.autograd.grad(gradient.sum(), weights)
    assert torch.equal(second, torch.full_like(second, 2))


def test_schema_is_the_published_one() -> None:
    assert str(bank_probe.default._schema) == "swizzle::bank_probe(Tensor x, int ways) -> Tensor"
    assert torch.Tag.pt2_compliant_tag in bank_probe.default.tags
