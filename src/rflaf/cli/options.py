"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer


class TaskName(str, Enum):
    """Values of --task."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


TableFile = Annotated[Path, typer.Argument(help="A .csv, .csv.gz or .parquet file.")]
ModelFile = Annotated[Path, typer.Argument(help="A file that `rflaf fit` has written.")]
Target = Annotated[str, typer.Option("--target", "-t", help="The column to learn.")]
TaskOption = Annotated[
    TaskName,
    typer.Option(help="auto: classes for strings, booleans, and at most 20 whole numbers."),
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="A column to leave out. May be repeated.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", help="What stands for a missing value, such as '?'. May be repeated."
    ),
]
Separator = Annotated[str, typer.Option("--sep", help="Between the fields of a CSV file.")]
Components = Annotated[
    int | None,
    typer.Option(min=1, show_default="as many as suit the rows", help="Random features."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of all random draws.")]


def load_table_model(path: Path) -> Any:
    """A model of a table from a file, or an error that says what the file holds instead."""
    from rflaf import load
    from rflaf.tabular import TableError, TableModel

    model = load_any(path, load)
    if not isinstance(model, TableModel):
        raise TableError(
            f"'{path}' holds a {type(model).__name__}. Expected what `rflaf fit` writes."
        )
    return model


def load_any(path: Path, load: Any) -> Any:
    """What a model file holds; a missing file is named."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}'.")
    return load(path)
