"""The command `rflaf` (extra `cli`).

A command is a file in this folder that decorates its functions with `rflaf.cli.app.app`; its name
in COMMANDS puts it into the command, in the order of the help. Such a file imports nothing heavy
outside its functions, so that `rflaf --help` answers at once.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any

COMMANDS = (
    "demo",
    "fit",
    "predict",
    "explain",
    "inspect",
    "compare",
    "plan",
    "data",
    "reproduce",
    "warm_up",
)


def load_app() -> Any:
    """The typer application with all commands."""
    from rflaf.cli.app import app

    for name in COMMANDS:
        import_module(f"rflaf.cli.{name}")
    return app


def main() -> None:
    """Run the command line; the entry point."""
    try:
        app = load_app()
    except ImportError as error:
        sys.exit(f"The command rflaf needs typer and rich: pip install 'rflaf[cli]'. ({error})")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="replace")  # no command fails for a terminal without "R²"
    app(prog_name="rflaf")
