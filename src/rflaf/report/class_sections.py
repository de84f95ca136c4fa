"""Sections on predictions that are probabilities of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

from rflaf.arrays import Array
from rflaf.pages import Cell, Histogram, Line, Panel, Section, Subsection, TableView
from rflaf.report.evidence import Evidence
from rflaf.report.reasons import shown_rows

_BINS = 10
_CURVES = 6  # classes with a ROC curve of their own
_MOST_CLASSES = 15  # of the confusion matrix
_MOST_CONFUSIONS = 20
_CURVE_POINTS = 200
_UNIT_SQUARE: dict[str, Any] = {"x_range": (0.0, 1.0), "y_range": (-0.02, 1.04), "height": 300}


def probability_section(evidence: Evidence, classes: list[str]) -> Section:
    panels = [_reliability(evidence, classes)]
    roc = _roc(evidence, classes)
    if roc.lines[1:]:
        panels.append(roc)
    notes = [
        f"Reliability: the {evidence.where} in equal groups by predicted probability. On the "
        "dashed line, probabilities equal frequencies. Bars: two standard errors. Grey: "
        "distribution of the predicted probabilities.",
    ]
    if len(panels) > 1:
        notes.append("ROC: true positive rate against false positive rate.")
    subsections = (Subsection("", panels=tuple(panels)),)
    return Section("probabilities", "", "Probabilities", subsections, tuple(notes))


def _reliability(evidence: Evidence, classes: list[str]) -> Panel:
    """With two classes that of the second, else that of the most probable class."""
    p, y = evidence.predicted, evidence.y
    if len(classes) == 2:
        claimed, right, label = p[:, 1], y == 1, f"probability of {classes[1]}"
        y_label = f"share of {classes[1]}"
    else:
        claimed, right = p.max(axis=1), p.argmax(axis=1) == y
        label, y_label = "highest probability", "accuracy"
    order = np.argsort(claimed, kind="stable")
    groups = np.array_split(order, min(_BINS, max(1, len(order) // 5)))
    x = [float(claimed[group].mean()) for group in groups]
    share = np.array([right[group].mean() for group in groups])
    spread = 2 * np.sqrt(share * (1 - share) / list(map(len, groups)))
    counts, edges = np.histogram(claimed, bins=25, range=(0.0, 1.0))
    lines = (
        Line("calibrated", (0.0, 1.0), (0.0, 1.0), None, "dashed"),
        Line("this model", x, share.tolist(), 0, marks=True, spread=spread.tolist()),
    )
    below = Histogram(edges.tolist(), counts.tolist())
    return Panel("Reliability", lines, label, y_label, below=below, **_UNIT_SQUARE)


def _roc(evidence: Evidence, classes: list[str]) -> Panel:
    lines = [Line("chance", (0.0, 1.0), (0.0, 1.0), None, "dashed")]
    counts = np.bincount(evidence.y, minlength=len(classes))
    chosen = [1] if len(classes) == 2 else np.argsort(-counts, kind="stable")[:_CURVES].tolist()
    for color, k in enumerate(sorted(chosen)):
        if not 0 < counts[k] < len(evidence.y):
            continue
        is_k, p = evidence.y == k, evidence.predicted[:, k]
        false, true, _ = roc_curve(is_k, p)
        keep = np.unique(np.linspace(0, len(false) - 1, _CURVE_POINTS).astype(int))
        name = f"{classes[k]}, area {roc_auc_score(is_k, p):.3f}"
        lines.append(Line(name, false[keep].tolist(), true[keep].tolist(), color))
    title = "ROC" if len(classes) <= _CURVES else f"ROC of the {_CURVES} most common classes"
    return Panel(title, tuple(lines), "false positive rate", "true positive rate", **_UNIT_SQUARE)


def confusion_section(evidence: Evidence, classes: list[str]) -> Section:
    """Which classes are taken for which; for many classes the most common mistakes."""
    chosen, every = evidence.predicted.argmax(axis=1), range(len(classes))
    table = confusion_matrix(evidence.y, chosen, labels=every)
    if len(classes) > _MOST_CLASSES:
        grid, note = _mistakes(table, classes), "The most common mistakes."
    else:
        grid = _matrix(table, classes)
        note = "Rows: actual class. Columns: predicted class. Shading: share of the row."
    title = "Confusion of classes"
    return Section("confusion", "", title, (Subsection("", (grid,)),), (note,))


def _matrix(table: Array, classes: list[str]) -> TableView:
    rows = []
    for k, name in enumerate(classes):
        total = int(table[k].sum())
        found = f"{table[k, k] / total:.1%}" if total else "–"
        cells = [
            Cell(f"{n:,}", float(n), shade=0.45 * n / total if total else None) for n in table[k]
        ]
        rows.append((Cell(name), *cells, Cell(f"{total:,}", float(total)), Cell(found)))
    header = ("actual", *classes, "rows", "recall")
    return TableView("Confusion of classes", header, rows, right=True)


def _mistakes(table: Array, classes: list[str]) -> TableView:
    pairs = [(a, b) for a, b in np.argwhere(table) if a != b]
    rows = []
    for a, b in sorted(pairs, key=lambda pair: -table[pair])[:_MOST_CONFUSIONS]:
        n, share = float(table[a, b]), table[a, b] / float(table[a].sum())
        names = Cell(classes[a]), Cell(classes[b])
        rows.append((*names, Cell(f"{n:,.0f}", n), Cell(f"{share:.1%}", share)))
    header = ("actual", "predicted", "rows", "share of the actual class")
    return TableView("Most common mistakes", header, rows, right=True)


def surprise_section(
    evidence: Evidence, classes: list[str], names: list[str], order: list[int]
) -> Section:
    own = evidence.predicted[np.arange(len(evidence.y)), evidence.y]
    chosen = evidence.predicted.argmax(axis=1)

    def cells(i: int) -> list[Cell]:
        return [
            Cell(classes[evidence.y[i]]),
            Cell(classes[chosen[i]], kind="far" if chosen[i] != evidence.y[i] else ""),
            Cell(f"{own[i]:.2%}", float(own[i])),
        ]

    header = ("actual", "predicted", "probability of the actual")
    grid = shown_rows(evidence, -own, names, order, header, cells)
    note = (
        f"The {evidence.where} with the lowest probability of their class, and their main columns."
    )
    return Section("rows", "", "Largest errors", (Subsection("", (grid,)),), (note,))
