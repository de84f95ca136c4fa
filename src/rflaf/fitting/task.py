"""What the steps of a fit share: rows with their folds, the loss, the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rflaf.arrays import Array
from rflaf.fitting.folds import Folds
from rflaf.fitting.settings import FitSettings
from rflaf.inputs.target_means import TargetMeans, inner_folds, learn_means
from rflaf.losses import Loss
from rflaf.rows import Block, Sample
from rflaf.rows.sample import Keys


class Regression(NamedTuple):
    """The loss's quadratic model at some scores as a least squares problem.

    `rows` have targets n × C: responses minus `centre`, over `spread`, so that they have unit
    scale. A penalty of this problem times `unit` is one of the loss.
    """

    rows: Block
    centre: Array
    spread: float
    unit: float


class MemberRows(NamedTuple):
    """The rows that a member may see, with the best constant scores of these."""

    rows: Block  # with means of the target in the place of codes, where there are any
    constant: Array
    means: TargetMeans | None  # those for other rows
    first: Regression


@dataclass(frozen=True)
class Task:
    """What the steps of a fit share."""

    sample: Sample  # with targets as the loss takes them
    fold: NDArray[np.intp]  # of each row of the sample
    folds: Folds
    loss: Loss
    settings: FitSettings

    def regression(
        self,
        rows: Block,
        scores: Array,
        like: Regression | None = None,
        flattest: float = 1e-9,
        left: bool = False,
    ) -> Regression:
        """The quadratic model of the loss at scores, n × C or C; in the units of another.

        Its responses, or what the scores have `left` of them.
        """
        scores = np.broadcast_to(scores, (len(rows.weights), self.loss.outputs))
        scores = self.loss.moderate(np.asarray(scores, np.float64))
        response, bend = self.loss.quadratic_model(scores, rows.y, flattest)
        response = response - scores if left else response
        weights = rows.weights * bend
        if like is None:
            share = weights / weights.sum()
            varies = np.ptp(response, axis=0) > 0  # if not, rounding must not look like targets
            centre = np.where(varies, share @ response, response[0]) * self.settings.fit_intercept
            spread = float(np.sqrt(np.mean(share @ (response - centre) ** 2)))
            unit = float(weights.sum() / rows.weights.sum())
            spread = spread if spread > 0 else 1.0
        else:
            _, centre, spread, unit = like
        y = (response - centre) / spread
        return Regression(rows._replace(y=y, weights=weights), centre, spread, unit)

    def member_rows(self, fold: int) -> MemberRows:
        """The rows outside a fold, and what is known of them before anything is learned."""
        sample, settings = self.sample, self.settings
        at = np.flatnonzero(self.fold != fold)
        # in units of the heaviest, so that rounding does not see the unit of the weights
        weights = sample.weights[at] / sample.weights[at].max()
        rows = Block(0, sample.x[at], sample.y[at], weights, sample.keys[at])
        constant = self.loss.constant(rows.y, rows.weights) * settings.fit_intercept
        first, means = self.regression(rows, constant), None
        if settings.coded is not None:
            inner = inner_folds(sample.keys[at])
            means = learn_means(rows.x, settings.coded, first.rows.y, rows.weights, inner, least=2)
            rows = rows._replace(x=means(rows.x, inner))
            first = first._replace(rows=first.rows._replace(x=rows.x))
        return MemberRows(rows, constant, means, first)


def means_folds(layer: Any, folds: Folds, keys: Keys) -> Array | None:
    """The inner folds of rows that a member's means were learned from; -1 for rows of its fold."""
    if layer.means is None:
        return None
    return np.where(folds(keys) == layer.fold, -1, inner_folds(keys))
