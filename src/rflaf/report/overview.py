"""What a page says first: scores, facts, columns, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from rflaf._version import __version__
from rflaf.arrays import Array
from rflaf.fitting import describe_members
from rflaf.losses import class_metrics
from rflaf.pages import Cell, KeyFigure, Section, Subsection, TableView
from rflaf.pages.wording import day_text, figure, listed, score_text
from rflaf.report.baselines import MOST_COLUMNS, Baselines, fit_baselines
from rflaf.report.evidence import Evidence, TrainingRows
from rflaf.report.given_rows import GivenColumn, GivenRows
from rflaf.report.number_sections import coverage_of
from rflaf.report.scores import LOWER_IS_BETTER, number_scores, score_error
from rflaf.report.subject import Subject
from rflaf.runtime.cached import computed_once

_MOST_LISTED = 200  # columns
THIS = "this model"


@dataclass(frozen=True)
class Overview:
    """Scores of the model and of simple ones, and facts about the model."""

    subject: Subject
    evidence: Evidence | None
    training: TrainingRows | None
    target: str

    @property
    def _rows(self) -> GivenRows | None:
        given = self.evidence or self.training
        return given.rows if given else None

    @computed_once
    def names(self) -> list[str]:
        return self.subject.names(self._rows)

    @computed_once
    def shares(self) -> Array | None:
        """The columns' importances, where they are known."""
        found = self.subject.importances(self._rows)
        return found if found is not None and len(found) == len(self.names) else None

    @computed_once
    def baselines(self) -> Baselines | None:
        if self.evidence is None:
            return None
        classes = self.subject.classes
        count = None if classes is None else len(classes)
        return fit_baselines(self.evidence, self.training, self.names, count)

    @property
    def score_name(self) -> str:
        return "R²" if self.subject.classes is None else "log-loss"

    @property
    def oof_scores(self) -> dict[str, float]:
        """Of the rows of the fit, by members that have not seen them; may be empty."""
        if self.subject.classes is not None:
            found = getattr(self.subject.estimator, "oof_metrics_", {})
            return {name: ours for name, (ours, _) in found.items()}
        score = float(getattr(self.subject.estimator, "oof_score_", np.nan))
        name = self.subject.estimator.loss_.score_name
        return {name: score} if np.isfinite(score) else {}

    @computed_once
    def scores(self) -> dict[str, dict[str, float]]:
        """By model, then by name of the score."""
        if self.evidence is None:
            return {}
        rule = number_scores if self.subject.classes is None else class_metrics
        found = {THIS: self.evidence.predicted}
        found |= self.baselines.predictions if self.baselines else {}
        return {name: rule(self.evidence.y, each) for name, each in found.items()}

    def figures(self) -> list[KeyFigure]:
        """The numbers at the head of the page."""
        found = []
        if self.evidence is not None:
            name, scores = self.score_name, self.scores
            error = score_error(self.evidence.y, self.evidence.predicted)
            about = f"± {error:.3f} on " if np.isfinite(error) else ""
            where = f"{about}{len(self.evidence.y):,} {self.evidence.where}"
            found.append(KeyFigure(f"{name}, {THIS}", score_text(scores[THIS][name]), where))
            for simple in (each for each in ("linear", "constant") if each in scores):
                value = score_text(scores[simple][name])
                found.append(KeyFigure(f"{name}, {simple} model", value, "the same rows"))
            for name in (each for each in ("ROC AUC", "average precision") if each in scores[THIS]):
                plain = scores.get("constant", {}).get(name)
                note = "" if plain is None else f"constant model: {score_text(plain)}"
                found.append(KeyFigure(f"{name}, {THIS}", score_text(scores[THIS][name]), note))
        if self.oof_scores and (self.evidence is None or self.evidence.tested):
            name, score = next(iter(self.oof_scores.items()))
            note = "training rows, each predicted by members that have not seen it"
            found.append(KeyFigure(f"{name}, out of fold", score_text(score), note))
        if self.subject.has_intervals and self.evidence and self.evidence.tested:
            share = coverage_of(self.subject, self.evidence, 0.9)[0]
            found.append(KeyFigure("coverage of 90% intervals", f"{share:.0%}", "of the test rows"))
        return found

    def sentences(self) -> list[str]:
        found = []
        if self.evidence is not None:
            rows = f"{len(self.evidence.y):,} {self.evidence.where}"
            score = score_text(self.scores[THIS][self.score_name])
            verdict = "" if self.baselines is None else f": {self._verdict(self.baselines)}"
            found.append(f"On {rows} {self.score_name} is {score}{verdict}.")
        if self.shares is not None and self.shares.sum() > 0:
            order = np.argsort(-self.shares, kind="stable")[:3].tolist()
            order = [j for j in order if self.shares[j] >= 0.01] or order[:1]
            main = listed([f"{self.names[j]} ({self.shares[j]:.0%})" for j in order])
            found.append(f"Predictions depend most on {main}.")
        if self.evidence is not None and self.evidence.tested:
            share = self.subject.outside_share(self.evidence.rows.X)
            if share > 0:
                found.append(
                    f"{share:.1%} of the test rows lie more than a standard deviation outside the "
                    "range of the training rows. Predictions there are less certain."
                )
        if self.evidence is not None and self.evidence.unknown:
            found.append(
                f"{self.evidence.unknown:,} test rows are ignored, because the model does not know "
                "their class."
            )
        return found

    def _verdict(self, baselines: Baselines) -> str:
        """The model against the linear one, by the standard error of their difference."""
        assert self.evidence is not None
        y, n = self.evidence.y, len(self.evidence.y)
        ours, line = self.evidence.predicted, baselines.predictions["linear"]
        if y.ndim == 1:
            own = np.arange(n), y
            gains = np.log(np.clip(ours[own], 1e-15, None) / np.clip(line[own], 1e-15, None))
        else:
            spread = y.var(axis=0)
            unit = np.where(spread > 0, spread, 1.0)
            gains = np.mean(((line - y) ** 2 - (ours - y) ** 2) / unit, axis=1)
        error = gains.std() / np.sqrt(n) if n > 1 else np.nan
        score, simple = (self.scores[name][self.score_name] for name in (THIS, "linear"))
        gap = simple - score if self.score_name in LOWER_IS_BETTER else score - simple
        known = f"({score_text(simple)}, {baselines.how})"
        if not np.isfinite(error) or abs(gap) <= 2 * error:
            return f"about as good as a linear model {known}"
        word = "better" if gap > 0 else "worse"
        return f"{word} than a linear model by {abs(gap):.3f} ± {error:.3f} {known}"

    def facts(self) -> list[tuple[str, str]]:
        model: Any = self.subject.estimator
        layer, members = model.members_[0].layer, len(model.members_)
        each = f" in each of {members} members" if members > 1 else ""
        classes = self.subject.classes
        found = [("Target", self.target)]
        if classes is not None:
            shown = [str(c) for c in classes[:20]]
            more = f" and {len(classes) - 20} more" if len(classes) > 20 else ""
            found.append(("Classes", f"{len(classes)}: {', '.join(shown)}{more}"))
        count = self.training.rows.count if self.training else model.n_samples_fit_
        found.append(("Fitted to", f"{count:,} rows, {len(self.names):,} columns"))
        if self.evidence is not None and self.evidence.tested:
            found.append(("Tested on", f"{len(self.evidence.y):,} new rows"))
        found += [
            ("Model", f"{layer.components.shape[1]:,} random features{each}"),
            ("Activation", _basis_text(layer.activation.basis)),
            ("Members", "; ".join(describe_members(model.members_))),
            ("Penalty", f"{model.alpha_:.3g}"),
            *(("Constraint", f"{self.target} {text}") for text in model._constraints()),
            ("Effort", _effort_text(model)),
            ("Written", f"{date.today():%d %B %Y} by rflaf {__version__}"),
        ]
        return found


def _effort_text(model: Any) -> str:
    left = f"; skipped: {listed(model.left_out_)}" if model.left_out_ else ""
    limit = f", at most {model.time_limit:g} s" if model.time_limit is not None else ""
    return f"{model.effort_}{limit}{left}"


def _basis_text(basis: Any) -> str:
    name = type(basis).__name__
    if not basis.learnable:
        return f"{getattr(basis, 'name', name)}, not learned"
    low, high = basis.grid
    return f"learned, from {basis.n} functions ({name}) between {low:g} and {high:g}"


def score_section(overview: Overview) -> Section:
    """The model beside a linear and a constant one."""
    scores, evidence = overview.scores, overview.evidence
    names = list(scores[THIS] if scores else overview.oof_scores or [overview.score_name])
    best = {
        name: (min if name in LOWER_IS_BETTER else max)(s[name] for s in scores.values())
        for name in (names if scores else [])
    }
    rows = []
    for model, found in scores.items():
        cells = []
        for name in names:
            value = found[name]
            text = figure(value) if name in ("RMSE", "MAE") else score_text(value)
            kind = "best" if value == best[name] and len(scores) > 1 else ""
            cells.append(Cell(text, value, kind))
        rows.append((Cell(model), Cell(evidence.where if evidence else ""), *cells))
    if overview.oof_scores and (evidence is None or evidence.tested):
        known = [overview.oof_scores.get(name) for name in names]
        cells = [Cell("" if value is None else score_text(value), value) for value in known]
        rows.append((Cell(THIS), Cell("training rows, out of fold"), *cells))
    notes = []
    if overview.baselines is not None:
        numbers = overview.subject.classes is None
        linear, constant = ("ridge", "mean") if numbers else ("logistic", "class frequencies")
        notes.append(
            f"The linear model is {linear} regression, the constant one the {constant}; both "
            f"{overview.baselines.how}."
        )
    if not rows:
        notes.append("No score: the model was fitted to too few rows to hold some out.")
        return Section("scores", "", "Scores", (), tuple(notes))
    grid = TableView("Scores", ("model", "rows", *names), rows, right=True)
    return Section("scores", "", "Scores", (Subsection("", (grid,)),), tuple(notes))


def column_section(overview: Overview) -> Section:
    given, title = overview.training or overview.evidence, "Columns"
    if given is None or given.rows.width > MOST_COLUMNS:
        return Section("columns", "", title)
    rows = given.rows
    lines = []
    for j, name in enumerate(overview.names[:_MOST_LISTED]):
        share = None if overview.shares is None else float(overview.shares[j])
        text = "" if share is None else f"{share:.1%}"
        lines.append((Cell(name), *_column_cells(rows.column(j, name)), Cell(text, share)))
    header = ("column", "content", "missing", "minimum", "median", "maximum", "importance")
    grid = TableView(title, header, lines, right=True)
    note = f"In {rows.count:,} {given.where.split(',')[0]}."
    if len(overview.names) > _MOST_LISTED:
        note += f" The first {_MOST_LISTED} of {len(overview.names):,}."
    folded = len(lines) > 12
    subsection = Subsection("All columns" if folded else "", (grid,), folded=folded)
    return Section("columns", "", title, (subsection,), (note,))


def _column_cells(column: GivenColumn) -> list[Cell]:
    gone = 1 - float(column.present.mean())
    missing = Cell(f"{gone:.1%}" if gone else "", gone)
    values = column.values[column.present]
    if not len(values):
        return [Cell("empty"), missing, *[Cell("")] * 3]
    if column.kind == "category":
        levels, counts = column.levels
        text = f"{len(levels)} values, mostly {levels[counts.argmax()]}"
        return [Cell(text), missing, *[Cell("")] * 3]
    found = [float(v) for v in (values.min(), np.median(values), values.max())]
    shown = [Cell(day_text(v) if column.kind == "date" else figure(v, 4), v) for v in found]
    return [Cell("dates" if column.kind == "date" else "numbers"), missing, *shown]


def missing_section(overview: Overview) -> Section:
    """What the page would have with more rows at hand."""
    notes = []
    if overview.evidence is None:
        notes.append(
            "Without test rows there are no charts of predictions, no effects of columns and no "
            "coverage of intervals: pass X_test and y_test."
        )
    elif not overview.evidence.tested:
        notes.append(
            "Without test rows the coverage of intervals is unknown: pass X_test and y_test."
        )
    elif overview.evidence.rows.width > MOST_COLUMNS:
        notes.append(f"No linear model is fitted to more than {MOST_COLUMNS:,} columns.")
    elif overview.training is None:
        notes.append(
            "Without training rows, the linear and the constant model were fitted to test rows. "
            "Pass X_train and y_train for a fair comparison."
            if overview.baselines is not None
            else "A linear model to compare with needs X_train and y_train."
        )
    return Section("missing", "", "What is missing", (), tuple(notes))
