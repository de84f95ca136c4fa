"""rflaf demo"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import typer

from rflaf.cli.app import app
from rflaf.cli.console import say, show_table, warnings_as_notes, working

SPLITS = 3
PAGE_OF = "deliveries"  # the frame, whose page has the most to show
LINEAR, BOOSTED, SAMPLER, OURS = "linear", "HistGradientBoosting", "RBFSampler, tuned", "RFLAF"


@dataclass(frozen=True)
class DataSet:
    """A table to learn from, and what it is."""

    name: str
    about: str
    task: str
    X: Any
    y: Any
    target: str = "target"


@dataclass
class Result:
    """Scores and fit times of the models on one table, split by split."""

    data: DataSet
    scores: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    last: Any = None  # the last RFLAF model with its rows


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo-output"),
) -> None:
    """Compare RFLAF with other models on three tables, and write a model report."""
    import scipy.linalg  # noqa: F401  # its BLAS must be there for the limit to reach it
    from threadpoolctl import threadpool_limits

    from rflaf.pages.html import require_jinja2

    require_jinja2()  # before the work, and not after it
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    results: list[Result] = []
    # the tables are so small that threads of BLAS would cost more than they save
    one_thread = threadpool_limits(1, user_api="blas")
    with warnings_as_notes(), one_thread, working("Compiling kernels, once") as tell:
        tables = data_sets()
        compile_kernels(tables)
        compiled = time.perf_counter() - start
        for data in tables:
            result = Result(data)
            for model in run(result):
                tell(f"{data.name}: {model}")
            results.append(result)
        tell("Writing the page")
        chosen = next((r for r in results if r.data.name == PAGE_OF), results[0])
        page = write_page(chosen, out)
    for result in results:
        say(f"{result.data.name}: {result.data.about}")
    show_table(
        f"Test rows, mean of {SPLITS} splits ± standard deviation; every model with its defaults",
        ["model", *(f"{r.data.name}, {_score_name(r.data)}" for r in results)],
        [(m, *(_shown(r.scores[m]) for r in results)) for m in results[0].scores],
    )
    show_table(
        "Fit time (s), with tuning and without compilation",
        ["model", *(r.data.name for r in results)],
        [(m, *(f"{mean(r.seconds[m]):.2f}" for r in results)) for m in results[0].seconds],
    )
    total = time.perf_counter() - start
    say(f"{total:.0f} s in total, {compiled:.0f} s of it for loading or compiling kernels.")
    say(f"Report on the RFLAF model of {chosen.data.name}: {page}")


def models_for(data: DataSet, seed: int) -> dict[str, Callable[[], Any]]:
    """The models of the comparison. RFLAF takes frames as they are; others get them as numbers."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from rflaf import RFLAFClassifier, RFLAFRegressor
    from rflaf.inputs import ColumnEncoder

    classes = data.task == "classification"
    kind: Any = RFLAFClassifier if classes else RFLAFRegressor
    trees: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor

    def linear(*steps: Any) -> Any:
        last = LogisticRegression(max_iter=2000) if classes else RidgeCV(np.logspace(-4, 4, 17))
        return make_pipeline(ColumnEncoder(), StandardScaler(), *steps, last)

    def sampler() -> Any:
        grid: dict[str, Any] = {"rbfsampler__gamma": [0.001, 0.004, 0.03, 0.2]}
        if classes:  # RidgeCV chooses its penalty itself
            grid["logisticregression__C"] = [1.0, 100.0]
        return GridSearchCV(linear(RBFSampler(n_components=300, random_state=seed)), grid, cv=3)

    return {
        LINEAR: linear,
        BOOSTED: lambda: make_pipeline(ColumnEncoder(), trees()),
        SAMPLER: sampler,
        OURS: lambda: kind(random_state=seed),
    }


def compile_kernels(tables: list[DataSet]) -> None:
    """Fits that take little time and need the kernels of all fits to come, and no others."""
    from rflaf import RFLAFClassifier, RFLAFRegressor

    for data in tables:
        kind: Any = RFLAFClassifier if data.task == "classification" else RFLAFRegressor
        kind(effort="fast", random_state=0).fit(data.X, data.y).score(data.X, data.y)
    some = slice(300)
    RFLAFRegressor(random_state=0).fit(tables[0].X[some], tables[0].y[some])


def run(result: Result) -> Iterator[str]:
    """Fit and score every model on every split; yields the name of the one to come."""
    from sklearn.model_selection import train_test_split

    data = result.data
    for seed in range(SPLITS):
        strata = data.y if data.task == "classification" else None
        parts = train_test_split(data.X, data.y, random_state=seed, stratify=strata)
        X_train, X_test, y_train, y_test = parts
        for name, make in models_for(data, seed).items():
            yield name
            start = time.perf_counter()
            model = make().fit(X_train, y_train)
            result.seconds.setdefault(name, []).append(time.perf_counter() - start)
            result.scores.setdefault(name, []).append(float(model.score(X_test, y_test)))
        result.last = model, *parts


def write_page(result: Result, folder: Path) -> Path:
    """The page about the last RFLAF model of a table, with the scores of all models."""
    from rflaf.pages import Cell, Section, Subsection, TableView
    from rflaf.report import write_report

    best = max(map(mean, result.scores.values()))
    rows = []
    for name, scores in result.scores.items():
        score, seconds = mean(scores), mean(result.seconds[name])
        shown = Cell(_shown(scores), score, "best" if score == best else "")
        rows.append([Cell(name), shown, Cell(f"{seconds:.2f}", seconds)])
    header = ("model", f"{_score_name(result.data)}, mean ± deviation", "fit time (s)")
    grid = TableView("Scores of other models", header, rows, right=True)
    note = (
        f"Scores on the test rows of {SPLITS} splits; this page shows the last. All models have "
        "their defaults, but the kernel width and penalty of RBFSampler are cross-validated, which "
        "counts in its fit time."
    )
    others = Section("others", "", "Other models", (Subsection("", (grid,)),), (note,))
    model, X_train, X_test, y_train, y_test = result.last
    return write_report(
        model,
        folder / f"{result.data.name}.html",
        X_test,
        y_test,
        X_train=X_train,
        y_train=y_train,
        title=f"Model of {result.data.name}",
        target=result.data.target,
        notes=[f"The data: {result.data.about}."],
        sections=[others],
    )


def _score_name(data: DataSet) -> str:
    return "accuracy" if data.task == "classification" else "R²"


def _shown(scores: list[float]) -> str:
    return f"{mean(scores):.3f} ± {stdev(scores):.3f}"


def data_sets() -> list[DataSet]:
    """A real table of numbers, a made frame of many kinds of columns, and images."""
    return [_airfoil(), _deliveries(), _digits()]


def _airfoil() -> DataSet:
    import pandas as pd

    from rflaf.datasets import load

    data = load("airfoil")
    return DataSet(
        "airfoil",
        "noise of airfoils in a wind tunnel, 1,503 rows (UCI repository, CC BY 4.0)",
        "regression",
        pd.DataFrame(data.X, columns=list(data.feature_names)),
        data.y,
        "scaled_sound_pressure_level_db",
    )


def _deliveries() -> DataSet:
    """Hours that deliveries take: a season, weekends, towns, a curve in the distance, and noise."""
    import numpy as np
    import pandas as pd

    rng, n = np.random.default_rng(0), 1500
    start = np.datetime64("2023-01-01", "s")
    day = pd.DatetimeIndex(start + rng.integers(0, 730, n).astype("timedelta64[D]"))
    town = rng.choice(["Aston", "Briar", "Colne", "Dunmore", "Elsby", "Fenn"], n)
    carrier = rng.choice(["express", "standard", "freight"], n, p=[0.2, 0.6, 0.2])
    distance = rng.gamma(2.0, 120.0, n)
    weight = rng.lognormal(1.0, 0.8, n)
    hours = 4 + 12 * np.sqrt(distance / 100)
    hours *= np.array([{"express": 0.5, "standard": 1.0, "freight": 1.4}[c] for c in carrier])
    hours += np.array([0.0, 2.0, 5.0, -1.0, 3.0, 8.0])[[ord(t[0]) - ord("A") for t in town]]
    hours += 5 * (day.day_of_week >= 5) + 4 * np.cos(2 * np.pi * (day.day_of_year - 15) / 365)
    hours += np.where(carrier == "freight", 1.5, 0.2) * np.minimum(weight, 12)
    hours += rng.normal(0, 2, n)
    frame = pd.DataFrame(
        {
            "ordered": day,
            "town": pd.Categorical(town),
            "carrier": pd.Categorical(carrier),
            "distance_km": distance.round(1),
            "weight_kg": weight.round(2),
        }
    )
    frame.loc[rng.random(n) < 0.1, "weight_kg"] = np.nan
    frame.loc[rng.random(n) < 0.05, "town"] = np.nan
    about = "generated: 1,500 deliveries with dates, categories and missing values"
    return DataSet("deliveries", about, "regression", frame, np.asarray(hours), "hours")


def _digits() -> DataSet:
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True, as_frame=True)
    about = "1,000 handwritten digits of 8 × 8 pixels"
    return DataSet("digits", about, "classification", pixels[:1000], digits[:1000], "digit")
