"""rflaf explain"""

from __future__ import annotations

from pathlib import Path

from rflaf.cli import options
from rflaf.cli.app import app
from rflaf.cli.console import say, warnings_as_notes, working


@app.command()
def explain(
    model: options.ModelFile,
    table: options.TableFile,
    out: options.OutFile = Path("why.csv"),
    missing: options.Missing = None,
    sep: options.Separator = None,
) -> None:
    """Attribute the prediction of each row to the columns.

    The output has "base", the mean score of some training rows, and one attribution per column.
    They sum to the score: the prediction, or log-odds. More than two classes have a row each.
    """
    import numpy as np
    import pandas as pd

    from rflaf.tabular import TableError, check_output, write_table

    options.check_file(table)
    check_output(out, inputs=(table, model))
    fitted = options.load_table_model(model)
    with working(f"Reading {table}"):
        frame = options.read_rows(fitted, table, missing, sep)
    with working(f"Explaining {len(frame):,} rows"), warnings_as_notes():
        why = fitted.explain(frame)
    names = [name for name in why.feature_names if name in fitted.columns]
    own = ["base"] if why.output_names is None else ["base", "class"]
    if taken := [name for name in own if name in names]:
        raise TableError(f"The column {taken[0]!r} must be renamed: the output has its own.")
    values = np.atleast_3d(why.values)  # n × d × C
    columns = {name: values[:, why.feature_names.index(name)].ravel() for name in names}
    result = pd.DataFrame({"base": why.base_values.ravel(), **columns})
    if why.output_names is not None:
        result.insert(0, "class", np.tile(why.output_names, len(why)))
    write_table(result, out)
    say(f"Attributions of {len(frame):,} rows to {len(names)} columns: {out}")
