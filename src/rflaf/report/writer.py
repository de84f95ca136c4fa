"""The page about a model: which sections it has, and what comes first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.pages import Page, Section
from rflaf.pages.html import encode, render_page, require_jinja2
from rflaf.report import class_sections, number_sections
from rflaf.report.baselines import Baselines, fit_baselines
from rflaf.report.effects import effects_section
from rflaf.report.evidence import (
    Evidence,
    TrainingRows,
    on_test_rows,
    out_of_fold,
    training_rows,
)
from rflaf.report.inside import importance_section, learned_section
from rflaf.report.overview import (
    Overview,
    column_section,
    missing_section,
    score_section,
)
from rflaf.report.reasons import attribution_section
from rflaf.report.subject import Subject
from rflaf.runtime.files import write_whole

Array = NDArray[Any]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    X_test: Any = None,
    y_test: Any = None,
    *,
    X_train: Any = None,
    y_train: Any = None,
    title: str | None = None,
    target: str | None = None,
    notes: Sequence[str] = (),
    sections: Sequence[Section] = (),
) -> Path:
    """Write a page about a fitted model: one self-contained HTML file.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted RFLAFRegressor or RFLAFClassifier, or a pipeline that ends in one.
    path : path
        Output path; overwritten if it exists.
    X_test, y_test : array or frame, array, optional
        New rows, for charts of the predictions.
    X_train, y_train : array or frame, array, optional
        The training rows, in their order. A linear model is fitted to them for comparison. Without
        test rows, the charts show the out-of-fold predictions of these rows.
    title, target : str, optional
        Title of the page, and name of the target; by default the name of `y_test` or `y_train`.
    notes : sequence of str
        Sentences for the summary.
    sections : sequence of Section
        More sections, after the scores.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from rflaf import RFLAFRegressor
    >>> from rflaf.report import write_report
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RFLAFRegressor(50, n_members=1, random_state=0).fit(X[:300], y[:300])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, f"{folder}/model.html", X[300:], y[300:])
    ...     text = page.read_text(encoding="utf-8")
    >>> "Effect of the main columns" in text
    True
    """
    require_jinja2()  # before the work, and not after it
    pairs = (("X_test", X_test, "y_test", y_test), ("X_train", X_train, "y_train", y_train))
    for x_name, x, y_name, y in pairs:
        if (x is None) != (y is None):
            given, other = (x_name, y_name) if y is None else (y_name, x_name)
            raise ValueError(f"'{other}' must be passed with '{given}'. Got None.")
    subject = Subject(model)
    training = None if X_train is None else training_rows(subject, X_train, y_train)
    evidence = None if X_test is None else on_test_rows(subject, X_test, y_test)
    if evidence is None and training is not None:
        evidence = out_of_fold(subject, training)
    if target is None:
        target = _name_of(y_test) or _name_of(y_train) or "target"
    about = _About(subject, evidence, training, target)
    page = about.page(title or f"Model of {target}", notes, sections)
    path = Path(path)
    write_whole(path, encode(render_page(page)))
    return path


def _name_of(y: Any) -> str | None:
    name = getattr(y, "name", None)
    return None if name is None or callable(name) else str(name)


@dataclass(frozen=True)
class _About:
    """What all sections are made from."""

    subject: Subject
    evidence: Evidence | None
    training: TrainingRows | None
    target: str

    def page(self, title: str, notes: Sequence[str], more: Sequence[Section]) -> Page:
        given = self.evidence.rows if self.evidence else None
        rows = given or (self.training.rows if self.training else None)
        names = self.subject.names(rows)
        shares = self.subject.importances(rows)
        if shares is not None and len(shares) != len(names):
            shares = None
        baselines = self._baselines(names)
        overview = Overview(
            self.subject, self.evidence, self.training, self.target, names, shares, baselines
        )
        found = [score_section(overview), *more, *self._judged(names, shares)]
        direct = self.subject.direct
        if shares is not None and shares.sum() > 0:
            spread = self.subject.estimator.feature_importances_std_ if direct else None
            found.append(importance_section(shares, spread, names))
            if self.evidence is not None:
                found.append(
                    effects_section(self.subject, self.evidence, shares, names, self.target)
                )
        if self.subject.classes is None and self.evidence is not None and self.evidence.tested:
            made = (
                number_sections.interval_section
                if self.subject.has_intervals
                else (number_sections.quantile_section)
            )
            found.append(made(self.subject, self.evidence))
        found += [learned_section(self.subject, names), *self._rows(names, shares)]
        if self.evidence is not None:
            found.append(attribution_section(self.subject, self.evidence, names))
        found += [column_section(overview), missing_section(overview)]
        sections = [each for each in found if each.subsections or each.notes]
        sentences = [*overview.sentences(), *notes]
        return Page(title, overview.facts(), sentences, sections, overview.figures())

    def _baselines(self, names: list[str]) -> Baselines | None:
        if self.evidence is None:
            return None
        classes = self.subject.classes
        count = None if classes is None else len(classes)
        return fit_baselines(self.evidence, self.training, names, count)

    def _judged(self, names: list[str], shares: Array | None) -> list[Section]:
        if self.evidence is None:
            return []
        if self.subject.classes is None:
            return [number_sections.accuracy_section(self.evidence, self.target)]
        classes = [str(each) for each in self.subject.classes]
        return [
            class_sections.probability_section(self.evidence, classes),
            class_sections.confusion_section(self.evidence, classes),
        ]

    def _rows(self, names: list[str], shares: Array | None) -> list[Section]:
        if self.evidence is None:
            return []
        order = list(range(len(names)))
        if shares is not None:
            order = np.argsort(-shares, kind="stable").tolist()
        if self.subject.classes is None:
            return [number_sections.residual_section(self.subject, self.evidence, names, order)]
        classes = [str(each) for each in self.subject.classes]
        return [class_sections.surprise_section(self.evidence, classes, names, order)]
