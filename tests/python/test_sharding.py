"""DTensor: shards stay where they are, forward and backward, and no rank talks to another.

The claims run on two processes: over gloo with CPU tensors, and over NCCL where there are two GPUs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from processes import run_python
from samples import assert_same_bits, reference, row_major
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.placement_types import _StridedShard

import torch_swizzle
from torch_swizzle import _sharding

WORLD = 2
SHAPE = (4, 6, 10)
PARTIAL_KINDS = ("sum", "avg", "max", "min")
DIMS = [(-2, -1), (0, 2), (1, 0), (1, 1)]
Claim = Callable[[DeviceMesh], None]

transpose = torch.ops.swizzle.transpose


@pytest.fixture(
    params=[
        "gloo",
        pytest.param("nccl", marks=[pytest.mark.cuda, pytest.mark.two_gpus]),
    ]
)
def backend(request: pytest.FixtureRequest) -> str:
    """Each way for two processes to hold a mesh."""
    name: str = request.param
    return name


def hold_on_two_ranks(claim: Claim, backend: str) -> None:
    """Run a claim on every rank; a failure on one of them is raised here."""
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = f"file://{folder}/rendezvous"
        torch.multiprocessing.spawn(run_rank, (claim, backend, rendezvous), nprocs=WORLD)


def run_rank(rank: int, claim: Claim, backend: str, rendezvous: str) -> None:
    """One rank of two, with a GPU of its own over NCCL."""
    torch.set_num_threads(1)
    device = "cpu"
    if backend == "nccl":
        device = "cuda"
        torch.cuda.set_device(rank)
    dist.init_process_group(
        backend,
        init_method=rendezvous,
        rank=rank,
        world_size=WORLD,
        timeout=timedelta(seconds=60),
        device_id=torch.device("cuda", rank) if backend == "nccl" else None,
    )
    try:
        claim(init_device_mesh(device, (WORLD,)))
        dist.barrier()
    finally:
        dist.destroy_process_group()


def numbers(mesh: DeviceMesh, shape: tuple[int, ...]) -> Tensor:
    """The same distinct values on every rank."""
    return (
        torch.arange(torch.Size(shape).numel(), dtype=torch.float32)
        .view(shape)
        .to(mesh.device_type)
    )


def moved(placement: Placement, rank: int, dims: tuple[int, int]) -> Placement:
    """Where a placement goes when two dimensions are exchanged, said by torch's own transpose."""
    if not isinstance(placement, Shard):
        return placement
    marked = torch.zeros([2 if dim == placement.dim else 1 for dim in range(rank)])
    return Shard(list(marked.transpose(*dims).shape).index(2))


def assert_held(
    y: Tensor, placements: list[Placement], local: Tensor, comm: CommDebugMode, what: object
) -> None:
    """A result that lies where it should, has these local bits, and has cost no message."""
    assert isinstance(y, DTensor), what
    assert list(y.placements) == placements, what
    assert_same_bits(y.to_local(), local, what)
    assert y.stride() == row_major(tuple(y.shape)), what
    assert comm.get_total_counts() == 0, (what, comm.get_comm_counts())


def claim_every_placement_follows_its_dimension(mesh: DeviceMesh) -> None:
    x = numbers(mesh, SHAPE)
    placements = [Replicate(), *(Shard(dim) for dim in range(x.dim()))]
    inputs = [distribute_tensor(x, mesh, [placement]) for placement in placements]
    inputs += [DTensor.from_local(x, mesh, [Partial(kind)]) for kind in PARTIAL_KINDS]
    for sharded in inputs:
        for dims in DIMS:
            expected = [moved(sharded.placements[0], x.dim(), dims)]
            local = reference(sharded.to_local(), *dims)
            what = (sharded.placements, dims)
            with CommDebugMode() as comm:
                y = transpose(sharded, *dims)
            assert_held(y, expected, local, comm, what)
            with CommDebugMode() as comm:
                y = torch_swizzle.transpose(sharded, *dims, method="padded")
            assert_held(y, expected, local, comm, what)
            if not isinstance(sharded.placements[0], Partial):
                assert_same_bits(y.full_tensor(), reference(x, *dims), what)


def claim_uneven_shards_stay(mesh: DeviceMesh) -> None:
    x = numbers(mesh, (5, 3))
    for dim in range(2):
        sharded = distribute_tensor(x, mesh, [Shard(dim)])
        with CommDebugMode() as comm:
            y = transpose(sharded)
        assert_held(y, [Shard(1 - dim)], reference(sharded.to_local()), comm, dim)
        assert_same_bits(y.full_tensor(), reference(x))


def claim_a_dimension_shorter_than_the_mesh_is_right(mesh: DeviceMesh) -> None:
    x = numbers(mesh, (1, 7))
    y = transpose(distribute_tensor(x, mesh, [Shard(0)]))
    assert_same_bits(y.full_tensor(), reference(x))


def claim_gradients_stay_sharded(mesh: DeviceMesh) -> None:
    x = numbers(mesh, SHAPE)
    for placement in (Replicate(), Shard(0), Shard(1), Shard(2)):
        for dims in DIMS:
            leaf = distribute_tensor(x, mesh, [placement]).requires_grad_()
            result = moved(placement, x.dim(), dims)
            incoming = distribute_tensor(reference(x * 3 + 1, *dims), mesh, [result])
            with CommDebugMode() as comm:
                (gradient,) = torch.autograd.grad(transpose(leaf, *dims), leaf, incoming)
            local = reference(incoming.to_local(), *dims)
            assert_held(gradient, [placement], local, comm, (placement, dims))
            assert_same_bits(gradient.full_tensor(), x * 3 + 1)


def claim_out_keeps_its_shards(mesh: DeviceMesh) -> None:
    x = numbers(mesh, SHAPE)
    for placement in (Replicate(), Shard(0), Shard(1), Shard(2)):
        sharded = distribute_tensor(x, mesh, [placement])
        result = moved(placement, x.dim(), (0, 2))
        out = distribute_tensor(torch.zeros(10, 6, 4, device=x.device), mesh, [result])
        with CommDebugMode() as comm:
            y = transpose(sharded, 0, 2, out=out)
        assert y is out
        assert_held(out, [result], reference(sharded.to_local(), 0, 2), comm, placement)


def claim_two_mesh_dimensions_follow(mesh: DeviceMesh) -> None:
    square = init_device_mesh(mesh.device_type, (WORLD, 1))
    x = numbers(mesh, SHAPE)
    for first in (Replicate(), Shard(0), Shard(1), Shard(2)):
        for second in (Replicate(), Shard(0), Shard(1), Shard(2)):
            sharded = distribute_tensor(x, square, [first, second])
            with CommDebugMode() as comm:
                y = transpose(sharded)
            placements = [moved(first, 3, (-2, -1)), moved(second, 3, (-2, -1))]
            assert_held(y, placements, reference(sharded.to_local()), comm, (first, second))


def claim_wrong_calls_are_refused(mesh: DeviceMesh) -> None:
    sharded = distribute_tensor(numbers(mesh, SHAPE), mesh, [Shard(0)])
    # What is raised while DTensor works out shapes becomes a RuntimeError, for torch's own
    # operators too; what is raised on the shards keeps its class.
    for said, call in (
        ("Dimension out of range", lambda: transpose(sharded, 0, 3)),
        ("expected method to be one of", lambda: transpose(sharded, method="fast")),
    ):
        with pytest.raises((RuntimeError, ValueError), match=said):
            call()


def claim_compiled_code_stays_sharded(mesh: DeviceMesh) -> None:
    def step(x: Tensor) -> Tensor:
        return torch.as_tensor(transpose(x * 2, 0, 2))

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    x = numbers(mesh, SHAPE)
    sharded = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
    y = compiled(sharded)
    assert isinstance(y, DTensor)
    assert list(y.placements) == [Shard(2)]
    assert_same_bits(y.full_tensor(), reference(x * 2, 0, 2))
    y.to_local().sum().backward()
    assert isinstance(sharded.grad, DTensor)
    assert_same_bits(sharded.grad.full_tensor(), torch.full_like(x, 2))


CLAIMS = [claim for name, claim in sorted(globals().items()) if name.startswith("claim_")]


def claim_all(mesh: DeviceMesh) -> None:
    for claim in CLAIMS:
        claim(mesh)


@pytest.mark.slow
def test_shards_are_transposed_where_they_lie(backend: str) -> None:
    hold_on_two_ranks(claim_all, backend)


HAS_RULES = """
import torch.distributed.tensor as dtensor
rules = dtensor.DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs
assert torch.ops.swizzle.transpose.default in rules and torch.ops.swizzle.transpose.out in rules
hooked = [*sys.meta_path, dtensor.__loader__, dtensor.__spec__.loader]
assert not any(type(hook).__module__ == "torch_swizzle._sharding" for hook in hooked)
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import torch_swizzle; assert 'torch.distributed.tensor' not in sys.modules",
        "import torch.distributed.tensor, torch_swizzle",
        "import torch_swizzle, importlib; importlib.reload(torch_swizzle)",
    ],
    ids=["operators_first", "dtensor_first", "reloaded"],
)
def test_the_rules_are_there_whatever_was_imported_first(imports: str) -> None:
    run_python(f"import sys, torch; {imports}{HAS_RULES}")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_a_shard_goes_where_a_permutation_sends_its_dimension(order: tuple[int, ...]) -> None:
    class Input:
        ndim = 3
        placements = (Shard(1), Partial("max"), _StridedShard(2, split_factor=2))

    pairs = dict(_sharding._follow(Input(), order))
    assert pairs == {
        Replicate(): Replicate(),
        Partial("max"): Partial("max"),
        _StridedShard(2, split_factor=2): _StridedShard(order.index(2), split_factor=2),
        **{Shard(dim): Shard(order.index(dim)) for dim in range(3)},
    }
