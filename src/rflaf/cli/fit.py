"""rflaf fit"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rflaf.cli import options
from rflaf.cli.app import app
from rflaf.cli.console import complain, plain, say, warnings_as_notes, working


@app.command()
def fit(
    table: options.TableFile,
    target: options.Target,
    task: options.TaskOption = "auto",
    loss: Annotated[
        Literal[
            "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"
        ],
        typer.Option(help="Loss of a regression."),
    ] = "squared_error",
    quantile: Annotated[
        float | None, typer.Option(show_default="0.5", help="Level of --loss quantile.")
    ] = None,
    power: Annotated[
        float | None, typer.Option(show_default="1.5", help="Power of --loss tweedie.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Model file to write; overwritten if it exists.")
    ] = Path("model.skops"),
    components: options.Components = None,
    activation: Annotated[
        str,
        typer.Option(
            help="Basis of the learned activation (rbf, bspline, chebyshev), or a fixed activation."
        ),
    ] = "rbf",
    basis_functions: Annotated[int, typer.Option(min=1, help="Number of basis functions.")] = 32,
    metric: Annotated[
        Literal["auto", "full", "diagonal", "none"],
        typer.Option(help="Learned linear map of the inputs."),
    ] = "auto",
    effort: Annotated[
        Literal["fast", "default", "best"], typer.Option(help="How much work to do.")
    ] = "default",
    time_limit: Annotated[
        float | None,
        typer.Option(
            show_default="none",
            help="Seconds after which to end with the best model so far. The result then depends "
            "on the machine.",
        ),
    ] = None,
    validation: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of rows held out to score a first fit.")
    ] = 0.2,
    seed: options.Seed = 0,
    report: Annotated[
        Path | None, typer.Option(help="Also write a model report to this .html file.")
    ] = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    missing: options.Missing = None,
    sep: options.Separator = None,
    strict: options.Strict = False,
) -> None:
    """Train a model to predict one column of a table, and write it to a file."""
    from rflaf.tabular import check_output, read_table, split_target

    for option, value, owner in (("quantile", quantile, "quantile"), ("power", power, "tweedie")):
        if value is not None and loss != owner:
            raise typer.BadParameter(f"--{option} needs --loss {owner}. Got --loss {loss}.")
    options.require_skops()  # before the work, and not after it
    check_output(out, [".skops"])
    if report is not None:
        from rflaf.pages.html import require_jinja2

        require_jinja2()
        check_output(report, [".html"])
    with working(f"Reading {table}"):
        # as `rflaf predict` reads them: codes such as 007 stay what they are
        codes = categorical or ()
        frame = read_table(table, separator=sep, missing=missing or (), strings=codes)
        split_target(frame, target, task, drop or (), strict)  # what is wrong is said at once
    from rflaf.io import save
    from rflaf.tabular import fit_table

    with warnings_as_notes():
        model = fit_table(
            frame,
            target,
            task=task,
            loss=loss,
            quantile=0.5 if quantile is None else quantile,
            power=1.5 if power is None else power,
            drop=drop or (),
            categorical=categorical or (),
            n_components=components or "auto",
            activation=activation,
            n_basis=basis_functions,
            metric=metric,
            effort=effort,
            time_limit=time_limit,
            validation=validation,
            strict=strict,
            random_state=seed,
            progress=working,
            report=report,
        )
    without = len(frame) - model.fitted["rows"]
    if without:
        complain(f"Note: {without:,} rows with missing {target!r} were dropped.")
    encoder = model.estimator.encoder_
    empty = [n for n, kind in zip(encoder.feature_names_in_, encoder.kinds_) if kind == "empty"]
    if empty:
        complain(f"Note: empty columns were ignored: {', '.join(map(repr, map(str, empty)))}.")
    for name, kind in zip(encoder.feature_names_in_, encoder.kinds_):
        found = _looks_like(frame[name]) if kind == "text" else None
        if found:
            complain(f"Note: column {str(name)!r} looks like {found}, but is read as free text. "
                     "Convert it to a form that is recognised.")  # fmt: skip
    model.fitted["missing"] = list(missing or ())  # `rflaf predict` reads tables in the same way
    save(model, out)
    say(f"{model.task.capitalize()}, because {model.reason}." if task == "auto" else
        f"{model.task.capitalize()}, as requested.")  # fmt: skip
    rows, width = model.fitted["rows"], len(model.columns)
    say(f"Fitted to {rows:,} rows and {width} columns in {model.fitted['seconds']:.1f} s.")
    if model.estimator.left_out_:
        say(f"Skipped, because time was short: {', '.join(model.estimator.left_out_)}.")
    if model.scores:
        say(score_line(model.scores))
    say(f"Model: {plain(out)}")
    if report is not None:
        say(f"Report: {plain(report)}")


_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_LOOKS = {  # of what a fit does not recognise
    "dates": re.compile(
        rf"(\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}|\d{{1,2}}\.?[ -]{_MONTH}\b|{_MONTH}\.?[ -]\d)",
        re.IGNORECASE,
    ),
    "numbers": re.compile(r"[^\w\s]{0,2}\s?\d[\d.,' ]*(%|[^\W\d]{1,3}|[^\w\s])?$"),
}


def _looks_like(column: Any) -> str | None:
    """What more than half of a column of text seems to be, if not text."""
    values = [str(value).strip() for value in column.dropna()[:1000]]
    for name, pattern in _LOOKS.items():
        if 2 * sum(bool(pattern.match(value)) for value in values) > len(values):
            return name
    return None


SCORE_NAMES = {"r2": "R²", "rmse": "RMSE", "log_loss": "log-loss", "accuracy": "accuracy"}


def score_line(scores: dict[str, float]) -> str:
    shown = ", ".join(f"{name} {scores[k]:.4g}" for k, name in SCORE_NAMES.items() if k in scores)
    return f"On {scores['held_out_rows']:,.0f} held-out rows: {shown}."
