"""rflaf demo"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rflaf.cli.app import app
from rflaf.cli.console import say, show_table, warnings_as_notes, working
from rflaf.cli.demo_data import DataSet, data_sets
from rflaf.cli.fit import SCORE_NAMES

if TYPE_CHECKING:
    from rflaf.tabular import Comparison

FOLDS = 3
PAGE_OF = "deliveries"  # the frame, whose page has the most to show


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("demo-output"),
) -> None:
    """Compare RFLAF with other models on three tables, and write a page about a model."""
    import scipy.linalg  # noqa: F401  # its BLAS must be there for the limit to reach it
    from threadpoolctl import threadpool_limits

    from rflaf.pages.html import require_jinja2
    from rflaf.tabular import compare_models
    from rflaf.warm_up import warm_up

    require_jinja2()  # before the work, and not after it
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    results: list[tuple[DataSet, list[Comparison]]] = []
    # the tables are so small that threads of BLAS would cost more than they save
    one_thread = threadpool_limits(1, user_api="blas")
    with warnings_as_notes(), one_thread, working("Compiling kernels, once") as tell:
        warm_up()
        compiled = time.perf_counter() - start
        for data in data_sets():
            lines: list[Comparison] = []
            tell(data.name)
            for line in compare_models(data.table, data.target, task=data.task, folds=FOLDS):
                lines.append(line)
                tell(f"{data.name}: {line.model} {line.mean:.3f}")
            results.append((data, lines))
        tell("Writing the page")
        chosen = next((r for r in results if r[0].name == PAGE_OF), results[0])
        page = write_page(*chosen, out)
    for data, _ in results:
        say(f"{data.name}: {data.about}")
    models = list(zip(*(lines for _, lines in results)))
    show_table(
        f"Held-out rows of {FOLDS} folds, mean ± standard deviation; models with their defaults",
        ["model", *(f"{data.name}, {_score_name(lines)}" for data, lines in results)],
        [(row[0].model, *map(_shown, row)) for row in models],
    )
    show_table(
        "Fit time (s), without compilation",
        ["model", *(data.name for data, _ in results)],
        [(row[0].model, *(f"{each.fit_seconds:.2f}" for each in row)) for row in models],
    )
    total = time.perf_counter() - start
    say(f"{total:.0f} s in total, {compiled:.0f} s of it for loading or compiling kernels.")
    say(f"A page about the RFLAF model of {chosen[0].name}: {page}")


def write_page(data: DataSet, lines: list[Comparison], folder: Path) -> Path:
    """The page about an RFLAF model of a table, with the scores of all models."""
    from sklearn.model_selection import train_test_split

    from rflaf import RFLAFClassifier, RFLAFRegressor
    from rflaf.pages import Cell, Section, Subsection, TableView
    from rflaf.report import write_report

    best = max(line.mean for line in lines)
    rows = [
        (
            Cell(line.model),
            Cell(_shown(line), line.mean, "best" if line.mean == best else ""),
            Cell(f"{line.fit_seconds:.2f}", line.fit_seconds),
        )
        for line in lines
    ]
    header = ("model", f"{_score_name(lines)}, mean ± deviation", "fit time (s)")
    grid = TableView("Scores of other models", header, rows, right=True)
    note = f"Cross-validation on all rows, {FOLDS} folds. All models have their defaults."
    others = Section("others", "", "Other models", (Subsection("", (grid,)),), (note,))
    X_train, X_test, y_train, y_test = train_test_split(
        data.table.drop(columns=data.target), data.table[data.target], random_state=0
    )
    kind = RFLAFClassifier if data.task == "classification" else RFLAFRegressor
    return write_report(
        kind(random_state=0).fit(X_train, y_train),
        folder / f"{data.name}.html",
        X_test,
        y_test,
        X_train=X_train,
        y_train=y_train,
        title=f"Model of {data.name}",
        notes=[f"The data: {data.about}."],
        sections=[others],
    )


def _score_name(lines: list[Comparison]) -> str:
    return SCORE_NAMES[lines[0].score]


def _shown(line: Comparison) -> str:
    return f"{line.mean:.3f} ± {line.sd:.3f}"
