"""rflaf predict"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rflaf.cli import options
from rflaf.cli.app import app
from rflaf.cli.console import complain, say, warnings_as_notes, working


@app.command()
def predict(
    model: options.ModelFile,
    table: options.TableFile,
    out: options.OutFile = Path("predictions.csv"),
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column for each class.")
    ] = False,
    std: Annotated[
        bool, typer.Option("--std", help="Add the standard deviation (regression).")
    ] = False,
    quantiles: Annotated[
        str | None, typer.Option(help="Add these quantiles, such as 0.05,0.5,0.95 (regression).")
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Add the ends of intervals with this coverage (regression)."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column of the table to copy. May be repeated.")
    ] = None,
    missing: options.Missing = None,
    sep: options.Separator = None,
    raw_text: Annotated[
        bool,
        typer.Option(
            "--raw-text", help="Do not escape text that a spreadsheet would run as a formula (CSV)."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the table or the model if --out names it.")
    ] = False,
) -> None:
    """Predict the target of each row of a table, and write the predictions to a file.

    Columns are matched by name, in any order.
    """
    from rflaf.tabular import TableError, check_output, write_table

    levels = [] if quantiles is None else _levels(quantiles)
    if interval is not None and not 0 < interval < 1:
        raise TableError(f"--interval must lie between 0 and 1. Got {interval:g}.")
    options.check_file(table)
    try:
        check_output(out, inputs=() if force else (table, model))
    except TableError as error:
        hint = " Or use --force." if "is also the input" in str(error) else ""
        raise TableError(f"{error}{hint}") from None
    fitted = options.load_table_model(model)
    kept = keep or []
    with working(f"Reading {table}"):
        frame = options.read_rows(fitted, table, missing, sep, kept)
    absent = [name for name in kept if name not in frame]
    if absent:
        raise TableError(f"The table has no column {absent[0]!r} to keep.")
    with working(f"Predicting {len(frame):,} rows"), warnings_as_notes():
        made = {"prediction": fitted.predict(frame)}
        if std:
            made["std"] = fitted.predict_std(frame)
        if levels:
            columns = fitted.predict_quantiles(frame, levels).T
            made |= {f"q{level}": column for level, column in zip(levels, columns)}
        if interval is not None:
            ends = fitted.predict_quantiles(frame, [(1 - interval) / 2, (1 + interval) / 2])
            made |= {"low": ends[:, 0], "high": ends[:, 1]}
        if probabilities:
            values = fitted.predict_proba(frame)
            made |= {f"p({c})": values[:, i] for i, c in enumerate(fitted.classes)}
    taken = [name for name in kept if name in made]
    if taken:
        raise TableError(f"The column {taken[0]!r} cannot be kept: the output has its own.")
    known = {*map(str, fitted.estimator.feature_names_in_), *kept, fitted.target}
    extra = [name for name in frame if name not in known]
    if extra:
        complain(f"Note: unknown columns were ignored: {', '.join(map(repr, extra))}.")
    write_table(frame[kept].assign(**made), out, raw_text=raw_text)
    say(f"{len(frame):,} predictions of {fitted.target!r}: {out}")


def _levels(given: str) -> list[float]:
    from rflaf.tabular import TableError

    try:
        levels = [float(text) for text in given.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0 < level < 1 for level in levels):
        raise TableError(
            f"--quantiles must be numbers between 0 and 1, separated by commas. Got {given!r}."
        )
    return levels
