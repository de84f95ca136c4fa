"""Cross-entropy of two or more classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize
from scipy.special import expit, softmax
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from rflaf import rules
from rflaf.losses.base import Array, Float64, Loss
from rflaf.losses.classes import ClassTally, class_metrics
from rflaf.rows import Sample


@dataclass(frozen=True)
class Logistic(Loss):
    """-log p of a row's class. Of two classes one score is kept, the log-odds of the second.

    Attributes
    ----------
    class_weight : dict, "balanced" or None
    classes : array
        In their order.
    weights : array
        What the weights of the classes' rows are multiplied by.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import Logistic
    >>> loss = Logistic(classes=np.array(["no", "yes"]), weights=np.ones(2))
    >>> value, slope = loss.slopes(np.zeros((2, 1)), np.array([0, 1]))
    >>> value.round(3).tolist(), slope.tolist()
    ([0.693, 0.693], [[0.5], [-0.5]])
    """

    class_weight: Any = None
    classes: Array | None = None
    weights: Array | None = None

    name = "log_loss"
    score_name = "accuracy"

    def check(self, y: Any) -> Array:
        labels = column_or_1d(y, warn=True)
        if labels.dtype.kind == "O" and any(c is None or c != c for c in labels.ravel()):
            raise ValueError("Input y contains missing classes (None or NaN).")
        # whoever has the rows says where a number is not finite
        known = labels[np.isfinite(labels)] if labels.dtype.kind == "f" else labels
        if len(known):
            check_classification_targets(np.unique(known))
        return labels

    def tally(self) -> ClassTally:
        return ClassTally()

    def opened(self, sample: Sample, fit_intercept: bool) -> Logistic:
        tally: ClassTally = sample.tally
        return replace(self, classes=tally.classes, weights=tally.class_weights(self.class_weight))

    @property
    def known(self) -> tuple[Array, Array]:
        """The classes and their weights."""
        assert self.classes is not None
        assert self.weights is not None
        return self.classes, self.weights

    @property
    def outputs(self) -> int:
        count = len(self.known[0])
        return 1 if count == 2 else count

    def encode(self, y: Array, weights: Array) -> tuple[Array, Array]:
        classes, by_class = self.known
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        strange = classes[codes] != y
        if np.any(strange):
            raise ValueError(
                f"The class {y[strange].tolist()[0]!r} was not there when the classes were "
                "counted. Expected the same rows in every pass."
            )
        return codes, weights * by_class[codes]

    def slopes(self, scores: Float64, target: Array) -> tuple[Float64, Float64]:
        if scores.shape[1] == 1:
            odds = scores[:, 0]
            value = np.logaddexp(0, odds) - odds * target
            return value, (expit(odds) - target)[:, None]
        by_class = np.array(scores.T, np.float64, order="C")  # sums along long rows are fast
        by_class -= by_class.max(axis=0)
        rows = np.arange(len(target))
        own = by_class[target, rows]
        np.exp(by_class, out=by_class)
        total = by_class.sum(axis=0)
        by_class /= total
        by_class[target, rows] -= 1
        return np.log(total) - own, by_class.T

    def curvature(self, scores: Float64, target: Array) -> Float64:
        p = expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)
        return np.asarray(p * (1 - p))

    def moderate(self, scores: Float64) -> Float64:
        """Differences to the most probable class of at most `rules.SUREST`.

        Beyond that all classes that are out of the question count the same, and the layer need not
        learn by how much.
        """
        if scores.shape[1] == 1:
            return np.clip(scores, -rules.SUREST, rules.SUREST)
        below = np.maximum(scores - scores.max(axis=1, keepdims=True), -rules.SUREST)
        return below - below.mean(axis=1, keepdims=True)

    def constant(self, target: Array, weights: Array) -> Float64:
        count = len(self.known[0])
        share = np.bincount(target, weights, minlength=count) / weights.sum()
        logs = np.log(np.clip(share, 1e-9, None))  # a sample may miss a rare class
        return logs[1:] - logs[:1] if count == 2 else logs - logs.mean()

    def in_units(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        return coef, intercept

    def predict(self, scores: Array) -> Array:
        return self.known[0][self._chosen(scores)]

    def probabilities(self, scores: Array) -> Array:
        """The probability of each class, n × classes; never 0, so that logarithms are finite."""
        if scores.shape[1] == 1:
            p = np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        else:
            p = softmax(scores, axis=1)
        return np.maximum(p, np.finfo(p.dtype).tiny)

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        return float(np.average(self._chosen(scores) == target, weights=weights))

    def metrics(
        self, scores: Float64, target: Array, weights: Array
    ) -> dict[str, tuple[float, float]]:
        """Accuracy, which is high by itself where a class is rare, comes last."""
        constant = np.broadcast_to(self.constant(target, weights), scores.shape)
        both = [
            class_metrics(target, self.probabilities(each), weights) for each in (scores, constant)
        ]
        return {name: (value, both[1][name]) for name, value in both[0].items()}

    def residuals(self, scores: Float64, y: Array) -> None:
        return None

    def temperature(self, scores: Float64, target: Array, weights: Array) -> float:
        """The one with the least loss, where that makes a difference."""

        def loss(log_temperature: float) -> float:
            return self.value(scores / np.exp(log_temperature), target, weights)

        most = np.log(rules.MOST_TEMPERATURE)
        best = optimize.minimize_scalar(loss, bounds=(-most, most), method="bounded")
        return float(np.exp(best.x)) if best.fun < (1 - 1e-3) * loss(0.0) else 1.0

    def _chosen(self, scores: Array) -> Array:
        """The place of the most probable class."""
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0).astype(int)
        return np.asarray(scores.argmax(axis=1))
