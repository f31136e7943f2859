"""Reports of custom operators that do not fit in elsewhere, each tried here (O17 to O26).

Packaged models (O21) and loading (O23, O25) have files of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch._functorch.config
from samples import (
    METHODS,
    assert_fresh_transpose,
    assert_same_bits,
    random_bits,
    reference,
)
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, vmap

transpose = torch.ops.swizzle.transpose


class TestPaddedStrides:
    """O17, https://github.com/pytorch/pytorch/issues/137437: the compiler's strides were padded."""

    @pytest.mark.slow
    @pytest.mark.parametrize("rows", [512, 1])
    def test_compiled_call_takes_whatever_strides_arrive(self, rows: int, device: str) -> None:
        def step(a: Tensor, b: Tensor) -> Tensor:
            return torch.as_tensor(transpose((a @ b).contiguous()))

        dtype = torch.float16 if device == "cuda" else torch.float32
        # Small integers keep every product exact, so that any order of summing gives the same bits.
        a = torch.randint(-2, 3, (rows, 256), device=device).to(dtype)
        b = torch.randint(-2, 3, (256, 1001), device=device).to(dtype)
        for mode in ("default", "max-autotune") if device == "cuda" else ("default",):
            torch.compiler.reset()
            compiled = torch.compile(step, fullgraph=True, mode=mode)
            assert_same_bits(compiled(a, b).clone(), step(a, b), mode)


def tempting(device: str) -> list[Tensor]:
    """Inputs for which a view would already be the answer."""
    return [
        torch.randn(1, 512, device=device),
        torch.randn(512, 1, device=device),
        torch.randn(1, 1, device=device),
        torch.randn(0, 4, device=device),
        torch.randn(64, 96, device=device).t(),
        torch.randn(3, 64, 96, device=device).mT,
        torch.randn(5, device=device).expand(1, 5),
    ]


class TestAliases:
    """O18, https://github.com/pytorch/pytorch/issues/182006: an output that shares storage."""

    def test_every_result_has_memory_of_its_own(self, device: str) -> None:
        for x in tempting(device):
            before = x.clone()
            for method in METHODS:
                y = transpose(x, method=method)
                assert_fresh_transpose(y, x, reference(x), method)
                y.add_(1)
                assert_same_bits(x, before)

    def test_opcheck_finds_no_alias_where_that_is_an_error(self, device: str) -> None:
        with torch._functorch.config.patch(error_on_custom_op_aliasing=True):
            for x in tempting(device):
                torch.library.opcheck(torch.ops.swizzle.transpose.default, (x,))


class TestVmap:
    """O19, https://github.com/pytorch/pytorch/issues/122706: vmap met a wrapper without data.

    Every other transform: test_transforms.py.
    """

    @pytest.mark.parametrize("in_dim", [0, 1, 2])
    def test_vmap_over_any_dimension_is_the_batched_transpose(
        self, in_dim: int, device: str
    ) -> None:
        x = random_bits((8, 33, 65), torch.float32, device)
        assert_same_bits(vmap(transpose, in_dim)(x), reference(x.movedim(in_dim, 0)))

    def test_vmap_of_grad_is_ones(self, device: str) -> None:
        x = torch.randn(8, 33, 65, device=device)
        assert_same_bits(vmap(grad(lambda z: transpose(z).sum()))(x), torch.ones_like(x))


class TestGradients:
    """O20, https://github.com/pytorch/pytorch/issues/37306: results lost requires_grad.

    Every layout, dtype and mode: test_gradients.py and test_transforms.py.
    """

    def test_first_and_second_derivatives_are_right(self, device: str) -> None:
        x = torch.rand(9, 7, dtype=torch.float64, device=device, requires_grad=True)
        for view in (lambda z: z, lambda z: z.t()):
            assert transpose(view(x)).requires_grad
            assert gradcheck(lambda z, view=view: transpose(view(z)), (x,))
            assert gradgradcheck(lambda z, view=view: transpose(view(z)), (x,))

    def test_gradient_is_the_transposed_gradient(self, device: str) -> None:
        x = torch.rand(33, 17, dtype=torch.float64, device=device, requires_grad=True)
        incoming = torch.rand(17, 33, dtype=torch.float64, device=device)
        (gradient,) = torch.autograd.grad(transpose(x), x, incoming)
        assert_same_bits(gradient, reference(incoming))

    @pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
    def test_nothing_is_recorded_where_gradients_are_off(
        self, guard: type[torch.no_grad] | type[torch.inference_mode], device: str
    ) -> None:
        x = torch.rand(33, 17, device=device, requires_grad=True)
        with guard():
            assert not transpose(x).requires_grad


class TestDroppedLibrary:
    """O22, https://github.com/pytorch/vision/issues/2134: the linker dropped the library.

    Programs that name no symbol of it, with each linker at hand and from an archive:
    test_cpp_consumer.py. Here: a Python process that loads the library and nothing else of it.
    """

    def test_the_library_alone_brings_the_operators(self) -> None:
        import torch_swizzle

        code = (
            f"import torch; torch.ops.load_library({torch_swizzle.library_path!r}); "
            "print(torch.ops.swizzle.transpose(torch.ones(2, 3, requires_grad=True)).shape)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/"
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "torch.Size([3, 2])\n"


ROOT = Path(__file__).resolve().parents[3]


def program(name: str) -> str:
    """The path of a program, from this Python's environment first."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found is not None, f"{name} is not installed"
    return found


class TestOtherSystems:
    """O24, https://github.com/pytorch/extension-cpp/pull/128: Windows, where nothing builds."""

    SENTENCE = "torch_swizzle does not support Windows: build it on Linux."

    def test_the_readme_says_so(self) -> None:
        assert "Windows and macOS are not supported" in (ROOT / "README.md").read_text()

    @pytest.mark.parametrize(("platform", "name"), [("win32", "Windows"), ("darwin", "macOS")])
    def test_setup_stops_with_that_sentence(self, platform: str, name: str) -> None:
        code = (
            "import runpy, sys, setuptools, setuptools.command.build_ext\n"
            "try:\n    import setuptools.command.bdist_wheel\n"
            "except ImportError:\n    import wheel.bdist_wheel\n"
            f"sys.platform = {platform!r}\n"
            "sys.argv = ['setup.py', '--quiet', 'build_ext', '--inplace']\n"
            "runpy.run_path('setup.py', run_name='__main__')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == self.SENTENCE.replace("Windows", name)

    @pytest.mark.parametrize("option", ["CMAKE_HOST_WIN32=ON", "CMAKE_SYSTEM_NAME=Windows"])
    def test_cmake_stops_with_that_sentence(self, option: str, tmp_path: Path) -> None:
        cmake = program("cmake")
        done = subprocess.run(
            [cmake, "-S", ROOT, "-B", tmp_path, f"-D{option}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert self.SENTENCE in done.stderr


class TestCudaCode:
    """O26, https://github.com/facebookresearch/detectron2/issues/235: no image for the device."""

    def architectures(self, folder: Path, **environment: str) -> str:
        """What a build would be made for, under an environment without a GPU in sight."""
        script = folder / "architectures.cmake"
        script.write_text(
            "cmake_policy(VERSION 3.24)\n"
            "set(NVIDIA_SMI NOTFOUND)\n"
            f'include("{ROOT}/cmake/CudaArchitectures.cmake")\n'
            'message(STATUS "${TORCH_SWIZZLE_CMAKE_ARCHITECTURES}")\n'
        )
        cmake = program("cmake")
        clean = {key: value for key, value in os.environ.items() if key != "TORCH_CUDA_ARCH_LIST"}
        clean["PATH"] = str(folder)  # no nvidia-smi
        done = subprocess.run(
            [cmake, "-P", script],
            env=clean | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()[-1].removeprefix("-- ")

    def test_a_build_without_a_gpu_carries_ptx_for_newer_ones(self, tmp_path: Path) -> None:
        assert self.architectures(tmp_path) == "90-real;90-virtual"

    def test_the_list_of_a_release_covers_every_documented_gpu(self, tmp_path: Path) -> None:
        (release,) = {
            line.split('"')[1]
            for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines()
            if line.startswith("A release is built with")
        }
        names = self.architectures(tmp_path, TORCH_CUDA_ARCH_LIST=release)
        assert names == "80-real;86-real;89-real;90-real;100-real;120-real;120-virtual"

    @pytest.mark.cuda
    def test_without_code_for_the_device_the_error_names_both(self) -> None:
        """A driver told to ignore machine code has PTX alone, or nothing: a wrong architecture."""
        from torch_swizzle import _build_info

        code = (
            "import torch, torch_swizzle\n"
            "x = torch.arange(64 * 48).view(64, 48)\n"
            "try:\n"
            "    print(torch.equal(torch_swizzle.transpose(x.cuda()).cpu(), x.t()))\n"
            "except RuntimeError as error:\n"
            "    print(str(error).splitlines()[0])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"CUDA_FORCE_PTX_JIT": "1"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        major, minor = torch.cuda.get_device_capability()
        if "+PTX" in _build_info.cuda_architectures:
            assert done.stdout == "True\n"
        else:
            assert f"({_build_info.cuda_architectures}), got " in done.stdout
            assert f"of compute capability {major}.{minor}" in done.stdout
