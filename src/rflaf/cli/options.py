"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

TableFile = Annotated[Path, typer.Argument(help="A .csv, .csv.gz or .parquet file.")]
OutFile = Annotated[Path, typer.Option(help="Output file: .csv, .csv.gz or .parquet.")]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by `rflaf fit`.")]
Target = Annotated[str, typer.Option("--target", "-t", help="Column to predict.")]
TaskOption = Annotated[
    Literal["auto", "regression", "classification"],
    typer.Option(help="auto: classification for text, booleans and up to 20 distinct integers."),
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to ignore. May be repeated.")]
Categorical = Annotated[
    list[str] | None, typer.Option(help="Categorical column, such as codes. May be repeated.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="Text that marks a missing value, such as '?'. May be repeated."),
]
Separator = Annotated[
    str | None,
    typer.Option(
        show_default="detected from the first lines", help="Field separator of the CSV file."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse columns of dates, identifiers and free text.")
]
Components = Annotated[
    int | None,
    typer.Option(min=1, show_default="by the number of rows", help="Random features per member."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]


def load_table_model(path: Path) -> Any:
    """A model of a table from a file, or an error that says what the file holds instead."""
    model = load_any(path)
    from rflaf.tabular import TableError, TableModel

    if not isinstance(model, TableModel):
        raise TableError(
            f"'{path}' contains a {type(model).__name__}. Expected a model written by `rflaf fit`."
        )
    return model


def read_rows(
    model: Any,
    path: Path,
    missing: list[str] | None,
    separator: str | None,
    kept: Sequence[str] = (),
) -> Any:
    """A table for a model, with its types and signs of missing values, and columns to keep."""
    from rflaf.tabular import read_table

    strings = [name for name, kind in model.columns.items() if kind in ("category", "date", "text")]
    stored = model.fitted.get("missing", ())  # of the model's columns, and of no others
    signs = {name: list(missing or ()) for name in kept}
    signs |= {name: [*(missing or ()), *stored] for name in model.columns}
    return read_table(path, separator=separator, missing=signs, strings=[*strings, *kept])


def load_any(path: Path) -> Any:
    """What a model file holds. A file that is none is named before anything heavy is imported."""
    check_file(path)
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 300))
        if b"rflaf model" not in file.read():
            raise ValueError(
                f"'{path}' is not an rflaf model file, or it is truncated. Expected a file written "
                "by rflaf.save."
            )
    from rflaf import load

    return load(path)


def check_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}'.")


def require_skops() -> None:
    """An error if model files cannot be read or written; skops itself is imported later."""
    gone = any(sys.modules.get(name, name) is None for name in ("skops", "skops.io"))
    if gone or find_spec("skops") is None:
        raise ImportError("Saving and loading models needs skops: pip install 'rflaf[io]'.")
