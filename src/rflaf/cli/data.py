"""rflaf data list, get, check"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rflaf.cli.app import app
from rflaf.cli.console import complain, say, show_table, working

data = typer.Typer(no_args_is_help=True, help="The data sets of the paper.")
app.add_typer(data, name="data")

Names = Annotated[list[str] | None, typer.Argument(help="Data sets; default: all.")]


@data.command("list")
def list_sets() -> None:
    """List the data sets, and which are available without a download."""
    from rflaf import datasets

    here = set(datasets.names(available=True))
    rows = []
    for name in datasets.names():
        known = datasets.info(name)
        size = f"{known.n_rows:,}" if known.n_rows else ""
        rows.append((name, known.task, size, known.n_inputs, "yes" if name in here else "no"))
    show_table("Data sets", ["name", "task", "rows", "inputs", "available"], rows)


@data.command()
def get(names: Names = None) -> None:
    """Download missing data sets, and verify their checksums."""
    from rflaf import datasets

    missed = 0
    for name in _chosen(names):
        try:
            paths = datasets.fetch(name, progress=sys.stderr.isatty())
        except datasets.DataNotAvailable as error:
            missed += 1
            complain(f"{name}: {error}")
            continue
        say(f"{name}: {', '.join(map(str, paths)) if paths else 'needs no file'}")
    if missed:
        raise typer.Exit(1)


@data.command()
def check(names: Names = None) -> None:
    """Read the available data sets, and print their sizes."""
    from rflaf import datasets

    here = set(datasets.names(available=True))
    failed = False
    for name in _chosen(names):
        if name not in here:
            say(f"{name}: not available")
            failed |= bool(names)  # no failure where nobody asked for it
            continue
        try:
            with working(f"Reading {name}"):
                found = datasets.load(name)
        except (OSError, ValueError) as error:
            complain(f"{name}: {error}")
            failed = True
            continue
        n, d = found.X.shape
        say(f"{name}: {n:,} rows, {d:,} inputs, {datasets.info(name).task}")
    if failed:
        raise typer.Exit(1)


def _chosen(names: list[str] | None) -> list[str]:
    from rflaf import datasets

    for name in names or ():
        datasets.info(name)  # an error where there is no such set
    return list(names or datasets.names())
