"""Where each model stands on the tables of benchmarks/tables.py and large.py."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
NAMES = {
    "rflaf": "rflaf",
    "linear": "ridge or logistic regression",
    "forest": "random forest",
    "hist_gradient_boosting": "HistGradientBoosting",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "rflaf with AVX-512": "rflaf with AVX-512",
    "without local models": "without local models",
}


@dataclass(frozen=True)
class Standing:
    """One model over some tables; `points` has seconds and relative loss on each of them.

    `error_rank` is the mean rank by the share of wrong classes; None for regression.
    """

    model: str
    tables: int
    rank: float
    error_rank: float | None
    over_best: float
    seconds: float
    points: tuple[tuple[float, float], ...]


def measured(name: str = "tables") -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of a result by table and model."""
    rows = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return {(row["table"], row["model"]): row for row in rows}


def standings(classes: bool, without: str = "") -> list[Standing]:
    """All models on the tables of regression, or of classes, that all have run on; best first.

    One table can be left out.
    """
    rows = measured()
    models = sorted({model for _, model in rows})
    tables = sorted({table for table, _ in rows if table.startswith("clf/") == classes} - {without})
    tables = [table for table in tables if all((table, model) in rows for model in models)]
    losses = {m: [rows[table, m]["loss"] for table in tables] for m in models}
    best = [min(column) for column in zip(*losses.values())]
    known = all("error" in rows[table, model] for table in tables for model in models)
    errors = {m: [rows[table, m]["error"] for table in tables] for m in models} if known else {}
    found = []
    for model, own in losses.items():
        over = [loss / least for loss, least in zip(own, best)]
        seconds = [rows[table, model]["seconds"] for table in tables]
        found.append(
            Standing(
                model,
                len(tables),
                _mean_rank(losses, model),
                _mean_rank(errors, model) if errors else None,
                statistics.geometric_mean(over),
                statistics.geometric_mean(seconds),
                tuple(zip(seconds, over)),
            )
        )
    return sorted(found, key=lambda each: each.over_best)


def _mean_rank(values: dict[str, list[float]], model: str) -> float:
    ranks = [
        1 + sum(other[k] < own for other in values.values()) for k, own in enumerate(values[model])
    ]
    return statistics.mean(ranks)


def which_tables() -> str:
    """How many tables the standings are about, and how to read their picture."""
    count = sum(standings(classes)[0].tables for classes in (False, True))
    rows = [row["rows"] for row in measured().values()]
    return (
        f"{count} real tables with {min(rows):,} to {max(rows):,} training rows: lower is more "
        "accurate, further left is faster. Pale points are single tables, bold ones means. "
        "Triangles at an edge are tables beyond it."
    )


def by_table() -> tuple[list[str], list[list[str]]]:
    """Each table: our loss, the lowest of the others, and whose that is; largest ratio first."""
    rows, lines = measured(), []
    for table in {table for table, _ in rows}:
        ours = rows[table, "rflaf"]
        others = [row for (name, model), row in rows.items() if name == table and model != "rflaf"]
        best = min(others, key=lambda row: row["loss"])
        kind, name = table.split("/")
        losses = [f"{row['loss']:.3g}" for row in (ours, best)]
        ratio = ours["loss"] / best["loss"]
        kind = "classification" if kind == "clf" else "regression"
        line = [name, kind, f"{ours['rows']:,}", losses[0], losses[1], NAMES[best["model"]]]
        lines.append((ratio, [*line, f"{ratio:.2f}"]))
    header = ["table", "", "rows", "rflaf", "best other", "which", "ratio"]
    return header, [line for _, line in sorted(lines)]


def large() -> tuple[list[str], list[list[str]]]:
    """Tables of many rows: loss and seconds of each model."""
    rows = measured("large")
    models = list(dict.fromkeys(model for _, model in rows))
    lines = []
    for table in dict.fromkeys(table for table, _ in rows):
        found = [rows.get((table, model)) for model in models]
        cells = [f"{row['loss']:.4g} ({row['seconds']:.2g} s)" if row else "" for row in found]
        lines.append([table, f"{rows[table, 'rflaf']['rows']:,}", *cells])
    return ["table", "rows", *(NAMES[model] for model in models)], lines
