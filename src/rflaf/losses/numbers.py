"""What losses of numbers share: targets in a unit of their own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
from sklearn.utils import check_array

from rflaf.losses.base import Array, Loss
from rflaf.rows import Sample

_LARGEST = 1e300  # of the targets: a model of larger ones might not be finite


def check_numbers(y: Any) -> Array:
    """Targets as float64; whoever has the rows says if there are none, or NaN among them."""
    _refuse_text_and_dates(np.asarray(y))
    return check_array(
        y,
        ensure_2d=False,
        dtype=np.float64,
        ensure_all_finite=False,
        ensure_min_samples=0,
        input_name="y",
    )


def _refuse_text_and_dates(y: Array) -> None:
    """scikit-learn takes dates for nanoseconds, and does not say what to do with text."""
    if y.dtype.kind in "biufc":
        return
    given = next((value for value in y.ravel() if not _is_number(value)), None)
    if isinstance(given, str | bytes):
        raise ValueError(
            f"'y' must be numbers. Got the text {str(given)!r}: use RFLAFClassifier if these are "
            "classes."
        )
    if isinstance(given, date | timedelta | np.datetime64 | np.timedelta64):
        raise ValueError(
            f"'y' must be numbers. Got {given!r}: use numbers with a unit, such as "
            "(y - y.min()) / np.timedelta64(1, 'D') for days."
        )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, np.datetime64 | np.timedelta64)


def check_one_column(name: str, y: Any) -> Array:
    """The same, for a loss of one target per row."""
    y = check_numbers(y)
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"loss={name!r} takes one target per row. Got 'y' of shape {y.shape}.")
    return y


def largest_size(y: Array) -> Any:
    """The largest absolute value of each column; an error where that is too large."""
    largest = np.abs(y).max(axis=0)
    if np.max(largest) > _LARGEST:
        raise ValueError(
            f"'y' must lie between -{_LARGEST:g} and {_LARGEST:g}. Got {np.max(largest):g}."
        )
    return largest


@dataclass(frozen=True)
class Numbers(Loss):
    """A loss of targets in units of their spread, from their middle.

    Attributes
    ----------
    mean, scale : array of C
        Middle and spread of the targets.
    single : bool
        Whether predictions are one number per row.
    """

    mean: Array | None = None
    scale: Array | None = None
    single: bool = True

    reach = 3.0

    @abstractmethod
    def middle_and_spread(self, targets: Array, share: Array) -> tuple[Array, Array]:
        """Those of `targets`, n × C, whose rows have the weights `share`, which sum to one."""

    def check(self, y: Any) -> Array:
        return check_numbers(y)

    def columns(self, y: Array) -> Array:
        """Targets with a column per score, n × C."""
        return y.reshape(len(y), -1)

    def opened(self, sample: Sample, fit_intercept: bool) -> Numbers:
        targets = self.columns(sample.y)
        largest = largest_size(targets)
        unit = np.where(largest > 0, largest, 1.0)  # squares of very large or small ones are lost
        share = sample.weights / sample.weights.sum()
        middle, spread = self.middle_and_spread(targets / unit, share)
        varies = targets.max(axis=0) > targets.min(axis=0)
        mean = np.where(varies, middle * unit, targets[0])
        scale = spread * unit
        scale = np.where(scale > 0, scale, 1.0)
        mean = mean if fit_intercept else np.zeros_like(mean)
        single = sample.y.ndim == 1 and self.single
        return replace(self, mean=mean, scale=scale, single=single)

    @property
    def outputs(self) -> int:
        return len(self.units[1])

    @property
    def units(self) -> tuple[Array, Array]:
        """The middle and the spread of the targets, once they are known."""
        assert self.mean is not None
        assert self.scale is not None
        return self.mean, self.scale

    def encode(self, y: Array, weights: Array) -> tuple[Array, Array]:
        mean, scale = self.units
        targets = self.columns(y)
        if targets.shape[1] != len(scale):
            raise ValueError(
                f"'y' must have {len(scale)} targets, as in the first call. Got {targets.shape[1]}."
            )
        return targets / scale - mean / scale, weights

    def in_units(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        mean, scale = self.units
        return coef * scale, intercept * scale + mean

    def predict(self, scores: Array) -> Array:
        return scores[:, 0] if self.single else scores
