"""Compile the kernels in Triton ahead of time and show what they take: tools/gpu_kernels.py

No GPU is needed. For each architecture, dtype and kernel: registers of a thread, bytes that did not
fit them, and shared memory of a program in bytes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from rflaf.nn import gpu

ARCHITECTURES = (80, 90)
DTYPES = ("fp32", "fp16", "bf16", "fp64")
N_ROWS = 223  # of the table of 17 Gaussians with zero tails


def compiled(kernel: Any, constants: dict[str, Any], arch: int, dtype: str) -> Any:
    """The kernel for tensors of `dtype`."""
    own, table = f"*{dtype}", "*fp64" if dtype == "fp64" else "*fp32"
    types = dict.fromkeys(("z_ptr", "out_ptr", "g_ptr", "dz_ptr"), own)
    types |= dict.fromkeys(("cells_ptr", "frame_ptr", "sums_ptr"), table)
    types |= dict.fromkeys(("length", "n_rows", "blocks"), "i32")
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature, constants)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32))


def resources(cubin: bytes) -> tuple[int, int]:
    """Registers of a thread, and bytes of its stack, of the kernel in a compiled file."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        shown = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", shown)
    assert found, shown
    return int(found[1]), int(found[2])


def table() -> Iterator[dict[str, Any]]:
    constants = {"HIGH": gpu.high_digits(N_ROWS), "DIGIT": gpu.DIGIT, "BLOCK": gpu.SUM_BLOCK}
    for arch in ARCHITECTURES:
        for dtype in DTYPES:
            kernels = {
                "values": (gpu.apply_kernel, {"BLOCK": gpu.BLOCK}),
                "gradient for z": (
                    gpu.gradient_kernel,
                    {**constants, "NEED_Z": True, "NEED_SUMS": False},
                ),
                "gradient for a": (
                    gpu.gradient_kernel,
                    {**constants, "NEED_Z": False, "NEED_SUMS": True},
                ),
                "both gradients": (
                    gpu.gradient_kernel,
                    {**constants, "NEED_Z": True, "NEED_SUMS": True},
                ),
            }
            for name, (kernel, given) in kernels.items():
                made = compiled(kernel, given, arch, dtype)
                registers, stack = resources(made.asm["cubin"])
                row = {"arch": f"sm_{arch}", "dtype": dtype, "kernel": name}
                row |= {"registers": registers, "stack": stack, "shared": made.metadata.shared}
                yield row


def main() -> int:
    for row in table():
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
