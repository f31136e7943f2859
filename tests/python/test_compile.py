"""torch.compile and torch.export: one graph, no breaks, the same bits as eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from samples import (
    METHODS,
    SMALL_SAMPLES,
    TEMPTING_ALIASES,
    Sample,
    assert_same_bits,
    name_of,
    random_bits,
    reference,
    row_major,
)
from torch import Tensor

import torch_swizzle

transpose = torch.ops.swizzle.transpose


@pytest.fixture(autouse=True)
def fresh_compiler() -> None:
    """No test may lean on what another one compiled."""
    torch.compiler.reset()


class GraphCounter:
    """A backend that runs graphs as they are and counts them."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        """Count a graph and hand it back as it is."""
        self.graphs += 1
        return module.forward


@pytest.mark.setting("torch.compile, fullgraph, static and dynamic, forward and backward")
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("sample", [*SMALL_SAMPLES, *TEMPTING_ALIASES], ids=name_of)
def test_traced_forward_and_backward_equal_eager(
    sample: Sample, dynamic: bool, device: str
) -> None:
    base = torch.randn(sample.base_numel, device=device)

    def step(x: Tensor) -> Tensor:
        return torch.as_tensor(transpose(x, *sample.dims))

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    x = sample.view(base)
    y = compiled(x)
    assert_same_bits(y, sample.expected(x))
    assert y.stride() == row_major(tuple(y.shape))

    leaf = x.detach().clone().requires_grad_()
    incoming = torch.randn(y.shape, device=device)
    (gradient,) = torch.autograd.grad(compiled(leaf), leaf, incoming)
    assert_same_bits(gradient, reference(incoming, *sample.dims))


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compiled_training_step_equals_eager(dynamic: bool, device: str) -> None:
    def step(x: Tensor) -> Tensor:
        return (torch_swizzle.transpose(x * 2) + 1).relu()

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for shape in ((33, 65), (64, 48)):
        x = torch.randn(shape, device=device, requires_grad=True)
        twin = x.detach().clone().requires_grad_()
        y, expected = compiled(x), step(twin)
        assert_same_bits(y, expected)
        y.sum().backward()
        expected.sum().backward()
        assert x.grad is not None
        assert twin.grad is not None
        assert_same_bits(x.grad, twin.grad)


@pytest.mark.slow
def test_compiled_call_takes_the_padded_strides_of_a_library_kernel(device: str) -> None:
    def step(a: Tensor, b: Tensor) -> Tensor:
        return torch.as_tensor(transpose((a @ b).contiguous()))

    compiled = torch.compile(step, fullgraph=True)
    dtype = torch.float16 if device == "cuda" else torch.float32
    for rows in (512, 1):
        # Small integers keep every product exact, so that any order of summing gives the same bits.
        a = torch.randint(-2, 3, (rows, 256), device=device).to(dtype)
        b = torch.randint(-2, 3, (256, 1001), device=device).to(dtype)
        assert_same_bits(compiled(a, b), step(a, b))


def test_dynamic_sizes_share_one_graph(device: str) -> None:
    backend = GraphCounter()
    compiled = torch.compile(lambda x: transpose(x), fullgraph=True, dynamic=True, backend=backend)
    for shape in ((33, 65), (64, 64), (2, 300), (257, 31), (128, 2)):
        x = random_bits(shape, torch.float32, device)
        assert_same_bits(compiled(x), reference(x))
    assert backend.graphs == 1


def test_dynamic_batches_share_one_graph(device: str) -> None:
    backend = GraphCounter()
    compiled = torch.compile(
        lambda x: transpose(x, 0, 2), fullgraph=True, dynamic=True, backend=backend
    )
    for shape in ((3, 33, 65), (7, 2, 64), (64, 64, 2)):
        x = random_bits(shape, torch.float32, device)
        assert_same_bits(compiled(x), reference(x, 0, 2))
    assert backend.graphs == 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_traced(method: str, device: str) -> None:
    compiled = torch.compile(
        lambda x: torch_swizzle.transpose(x, method=method), fullgraph=True, backend="aot_eager"
    )
    x = random_bits((33, 65), torch.float32, device)
    assert_same_bits(compiled(x), reference(x))


@pytest.mark.setting("out= under torch.compile")
def test_traced_out_variant_writes_out(device: str) -> None:
    def step(x: Tensor, out: Tensor) -> Tensor:
        transpose(x, out=out)
        return out + 1

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    x = torch.randn(33, 65, device=device)
    out = torch.full((65, 33), torch.nan, device=device)
    assert_same_bits(compiled(x, out), reference(x) + 1)
    assert_same_bits(out, reference(x))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 0, 7)])
def test_traced_empty_input_gives_an_empty_result(shape: tuple[int, ...], device: str) -> None:
    compiled = torch.compile(lambda x: transpose(x), fullgraph=True, backend="aot_eager")
    x = torch.randn(shape, device=device, requires_grad=True)
    y = compiled(x)
    assert_same_bits(y, reference(x.detach()))
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape


@pytest.mark.setting("torch.export with a dynamic dimension")
def test_export_keeps_a_dimension_dynamic(device: str) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch_swizzle.transpose(x, 0, 1)

    rows = torch.export.Dim("rows", min=2, max=4096)
    program = torch.export.export(
        Model(), (torch.randn(33, 65, device=device),), dynamic_shapes={"x": {0: rows}}
    )
    for size in (2, 33, 300):
        x = torch.randn(size, 65, device=device)
        assert_same_bits(program.module()(x), reference(x))


def test_export_keeps_every_dimension_of_a_batch_dynamic(device: str) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return transpose(x), transpose(x * 2, 0, 2, method="padded")

    dims = {dim: torch.export.Dim(name, min=1, max=512) for dim, name in enumerate("brc")}
    example = (torch.randn(3, 33, 65, device=device),)
    program = torch.export.export(Model(), example, dynamic_shapes={"x": dims})
    calls = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert calls.count(transpose.default) == 2
    for shape in ((1, 2, 300), (7, 1, 1), (5, 64, 64)):
        x = torch.randn(shape, device=device)
        y, z = program.module()(x)
        assert_same_bits(y, reference(x))
        assert_same_bits(z, reference(x * 2, 0, 2))


@pytest.mark.slow
@pytest.mark.cuda
def test_compiled_call_runs_inside_cuda_graphs() -> None:
    compiled = torch.compile(lambda x: transpose(x + 1) * 2, fullgraph=True, mode="reduce-overhead")
    for seed in range(4):
        x = torch.randn(
            2048, 1000, device="cuda", generator=torch.Generator("cuda").manual_seed(seed)
        )
        assert_same_bits(compiled(x).clone(), reference(x + 1) * 2)


class Mixer(torch.nn.Module):
    """A library kernel in front of the operator, and a fused one behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 48)

    def forward(self, x: Tensor) -> Tensor:
        """Mix, transpose, activate."""
        return (torch_swizzle.transpose(self.layer(x)) * 2).relu()


def assert_trains_as_eager(
    compiled: Callable[[Tensor], Tensor], model: Mixer, shapes: list[tuple[int, ...]], device: str
) -> None:
    """The same results and gradients for fresh inputs in each of several calls."""
    for seed, shape in enumerate(shapes):
        torch.manual_seed(seed)
        x = torch.randn(shape, device=device, requires_grad=True)
        incoming = torch.randn((*shape[:-2], 48, shape[-2]), device=device)
        inputs = (x, *model.parameters())
        y = compiled(x)
        gradients = [g.clone() for g in torch.autograd.grad(y, inputs, incoming)]
        expected = model(x)
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(gradients, [*torch.autograd.grad(expected, inputs, incoming)])


@pytest.mark.slow
@pytest.mark.setting("torch.compile with Inductor, a Linear in front, fresh inputs")
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_a_model_with_a_library_kernel_in_front_trains_as_eager(dynamic: bool, device: str) -> None:
    model = Mixer().to(device)
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic)
    shapes = [(16, 64), (16, 64), (33, 64), (5, 64)] if dynamic else [(16, 64)] * 3
    assert_trains_as_eager(compiled, model, list(shapes), device)


@pytest.mark.slow
@pytest.mark.cuda
@pytest.mark.setting("torch.compile, mode reduce-overhead (CUDA graphs)")
def test_a_model_inside_cuda_graphs_trains_as_eager() -> None:
    model = Mixer().to("cuda")
    compiled = torch.compile(model, fullgraph=True, mode="reduce-overhead")

    def step(x: Tensor) -> Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        return torch.as_tensor(compiled(x))

    assert_trains_as_eager(step, model, [(16, 64)] * 6, "cuda")


@pytest.mark.setting("compiled autograd")
@pytest.mark.parametrize("dims", [(-2, -1), (0, 2)])
def test_compiled_autograd_traces_the_backward(dims: tuple[int, int], device: str) -> None:
    from torch._dynamo import compiled_autograd

    def loss(x: Tensor) -> Tensor:
        return (transpose(x, *dims, method="padded") ** 2).sum()

    graphs: list[str] = []

    def keep(module: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        graphs.append(module.code)
        return module.forward

    for seed in range(2):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(3, 5, 7, generator=generator).to(device).requires_grad_()
        with compiled_autograd._enable(torch.compile(backend=keep, fullgraph=True)):
            loss(x).backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad, 2 * x.detach())
    assert len(graphs) == 1, "one graph serves fresh inputs"
    assert "SwizzleTransposeBackward" in graphs[0]
