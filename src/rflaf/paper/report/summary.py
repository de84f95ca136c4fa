"""The records, summarised in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rflaf.pages.wording import listed
from rflaf.paper.curves import by_model, datasets_in, mean_of, under
from rflaf.paper.formats import show
from rflaf.paper.printed import DATASETS
from rflaf.paper.records import Record
from rflaf.paper.specs import ESTIMATORS, parse_model
from rflaf.paper.tables import NOT_AVAILABLE, Row, is_full_size, make_table

CLOSE = 3.0  # standard errors
_LOSSES = ("table8", "table4", "table1")


def facts(known: Sequence[Record], other: Sequence[Record]) -> list[tuple[str, str]]:
    """How many runs, of what, on what, when: pairs of a name and a text."""
    records = [*known, *other]
    small = sum(not is_full_size(record) for record in known)
    more = f", {small} of them quick runs, which are not in the tables" if small else ""
    kinds = Counter(record["kind"] for record in known)
    found = [
        ("Runs", f"{len(records)}{more}"),
        ("Kinds", listed([f"{count} {kind}" for kind, count in kinds.items()])),
        ("Data sets", listed(list(dict.fromkeys(r["spec"]["dataset"] for r in known)))),
        ("Seeds", str(len({r["spec"]["seed"] for r in known if r["kind"] != "timing"}))),
        ("Machines", "; ".join(_distinct(_machine(record) for record in records))),
        ("Versions", "; ".join(_distinct(_versions(record) for record in records))),
        ("Dates", _span(record.get("date") for record in records)),
    ]
    return [(name, text) for name, text in found if text]


def sentences(records: Sequence[Record]) -> list[str]:
    """How our runs of the paper's models compare with its numbers, and our own with the best."""
    there = datasets_in(records)
    found = []
    for dataset in there:
        rows = _loss_rows(records, dataset)
        found += [*_agreement(rows, dataset), *_best(records, rows, dataset)]
    missing = [name for name in DATASETS if name not in there]
    if missing:
        found.append(f"{listed(missing)}: {NOT_AVAILABLE}.")
    return found


def _loss_rows(records: Sequence[Record], dataset: str) -> list[Row]:
    """The test losses of all models on a data set.

    Where two tables have a model, the last counts: table 1 has spreads, and table 8 has none.
    """
    tables = (make_table(name, records, datasets=[dataset]) for name in _LOSSES)
    return list({row.model: row for table in tables for row in table.subtables[0].rows}.values())


def _agreement(rows: Sequence[Row], dataset: str) -> list[str]:
    differences = [abs(row.difference) for row in rows if row.difference is not None]
    sentences = []
    if differences:
        close = sum(each <= CLOSE for each in differences)
        sentences.append(
            f"On {dataset}, {close} of {len(differences)} models are within {CLOSE:g} standard "
            "errors of the paper: test losses, published protocol, those with a printed spread."
        )
    numbers = [(row.model, row.numbers.get("paper"), row.numbers.get("published")) for row in rows]
    both = [
        model for model, paper, ours in numbers
        if paper and paper.mean is None and ours and ours.diverged
    ]  # fmt: skip
    if both:
        sentences.append(
            f"On {dataset}, the paper's runs of {listed(both)} diverged, and so did some or all of "
            "ours."
        )
    return sentences


def _best(records: Sequence[Record], rows: Sequence[Row], dataset: str) -> list[str]:
    """Each estimator against the best published model, both under the corrected protocol."""
    means = {row.model: mean for row in rows if (mean := row.mean("corrected")) is not None}
    ours = [name for name in ESTIMATORS if name in means]
    theirs = [name for name in means if parse_model(name).published]
    if not ours or not theirs:
        return []
    best = min(theirs, key=lambda name: means[name])
    numbers = {row.model: row.numbers["corrected"] for row in rows if row.model in means}
    runs = by_model(records, dataset)
    texts = {
        model: show(numbers[model], "test_loss") + _seconds(under(runs[model], "corrected"))
        for model in (best, *ours)
    }
    return [
        f"On {dataset}, under the corrected protocol, the best test loss of {len(theirs)} "
        f"published models is {texts[best]} ({best}). Estimators: "
        f"{'; '.join(f'{name} {texts[name]}' for name in ours)}."
    ]


def _seconds(runs: Iterable[Record]) -> str:
    """Of training alone, mean over seeds."""
    mean = mean_of(map(training_seconds, runs))
    return "" if mean is None else f" in {mean:.3g} s"


def training_seconds(record: Record) -> float | None:
    """Seconds of the fit, without tests if the record has them separately."""
    if record["fit_seconds"] is not None:
        return record["fit_seconds"]
    epochs = record["history"].get("train_seconds")
    return sum(epochs) if epochs and None not in epochs else record["seconds"]


def _machine(record: Record) -> str:
    given = record.get("machine")
    if not isinstance(given, dict):
        return str(given or "")
    cores = f"{given['cores']} cores" if given.get("cores") else ""
    parts = (given.get("processor"), cores, given.get("system"))
    return ", ".join(str(part) for part in parts if part)


def _versions(record: Record) -> str:
    given = record.get("versions")
    if not isinstance(given, dict):
        return str(given or "")
    return ", ".join(f"{name} {version}" for name, version in given.items())


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]


def _span(dates: Iterable[object]) -> str:
    known = sorted({date for date in dates if isinstance(date, str)})
    return " to ".join(dict.fromkeys((known[0], known[-1]))) if known else ""
