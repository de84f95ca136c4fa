"""Cross-entropy of two or more classes, and what counts them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit, softmax
from sklearn.utils import column_or_1d
from sklearn.utils._missing import is_pandas_na
from sklearn.utils.multiclass import check_classification_targets

from rflaf import rules
from rflaf.losses.base import Array, Float64, Loss
from rflaf.rows import Sample

_WIDEST = 1e30  # the lighter of two classes would be nothing beside the heavier


@dataclass(frozen=True)
class Logistic(Loss):
    """-log p of a row's class. With two classes there is one score, the log-odds of the second.

    Attributes
    ----------
    class_weight : dict, "balanced" or None
    classes : array
        In their order.
    weights : array
        Factor of the row weights of each class.

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
    enough = 1e-5

    def check(self, y: Any) -> Array:
        # scikit-learn would make floats of integers that may be missing, and merge large ones
        labels = column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True)
        missing = labels.dtype.kind in "mM" and np.isnat(labels).any()
        if labels.dtype.kind == "O":
            missing = any(c is None or is_pandas_na(c) or c != c for c in labels)
        if missing:
            raise ValueError("Input y contains missing classes (None or NaN).")
        # whoever has the rows says where a number is not finite
        known = labels[np.isfinite(labels)] if labels.dtype.kind == "f" else labels
        if len(known):
            check_classification_targets(known)
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
                f"The class {y[strange].tolist()[0]!r} did not occur in the first pass over the "
                "rows. Expected the same rows in every pass."
            )
        return codes, weights * by_class[codes]

    def kinds(self, target: Array) -> NDArray[np.intp]:
        return target

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

    def predict(self, scores: Array) -> Array:
        return self.known[0][self._chosen(scores)]

    def probabilities(self, scores: Array) -> Array:
        """The probability of each class, n × classes; never 0, so that logarithms are finite."""
        if scores.shape[1] == 1:
            p = np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        else:
            p = softmax(scores, axis=1)
        return np.maximum(p, np.finfo(p.dtype).tiny)

    def export(self, graph: Any, scores: str) -> str:
        """The probabilities, as part of a graph."""
        if len(self.known[0]) == 2:
            scores = graph.joined([graph.add("Mul", scores, np.float64(0)), scores])
        return str(graph.add("Softmax", scores, axis=1))

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
        """The temperature with the lowest loss; 1 if the gain is below 0.1 %.

        A misclassified row of small weight is added: n rows without an error do not show that
        errors are much rarer than one in n, however far apart the classes are.
        """
        if np.ptp(target) == 0:  # the other classes are among rows that these scores do not know
            return 1.0
        of_class = scores if scores.shape[1] > 1 else np.hstack([-scores, scores]) / 2
        own = np.take_along_axis(of_class, target.reshape(-1, 1).astype(int), axis=1)[:, 0]
        others = (of_class.sum(axis=1) - own) / (of_class.shape[1] - 1)
        of_row = np.sum(weights**2) / np.sum(weights) ** 2  # one in n, where all weigh the same
        lead = float(np.average(own - others, weights=weights)) * rules.WRONG_ROWS * of_row

        def loss(log_temperature: float) -> float:
            known = scores / np.exp(log_temperature)
            return self.value(known, target, weights) + lead / np.exp(log_temperature)

        most = np.log(rules.MOST_TEMPERATURE)
        best = optimize.minimize_scalar(loss, bounds=(-most, most), method="bounded")
        return float(np.exp(best.x)) if best.fun < (1 - 1e-3) * loss(0.0) else 1.0

    def _chosen(self, scores: Array) -> Array:
        """The place of the most probable class."""
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0).astype(int)
        return np.asarray(scores.argmax(axis=1))


class ClassTally:
    """The classes seen, and the weight of their rows."""

    def __init__(self) -> None:
        self.classes: Array = np.zeros(0)
        self.weights = np.zeros(0)

    def add(self, y: Array, weights: Array) -> None:
        values, codes = np.unique(y, return_inverse=True)
        self._count(values, np.bincount(codes.ravel(), weights=weights, minlength=len(values)))

    def merge(self, other: ClassTally) -> None:
        if len(other.classes):
            self._count(other.classes, other.weights)

    def _count(self, classes: Array, weights: Array) -> None:
        every = np.union1d(self.classes, classes) if self.classes.size else classes
        old = self.classes, self.weights
        self.classes, self.weights = every, np.zeros(len(every))
        for names, weight in (old, (classes, weights)):
            if len(names):
                self.weights[np.searchsorted(every, names)] += weight

    def class_weights(self, class_weight: Any) -> Array:
        """Factors of row weights, by class; an error where fewer than two classes are left."""
        if len(self.classes) < 2:
            raise ValueError(
                "A classifier needs samples of at least 2 classes. Got one class: "
                f"{self.classes.tolist()[0]!r}."
            )
        by_class = self._given_weights(class_weight)
        if np.min(by_class) < 0:
            raise ValueError(f"'class_weight' must not be negative. Got {by_class.min()}.")
        by_class = _moderate(by_class)
        if np.count_nonzero(self.weights * by_class > 0) < 2:
            raise ValueError(
                "A classifier needs at least 2 classes with a positive weight. Got fewer."
            )
        return by_class

    def _given_weights(self, class_weight: Any) -> Array:
        if class_weight is None:
            return np.ones(len(self.classes))
        if class_weight == "balanced":
            # rows of weight zero have no part in it, a row of weight 2 counts twice
            there = self.weights > 0
            share = self.weights.sum() / np.count_nonzero(there) if there.any() else 0.0
            balanced = np.divide(share, self.weights, out=np.zeros(len(there)), where=there)
            # the order of the rows, which blocks and partitions change, must not be seen
            return np.array([float(f"{weight:.12g}") for weight in balanced])
        names = self.classes.tolist()
        unknown = [name for name in class_weight if name not in names]
        if unknown:
            raise ValueError(
                f"'class_weight' must have classes of 'y' as keys. Unknown class: {unknown[0]!r}."
            )
        return np.array([float(class_weight.get(name, 1.0)) for name in names])


def _moderate(by_class: Array) -> Array:
    """Weights of classes, divided by the largest where that is far from 1."""
    if not np.isfinite(by_class).all():
        raise ValueError("'class_weight' must be finite. Got NaN or infinity.")
    largest, least = by_class.max(), by_class.min(where=by_class > 0, initial=np.inf)
    if largest > 0 and not least / largest > 1 / _WIDEST:
        raise ValueError(
            f"The weights in 'class_weight' must not differ by more than a factor of {_WIDEST:g}. "
            f"Got {least:g} and {largest:g}."
        )
    return by_class / largest if largest > 0 and not 1e-10 < largest < 1e10 else by_class


def class_metrics(y: Array, p: Array, weights: Array | None = None) -> dict[str, float]:
    """How good probabilities are; ranking is measured where all classes occur.

    Average precision is that of the second of two classes, or the mean over all classes.

    Parameters
    ----------
    y : array of int
        The place of each row's class.
    p : array, n × classes
    weights : array of n, optional

    Examples
    --------
    >>> import numpy as np
    >>> found = class_metrics(np.array([0, 1]), np.array([[0.75, 0.25], [0.5, 0.5]]))
    >>> {name: round(value, 2) for name, value in found.items()}
    {'log-loss': 0.49, 'ROC AUC': 1.0, 'average precision': 1.0, 'accuracy': 0.5}
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    own = np.clip(p[np.arange(len(y)), y], 1e-15, None)
    found = {"log-loss": float(-np.average(np.log(own), weights=weights))}
    count = p.shape[1]
    if len(np.unique(y)) == count:
        classes = [1] if count == 2 else range(count)
        for name, measure in (
            ("ROC AUC", roc_auc_score),
            ("average precision", average_precision_score),
        ):
            each = [measure(y == k, p[:, k], sample_weight=weights) for k in classes]
            found[name] = float(np.mean(each))
    found["accuracy"] = float(np.average(p.argmax(axis=1) == y, weights=weights))
    return found
