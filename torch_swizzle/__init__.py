"""Transposes of PyTorch tensors at the speed of a copy.

Importing the package registers the operators `torch.ops.swizzle.*`:

    >>> import torch, torch_swizzle
    >>> x = torch.arange(6).reshape(2, 3)
    >>> torch.ops.swizzle.transpose(x)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    >>> torch_swizzle.transpose(x, 0, 1, method="padded").shape
    torch.Size([3, 2])

C++ programs find the same library with `find_package(torch_swizzle)`, given `cmake_prefix_path`.
"""

from ._library import cmake_prefix_path, library_path, load_library
from ._sharding import register_when_imported

load_library()
register_when_imported()

from ._accelerate import accelerate, accelerate_as_asked  # noqa: E402
from ._build_info import version as __version__  # noqa: E402
from ._ops import bank_probe, permute, transpose  # noqa: E402  (exist only once the library is loaded)

accelerate_as_asked()

__all__ = [
    "__version__",
    "accelerate",
    "bank_probe",
    "cmake_prefix_path",
    "library_path",
    "permute",
    "transpose",
]
