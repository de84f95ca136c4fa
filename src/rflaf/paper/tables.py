"""The paper's tables from records, with the paper's numbers beside ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rflaf.paper import printed
from rflaf.paper.printed import TITLES, Number
from rflaf.paper.protocols import PROTOCOL_NAMES, SEEDS
from rflaf.paper.records import Record
from rflaf.paper.specs import Spec, seeds_of

UNITS = {
    "test_loss": "test loss",
    "test_accuracy_pct": "test accuracy, %",
    "epochs_to_best": "epoch",
    "train_time_ratio": "training time, ReLU = 1",
    "test_time_ratio": "test time, ReLU = 1",
}
COLUMNS = ("paper", *PROTOCOL_NAMES)
PRINTED_PLACES = {"epochs_to_best": 0, "test_loss": 3}  # of the paper's numbers; 2 for others
NOT_AVAILABLE = "data not available here"
NO_RUNS = "no runs for this yet"


@dataclass(frozen=True)
class Row:
    """A model on a data set: its numbers by column, as far as there are any.

    `difference` is that of the published protocol's mean from the paper's, in standard errors.
    """

    model: str
    numbers: dict[str, Number]
    difference: float | None

    def mean(self, column: str) -> float | None:
        """The mean in the column "paper", or in that of a protocol."""
        return self.numbers[column].mean if column in self.numbers else None


@dataclass(frozen=True)
class SubTable:
    """The part of a table that belongs to one data set and one quantity.

    Without records it has no rows, and `reason` explains what is missing: runs, if the data set has
    other runs, or else the data.
    """

    dataset: str
    quantity: str
    rows: tuple[Row, ...]
    reason: str = NOT_AVAILABLE

    def best(self) -> dict[str, set[str]]:
        """The models with the best mean in each column; estimators are in the corrected one."""
        if self.quantity == "epochs_to_best":
            return {}
        sign = -1 if self.quantity == "test_accuracy_pct" else 1
        found = {}
        for column in COLUMNS:
            known = {row.model: row.mean(column) for row in self.rows}
            means = {model: sign * mean for model, mean in known.items() if mean is not None}
            lowest = min(means.values(), default=None)
            found[column] = {name for name, mean in means.items() if mean == lowest}
        return found


@dataclass(frozen=True)
class PaperTable:
    name: str
    title: str
    subtables: tuple[SubTable, ...]


def make_table(
    name: str,
    records: Sequence[Record],
    *,
    datasets: Iterable[str] | None = None,
    models: Collection[str] | None = None,
    quick: bool = False,
) -> PaperTable:
    """A table of the paper, "table1" to "table10", from records as `Store.read` gives them.

    `datasets` and `models` restrict it. `quick` shows quick runs in place of those of full size;
    the title then says so.
    """
    name = printed.check_name(name)
    if name not in TITLES:
        raise ValueError(f"The 'name' must be one of {', '.join(TITLES)}. Got {name!r}.")
    chosen = [model for model in printed.all_models_of(name) if models is None or model in models]
    subtables = []
    for dataset in printed.datasets_of(name) if datasets is None else datasets:
        mine = [r for r in records if r["spec"]["dataset"] == dataset and is_full_size(r) != quick]
        for quantity in printed.quantities_of(name):
            rows = [_row(name, quantity, dataset, model, mine) for model in chosen]
            there = any(row.numbers.keys() - {"paper"} for row in rows)
            kept = tuple(row for row in rows if row.numbers and there)
            subtables.append(SubTable(dataset, quantity, kept, NO_RUNS if mine else NOT_AVAILABLE))
    title = f"QUICK RUN, figures mean nothing: {TITLES[name]}" if quick else TITLES[name]
    return PaperTable(name, title, tuple(subtables))


def _row(table: str, quantity: str, dataset: str, model: str, records: Sequence[Record]) -> Row:
    """A row, without numbers where neither the paper nor the records have any."""
    paper = printed.paper_numbers().get((table, quantity, dataset, model))
    numbers = {} if paper is None else {"paper": paper}
    timing = quantity.endswith("time_ratio")
    mine = [r for r in records if r["spec"]["model"] == model and (r["kind"] == "timing") == timing]
    for protocol in PROTOCOL_NAMES:
        runs = [record for record in mine if record["spec"]["protocol"] == protocol]
        if (found := summarise(runs, quantity)) is not None:
            numbers[protocol] = found
    return Row(model, numbers, difference(numbers.get("published"), paper, model, quantity))


def summarise(records: Sequence[Record], quantity: str) -> Number | None:
    """The records of one model, protocol and data set, as one number."""
    finished = [r for r in records if r["status"] == "finished"]
    diverged = len(records) - len(finished)
    if quantity == "epochs_to_best":
        epoch = _epoch_of_mean_minimum(finished)
        return Number(epoch, None, len(records), diverged) if records else None
    factor, name = (100, "test_accuracy") if quantity == "test_accuracy_pct" else (1, quantity)
    values = [factor * value for r in finished if (value := r.get(name)) is not None]
    if not values:
        return Number(None, None, len(records), diverged) if diverged else None
    return Number(statistics.fmean(values), statistics.pstdev(values), len(records), diverged)


def difference(
    ours: Number | None, paper: Number | None, model: str, quantity: str = "test_loss"
) -> float | None:
    """(ours - the paper's) / standard error.

    Each has its own; with one seed, or without a spread, ours is taken to have the paper's.
    None where one of the two has no mean, or the paper gives no spread.
    """
    if ours is None or ours.mean is None or paper is None or paper.mean is None:
        return None
    if paper.std is None:
        return None
    theirs = len(seeds_of(model, len(SEEDS)))
    n = ours.seeds - ours.diverged
    # printed digits bound the paper's spread from below: 0.000 means less than 0.0005
    spread = max(paper.std, 10.0 ** -PRINTED_PLACES.get(quantity, 2) / math.sqrt(12))
    square = spread**2 / (theirs - 1)
    square += ours.std**2 / (n - 1) if n > 1 and ours.std else spread**2
    return (ours.mean - paper.mean) / math.sqrt(square)


def is_full_size(record: Record) -> bool:
    """Not one of a quick look."""
    spec = record["spec"]
    full = Spec.of(spec["dataset"], spec["model"], spec["protocol"], spec["seed"])
    if record["kind"] == "timing":  # of one epoch on some rows
        return bool(spec["n_components"] == full.n_components)
    return all(spec[name] == value for name, value in full.to_dict().items())


def _epoch_of_mean_minimum(records: Sequence[Record]) -> float | None:
    """The epoch, from 1, whose loss, averaged over seeds, is lowest where the protocol looks."""
    if not records:
        return None
    part = "test_loss" if records[0]["spec"]["protocol"] == "published" else "validation_loss"
    histories = [record["history"].get(part) for record in records]
    if not all(histories):
        return None
    means = [statistics.fmean(epoch) for epoch in zip(*histories)]
    return float(1 + means.index(min(means)))
