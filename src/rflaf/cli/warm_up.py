"""rflaf warm-up"""

from __future__ import annotations

from rflaf.cli.app import app
from rflaf.cli.console import say


@app.command("warm-up")
def warm_up() -> None:
    """Compile the kernels once and keep them on disk, so that nothing waits for it later.

    The folder is that of NUMBA_CACHE_DIR where it is set. `python -m rflaf.fused` does the same
    without the command line's extra.
    """
    from rflaf.warm_up import warm_up as compile_kernels

    say(f"Compiled kernels are in {compile_kernels()}")
