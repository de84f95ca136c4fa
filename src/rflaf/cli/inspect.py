"""rflaf inspect"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rflaf.cli.app import app
from rflaf.cli.console import say, show_table, working
from rflaf.cli.fit import score_line
from rflaf.cli.options import ModelFile, load_any
from rflaf.cli.plot import braille

SHOWN_COLUMNS = 20


@app.command()
def inspect(
    model: ModelFile,
    png: Annotated[
        Path | None, typer.Option(help="Also write a plot of the activation to this .png file.")
    ] = None,
) -> None:
    """Show what is in a model file: parameters, scores, columns, the learned activation."""
    from rflaf.tabular import TableError, check_output

    if png is not None:
        check_output(png, [".png"])
    loaded = load_any(model)
    from rflaf.tabular import TableModel

    estimator = loaded
    if isinstance(loaded, TableModel):
        estimator = loaded.estimator
        _describe_table(loaded)
    elif hasattr(loaded, "steps"):
        estimator = loaded[-1]
    if not hasattr(estimator, "activation_"):
        raise TableError(
            f"'{model}' contains a {type(loaded).__name__} without a fitted activation."
        )
    if hasattr(estimator, "summary"):
        # inputs of a table are listed above, by their own names
        lines = estimator.summary().splitlines()
        say("\n".join(lines[:-1] if isinstance(loaded, TableModel) else lines))
    _draw(estimator)
    if png is not None:
        from rflaf.runtime.pictures import picture

        with working("Drawing"), picture(png, (6, 3.5)) as figure:
            draws = getattr(estimator, "plot_activation", estimator.activation_.plot)
            draws(figure.subplots())
        say(f"Plot: {png}")


def _describe_table(model: Any) -> None:
    say(f"{model.task.capitalize()} of {model.target!r}")
    if model.classes is not None:
        say(f"Classes: {', '.join(map(str, model.classes))}")
    fitted = model.fitted
    say(f"Fitted to {fitted['rows']:,} rows in {fitted['seconds']:.1f} s by rflaf "
        f"{fitted['version']}")  # fmt: skip
    say(score_line(model.scores) if model.scores else "No score: no rows were held out.")
    shares = model.importances()
    shown = list(shares.items())[:SHOWN_COLUMNS]
    rows = [(name, model.columns[name], f"{share:.1%}") for name, share in shown]
    left = len(shares) - len(shown)
    title = "Importances: change of predictions when a column is shuffled"
    show_table(title + (f"; {left} more" if left else ""), ["column", "kind", "importance"], rows)


def _draw(estimator: Any) -> None:
    """The activations of the members with the most weight, at one height and sign."""
    import numpy as np

    from rflaf.activation import alike
    from rflaf.fitting import leading_team

    members = getattr(estimator, "members_", None)
    found = [estimator.activation_]
    if members is not None:
        found = alike([each.layer.activation for each in leading_team(members)])
    low, high = found[0].basis.grid
    margin = (high - low) / 8
    z = np.linspace(low - margin, high + margin, 400)
    say("\nσ(z)" + (f", {len(found)} members" if len(found) > 1 else ""))
    say(braille(z.tolist(), *(each(z).tolist() for each in found)))
