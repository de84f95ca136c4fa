"""What a loss is: all that differs between fits of numbers, counts and classes.

A new loss is one file with one final class.
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
    """A loss near some scores: bend (response - score)², summed over outputs, up to a constant.

    `response` is n × C and `bend` n: one number per row, so that all outputs share a Gram matrix.
    """

    response: Float64
    bend: Float64


class Loss(ABC):
    """Loss of scores compared with targets.

    A loss is frozen. `opened` returns one that knows the targets of a fit: their unit, or their
    classes. Only such a loss encodes targets and makes predictions.

    Scores are n × C. `in_units` turns fitted output weights into those of the model, and `predict`
    turns the model's scores into predictions.
    """

    name: ClassVar[str]  # as users write it
    score_name: ClassVar[str] = "D²"  # of what `score` measures
    quadratic: ClassVar[bool] = False  # one Newton step from anywhere is the solution
    enough: ClassVar[float] = -np.inf  # mean loss below which nothing is left to gain
    reach: ClassVar[float] = 0.0  # beyond the fit's rows, in ranges of their scores
    needs_all_kinds: ClassVar[bool] = False  # of rows: without some nothing can be fitted
    single: bool = True  # whether a prediction is one number, or label, per row

    @abstractmethod
    def check(self, y: Any) -> Array:
        """Validate targets, and return them as an array."""

    def check_values(self, y: Array, first: int = 0) -> None:  # noqa: B027 - most take any number
        """Raise an error that names an unsuitable target and its row.

        `first` is the number of the first row.
        """

    def tally(self) -> Tally | None:
        """An object that counts targets while rows are read, or None."""
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
        """Targets encoded for the methods below, and the weights of their rows."""

    @abstractmethod
    def slopes(self, scores: Float64, target: Array) -> tuple[Float64, Float64]:
        """The loss of each row, n, and its first derivative in the scores, n × C."""

    @abstractmethod
    def curvature(self, scores: Float64, target: Array) -> Float64:
        """The second derivative in each score, n × C.

        If that is zero for most rows: the curvature of a parabola that touches the loss and lies
        above it.
        """

    @abstractmethod
    def constant(self, target: Array, weights: Array) -> Float64:
        """The constant scores, C, with the lowest loss."""

    def kinds(self, target: Array) -> NDArray[np.intp] | None:
        """The number of each row's kind, where folds need their share of rare ones."""
        return None

    def doubts(self, target: Array) -> str | None:
        """A warning about the targets of all rows."""
        return None

    def in_units(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Output weights and intercept of the model, from the fitted ones."""
        return coef, intercept

    @abstractmethod
    def predict(self, scores: Array) -> Array:
        """Predictions from the model's scores."""

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        """Quality of scores, at most 1: one minus their loss relative to the best constant's.

        Targets that are constant have 1 if the scores are exact, and 0 otherwise.
        """
        plain = np.broadcast_to(self.constant(target, weights), scores.shape)
        most = self.value(plain, target, weights)
        value = self.value(scores, target, weights)
        return 1 - value / most if most > 0 else float(value <= most)

    def metrics(
        self, scores: Float64, target: Array, weights: Array
    ) -> dict[str, tuple[float, float]]:
        """Further metrics of the scores by name, each with that of the best constant."""
        return {}

    def value(self, scores: Float64, target: Array, weights: Array) -> float:
        """The weighted mean of the loss."""
        return float(np.average(self.slopes(scores, target)[0], weights=weights))

    def quadratic_model(
        self, scores: Float64, target: Array, flattest: float = _FLATTEST
    ) -> Quadratic:
        """The loss as a quadratic in the scores, near some of them.

        The response of a row with a nearly flat loss would be very far away, so the curvature is at
        least `flattest`.
        """
        slope = self.slopes(scores, target)[1]
        bend = np.maximum(self.curvature(scores, target).mean(axis=1), flattest)
        return Quadratic(scores - slope / bend[:, None], bend / 2)

    def moderate(self, scores: Float64) -> Float64:
        """Scores to learn a layer at, with extreme ones limited."""
        return scores

    def bounds(self, target: Array, scores: Float64) -> Float64:
        """Bounds of the scores outside the training range, 2 × C."""
        low, high = scores.min(axis=0), scores.max(axis=0)
        more = self.reach * (high - low)
        return np.array([low - more, high + more])

    def residuals(self, scores: Float64, y: Array) -> Float64 | None:
        """Observed minus predicted, n × C, for the model's scores; None for classes."""
        prediction = np.asarray(self.predict(scores), np.float64)
        return np.asarray(y, np.float64).reshape(len(y), -1) - prediction.reshape(len(y), -1)

    def moved(self, scores: Array, by: Array) -> Array:
        """Change of predictions if the model's scores change `by` a little, n × C."""
        return by

    def quality(self, y: Array, prediction: Array, weights: Array | None) -> float:
        """Score of a `prediction` for the regressor's `score`: at most 1."""
        return float(r2_score(y, prediction, sample_weight=weights))

    def error_scale(self, prediction: Array) -> Array | None:
        """Scale of errors at a `prediction`, n × C, if the loss implies one; None: learned."""
        return None

    def centred(self, shape: ErrorShape) -> ErrorShape:
        """The distribution of errors, `shape`, shifted so that its predicted statistic is 0."""
        return shape

    def distribution(
        self, prediction: Array, std: Array, shapes: Sequence[ErrorShape]
    ) -> Distribution:
        """Distribution of observations at a `prediction`, n × C; `std` and `shapes` of errors."""
        unit = np.array([shape.std for shape in shapes])
        scale = std / np.where(unit > 0, unit, 1.0)
        return ErrorDistribution(prediction, scale, shapes, self.outputs == 1 and self.single)

    def export(self, graph: Any, scores: str) -> str:
        """`predict` of a tensor of scores, n × C, as part of a graph."""
        some = np.linspace(-1, 1, 2 * self.outputs).reshape(2, -1)
        if not np.array_equal(np.reshape(self.predict(some), some.shape), some):
            raise ValueError(
                f"{type(self).__name__} must define 'export' for ONNX and PyTorch, because its "
                "predictions are not its scores."
            )
        return scores

    def temperature(self, scores: Float64, target: Array, weights: Array) -> float:
        """Temperature that minimises the loss on held-out rows."""
        return 1.0
