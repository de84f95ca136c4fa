"""The paper's tables from records, with the paper's numbers beside ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rflaf.paper.printed import (
    TITLES,
    PaperNumber,
    check_name,
    datasets_of,
    models_of,
    paper_numbers,
    quantities_of,
)
from rflaf.paper.protocols import EPOCHS, N_COMPONENTS, PROTOCOL_NAMES, SEEDS, ProtocolName
from rflaf.paper.records import Record
from rflaf.paper.specs import ESTIMATORS, parse_model, seeds_of

UNITS = {
    "test_loss": "test loss",
    "test_accuracy_pct": "test accuracy, %",
    "epochs_to_best": "epoch",
    "train_time_ratio": "training time, ReLU = 1",
    "test_time_ratio": "test time, ReLU = 1",
}
PRINTED_PLACES = {"epochs_to_best": 0, "test_loss": 3}  # of the paper's numbers; 2 for others
NOT_AVAILABLE = "data not available here"
NO_RUNS = "no runs for this yet"


@dataclass(frozen=True)
class Summary:
    """Several seeds in one figure.

    Attributes
    ----------
    mean, std : float or None
        Over the seeds that finished, with the population's standard deviation, as the paper has
        it. None where all diverged.
    seeds, diverged : int
        How many were run, and how many of them diverged.
    """

    mean: float | None
    std: float | None
    seeds: int
    diverged: int = 0


@dataclass(frozen=True)
class Row:
    """A model on a data set: the paper's figure, and ours by protocol.

    `difference` is that of the published protocol's mean from the paper's, in standard errors.
    """

    model: str
    paper: PaperNumber | None
    ours: dict[ProtocolName, Summary]
    difference: float | None


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
        """The models with the best mean in each column: "paper", and the protocols' names.

        The corrected column has the estimators too.
        """
        found: dict[str, set[str]] = {}
        sign = -1 if self.quantity == "test_accuracy_pct" else 1
        if self.quantity == "epochs_to_best":
            return found
        for column in ("paper", *PROTOCOL_NAMES):
            means = {row.model: mean for row in self.rows if (mean := mean_in(row, column))}
            if means:
                lowest = min(sign * mean for mean in means.values())
                found[column] = {name for name, mean in means.items() if sign * mean == lowest}
        return found


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables."""

    name: str
    title: str
    subtables: tuple[SubTable, ...]


def make_table(
    name: str,
    records: Sequence[Record],
    *,
    datasets: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    quick: bool = False,
) -> PaperTable:
    """A table of the paper, from records.

    Parameters
    ----------
    name : str
        "table1" to "table10".
    records : sequence of dict
        As `Store.read` gives them.
    datasets, models : iterables of str, optional
        Only these.
    quick : bool
        Whether to show quick runs, in place of those of full size. The title then says so.
    """
    name = check_name(name)
    if name not in TITLES:
        raise ValueError(f"The 'name' must be one of {', '.join(TITLES)}. Got {name!r}.")
    wanted = None if models is None else set(models)
    subtables = []
    for dataset in datasets_of(name) if datasets is None else datasets:
        mine = [r for r in records if r["spec"]["dataset"] == dataset and is_full_size(r) != quick]
        for quantity in quantities_of(name):
            extra = ESTIMATORS if quantity in ("test_loss", "test_accuracy_pct") else ()
            rows = [
                _row(name, quantity, dataset, model, mine)
                for model in (*models_of(name), *extra)
                if wanted is None or model in wanted
            ]
            kept = tuple(row for row in rows if row is not None)
            kept = kept if any(row.ours for row in kept) else ()
            subtables.append(SubTable(dataset, quantity, kept, NO_RUNS if mine else NOT_AVAILABLE))
    title = f"QUICK RUN, no result: {TITLES[name]}" if quick else TITLES[name]
    return PaperTable(name, title, tuple(subtables))


def summarise(records: Sequence[Record], quantity: str) -> Summary | None:
    """The records of one model, protocol and data set, as one figure."""
    if not records:
        return None
    finished = [r for r in records if r["status"] == "finished"]
    diverged = len(records) - len(finished)
    if quantity == "epochs_to_best":
        value = _epoch_of_mean_minimum(finished)
        return Summary(value, None, len(records), diverged)
    values = [value for r in finished if (value := value_of(r, quantity)) is not None]
    if not values:
        return Summary(None, None, len(records), diverged) if diverged else None
    return Summary(statistics.fmean(values), statistics.pstdev(values), len(records), diverged)


def value_of(record: Record, quantity: str) -> float | None:
    """A record's figure for a quantity."""
    if quantity == "test_accuracy_pct":
        share = record.get("test_accuracy")
        return None if share is None else 100 * share
    return record.get(quantity)


def difference(
    ours: Summary | None, paper: PaperNumber | None, model: str, quantity: str = "test_loss"
) -> float | None:
    """(ours - the paper's) / standard error.

    Each has its own; with one seed, or without a spread, ours is taken to have the paper's.
    None where one of the two has no mean, or the paper gives no spread.
    """
    if ours is None or ours.mean is None or paper is None or paper.value is None:
        return None
    if paper.std is None:
        return None
    theirs = len(seeds_of(model, len(SEEDS)))
    n = ours.seeds - ours.diverged
    # printed digits bound the paper's spread from below: 0.000 means less than 0.0005
    spread = max(paper.std, 10.0 ** -PRINTED_PLACES.get(quantity, 2) / math.sqrt(12))
    square = spread**2 / (theirs - 1)
    square += ours.std**2 / (n - 1) if n > 1 and ours.std else spread**2
    return (ours.mean - paper.value) / math.sqrt(square)


def _row(
    table: str, quantity: str, dataset: str, model: str, records: Sequence[Record]
) -> Row | None:
    paper = paper_numbers().get((table, quantity, dataset, model))
    timing = quantity.endswith("time_ratio")
    mine = [
        record
        for record in records
        if record["spec"]["model"] == model and (record["kind"] == "timing") == timing
    ]
    ours: dict[ProtocolName, Summary] = {}
    for protocol in PROTOCOL_NAMES:
        runs = [record for record in mine if record["spec"]["protocol"] == protocol]
        if (found := summarise(runs, quantity)) is not None:
            ours[protocol] = found
    if paper is None and not ours:
        return None
    return Row(model, paper, ours, difference(ours.get("published"), paper, model, quantity))


def is_full_size(record: Record) -> bool:
    """Not one of a quick look."""
    spec = record["spec"]
    if spec["rows"] is not None and record["kind"] != "timing":
        return False
    published = parse_model(spec["model"]).published
    epochs = EPOCHS.get(spec["dataset"], 30)
    right_size = spec["n_components"] == N_COMPONENTS.get(spec["dataset"], 3000)
    return right_size and (spec["epochs"] == epochs or not published or record["kind"] == "timing")


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


def mean_in(row: Row, column: str) -> float | None:
    """The mean in the column "paper", or in that of a protocol."""
    if column == "paper":
        return row.paper.value if row.paper else None
    return summary.mean if (summary := row.ours.get(column)) else None  # type: ignore[call-overload]
