"""rflaf demo"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import typer

from rflaf.cli.app import app
from rflaf.cli.console import say, show_table, warnings_as_notes, working

COMPONENTS = 300
SPLITS = 3
LINEAR, SAMPLER, RELU, TANH, LEARNED = (
    "linear",
    "RBFSampler, tuned",
    "fixed ReLU",
    "fixed tanh",
    "RFLAF",
)

MEASUREMENTS = {  # of the diabetes data, as its description has them
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s1": "total cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "blood sugar",
}


@dataclass(frozen=True)
class DataSet:
    """Rows to learn from, and what they are."""

    name: str
    about: str
    task: str
    X: Any
    y: Any
    target: str = "target"


@dataclass(frozen=True)
class LastSplit:
    """The last RFLAF model of a data set, with its rows."""

    model: Any
    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any


@dataclass
class Result:
    """Scores of the models on one data set, split by split, and the last RFLAF model."""

    data: DataSet
    scores: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    last: Any = None


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the pages.")] = Path("demo-output"),
) -> None:
    """Compare learned with fixed activations on small data sets; a page about each model."""
    import scipy.linalg  # noqa: F401  # its BLAS must be there for the limit to reach it
    from threadpoolctl import threadpool_limits

    from rflaf.pages.html import require_jinja2

    require_jinja2()  # before the work, and not after it
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    results = []
    # the problems are so small that threads of BLAS would cost more than they save
    one_thread = threadpool_limits(1, user_api="blas")
    with warnings_as_notes(), one_thread, working("Starting") as progress:
        for data in data_sets():
            result = Result(data)
            for model in run(result):
                progress.update(progress.task_ids[0], description=f"{data.name}: {model}")
            results.append(result)
        progress.update(progress.task_ids[0], description="Writing pages")
        pages = [write_page(result, out) for result in results]
    show_table(
        f"Test rows, mean of {SPLITS} splits ± standard deviation; {COMPONENTS} random features "
        "a member",
        ["model", *(f"{r.data.name}, {_score_name(r.data)}" for r in results)],
        [(m, *(_shown(r.scores[m]) for r in results)) for m in results[0].scores],
    )
    show_table(
        "Seconds of a fit, with its tuning",
        ["model", *(r.data.name for r in results)],
        [(m, *(f"{mean(r.seconds[m]):.2f}" for r in results)) for m in results[0].seconds],
    )
    say(f"{time.perf_counter() - start:.0f} s in all. A page about each RFLAF model:")
    for page in pages:
        say(f"  {page}")


def data_sets() -> list[DataSet]:
    """Two real sets that come with scikit-learn, and one that is made."""
    from sklearn.datasets import load_diabetes, load_digits, make_friedman1

    # in the units of the measurements, under names that tell what they are
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    pixels, digits = load_digits(return_X_y=True, as_frame=True)
    return [
        DataSet(
            "diabetes",
            "442 patients, ten measurements; the disease's progress a year later",
            "regression",
            X.rename(columns=MEASUREMENTS),
            y,
            "disease progression",
        ),
        DataSet(
            "digits",
            "1,797 handwritten digits of 8 × 8 pixels",
            "classification",
            pixels,
            digits,
            "digit",
        ),
        DataSet(
            "friedman1",
            "synthetic: 1,000 rows, five columns that matter, ten idle ones, and noise",
            "regression",
            *make_friedman1(1000, 15, noise=1.0, random_state=0),
        ),
    ]


def models_for(task: str, seed: int) -> dict[str, Callable[[], Any]]:
    """The models of the comparison, with as many random features in each of their members.

    RBFSampler has one; RFLAF and the fixed activations have as many as suit the rows.
    """
    import numpy as np
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from rflaf import RFLAFClassifier, RFLAFRegressor

    classes = task == "classification"
    kind: Any = RFLAFClassifier if classes else RFLAFRegressor

    def linear() -> Any:
        return LogisticRegression(max_iter=2000) if classes else RidgeCV(np.logspace(-4, 4, 17))

    def fixed(name: str) -> Any:
        plain = {"metric": "none", "input_form": "raw"}
        return kind(COMPONENTS, activation=name, random_state=seed, **plain)

    def sampler() -> Any:
        features = RBFSampler(n_components=COMPONENTS, random_state=seed)
        pipeline = make_pipeline(StandardScaler(), features, linear())
        grid: dict[str, Any] = {"rbfsampler__gamma": [0.001, 0.004, 0.016, 0.06]}
        if classes:  # RidgeCV chooses its penalty itself
            grid["logisticregression__C"] = [1.0, 100.0]
        return GridSearchCV(pipeline, grid, cv=3)

    return {
        LINEAR: lambda: make_pipeline(StandardScaler(), linear()),
        SAMPLER: sampler,
        RELU: lambda: fixed("relu"),
        TANH: lambda: fixed("tanh"),
        LEARNED: lambda: kind(COMPONENTS, random_state=seed),
    }


def run(result: Result) -> Iterator[str]:
    """Fit and score every model on every split; yields the name of the one to come."""
    from sklearn.model_selection import train_test_split

    data = result.data
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            data.X,
            data.y,
            random_state=seed,
            stratify=data.y if data.task == "classification" else None,
        )
        for name, make in models_for(data.task, seed).items():
            yield name
            start = time.perf_counter()
            model = make().fit(X_train, y_train)
            result.seconds.setdefault(name, []).append(time.perf_counter() - start)
            result.scores.setdefault(name, []).append(float(model.score(X_test, y_test)))
            if name == LEARNED:
                result.last = LastSplit(model, X_train, X_test, y_train, y_test)


def write_page(result: Result, folder: Path) -> Path:
    """The page about the last RFLAF model of a data set, with the scores of all models."""
    from rflaf.pages import Cell, Section, Subsection, TableView
    from rflaf.report import write_report

    best = max(mean(scores) for scores in result.scores.values())
    rows = tuple(
        (
            Cell(name),
            Cell(_shown(scores), mean(scores), "best" if mean(scores) == best else ""),
            Cell(f"{mean(result.seconds[name]):.2f}", mean(result.seconds[name])),
        )
        for name, scores in result.scores.items()
    )
    header = ("model", f"{_score_name(result.data)}, mean ± deviation", "seconds of a fit")
    grid = TableView("Scores of other models", header, rows, (False, True, True), right=True)
    note = (
        f"Test rows of {SPLITS} splits, of which the last is the one that this page shows. All "
        f"models have {COMPONENTS} random features, RFLAF and the fixed activations in each of "
        "several members. The width of RBFSampler's kernel and its penalty are searched by "
        "cross-validation, and the time of that search counts."
    )
    others = Section("others", "", "Other models", (Subsection("", (grid,)),), (note,))
    split = result.last
    return write_report(
        split.model,
        folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', result.data.name).strip('-')}.html",
        split.X_test,
        split.y_test,
        X_train=split.X_train,
        y_train=split.y_train,
        title=f"Model of {result.data.name}",
        target=result.data.target,
        notes=[f"The data: {result.data.about}."],
        sections=[others],
    )


def _score_name(data: DataSet) -> str:
    return "accuracy" if data.task == "classification" else "R²"


def _shown(scores: list[float]) -> str:
    return f"{mean(scores):.3f} ± {stdev(scores):.3f}"
