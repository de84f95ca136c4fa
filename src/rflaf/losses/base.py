"""What a loss is: the one thing that tells fits of numbers, counts and classes apart.

A fit never asks which loss it has. It asks the loss which targets it takes, what they become, how
far scores are from them, and what a prediction is. A new loss is one file with one final class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from rflaf.distributions import Distribution, ErrorDistribution, ErrorShape
from rflaf.rows import Sample, Tally

Array = NDArray[Any]
Float64 = NDArray[np.float64]

_FLATTEST = 1e-9  # curvature that a response can be divided by


class Quadratic(NamedTuple):
    """A loss near some scores: bend (response - score)², summed over outputs, but for a constant.

    `response` is n × C and `bend` n: one number per row, so that all outputs share a Gram matrix.
    """

    response: Float64
    bend: Float64


class Loss(ABC):
    """How far scores are from targets.

    A loss is frozen. `opened` gives one that knows the targets of a fit: their unit, or their
    classes. Only such a loss encodes targets and makes predictions.

    Scores are n × C. They are what the output weights are fitted in: `in_units` turns weights for
    scores into weights of the model, and `predict` turns the model's scores into predictions.
    """

    name: ClassVar[str]  # as users write it
    score_name: ClassVar[str] = "D²"  # of what `score` measures
    quadratic: ClassVar[bool] = False  # one Newton step from anywhere is the solution
    enough: ClassVar[float] = -np.inf  # mean loss below which nothing is left to gain
    reach: ClassVar[float] = 0.0  # beyond the fit's rows, in ranges of their scores
    single: bool = True  # whether a prediction is one number, or label, per row

    @abstractmethod
    def check(self, y: Any) -> Array:
        """Targets of some rows as an array; an error says what is wrong with others."""

    def check_values(self, y: Array, first: int = 0) -> None:  # noqa: B027 - most take any number
        """An error that names a target which the loss does not take, and its row.

        `first` is the number of the first row.
        """

    def tally(self) -> Tally | None:
        """What counts targets while rows are read; None: nothing does."""
        return None

    @abstractmethod
    def opened(self, sample: Sample, fit_intercept: bool) -> Loss:
        """The loss for a fit whose targets are like those of a sample."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of scores per row, C."""

    @abstractmethod
    def encode(self, y: Array, weights: Array) -> tuple[Array, Array]:
        """Targets as the methods below take them, and the weights of their rows."""

    @abstractmethod
    def slopes(self, scores: Float64, target: Array) -> tuple[Float64, Float64]:
        """The loss of each row, n, and its first derivative in the scores, n × C."""

    @abstractmethod
    def curvature(self, scores: Float64, target: Array) -> Float64:
        """The second derivative in each score, n × C.

        Or, where that is zero for most rows, the curvature of a parabola to take steps by, which
        touches the loss and lies above it.
        """

    @abstractmethod
    def constant(self, target: Array, weights: Array) -> Float64:
        """The scores, C, with the least loss among those that are the same for all rows."""

    def in_units(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Output weights and intercept of the model, from those that were fitted."""
        return coef, intercept

    @abstractmethod
    def predict(self, scores: Array) -> Array:
        """What the model's scores say, as users read it."""

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        """What is shown as the quality of scores, 1 at best: how far below the best constant's
        their loss is."""
        plain = np.broadcast_to(self.constant(target, weights), scores.shape)
        most = self.value(plain, target, weights)
        return 1 - self.value(scores, target, weights) / most if most > 0 else 0.0

    def metrics(
        self, scores: Float64, target: Array, weights: Array
    ) -> dict[str, tuple[float, float]]:
        """More measures of the scores by name, each with that of the best constant beside it."""
        return {}

    def value(self, scores: Float64, target: Array, weights: Array) -> float:
        """The weighted mean of the loss."""
        return float(np.average(self.slopes(scores, target)[0], weights=weights))

    def quadratic_model(
        self, scores: Float64, target: Array, flattest: float = _FLATTEST
    ) -> Quadratic:
        """The loss as a quadratic in the scores, near some of them.

        A row whose loss is nearly flat would ask for a response very far away: no row is taken to
        be flatter than `flattest`.
        """
        slope = self.slopes(scores, target)[1]
        bend = np.maximum(self.curvature(scores, target).mean(axis=1), flattest)
        return Quadratic(scores - slope / bend[:, None], bend / 2)

    def moderate(self, scores: Float64) -> Float64:
        """Scores to learn a layer at: no surer than makes a difference."""
        return scores

    def bounds(self, target: Array, scores: Float64) -> Float64:
        """Between which scores the model stays beyond the rows of the fit, 2 × C."""
        low, high = scores.min(axis=0), scores.max(axis=0)
        more = self.reach * (high - low)
        return np.array([low - more, high + more])

    def residuals(self, scores: Float64, y: Array) -> Float64 | None:
        """Observed minus predicted, n × C, for the model's scores; None where there is no minus."""
        prediction = np.asarray(self.predict(scores), np.float64)
        return np.asarray(y, np.float64).reshape(len(y), -1) - prediction.reshape(len(y), -1)

    def moved(self, scores: Array, by: Array) -> Array:
        """How far predictions move where the model's scores move by a little, n × C."""
        return by

    def quality(self, y: Array, prediction: Array, weights: Array | None) -> float:
        """What the regressor's `score` shows for a `prediction`: 1 at best."""
        return float(r2_score(y, prediction, sample_weight=weights))

    def error_scale(self, prediction: Array) -> Array | None:
        """What the size of errors grows with `prediction` like, n × C, if the loss implies it.

        None: it is learned.
        """
        return None

    def centred(self, shape: ErrorShape) -> ErrorShape:
        """The distribution of errors, `shape`, moved to where the loss puts predictions."""
        return shape

    def distribution(
        self, prediction: Array, std: Array, shapes: Sequence[ErrorShape]
    ) -> Distribution:
        """That of observations around a `prediction`, n × C, by `std` and `shapes` of errors."""
        unit = np.array([shape.std for shape in shapes])
        scale = std / np.where(unit > 0, unit, 1.0)
        return ErrorDistribution(prediction, scale, shapes, self.outputs == 1 and self.single)

    def export(self, graph: Any, scores: str) -> str:
        """What `predict` makes of a tensor of scores, n × C, as part of a graph."""
        some = np.linspace(-1, 1, 2 * self.outputs).reshape(2, -1)
        if not np.array_equal(np.reshape(self.predict(some), some.shape), some):
            raise ValueError(
                f"{type(self).__name__} must have a method 'export' to leave Python: its "
                "predictions are not its scores."
            )
        return scores

    def temperature(self, scores: Float64, target: Array, weights: Array) -> float:
        """What to divide scores by so that they suit rows which were not learned from."""
        return 1.0
