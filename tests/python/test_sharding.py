"""DTensor: shards stay where they are, forward and backward, and no rank talks to another.

The claims run on two processes: over gloo with CPU tensors, and over NCCL where there are two GPUs.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from processes import run_python
from samples import DIMS, assert_same_bits, row_major
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
Claim = Callable[[DeviceMesh], None]

transpose = torch.ops.swizzle.transpose
permute = torch.ops.swizzle.permute


@dataclass(frozen=True)
class Move:
    """Arguments of transpose or permute; torch's own function of that name says what is meant.

    Transpose may do without any, and then exchanges the last two dimensions, as `Tensor.mT`.
    """

    name: str
    arguments: tuple[object, ...]

    def __call__(self, x: Tensor, **keywords: object) -> Tensor:
        """The operator."""
        result: Tensor = getattr(torch.ops.swizzle, self.name)(x, *self.arguments, **keywords)
        return result

    def typed(self, x: Tensor, **keywords: object) -> Tensor:
        """The function of the package."""
        result: Tensor = getattr(torch_swizzle, self.name)(x, *self.arguments, **keywords)
        return result

    def reference(self, x: Tensor) -> Tensor:
        """Torch's own copy, in memory of its own and with canonical strides."""
        view = getattr(torch, self.name)(x, *(self.arguments or DIMS))
        return torch.empty(view.shape, dtype=x.dtype, device=x.device).copy_(view)

    def placed(self, placement: Placement, rank: int) -> Placement:
        """Where a placement goes, said by the shape of a tensor with one longer dimension."""
        if not isinstance(placement, Shard):
            return placement
        marked = torch.zeros([2 if dim == placement.dim else 1 for dim in range(rank)])
        return Shard(list(self.reference(marked).shape).index(2))


TRANSPOSES = [Move("transpose", dims) for dims in [(), (-2, -1), (0, 2), (1, 0), (1, 1)]]
# (2, 0, 1) and (1, 2, 0), which are inverse to each other, tell a dimension from where it goes.
PERMUTES = [
    Move("permute", (dims,))
    for dims in [(2, 0, 1), (1, 2, 0), [1, 2, 0], (0, -1, 1), [-1, -2, -3], (0, 1, 2)]
]
MOVES = [*TRANSPOSES, *PERMUTES]


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
        for move in MOVES:
            expected = [move.placed(sharded.placements[0], x.dim())]
            local = move.reference(sharded.to_local())
            what = (sharded.placements, move)
            with CommDebugMode() as comm:
                y = move(sharded)
            assert_held(y, expected, local, comm, what)
            with CommDebugMode() as comm:
                y = move.typed(sharded, method="padded")
            assert_held(y, expected, local, comm, what)
            if not isinstance(sharded.placements[0], Partial):
                assert_same_bits(y.full_tensor(), move.reference(x), what)


def claim_permutes_of_one_tensor_share_no_answer(mesh: DeviceMesh) -> None:
    # All orders give one shape here, so an answer taken from another call would raise nothing.
    x = numbers(mesh, (6, 6, 6))
    sharded = distribute_tensor(x, mesh, [Shard(0)])
    for _ in range(2):
        for dims in itertools.permutations(range(3)):
            with CommDebugMode() as comm:
                y = permute(sharded, dims=dims)
            local = x.tensor_split(WORLD)[mesh.get_rank()].permute(dims).contiguous()
            assert_held(y, [Shard(dims.index(0))], local, comm, dims)
            assert_same_bits(y.full_tensor(), x.permute(dims).contiguous(), dims)


def claim_uneven_shards_stay(mesh: DeviceMesh) -> None:
    x = numbers(mesh, (5, 3, 7))
    for dim in range(x.dim()):
        sharded = distribute_tensor(x, mesh, [Shard(dim)])
        for move in MOVES:
            with CommDebugMode() as comm:
                y = move(sharded)
            expected = [move.placed(Shard(dim), x.dim())]
            assert_held(y, expected, move.reference(sharded.to_local()), comm, (dim, move))
            assert_same_bits(y.full_tensor(), move.reference(x), (dim, move))


def claim_a_dimension_shorter_than_the_mesh_is_right(mesh: DeviceMesh) -> None:
    x = numbers(mesh, (1, 7))
    for move in (Move("transpose", ()), Move("permute", ((1, 0),))):
        y = move(distribute_tensor(x, mesh, [Shard(0)]))
        assert isinstance(y, DTensor)
        assert_same_bits(y.full_tensor(), move.reference(x), move)


def claim_tensors_without_dimensions_stay_replicated(mesh: DeviceMesh) -> None:
    x = distribute_tensor(numbers(mesh, ()), mesh, [Replicate()])
    for move in (Move("transpose", (0, -1)), Move("permute", ((),))):
        with CommDebugMode() as comm:
            y = move(x)
        assert_held(y, [Replicate()], x.to_local(), comm, move)


def claim_gradients_stay_sharded(mesh: DeviceMesh) -> None:
    x = numbers(mesh, SHAPE)
    for placement in (Replicate(), Shard(0), Shard(1), Shard(2)):
        for move in MOVES:
            leaf = distribute_tensor(x, mesh, [placement]).requires_grad_()
            result = move.placed(placement, x.dim())
            incoming = distribute_tensor(move.reference(x * 3 + 1), mesh, [result])
            with CommDebugMode() as comm:
                (gradient,) = torch.autograd.grad(move(leaf), leaf, incoming)
            local = leaf.to_local().detach() * 3 + 1
            assert_held(gradient, [placement], local, comm, (placement, move))
            assert_same_bits(gradient.full_tensor(), x * 3 + 1)


def claim_partial_gradients_stay_partial(mesh: DeviceMesh) -> None:
    x = numbers(mesh, SHAPE)
    for move in MOVES:
        leaf = distribute_tensor(x, mesh, [Replicate()]).requires_grad_()
        incoming = DTensor.from_local(move.reference(x + mesh.get_rank()), mesh, [Partial()])
        with CommDebugMode() as comm:
            (gradient,) = torch.autograd.grad(move(leaf), leaf, incoming)
        assert_held(gradient, [Partial()], x + mesh.get_rank(), comm, move)


def claim_out_keeps_its_shards(mesh: DeviceMesh) -> None:
    x = numbers(mesh, SHAPE)
    for placement in (Replicate(), Shard(0), Shard(1), Shard(2), Partial()):
        local = x if placement.is_partial() else distribute_tensor(x, mesh, [placement]).to_local()
        sharded = DTensor.from_local(local, mesh, [placement])
        for move in MOVES:
            result = move.placed(placement, x.dim())
            out = DTensor.from_local(torch.zeros_like(move.reference(local)), mesh, [result])
            with CommDebugMode() as comm:
                y = move.typed(sharded, method="naive", out=out)
            assert y is out
            assert_held(out, [result], move.reference(local), comm, (placement, move))


def claim_out_may_lie_elsewhere(mesh: DeviceMesh) -> None:
    # Fitting and other places of out take turns: what was decided for one must not serve another.
    x = numbers(mesh, SHAPE)
    sharded = distribute_tensor(x, mesh, [Shard(0)])
    for move in (Move("transpose", (0, 2)), Move("permute", ((2, 0, 1),))):
        fitting = move.placed(Shard(0), x.dim())
        for place in (fitting, Replicate(), fitting, Shard(0), fitting):
            out = distribute_tensor(torch.zeros_like(move.reference(x)), mesh, [place])
            with CommDebugMode() as comm:
                move(sharded, out=out)
            what = (move, place)
            assert list(out.placements) == [place], what
            assert_same_bits(out.full_tensor(), move.reference(x), what)
            assert (comm.get_total_counts() == 0) == (place == fitting), what


def claim_two_mesh_dimensions_follow(mesh: DeviceMesh) -> None:
    square = init_device_mesh(mesh.device_type, (WORLD, 1))
    x = numbers(mesh, SHAPE)
    for first in (Replicate(), Shard(0), Shard(1), Shard(2)):
        for second in (Replicate(), Shard(0), Shard(1), Shard(2)):
            sharded = distribute_tensor(x, square, [first, second])
            for move in (Move("transpose", ()), Move("permute", ((2, 0, 1),))):
                with CommDebugMode() as comm:
                    y = move(sharded)
                placements = [move.placed(first, 3), move.placed(second, 3)]
                local = move.reference(sharded.to_local())
                assert_held(y, placements, local, comm, (first, second, move))


def claim_wrong_calls_are_refused(mesh: DeviceMesh) -> None:
    sharded = distribute_tensor(numbers(mesh, SHAPE), mesh, [Shard(0)])
    partial = DTensor.from_local(numbers(mesh, (4, 10, 6)), mesh, [Partial()])
    row = distribute_tensor(numbers(mesh, (1, 7)), mesh, [Shard(0)])
    column = distribute_tensor(numbers(mesh, (7, 1)), mesh, [Shard(1)])
    # What is raised while DTensor works out shapes becomes a RuntimeError, for torch's own
    # operators too; what is raised on the shards keeps its class.
    for said, call in (
        ("Dimension out of range", lambda: transpose(sharded, 0, 3)),
        ("expected method to be one of", lambda: transpose(sharded, method="fast")),
        ("Dimension out of range", lambda: permute(sharded, (0, 1, 3))),
        ("duplicate dims", lambda: permute(sharded, (0, 1, -2))),
        ("expected method to be one of", lambda: permute(sharded, (2, 1, 0), method="fast")),
        ("Sharding propagation failed", lambda: permute(sharded, (0, 2, 1), out=partial)),
        ("Sharding propagation failed", lambda: transpose(row, out=column)),
    ):
        with pytest.raises((RuntimeError, ValueError), match=said):
            call()


def claim_compiled_code_stays_sharded(mesh: DeviceMesh) -> None:
    def step(x: Tensor) -> Tensor:
        return torch.as_tensor(permute(transpose(x * 2, 0, 2), (2, 0, 1)))

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    x = numbers(mesh, SHAPE)
    sharded = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
    y = compiled(sharded)
    assert isinstance(y, DTensor)
    assert list(y.placements) == [Shard(0)]
    assert_same_bits(y.full_tensor(), (x * 2).permute(0, 2, 1).contiguous())
    y.to_local().sum().backward()
    assert isinstance(sharded.grad, DTensor)
    assert_same_bits(sharded.grad.full_tensor(), torch.full_like(x, 2))


CLAIMS = [claim for name, claim in sorted(globals().items()) if name.startswith("claim_")]


def claim_all(mesh: DeviceMesh) -> None:
    for claim in CLAIMS:
        claim(mesh)


@pytest.mark.slow
def test_shards_are_transposed_and_permuted_where_they_lie(backend: str) -> None:
    hold_on_two_ranks(claim_all, backend)


HAS_RULES = """
import torch.distributed.tensor as dtensor
rules = dtensor.DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs
for operator in (torch.ops.swizzle.transpose, torch.ops.swizzle.permute):
    assert operator.default in rules and operator.out in rules
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
