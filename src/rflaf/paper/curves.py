"""What the figures show, picked from records: the same for the report and for images."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rflaf.pages import Line, Panel
from rflaf.paper.printed import DATASETS
from rflaf.paper.protocols import PROTOCOL_NAMES
from rflaf.paper.records import Record
from rflaf.paper.specs import ESTIMATORS, RECOVERY, parse_model
from rflaf.paper.tables import Row, SubTable, is_full_size, make_table

Style = Literal["solid", "dashed"]

CELLS = (8, 16, 32, 64, 128)  # the N of figure 1
FUNCTIONS = ("f1", "f2", "f3")
_KINDS = ("training", "estimator", "timing", "recovery")
_STATUSES = ("finished", "diverged")
_NUMBERS = (
    *("test_loss", "test_accuracy", "best_epoch", "seconds", "fit_seconds", "error"),
    *("train_time_ratio", "test_time_ratio", "train_seconds", "test_seconds"),
)
_LARGEST = 1e100
_FAINT_SEEDS = 4  # besides the first: more make a page heavy and show nothing new
_FAMILIES = ("rflaf", "rfmlp", "lan", "mlp", "kan", "estimator")
_PARTS = ("", "rbf", "bs", "pl", "relu", "cos", "tanh", "sigmoid", "no-metric")
_GROUPS = ("RBF", "BS", "PL", "fixed activations", "W trained")


@dataclass(frozen=True)
class RecoveryRuns:
    """The runs that look for the activation of one function in one way, by increasing error."""

    function: str
    method: str
    runs: tuple[Record, ...]

    @property
    def typical(self) -> Record:
        """The run with the median error, the better of two."""
        return self.runs[(len(self.runs) - 1) // 2]

    @property
    def error(self) -> float:
        """The median over seeds."""
        return statistics.median(run["error"] for run in self.runs)

    @property
    def seconds(self) -> float | None:
        """The median over seeds."""
        known = [run["seconds"] for run in self.runs if run["seconds"] is not None]
        return statistics.median(known) if known else None


def sort_out(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Those that tables and figures can use, with None for what they lack, and all others.

    Others are runs of models that are not known here, runs that failed, and records of another
    form.

    Examples
    --------
    >>> spec = {"dataset": "protein", "model": "rfmlp-relu", "protocol": "published", "seed": 72,
    ...         "n_components": 3000, "epochs": 30}
    >>> known, other = sort_out([{"spec": spec, "status": "finished", "test_loss": 0.24}, {}])
    >>> known[0]["kind"], known[0]["test_loss"], known[0]["test_accuracy"], other
    ('training', 0.24, None, [{}])
    """
    pairs = [(record, _clean(record)) for record in records]
    known = [clean for _, clean in pairs if clean is not None]
    return known, [record for record, clean in pairs if clean is None]


def datasets_in(records: Iterable[Record]) -> list[str]:
    """The data sets that tables can show, those of the paper first and in its order."""
    there = {r["spec"]["dataset"] for r in records if r["kind"] != "recovery" and is_full_size(r)}
    return [name for name in DATASETS if name in there] + sorted(there - set(DATASETS))


def figure1(records: Sequence[Record], dataset: str) -> list[Panel]:
    """Test loss by protocol, and training time, against N; paper dashed. Empty without records."""
    (losses,) = make_table("table8", records, datasets=[dataset]).subtables
    (times,) = make_table("table9", records, datasets=[dataset]).subtables
    panels = []
    for protocol in PROTOCOL_NAMES:
        lines = _against_n(losses, protocol)
        if lines and protocol == "corrected":
            ours = [row for row in losses.rows if row.model in ESTIMATORS]
            for k, row in enumerate(ours):
                lines += _level(row, protocol, row.model, 4 + k)
        panels.append((f"test loss, {protocol} protocol", "test loss", lines))
    panels.append(("training time", "ReLU = 1", _against_n(times, "published")))
    return [
        Panel(title, tuple(lines), "N", label, log_x=True, x_ticks=CELLS)
        for title, label, lines in panels
        if lines
    ]


def recoveries(records: Iterable[Record]) -> list[RecoveryRuns]:
    """By function and method, those without a run left out."""
    runs: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        spec = record["spec"]
        usable = record["kind"] == "recovery" and record["error"] is not None and record["truth"]
        if usable and is_full_size(record):
            runs.setdefault((spec["dataset"], spec["model"]), []).append(record)
    return [
        RecoveryRuns(function, method, tuple(sorted(found, key=lambda run: run["error"])))
        for function in FUNCTIONS
        for method in RECOVERY
        if (found := runs.get((function, method)))
    ]


def figure2(records: Iterable[Record]) -> list[Panel]:
    """The truth of f1, and what each method found, on one pair of axes."""
    found = [each for each in recoveries(records) if each.function == "f1"]
    if not found:
        return []
    lines = [line for k, each in enumerate(found) for line in _found_curves(each, k)]
    return [Panel("f1", (_truth(found[0]), *lines), "z", "sigma(z)")]


def figure3(records: Iterable[Record]) -> list[Panel]:
    """One panel per function and method."""
    panels = []
    for each in recoveries(records):
        lines = (_truth(each), *_found_curves(each, RECOVERY.index(each.method)))
        panels.append(Panel(f"{each.function}, {each.method}", lines, "z", "sigma(z)"))
    return panels


def learned_activations(records: Iterable[Record], dataset: str) -> list[Panel]:
    """One panel per model: the first seed of each protocol, and some others faintly.

    The scale and the sign of sigma can be moved into v, so each curve is divided by its largest
    value, and has the sign that suits the first one best.
    """
    panels = []
    for model, runs in by_model(records, dataset).items():
        lines: list[Line] = []
        first: list[float] | None = None
        for k, protocol in enumerate(PROTOCOL_NAMES):
            curves = [r["sigma"] for r in under(runs, protocol) if r["sigma"] and any(r["sigma"])]
            seeds: list[Line] = []
            for sigma in curves[: 1 + _FAINT_SEEDS]:
                first = first or sigma
                y = _scaled(sigma, first)
                x = [-2 + 4 * i / (len(y) - 1) for i in range(len(y))]
                seeds.append(Line(f"{protocol} protocol", x, y, k, "faint" if seeds else "solid"))
            lines += reversed(seeds)  # the first seed is drawn last, above the others
        if lines:
            panels.append(Panel(model, tuple(lines), "z"))
    return panels


def loss_curves(records: Iterable[Record], dataset: str) -> list[Panel]:
    """Losses by epoch, averaged over seeds, by protocol and kind of model; training dashed."""
    models = by_model(records, dataset)
    panels = []
    for protocol in PROTOCOL_NAMES:
        for group in _GROUPS:
            lines: list[Line] = []
            for model in (name for name in models if _group(name) == group):
                runs, color = under(models[model], protocol), len({line.name for line in lines})
                lines += _mean_history(runs, "test_loss", model, color, "solid")
                lines += _mean_history(runs, "train_loss", model, color, "dashed")
            if lines:
                title = f"{group}, {protocol} protocol"
                panels.append(Panel(title, tuple(lines), "epoch", "loss", log_y=True))
    held_out: list[Line] = []
    for k, name in enumerate(ESTIMATORS):
        held_out += _mean_history(models.get(name, [])[:1], "held_out_loss", name, k, "solid")
    if held_out:
        title = "estimators, held-out loss, first seed"
        panels.append(Panel(title, tuple(held_out), "step", "loss", log_y=True))
    return panels


def by_model(records: Iterable[Record], dataset: str) -> dict[str, list[Record]]:
    """The full runs on a data set, models by kind and N."""
    found: dict[str, list[Record]] = {}
    for record in records:
        right = record["spec"]["dataset"] == dataset and record["kind"] in ("training", "estimator")
        if right and is_full_size(record):
            found.setdefault(record["spec"]["model"], []).append(record)
    return dict(sorted(found.items(), key=lambda item: _rank(item[0])))


def under(runs: Iterable[Record], protocol: str) -> list[Record]:
    return [run for run in runs if run["spec"]["protocol"] == protocol]


def mean_of(values: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _clean(record: Record) -> Record | None:
    given = record.get("spec")
    if not isinstance(given, dict):
        return None
    spec = {"rows": None, **given}
    try:
        model = parse_model(spec["model"])
        sizes = [spec["seed"], spec["n_components"], spec["epochs"], spec["rows"] or 0]
        usable = isinstance(spec["dataset"], str) and spec["protocol"] in PROTOCOL_NAMES
    except (KeyError, TypeError, ValueError):
        return None
    kind = record.get("kind", "training" if model.published else model.family)
    if not usable or not all(isinstance(size, int) for size in sizes):
        return None
    if kind not in _KINDS or record.get("status") not in _STATUSES:
        return None
    history = record.get("history")
    lists = history.items() if isinstance(history, dict) else ()
    # what a run that diverged has no number for is a gap in its curve
    curves = {name: _numbers(values, record["status"] == "diverged") for name, values in lists}
    clean = {
        **record,
        "spec": spec,
        "kind": kind,
        **{name: _number(record.get(name)) for name in _NUMBERS},
        "history": {name: curve for name, curve in curves.items() if curve},
        **{name: _numbers(record.get(name)) for name in ("sigma", "truth", "z")},
    }
    if kind == "recovery" and len({len(clean[name] or ()) for name in ("sigma", "truth", "z")}) > 1:
        return None
    return clean


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # larger losses would overflow sums and axes
    return float(value) if abs(value) <= _LARGEST else None


def _numbers(values: Any, gaps: bool = False) -> list[Any] | None:
    """A list of at least two numbers, or None; with gaps, None may be among them."""
    if not isinstance(values, list) or len(values) < 2:
        return None
    found = [_number(value) for value in values]
    return found if gaps or None not in found else None


def _rank(name: str) -> tuple[int, int, int]:
    model = parse_model(name)
    return _FAMILIES.index(model.family), _PARTS.index(model.part), model.cells


def _group(name: str) -> str:
    """The kind of a published model, by which loss curves are put together."""
    model = parse_model(name)
    if not model.frozen:
        return "W trained" if model.published else ""
    return "fixed activations" if model.family == "rfmlp" else model.part.upper()


def _against_n(subtable: SubTable, protocol: str) -> list[Line]:
    """RBF and BS by N, and ReLU as a level; nothing without records of this protocol."""
    rows = {row.model: row for row in subtable.rows}
    lines: list[Line] = []
    for color, basis in enumerate(("RBF", "BS")):
        chosen = [(n, rows.get(f"rflaf-{basis.lower()}-{n}")) for n in CELLS]
        for column in (protocol, "paper"):
            found = {n: row.numbers[column] for n, row in chosen if row and row.mean(column)}
            y = [number.mean for number in found.values()]
            if y and column == "paper":
                lines.append(Line(f"{basis}, paper", tuple(found), y, color, "dashed"))
            elif y:
                spread = [number.std for number in found.values()]
                lines.append(Line(basis, tuple(found), y, color, marks=True, spread=spread))
    if relu := rows.get("rfmlp-relu"):
        lines += _level(relu, protocol, "ReLU", 2)
        lines += _level(relu, "paper", "ReLU, paper", 2, "dashed")
    return lines if any(line.style == "solid" for line in lines) else []


def _level(row: Row, column: str, name: str, color: int, style: Style = "solid") -> list[Line]:
    mean = row.mean(column)
    if mean is None:
        return []
    return [Line(name, (CELLS[0], CELLS[-1]), (mean, mean), color, style)]


def _truth(found: RecoveryRuns) -> Line:
    return Line("truth", found.typical["z"], found.typical["truth"])


def _found_curves(found: RecoveryRuns, color: int) -> list[Line]:
    typical = found.typical
    others = [run for run in found.runs if run is not typical][: 2 * _FAINT_SEEDS]
    lines = [Line(found.method, run["z"], run["sigma"], color, "faint") for run in others]
    name = f"{found.method}, error {typical['error']:.2f}"
    return [*lines, Line(name, typical["z"], typical["sigma"], color)]


def _scaled(sigma: Sequence[float], like: Sequence[float]) -> list[float]:
    sign = -1 if sum(a * b for a, b in zip(sigma, like)) < 0 else 1
    largest = max(map(abs, sigma))
    return [sign * value / largest for value in sigma]


def _mean_history(
    runs: Sequence[Record], part: str, name: str, color: int, style: Style
) -> list[Line]:
    """The mean over the seeds that finished, or the first where none did."""
    finished = [run for run in runs if run["status"] == "finished"] or list(runs[:1])
    histories = [run["history"][part] for run in finished if part in run["history"]]
    if not histories:
        return []
    y = [mean_of(epoch) for epoch in zip(*histories)]
    return [Line(name, range(1, len(y) + 1), y, color, style)]
