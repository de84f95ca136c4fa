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

COMPONENTS = 300
SPLITS = 3
LINEAR, SAMPLER, RELU, TANH, LEARNED = (
    "linear",
    "RBFSampler, tuned",
    "fixed ReLU",
    "fixed tanh",
    "RFLAF",
)


@dataclass(frozen=True)
class DataSet:
    """Rows to learn from, and what they are."""

    name: str
    about: str
    task: str
    X: Any
    y: Any


@dataclass
class Result:
    """Scores of the models on one data set, split by split, and what the last RFLAF learned."""

    data: DataSet
    scores: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    learned: Any = None


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for report.html.")] = Path("demo-output"),
) -> None:
    """Compare learned with fixed activations on small data sets, and write a page about it."""
    import scipy.linalg  # noqa: F401  # its BLAS must be there for the limit to reach it
    from threadpoolctl import threadpool_limits

    from rflaf.cli.demo_page import write_demo_page

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
    write_demo_page(out / "report.html", page_data(results))
    say(f"{time.perf_counter() - start:.0f} s in all. "
        f"What was learned: {out / 'report.html'}")  # fmt: skip


def data_sets() -> list[DataSet]:
    """Two real sets that come with scikit-learn, and one that is made."""
    from sklearn.datasets import load_diabetes, load_digits, make_friedman1

    return [
        DataSet(
            "diabetes",
            "442 patients, ten measurements; the disease's progress a year later",
            "regression",
            *load_diabetes(return_X_y=True),
        ),
        DataSet(
            "digits",
            "1,797 handwritten digits of 8 × 8 pixels",
            "classification",
            *load_digits(return_X_y=True),
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
                result.learned = model


def page_data(results: list[Result]) -> dict[str, Any]:
    """The plain data that the page is made of."""
    import numpy as np

    from rflaf import __version__

    sets = []
    for result in results:
        model = result.learned
        low, high = model.activation_.basis.grid
        z = np.linspace(low, high, 301)
        inside = model.z_sample_[(model.z_sample_ >= low) & (model.z_sample_ <= high)]
        best = max(np.mean(scores) for scores in result.scores.values())
        sets.append(
            {
                "name": result.data.name,
                "about": result.data.about,
                "score_name": _score_name(result.data),
                "scores": [
                    {
                        "model": name,
                        "score": _shown(scores),
                        "seconds": f"{np.mean(result.seconds[name]):.2f}",
                        "best": bool(np.mean(scores) == best),
                    }
                    for name, scores in result.scores.items()
                ],
                "z": z.tolist(),
                "sigma": model.activation_(z).tolist(),
                "density": np.histogram(inside, bins=40, range=(low, high))[0].tolist(),
                "summary": model.summary(),
            }
        )
    return {"version": __version__, "splits": SPLITS, "components": COMPONENTS, "sets": sets}


def _score_name(data: DataSet) -> str:
    return "accuracy" if data.task == "classification" else "R²"


def _shown(scores: list[float]) -> str:
    return f"{mean(scores):.3f} ± {stdev(scores):.3f}"
