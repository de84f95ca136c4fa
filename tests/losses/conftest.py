"""Every loss in one place: one that is added to `ALL_LOSSES` is under the contract from then on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rflaf.losses import (
    AbsoluteError,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    SquaredError,
    Tweedie,
)
from rflaf.rows import ArrayRows


@dataclass(frozen=True)
class LossCase:
    """A loss with targets that it takes, and some that it does not.

    Attributes
    ----------
    targets : callable
        Targets of rows that depend on signals, n × 2, and on a generator.
    perfect : callable
        From targets as the loss takes them to the scores whose prediction they are.
    bad : list of (targets, regular expression)
        With what the error says.
    exact : bool
        Whether the curvature is the second derivative, and not a bound of it.
    """

    name: str
    loss: Loss
    targets: Callable[[Any, Any], Any]
    perfect: Callable[[Any], Any]
    bad: list[tuple[Any, str]]
    exact: bool = True

    def opened(self, y, weights=None, fit_intercept=True):
        """The loss for a fit to some targets, which are checked and counted as a fit does it."""
        weights = np.ones(len(y)) if weights is None else weights
        checked = self.loss.check(y)
        self.loss.check_values(checked)
        rows = ArrayRows(np.zeros((len(y), 1)), checked, weights)
        sample = rows.sample(lambda x: len(y), 0, self.loss.tally)
        return self.loss.opened(sample, fit_intercept)

    def example(self, n, seed=0):
        """A loss that is opened, targets as it takes them, and weights."""
        rng = np.random.default_rng(seed)
        y = self.targets(rng.uniform(-1, 1, (n, 2)), rng)
        weights = rng.uniform(0.2, 2, n)
        loss = self.opened(y, weights)
        return loss, *loss.encode(y, weights)


def numbers(signals, rng):
    return 3 + 1e3 * (np.sin(3 * signals[:, 0]) + 0.1 * rng.standard_normal(len(signals)))


def pairs_of_numbers(signals, rng):
    return np.column_stack([numbers(signals, rng), 1e-4 * numbers(signals[:, ::-1], rng)])


def labels(*names):
    def targets(signals, rng):
        height = np.sin(3 * signals[:, 0]) + 0.4 * rng.standard_normal(len(signals))
        codes = np.digitize(height, np.linspace(-0.9, 0.9, len(names) + 1)[1:-1])
        codes[: len(names)] = np.arange(len(names))  # some of each
        return np.array(names)[codes]

    return targets


def counts(signals, rng):
    return rng.poisson(20 * np.exp(np.sin(3 * signals[:, 0]))).astype(float)


def heavy_tails(signals, rng):
    return 7 * np.sin(3 * signals[:, 0]) + rng.standard_t(1.5, len(signals))


def positive(signals, rng):
    return 1e5 * np.exp(2 * signals[:, 0]) * rng.gamma(2.0, size=len(signals))


def claims(signals, rng):
    return positive(signals, rng) * (rng.random(len(signals)) < 0.4)


def same(target):
    return target


def logs(target):
    return np.log(np.maximum(target, 1e-30))[:, None]


def sure(count):
    return lambda codes: 50 * (np.eye(count)[codes] if count > 2 else 2.0 * codes[:, None] - 1)


NO_NUMBERS = [
    (["a", "b"], "use RFLAFClassifier"),
    ([1.0, 1e301], "'y' must lie between -1e\\+300 and 1e\\+300. Got 1e\\+301"),
    (np.zeros((2, 2, 2)), "Found array with dim 3"),
]
ONE_TARGET = [*NO_NUMBERS, (np.zeros((3, 2)), "takes one target per row. Got 'y' of shape")]
NO_COUNTS = [
    ([1.0, 3.0, -2.0], "loss='[a-z]+' takes .* Got -2 in row 2"),
    ([0.0, 0.0], "loss='[a-z]+' (takes|needs) positive targets. Got"),
    (np.zeros((3, 2)), "takes one target per row"),
    ([1.0, 1e301], "Got 1e\\+301"),
]
NO_LABELS = [
    (np.array(["a", None, "b"], object), "missing classes"),
    (np.array([0.5, 1.5, 2.25]), "Unknown label type: continuous"),
    (np.zeros((3, 2)), "y should be a 1d array"),
    (np.array(["a", "a"]), "at least 2 classes. Got one class: 'a'"),
]
TWO, FOUR = labels("no", "yes"), labels("a", "b", "c", "d")

ALL_LOSSES = [
    LossCase("squared error", SquaredError(), numbers, same, NO_NUMBERS),
    LossCase("two targets", SquaredError(), pairs_of_numbers, same, NO_NUMBERS),
    LossCase("two classes", Logistic(), TWO, sure(2), NO_LABELS),
    LossCase("four classes", Logistic(), FOUR, sure(4), NO_LABELS),
    LossCase("class weights", Logistic({"a": 3.0, "c": 0.5}), FOUR, sure(4), NO_LABELS),
    LossCase("balanced", Logistic("balanced"), TWO, sure(2), NO_LABELS),
    LossCase("absolute error", AbsoluteError(), heavy_tails, same, NO_NUMBERS, exact=False),
    LossCase("huber", Huber(), heavy_tails, same, NO_NUMBERS, exact=False),
    LossCase("two by huber", Huber(), pairs_of_numbers, same, NO_NUMBERS, exact=False),
    LossCase("a quantile", Quantile(quantile=0.9), heavy_tails, same, ONE_TARGET, exact=False),
    LossCase(
        "quantiles", Quantile(quantile=(0.1, 0.5, 0.8)), heavy_tails, same, ONE_TARGET, exact=False
    ),
    LossCase("counts", Poisson(), counts, logs, NO_COUNTS),
    LossCase("tweedie", Tweedie(power=1.3), claims, logs, NO_COUNTS),
    LossCase("tweedie of power 1", Tweedie(power=1), counts, logs, NO_COUNTS),
    LossCase("gamma", Gamma(), positive, logs, [*NO_COUNTS, ([1.0, 0.0], "Got 0 in row 1")]),
]
