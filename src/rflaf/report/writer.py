"""The page about a model: which sections it has, and what comes first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rflaf.pages import Page, Section
from rflaf.pages.html import encode, render_page, require_jinja2
from rflaf.report import class_sections, number_sections
from rflaf.report.effects import effects_section
from rflaf.report.evidence import on_test_rows, out_of_fold, training_rows
from rflaf.report.inside import importance_section, learned_section
from rflaf.report.overview import Overview, column_section, missing_section, score_section
from rflaf.report.reasons import attribution_section
from rflaf.report.subject import Subject
from rflaf.runtime.files import write_whole


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
    """Write a model report: one self-contained HTML file about a fitted model.

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
    for part, x, y in (("test", X_test, y_test), ("train", X_train, y_train)):
        if (x is None) != (y is None):
            given, other = ("X", "y") if y is None else ("y", "X")
            raise ValueError(f"'{other}_{part}' must be passed with '{given}_{part}'. Got None.")
    subject = Subject(model)
    training = None if X_train is None else training_rows(subject, X_train, y_train)
    evidence = None if X_test is None else on_test_rows(subject, X_test, y_test)
    if evidence is None and training is not None:
        evidence = out_of_fold(subject, training)
    if target is None:
        target = _name_of(y_test) or _name_of(y_train) or "target"
    about = Overview(subject, evidence, training, target)
    title = title or f"Model of {target}"
    sentences, shown = [*about.sentences(), *notes], _sections(about, sections)
    page = Page(title, about.facts(), sentences, shown, about.figures())
    path = Path(path)
    write_whole(path, encode(render_page(page)))
    return path


def _name_of(y: Any) -> str | None:
    name = getattr(y, "name", None)
    return None if name is None or callable(name) else str(name)


def _sections(about: Overview, more: Sequence[Section]) -> list[Section]:
    """All that have something to show, in their order."""
    subject, evidence, names, shares = about.subject, about.evidence, about.names, about.shares
    numbers = subject.classes is None
    classes = [] if subject.classes is None else list(map(str, subject.classes))
    found = [score_section(about), *more]
    if evidence is not None and numbers:
        found.append(number_sections.accuracy_section(evidence, about.target))
    elif evidence is not None:
        found.append(class_sections.probability_section(evidence, classes))
        found.append(class_sections.confusion_section(evidence, classes))
    if shares is not None and shares.sum() > 0:
        spread = subject.estimator.feature_importances_std_ if subject.direct else None
        found.append(importance_section(shares, spread, names))
        if evidence is not None:
            found.append(effects_section(subject, evidence, shares, names, about.target))
    if numbers and evidence is not None and evidence.tested:
        intervals, quantiles = number_sections.interval_section, number_sections.quantile_section
        found.append((intervals if subject.has_intervals else quantiles)(subject, evidence))
    found.append(learned_section(subject, names))
    if evidence is not None:
        weights = np.zeros(len(names)) if shares is None else shares
        order = np.argsort(-weights, kind="stable").tolist()
        if numbers:
            found.append(number_sections.residual_section(subject, evidence, names, order))
        else:
            found.append(class_sections.surprise_section(evidence, classes, names, order))
        found.append(attribution_section(subject, evidence, names))
    found += [column_section(about), missing_section(about)]
    return [each for each in found if each.subsections or each.notes]
