"""rflaf inspect"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rflaf.cli.app import app
from rflaf.cli.console import say, show_table, working
from rflaf.cli.fit import score_line
from rflaf.cli.options import ModelFile, load_any

SHOWN_COLUMNS = 20
# the bit of each of a braille character's 2 × 4 dots, [column][row from the top]
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_EMPTY = 0x2800


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


def braille(x: Sequence[float], *curves: Sequence[float], width: int = 60, height: int = 10) -> str:
    """Curves in width × height braille characters of 2 × 4 dots, with their range on the axes.

    x is ascending, and a curve is its heights there; all numbers are finite.

    Examples
    --------
    >>> from rflaf.cli.inspect import braille
    >>> print(braille([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], width=10, height=2))
    <BLANKLINE>
             1 ┤⠀⠀⢀⡠⠊⠑⢄⡀⠀⠀
             0 ┤⡠⠔⠁⠀⠀⠀⠀⠈⠢⢄
                0        2
    """
    import numpy as np

    columns, rows = 2 * width, 4 * height
    low, high = min(map(min, curves)), max(map(max, curves))
    span = high - low or 1.0
    cells = [[_EMPTY] * width for _ in range(height)]
    for y in curves:
        above = None
        values = np.interp(np.linspace(x[0], x[-1], columns), x, y)
        for column, value in enumerate(values.tolist()):
            row = round((high - value) / span * (rows - 1))
            # join neighbours by a vertical line, so that steep parts have no gaps
            start, stop = (row, row) if above is None else (min(above, row), max(above, row))
            if stop > start:
                start, stop = (start + 1, stop) if above == start else (start, stop - 1)
            for at in range(start, stop + 1):
                cells[at // 4][column // 2] |= _DOTS[column % 2][at % 4]
            above = row
    labels = [f"{high:>10.3g} ┤", *[" " * 11 + "│"] * (height - 2), f"{low:>10.3g} ┤"]
    lines = [label + "".join(map(chr, line)) for label, line in zip(labels, cells)]
    left, right = f"{x[0]:.3g}", f"{x[-1]:.3g}"
    return "\n".join([*lines, " " * 12 + left + right.rjust(width - len(left))])
