"""Where each model stands on the tables of benchmarks/tables.py, from the committed results.

`tables.json` is what that command measured. `peers.json` has models that are not installed with
this package, measured apart on the same splits; `tables.json` counts where both have a model.
"""

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
    "mlp": "MLP",
    "xrfm": "xRFM",
    "rff": "tuned RBFSampler",
    "svm": "tuned SVM",
}


@dataclass(frozen=True)
class Standing:
    """One model over some tables."""

    model: str
    tables: int
    rank: float
    over_best: float
    seconds: float


def measured() -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of both files by table and model."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for name in ("peers", "tables"):  # the later one counts
        for row in json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]:
            rows[row["table"], row["model"]] = row
    return rows


def standings(classes: bool) -> list[Standing]:
    """Models that ran on all tables of regression, or of classes, the best first."""
    rows = measured()
    tables = sorted({table for table, _ in rows if table.startswith("clf/") == classes})
    models = sorted({m for _, m in rows if all((table, m) in rows for table in tables)})
    losses = {m: [max(rows[table, m]["loss"], 1e-5) for table in tables] for m in models}
    best = [min(column) for column in zip(*losses.values())]
    found = []
    for model, own in losses.items():
        ranks = [
            1 + sum(other[k] < loss for other in losses.values()) for k, loss in enumerate(own)
        ]
        over = [loss / least for loss, least in zip(own, best)]
        seconds = [max(rows[table, model]["seconds"], 0.01) for table in tables]
        found.append(
            Standing(
                model,
                len(tables),
                statistics.mean(ranks),
                statistics.geometric_mean(over),
                statistics.geometric_mean(seconds),
            )
        )
    return sorted(found, key=lambda each: each.over_best)
