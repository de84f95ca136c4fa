"""A regression model with what rows that it has not seen tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting.importance import input_importances
from rflaf.fitting.members import FoldPlan, Member, Seat
from rflaf.fitting.noise import NoiseModel, constant_noise, fit_noise
from rflaf.fitting.settings import FitSettings
from rflaf.rows import Sample
from rflaf.solvers.ridge import NormalEquations

Array = NDArray[Any]
_LARGEST = 1e300  # of the targets: a model of larger ones might not be finite
Pair = tuple[NormalEquations, NormalEquations]  # sums of rows to fit to, and of those held out


@dataclass(frozen=True)
class TargetScale:
    """Targets in units of their standard deviation, measured from their mean."""

    mean: Array
    scale: Array
    single: bool

    @classmethod
    def of(cls, y: Array, weights: Array, fit_intercept: bool) -> TargetScale:
        """What suits these targets, n or n × C."""
        targets = y.reshape(len(y), -1)
        largest = np.abs(targets).max(axis=0)
        if largest.max() > _LARGEST:
            raise ValueError(
                f"'y' must lie between -{_LARGEST:g} and {_LARGEST:g}. Got {largest.max():g}."
            )
        unit = np.where(largest > 0, largest, 1.0)  # squares of very large or small ones are lost
        share, small = weights / weights.sum(), targets / unit
        mean = share @ small
        spread = np.sqrt(share @ (small - mean) ** 2) * unit
        varies = targets.max(axis=0) > targets.min(axis=0)
        mean = np.where(varies, mean * unit, targets[0])
        scale = np.where(varies & (spread > 0), spread, 1.0)
        return cls(mean if fit_intercept else np.zeros_like(mean), scale, y.ndim == 1)

    def scaled(self, y: Array) -> Array:
        """Targets of some rows, n × C."""
        return y.reshape(len(y), -1) / self.scale - self.mean / self.scale


@dataclass(frozen=True)
class RegressionFit:
    """A fitted regression model; coefficients are in the target's own units.

    Attributes
    ----------
    members : list of Member
    target : TargetScale
    alpha_path, form_path : list of dict
        Penalties, and forms and kinds, that were tried, with their held-out losses.
    oof_prediction : array, n × C
        For each row of the sample the prediction of a model that has not seen it; NaN where every
        member has.
    sample_numbers : array of int
        The rows of the sample among all.
    noise : array of C
        Standard deviation of the targets about the out-of-fold predictions.
    noise_model : NoiseModel
        The same as a function of the inputs.
    importances : array of d
    sums, plan, rows_seen, first_rows, block_rows
        What more rows go on from: sums over rows for each member, the folds, the rows read so far,
        those that were learned from, and how many are taken at once.
    """

    members: list[Member]
    target: TargetScale
    alpha_path: list[dict[str, Any]]
    form_path: list[dict[str, Any]]
    oof_prediction: Array
    oof_score: float
    sample_numbers: Array
    noise: Array
    noise_model: NoiseModel
    importances: Array
    plan: FoldPlan
    rows_seen: int
    first_rows: int
    block_rows: int
    sums: list[Pair] = field(default_factory=list)


def in_units(
    seat: Seat,
    coef: Array,
    intercept: Array,
    alpha: float,
    target: TargetScale,
    settings: FitSettings,
) -> Member:
    """A member from weights for scaled targets."""
    offset = intercept * target.scale + target.mean
    if not settings.fit_intercept:
        offset = np.zeros_like(offset)
    return Member(seat, coef * target.scale, offset, alpha)


def judged_fit(
    members: list[Member],
    found: Array,
    target: TargetScale,
    plan: FoldPlan,
    sample: Sample,
    noise: Array,
    rng: np.random.Generator,
) -> RegressionFit:
    """The fit, with out-of-fold predictions `found` for the sample's rows, and their R²."""
    score, noise_model = float("nan"), constant_noise(noise)
    seen = np.isfinite(found[:, 0])
    if seen.any():
        y, weights = target.scaled(sample.y)[seen], sample.weights[seen]
        error = target.scaled(found[seen]) - y
        model = fit_noise(members[0].layer, sample.x[seen], error)
        noise_model = replace(
            model, unit=model.unit * target.scale, quantiles=model.quantiles * target.scale
        )
        mean = np.average(y, axis=0, weights=weights)
        spread = np.average((y - mean) ** 2, axis=0, weights=weights)
        loss = np.average(error**2, axis=0, weights=weights)
        noise = np.sqrt(loss) * target.scale
        varies = spread > 0
        score = float(np.mean(np.where(varies, 1 - loss / np.where(varies, spread, 1), 0)))
    return RegressionFit(
        members=members,
        target=target,
        alpha_path=[],
        form_path=[],
        oof_prediction=found,
        oof_score=score,
        sample_numbers=sample.numbers,
        noise=noise,
        noise_model=noise_model,
        importances=input_importances(members, sample.x, rng),
        plan=plan,
        rows_seen=sample.seen,
        first_rows=sample.used,
        block_rows=0,
    )
