"""Transposes and bank probes that together launch every kernel, for compute-sanitizer.

Inputs are made and results compared on the CPU, so that no kernel but ours runs on the GPU. All
inputs are small but those for the kernels that ask the L2 cache to keep a large input.
Exits 1 if a result is wrong, or if a tile policy served no case in one of its layouts or element
sizes.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parent.parent))  # a library built in the tree
from torch_swizzle import _accelerate

DTYPES = (torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128)
LAYOUTS = ("naive", "padded", "swizzled")
METHODS = ("auto", *LAYOUTS)
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}

# Elements as wide as a chunk need neither windows nor permuted registers.
UNSERVED = {("window", 16), ("deinterleave", 16), ("scatter", 8), ("scatter", 16)}

# Around the edges of a 32 x 32 tile, several tiles each way, narrow sides, batches, flat runs of
# each kind with a part of one at the end, in multiples of 16 bytes and not.
SHAPES = (
    (1, 1),
    (31, 33),
    (32, 32),
    (65, 97),
    (128, 96),
    (272, 288),
    (3, 300),
    (300, 3),
    (16, 130),
    (2, 33, 31),
    (3, 2, 32, 48),
    (2112, 3),
    (2064, 12),
    (12, 2064),
    (70, 16, 12),
    (12, 2080),
    (70, 16, 16),
    (33, 31, 29),
    (66, 515),
    (68, 515),
)


# From here on a kernel keeps its input (kMinKeptBytes in csrc/core). Matrices of a batch, the tiles
# that have such kernels for them, and how the matrices lie: side by side, or as one that is
# expanded, whole or all but the first and the last of its columns.
KEPT_BYTES = 160 << 20
KEPT_BATCHES = (
    ((272, 288), ("vector", "vector128"), "expanded"),
    ((272, 288), ("vector",), "cut"),
    ((2064, 12), ("flat",), "expanded"),
    ((12, 2064), ("flat",), "expanded"),
    ((16, 12), ("flat",), "packed"),
)


def check_kept(dtype: torch.dtype, device: torch.device, least_bytes: int) -> Iterator[str]:
    """Runs batches of at least so many bytes through their tiles; yields what is wrong."""
    for shape, tiles, how in KEPT_BATCHES:
        matrix = storage(shape[0] * shape[1], dtype).view(shape)
        columns = slice(1, -1) if how == "cut" else slice(None)
        batches = -(-least_bytes // matrix[:, columns].numel() // dtype.itemsize)
        if how == "packed":
            x = matrix.repeat(batches, 1, 1).to(device)
        else:
            x = matrix.to(device)[:, columns].expand(batches, -1, -1)
        expected = matrix[:, columns].t().contiguous().expand(batches, -1, -1)
        for tile in tiles:
            for method in LAYOUTS if has_layout(tile) else ("auto",):
                y = torch.ops.swizzle._transpose_with(x, method, tile)
                if not same_bits(y.cpu(), expected):
                    yield f"{dtype} {batches} x {shape} {method} {tile}"


def views(dtype: torch.dtype, device: torch.device) -> Iterator[tuple[str, torch.Tensor]]:
    """Named inputs on `device`; only whole storages are copied there."""
    for shape in SHAPES:
        count = torch.Size(shape).numel()
        yield f"{shape}", storage(count, dtype).to(device).view(shape)
    base = storage(96 * 112, dtype).to(device)
    rows = base.view(96, 112)
    yield "pitched", rows[:, 16:96]
    yield "odd pitch", base[: 95 * 111].view(95, 111)[:, :77]
    yield "base one element in", base[1 : 1 + 64 * 80].view(64, 80)
    yield "base three elements in, odd", base[3 : 3 + 65 * 81].view(65, 81)
    yield "column-major", rows.t()
    yield "column-major, pitched", rows[:, 16:96].t()  # its rows stay rows: the gather
    yield "every third column", rows[:, ::3]
    yield "every third of 108 columns", rows[:, :108:3]
    yield "all columns but the first and the last", rows[:, 1:-1]
    yield "every second row", rows[::2]
    yield "rows over two dimensions", base[: 15 * 13 * 37].view(15, 13, 37).permute(2, 0, 1)
    yield "expanded rows", base[:80].expand(64, 80)
    yield "expanded columns", base[:64].unsqueeze(1).expand(64, 80)


def slices(
    dtype: torch.dtype, device: torch.device
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Transposed copies into parts of rows: what lies in the whole rows then, and what should."""
    for rows, columns, pitch, start in ((112, 96, 144, 16), (77, 111, 130, 3), (2112, 16, 24, 8)):
        source = storage(rows * columns, dtype).view(columns, rows)
        expected = storage(rows * pitch, dtype).view(rows, pitch)
        whole = expected.to(device)
        if device.type == "cpu":
            whole = whole.clone()
        expected[:, start : start + columns] = source.t()
        part, x = whole[:, start : start + columns], source.to(device)
        with _accelerate._accelerate(True, False, device):
            part.copy_(x.t())
        yield f"{(rows, columns)} into rows of {pitch}", whole.cpu(), expected


def known_tiles() -> list[str]:
    """Every tile policy, from the refusal of an unknown one, so that new ones are covered too."""
    try:
        torch.ops.swizzle._transpose_with(torch.zeros(2, 2), "auto", "?")
    except ValueError as refusal:
        listed = str(refusal).split("one of")[-1].split("got")[0]
        return re.findall(r"'(\w+)'", listed)
    raise RuntimeError("an unknown tile was accepted")


def has_layout(tile: str) -> bool:
    """Whether a tile takes other methods than auto; every tile takes an empty input."""
    try:
        torch.ops.swizzle._transpose_with(torch.zeros(0, 2), "naive", tile)
    except ValueError:
        return False
    return True


def storage(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Random bits on the CPU."""
    generator = torch.Generator().manual_seed(count)
    size = (count * dtype.itemsize,)
    return torch.randint(0, 256, size, dtype=torch.uint8, generator=generator).view(dtype)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    integer = INTEGERS[a.element_size()]
    return a.shape == b.shape and torch.equal(a.view(integer), b.view(integer))


def main() -> int:
    device = torch.device("cuda" if "--cpu" not in sys.argv[1:] else "cpu")
    tiles = known_tiles()
    served: Counter[tuple[str, str, int]] = Counter()
    wrong: list[str] = []
    for dtype in DTYPES:
        for name, x in views(dtype, device):
            expected = x.cpu().transpose(-2, -1).contiguous()
            results: dict[str, torch.Tensor] = {}
            for method in METHODS:
                results[method] = torch.ops.swizzle.transpose(x, method=method)
                for tile in tiles:
                    try:
                        y = torch.ops.swizzle._transpose_with(x, method, tile)
                    except ValueError:  # not this layout or this input
                        continue
                    results[f"{method} {tile}"] = y
                    if min(x.shape[-2:]) > 1:  # else a plain copy, whatever the tile
                        served[tile, method, dtype.itemsize] += 1
            wrong += [
                f"{dtype} {name} {variant}"
                for variant, y in results.items()
                if not same_bits(y.cpu(), expected)
            ]
        least_bytes = KEPT_BYTES if device.type == "cuda" else 1 << 16
        wrong += check_kept(dtype, device, least_bytes)
        # The call refuses a torch that it was not tried on.
        if str(torch.__version__).startswith("2.11."):
            for name, whole, expected in slices(dtype, device):
                if not same_bits(whole, expected):
                    wrong.append(f"{dtype} {name}")
    floats = torch.linspace(-8, 8, 1300)
    for ways in (1, 2, 4, 8, 16, 32):
        for size in (1, 257, 1300):
            y = torch.ops.swizzle.bank_probe(floats[:size].to(device), ways)
            if not same_bits(y.cpu(), (floats[:size] + 10) * 2):
                wrong.append(f"bank_probe of {size} floats, {ways} ways")
    if not tiles:
        wrong.append("no tile is known")
    for tile in tiles:
        for method in METHODS if has_layout(tile) else ("auto",):
            counts = {dtype.itemsize: served[tile, method, dtype.itemsize] for dtype in DTYPES}
            listed = ", ".join(f"{size} bytes {count}" for size, count in counts.items())
            print(f"{tile} {method}: {listed}")
            wrong += [
                f"tile {tile} served no case by method {method} with elements of {size} bytes"
                for size, count in counts.items()
                if not count and (tile, size) not in UNSERVED
            ]
    for line in wrong:
        print(f"wrong: {line}")
    print(f"{sum(served.values())} forced cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
