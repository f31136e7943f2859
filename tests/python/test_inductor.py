"""The optional pass for compiled code: what it replaces, what it leaves, and that it goes again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from samples import assert_same_bits, random_bits
from torch import Tensor, fx
from torch._inductor import config
from torch.fx.experimental.proxy_tensor import make_fx

import torch_swizzle.inductor
from torch_swizzle.inductor import TransposePass

SWIZZLE = torch.ops.swizzle.transpose.default


@pytest.fixture
def transposes(device: str) -> Iterator[TransposePass]:
    """The pass, for tensors of the device and of any size."""
    torch.compiler.reset()
    current = TransposePass(None, min_bytes=0, device_types=(device,))
    with config.patch(post_grad_custom_post_pass=current, fx_graph_cache=False):
        yield current


def changed(step: Callable[..., object], *inputs: Tensor, min_bytes: int = 0) -> fx.GraphModule:
    """The graph of a step with decomposed views, after the pass."""
    decompositions = {
        torch.ops.aten.t.default: lambda x: torch.ops.aten.permute.default(x, [1, 0]),
        torch.ops.aten.transpose.int: swap,
    }
    graph = make_fx(step, decomposition_table=decompositions, tracing_mode="fake")(*inputs)
    TransposePass(None, min_bytes, (inputs[0].device.type,))(graph.graph)
    graph.recompile()
    return graph


def swap(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """A transpose as the permutation that Inductor makes of it."""
    order = list(range(x.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return torch.ops.aten.permute.default(x, order)


def uses(graph: fx.GraphModule) -> int:
    """How often the graph calls the operator."""
    return sum(node.target is SWIZZLE for node in graph.graph.nodes)


HALF = torch.ones(48, 64, dtype=torch.float16)
WORD = torch.ones(48, 64)
REPLACED: dict[str, tuple[Callable[..., object], Tensor]] = {
    "input to output": (lambda x: x.t().contiguous(), HALF),
    "of bytes": (lambda x: x.t().contiguous(), torch.ones(48, 64, dtype=torch.uint8)),
    "at an odd pitch": (lambda x: x.t().contiguous(), torch.ones(48, 63)),
    "into an odd pitch": (lambda x: x.t().contiguous(), torch.ones(47, 64)),
    "batched": (lambda x: x.transpose(0, 2).contiguous(), torch.ones(5, 6, 7)),
    "a product's operand": (lambda x: torch.mm(x, x.t().contiguous()), HALF),
    "a product's result": (lambda x: torch.mm(x, x.t()).t().contiguous(), HALF),
}
LEFT: dict[str, tuple[Callable[..., object], Tensor]] = {
    "words at even pitches": (lambda x: x.t().contiguous(), WORD),
    "read by a fused kernel": (lambda x: x.t().contiguous() + 1, HALF),
    "made by a fused kernel": (lambda x: (x + 1).t().contiguous(), HALF),
    "a rotation of three dims": (lambda x: x.permute(2, 0, 1).contiguous(), torch.ones(5, 6, 7)),
    "rows that stay rows": (lambda x: x.transpose(0, 1).contiguous(), torch.ones(5, 6, 7).half()),
    "a column-major input": (
        lambda x: x.t().clone(memory_format=torch.contiguous_format),
        HALF.t(),
    ),
    "a clone of other strides": (lambda x: x.t().clone(memory_format=torch.preserve_format), HALF),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_copy_from_memory_to_memory_is_replaced(name: str) -> None:
    step, x = REPLACED[name]
    graph = changed(step, x)
    assert uses(graph) == 1
    result, expected = graph(x), step(x)
    assert isinstance(result, Tensor)
    assert isinstance(expected, Tensor)
    assert result.stride() == expected.stride()
    assert_same_bits(result, expected)


@pytest.mark.parametrize("name", LEFT)
def test_any_other_copy_is_left(name: str) -> None:
    step, x = LEFT[name]
    assert uses(changed(step, x)) == 0


def test_small_copies_and_other_devices_are_left() -> None:
    step, x = REPLACED["input to output"]
    assert uses(changed(step, x, min_bytes=x.nbytes)) == 1
    assert uses(changed(step, x, min_bytes=x.nbytes + 1)) == 0
    assert (
        TransposePass(None)._is_faster(torch.ones(4096, 4096, dtype=torch.uint8), [0, 1]) is False
    )


def test_an_earlier_pass_runs_first_and_comes_back() -> None:
    seen: list[fx.Graph] = []
    with config.patch(post_grad_custom_post_pass=seen.append):
        before = config.post_grad_custom_post_pass
        current = torch_swizzle.inductor.use_transpose()
        assert current is not None
        assert torch_swizzle.inductor.use_transpose() is current
        assert current.uuid() is None
        graph = make_fx(lambda x: x + 1)(torch.ones(2)).graph
        current(graph)
        assert seen == [graph]
        assert torch_swizzle.inductor.use_transpose(False) is None
        assert config.post_grad_custom_post_pass is before
        assert torch_swizzle.inductor.use_transpose(False) is None
    assert TransposePass(None).uuid() == TransposePass(None).uuid()
    assert TransposePass(None).uuid() != TransposePass(None, min_bytes=1).uuid()


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compiled_code_calls_the_operator_where_shapes_are_known(
    dynamic: bool, device: str, transposes: TransposePass
) -> None:
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.mT.contiguous(), x.mT.contiguous() + 1

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    x = random_bits((3, 130, 257), torch.int16, device)
    for actual, expected in zip(compiled(x), step(x), strict=True):
        assert actual.stride() == expected.stride()
        assert_same_bits(actual, expected)
    assert transposes.replaced == (0 if dynamic else 1)
