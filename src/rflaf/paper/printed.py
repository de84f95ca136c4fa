"""The paper's own numbers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from rflaf.paper.specs import ESTIMATORS

TITLES = {
    "table1": "Test losses of random feature models",
    "table2": "Times of RBF and BS, ReLU = 1",
    "table3": "Epoch of the lowest test loss",
    "table4": "Test losses of networks that train W",
    "table5": "Test times of networks that train W, ReLU random features = 1",
    "table6": "Test accuracies of random feature models, %",
    "table7": "Test accuracies of networks that train W, %",
    "table8": "Test losses for all N",
    "table9": "Training times for all N, ReLU = 1",
    "table10": "Test times for all N, ReLU = 1",
}
FIGURES = {
    "figure1": "Test loss and time against N",
    "figure2": "The activation learned from f1",
    "figure3": "The activations learned from f1, f2 and f3",
}
DATASETS = ("mnist", "cifar10", "adult", "protein", "ct", "workloads", "millionsongs")
TIMES = ("train_time_ratio", "test_time_ratio")


@dataclass(frozen=True)
class Number:
    """A number of a table, ours or the paper's.

    Mean and population standard deviation over the seeds that finished, as the paper has them; no
    mean where all diverged. The paper's own numbers have no count of `seeds`.
    """

    mean: float | None
    std: float | None
    seeds: int = 0
    diverged: int = 0


@lru_cache(maxsize=1)
def paper_numbers() -> dict[tuple[str, str, str, str], Number]:
    """The paper's tables: (table, quantity, data set, model) to the number.

    Examples
    --------
    >>> paper_numbers()["table1", "test_loss", "protein", "rflaf-rbf-16"].mean
    0.204
    """
    text = files("rflaf.paper").joinpath("paper_tables.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["quantity"], row["dataset"], row["model"]): Number(
            None if row["value"] == "diverged" else float(row["value"]),
            float(row["std"]) if row["std"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    }


def quantities_of(table: str) -> list[str]:
    """What a table measures: one thing, or training and test times."""
    return _distinct(table, 1)


def datasets_of(table: str) -> list[str]:
    """The data sets of a table, in its order."""
    return _distinct(table, 2)


def models_of(table: str) -> list[str]:
    """The paper's models of a table, in its order."""
    return _distinct(table, 3)


def all_models_of(table: str) -> list[str]:
    """The same, and this package's estimators where losses or accuracies are compared."""
    compared = quantities_of(table)[0] in ("test_loss", "test_accuracy_pct")
    return [*models_of(table), *(ESTIMATORS if compared else ())]


def _distinct(table: str, part: int) -> list[str]:
    return list(dict.fromkeys(key[part] for key in paper_numbers() if key[0] == table))


def check_name(name: str) -> str:
    """A table's or figure's name, also as "1" or "Table 1"."""
    plain = name.lower().replace(" ", "")
    plain = f"table{plain}" if plain.isdigit() else plain
    if plain not in TITLES and plain not in FIGURES:
        raise ValueError(
            f"There is no {name!r}. The paper has tables 1 to {len(TITLES)} and figures 1 to "
            f"{len(FIGURES)}: say table1 or figure2."
        )
    return plain
