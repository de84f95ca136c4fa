"""rflaf warm-up"""

from __future__ import annotations

from rflaf.cli.app import app
from rflaf.cli.console import say


@app.command("warm-up")
def warm_up() -> None:
    """Compile all kernels and cache them on disk, in NUMBA_CACHE_DIR if it is set.

    `python -m rflaf.fused` does the same without the extra `cli`.
    """
    from rflaf.warm_up import warm_up as compile_kernels

    say(f"Compiled kernels are in {compile_kernels()}")
