"""The application: options that stand before a command, and what becomes of errors."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rflaf._version import __version__
from rflaf.cli.console import complain, in_options

# typer keeps its own copy of click in some versions and uses click in others
_USAGE_ERRORS = (kind for kind in typer.BadParameter.__mro__ if hasattr(kind, "exit_code"))
_PASSED_ON: tuple[type[Exception], ...] = (typer.Exit, typer.Abort, BrokenPipeError, *_USAGE_ERRORS)
INTERRUPTED = 130


class Commands(TyperGroup):
    """Turns errors into one line on stderr and an exit code.

    0: done. 1: an error, in one line, with a traceback by --debug. 2: a command that was not
    understood. 130: Ctrl-C.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _PASSED_ON:
            raise
        except KeyboardInterrupt:
            complain("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            complain(f"Error: {_one_line(error)}")
            raise typer.Exit(1) from None


def _one_line(error: Exception) -> str:
    text = in_options(" ".join(str(error).split()))
    if isinstance(error, OSError) and error.filename and error.strerror:
        text = f"'{error.filename}': {error.strerror}."
    columns = getattr(error, "columns", [])
    if columns:
        text += " To ignore: " + " ".join(f"--drop {shlex.quote(c)}" for c in columns)
    # what the package raises on purpose explains itself; else the kind of error helps
    if isinstance(error, ValueError | ImportError | MemoryError | OSError) and text:
        return text
    return f"{type(error).__name__}: {text} (--debug shows where)"


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Random feature models that learn their activation function.",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"rflaf {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Options of all commands; `Commands.invoke` reads them."""
