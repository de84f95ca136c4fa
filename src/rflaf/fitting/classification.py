"""The way from rows to a classification model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused
from rflaf.fitting import budget
from rflaf.fitting.classes import ClassEncoding, ClassTally
from rflaf.fitting.learn import FittedLayer, learn_layer, quiet_blas
from rflaf.fitting.scaling import column_moments
from rflaf.fitting.settings import FEW_ROWS, FitSettings
from rflaf.rows import ArrayRows, Block, Rows, Sample
from rflaf.rows.sample import fold_cuts, fold_numbers
from rflaf.solvers.features import check_finite, project
from rflaf.solvers.result import Solution
from rflaf.solvers.softmax import ClassRows, SoftmaxSettings, fit_few, fit_softmax

Array = NDArray[Any]

_FEW_ROWS_PENALTY = 1e-4  # of the features' total variance, where no rows can be held out
_LEAST_HELD = 100  # rows that choose the penalty, or a third of all


@dataclass(frozen=True)
class ClassificationFit:
    """A fitted classification model.

    Attributes
    ----------
    layer : FittedLayer
    classes : array
    coef, intercept : array, M × C and C
        With two classes there is one output, the log-odds of the second.
    alpha, alpha_path : float, list of dict
        The penalty, and what was tried.
    """

    layer: FittedLayer
    classes: Array
    coef: Array
    intercept: Array
    alpha: float
    alpha_path: list[dict[str, Any]]


@dataclass(frozen=True)
class PrepareClasses:
    """Rows of positive weight, standardised, with classes as numbers."""

    layer: FittedLayer
    encoding: ClassEncoding

    def __call__(self, block: Block) -> Block:
        codes, weights = self.encoding.encode(block.y, block.weights)
        x, used = block.x, weights > 0
        if not used.all():
            x, codes, weights = x[used], codes[used], weights[used]
        return Block(block.start, self.layer.inputs(x), codes, weights)


def fit_classification(rows: Rows, settings: FitSettings) -> ClassificationFit:
    """Learn a model of rows and their classes.

    One pass draws a sample and counts the classes. On the sample activation and metric are learned
    with the classes as numbers, and then the penalty of a logistic regression; the last fit of the
    output weights takes all rows, in as many passes as it has steps.
    """
    m, max_bytes = settings.n_components, settings.max_bytes
    budget.check_gram(m, max_bytes)
    sample = rows.sample(lambda x: budget.sample_rows(x, max_bytes), settings.seed, ClassTally)
    encoding: ClassEncoding = sample.tally.encoding(settings.class_weight)
    codes, weights = encoding.encode(sample.y, sample.weights)
    coded = replace(sample, y=codes, weights=weights).where(weights > 0)
    with quiet_blas(sample.used, m):
        numbers, spread = encoding.as_numbers(coded.y, coded.weights)
        layer = learn_layer(coded.x, numbers, coded.weights, settings)
        coded = replace(coded, x=layer.inputs(coded.x))
        if sample.whole and len(coded.y) < FEW_ROWS:
            solution = _solve_few(layer, coded, encoding, settings)
        else:
            every = None if sample.whole else rows
            solution = _solve(layer, coded, every, encoding, spread, settings)
    return ClassificationFit(
        layer=layer,
        classes=encoding.classes,
        coef=solution.coef,
        intercept=solution.intercept,
        alpha=solution.alpha,
        alpha_path=solution.path,
    )


def _solve_few(
    layer: FittedLayer, sample: Sample, encoding: ClassEncoding, settings: FitSettings
) -> Solution:
    z = project(sample.x, layer.components)
    phi = fused.apply(layer.sigma, z, out=z)
    alpha = settings.alpha
    if alpha is None:  # nothing can be held out
        spread = column_moments(phi, sample.weights)[1]
        check_finite(float(spread @ spread))
        alpha = max(_FEW_ROWS_PENALTY * float(spread @ spread), 1e-6)
    return fit_few(
        phi, sample.y, sample.weights, len(encoding.classes), alpha, settings.fit_intercept
    )


def _solve(
    layer: FittedLayer,
    sample: Sample,
    rows: Rows | None,
    encoding: ClassEncoding,
    spread: float,
    settings: FitSettings,
) -> Solution:
    """Output weights; `rows` are all rows, where the sample is but a part of them."""
    size = budget.block_rows(settings.n_components, sample.width, settings.max_bytes)
    room = budget.kept_bytes(settings.max_bytes)
    everything = _class_rows(sample, np.ones(len(sample.y), bool), size)
    fit, held = everything, None
    if settings.alpha is None:
        share = max(settings.validation_fraction, min(1 / 3, _LEAST_HELD / len(sample.y)))
        chosen = fold_numbers(fold_cuts(sample.keys, [1 - share, share]), sample.keys) == 1
        fit, held = (_class_rows(sample, at, size) for at in (~chosen, chosen))
    if rows is not None:
        prepare = PrepareClasses(layer, encoding)
        everything = ClassRows(rows.held(room), encoding.total, size, prepare)
    # near its least, the cross-entropy is half a squared error in units of the classes' variance
    start = 0.5 * spread**2 * layer.alpha
    rule = SoftmaxSettings(
        n_classes=len(encoding.classes),
        alpha=settings.alpha,
        start_alpha=float(np.clip(start, 1e-9, 1.0)),
        fit_intercept=settings.fit_intercept,
        room=room,
    )
    w = layer.components
    if sample.used * settings.n_components <= budget.EXACT_FEATURES:
        w = w.astype(np.float64)
    return fit_softmax(layer.sigma, w, everything, fit, held, rule)


def _class_rows(sample: Sample, at: NDArray[np.bool_], size: int) -> ClassRows:
    """Some of the sample's rows."""
    part = sample.where(at)
    return ClassRows(ArrayRows(part.x, part.y, part.weights), float(part.weights.sum()), size)
