"""rflaf compare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rflaf.cli import options
from rflaf.cli.app import app
from rflaf.cli.console import say, show_table, warnings_as_notes, working
from rflaf.cli.fit import SCORE_NAMES


@app.command()
def compare(
    table: options.TableFile,
    target: options.Target,
    task: options.TaskOption = "auto",
    components: options.Components = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")] = 5,
    seed: options.Seed = 0,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    missing: options.Missing = None,
    sep: options.Separator = None,
    strict: options.Strict = False,
    out: Annotated[Path | None, typer.Option(help="Also write the scores to this file.")] = None,
) -> None:
    """Compare RFLAF with fixed activations, a linear model and gradient boosting on a table."""
    from rflaf.tabular import check_output, read_table, split_target

    if out is not None:
        check_output(out, inputs=[table])
    with working(f"Reading {table}"):
        codes = categorical or ()
        frame = read_table(table, separator=sep, missing=missing or (), strings=codes)
        split_target(frame, target, task, drop or (), strict)
    from rflaf.tabular import compare_models

    lines = []
    with warnings_as_notes(), working(f"Cross-validating, {folds} folds, 5 models") as tell:
        for line in compare_models(
            frame,
            target,
            task=task,
            drop=drop or (),
            categorical=codes,
            n_components=components or "auto",
            folds=folds,
            strict=strict,
            random_state=seed,
        ):
            lines.append(line)
            tell(f"{line.model}: {line.mean:.4f}")
    score = SCORE_NAMES[lines[0].score]
    show_table(
        f"{score} of {target!r} on held-out rows, {folds} folds: mean ± standard deviation",
        ["model", score, "fit, s", "predict, s"],
        [
            (m.model, f"{m.mean:.4f} ± {m.sd:.4f}", f"{m.fit_seconds:.2f}",
             f"{m.predict_seconds:.3f}")
            for m in lines
        ],
    )  # fmt: skip
    if out is not None:
        import pandas as pd

        from rflaf.tabular import write_table

        columns = ("model", "score", "mean", "sd", "fit_seconds", "predict_seconds")
        write_table(pd.DataFrame([{c: getattr(m, c) for c in columns} for m in lines]), out)
        say(f"Table: {out}")
