"""Sections on what the model itself has learned: importances, activation, input map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rflaf.activation import alike
from rflaf.arrays import Array
from rflaf.fitting import leading_team
from rflaf.pages import Bar, BarList, Cell, Histogram, Line, Panel, Section, Subsection, TableView
from rflaf.report.subject import Subject

_MOST_BARS = 15
_POINTS = 161
_DIRECTIONS = 4


def importance_section(shares: Array, spread: Array | None, names: list[str]) -> Section:
    order = np.argsort(-shares, kind="stable")
    shown = order[:_MOST_BARS]
    top = float(shares[order[0]]) or 1.0
    texts = [f"{share:.1%}" for share in shares]
    notes = ["Mean squared change of predictions when a column is shuffled, as a share of the sum."]
    if spread is not None and spread.any():
        texts = [f"{text} ± {each:.1%}" for text, each in zip(texts, spread)]
        notes.append("±: standard deviation over members.")
    bars = tuple(Bar(names[j], 0.0, float(shares[j]) / top, texts[j]) for j in shown.tolist())
    rest = float(shares[order[_MOST_BARS:]].sum())
    if len(order) > _MOST_BARS:
        notes.append(f"{len(order) - _MOST_BARS} more columns have {rest:.1%} together.")
    subsections = (Subsection("", bars=(BarList("", bars),)),)
    return Section("importances", "", "Importance of the columns", subsections, tuple(notes))


def learned_section(subject: Subject, names: list[str]) -> Section:
    """The activation, and the map of the inputs before it."""
    found = Subsection("", panels=(_activation(subject),)), _input_map(subject, names)
    learned = subject.estimator.activation_.basis.learnable
    note = "f(x) = Σ vₘ σ(wₘ · L x) + constant, with random wₘ that are not trained. "
    note += "σ and L were learned from the data." if learned else "σ was given."
    return Section("learned", "", "What was learned", tuple(filter(None, found)), (note,))


def _activation(subject: Subject) -> Panel:
    """All members thin, scaled to one height and sign, with their mean; grey: what it is given."""
    estimator = subject.estimator
    activations = alike([each.layer.activation for each in leading_team(estimator.members_)])
    mean = sum(activations[1:], activations[0]) / len(activations)
    low, high = mean.basis.grid
    margin = (high - low) / 8
    z = np.linspace(low - margin, high + margin, _POINTS)
    lines = [Line("σ(z)", z.tolist(), mean(z).tolist(), 0)]
    if len(activations) > 1:
        thin = [Line("members", z.tolist(), each(z).tolist(), 0, "faint") for each in activations]
        lines = [*thin, replace(lines[0], name=f"mean of {len(activations)} members (thin)")]
    ends = float(z[0]), float(z[-1])
    counts, edges = np.histogram(estimator.z_sample_, bins=40, range=ends)
    below = Histogram(edges.tolist(), counts.tolist())
    title = "Learned activation" if mean.basis.learnable else "Activation"
    return Panel(title, tuple(lines), "z", "σ(z)", below=below, x_range=ends)


def _input_map(subject: Subject, names: list[str]) -> Subsection | None:
    """How strongly each input enters, and for a full map its leading directions."""
    estimator = subject.estimator
    layer = estimator.members_[0].layer
    inputs = _input_names(subject, names)
    team = [each.layer for each in leading_team(estimator.members_)]
    metrics = [np.asarray(metric) for each in team for metric in each.metrics]
    if estimator.metric_kind_ == "none" or any(m.shape != metrics[0].shape for m in metrics):
        return None
    weights = np.mean([np.linalg.norm(m.reshape(len(m), -1), axis=1) for m in metrics], axis=0)
    if len(weights) != len(inputs):
        return None
    if metrics[0].ndim == 1:  # those of one name together
        places = {name: k for k, name in enumerate(dict.fromkeys(inputs))}
        weights = np.sqrt(np.bincount([places[name] for name in inputs], weights**2))
        inputs = list(places)
    order = np.argsort(-weights, kind="stable")[:_MOST_BARS].tolist()
    top = float(weights[order[0]]) or 1.0
    bars = tuple(Bar(inputs[j], 0.0, float(weights[j]) / top, f"{weights[j]:.2f}") for j in order)
    grids: tuple[TableView, ...] = ()
    notes = [
        f"Scale that the learned metric L ({estimator.metric_kind_}) gives to each of the "
        f"{layer.form.text}, averaged over members. Predictions can change faster along inputs "
        "with larger scales.",
    ]
    if metrics[0].ndim == 2:
        grids = (_directions(metrics[0], inputs, order),)
        notes.append("The table has the leading directions of the first member's L.")
    return Subsection("Metric of the inputs", grids, bars=(BarList("", bars),), notes=tuple(notes))


def _directions(metric: Array, inputs: list[str], order: list[int]) -> TableView:
    left, size, _ = np.linalg.svd(metric)
    count = min(_DIRECTIONS, len(size))
    # the sign of a direction is free: the largest entry is positive
    turned = left[:, :count] * np.sign(left[np.abs(left[:, :count]).argmax(axis=0), range(count)])
    rows = []
    for j in order:
        cells = [Cell(f"{v:+.2f}", v, shade=0.45 * abs(v)) for v in turned[j].tolist()]
        rows.append((Cell(inputs[j]), *cells))
    header = ("input", *(f"direction {k + 1}, length {size[k]:.2f}" for k in range(count)))
    return TableView("Leading directions", header, rows, right=True)


def _input_names(subject: Subject, names: list[str]) -> list[str]:
    """The names of what L maps: columns, and ranks of some."""
    form = subject.estimator.members_[0].layer.form
    if not subject.direct:
        try:
            made = [str(name) for name in subject.model[:-1].get_feature_names_out()]
            prefixed = all("__" in name for name in made)  # by the parts of a ColumnTransformer
            names = [name.partition("__")[2] for name in made] if prefixed else made
        except (AttributeError, ValueError):
            names = []
    if len(names) != len(form.mean):  # the columns have become others
        names = subject.estimator._input_names()[0]
    return form.names(names)
