"""How far observations lie from the prediction, from errors on rows that were not learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rflaf import rules
from rflaf.fitting.layers import FittedLayer
from rflaf.solvers.features import features, project
from rflaf.solvers.ridge import NormalEquations, gcv_penalty

Array = NDArray[Any]

_KEPT = 2000  # quantiles of errors over their scale


@dataclass(frozen=True)
class NoiseModel:
    """The standard deviation of a new observation, and intervals that hold a share of them.

    Attributes
    ----------
    layer : FittedLayer or None
        Whose first features the scale depends on; None: on nothing.
    coef : array, m + 1 × C
        log of the squared scale = features, 1 times this.
    center : array of C
        Its middle, from which it does not go far.
    unit : array of C
        Standard deviation of errors over their scale.
    quantiles : array, k × C
        Sorted absolute errors over their scale; empty: those of a normal distribution.
    """

    layer: FittedLayer | None
    coef: Array
    center: Array
    unit: Array
    quantiles: Array

    def std(self, x: Any) -> Array:
        """The standard deviation of an observation at each row, n × C."""
        return np.asarray(self._scale(x) * self.unit)

    def width(self, x: Any, coverage: float) -> Array:
        """How far an interval of this coverage reaches to either side of the prediction, n × C."""
        if not len(self.quantiles):
            factor = self.unit * np.sqrt(2) * special.erfinv(coverage)
        else:
            k = len(self.quantiles)
            # a share of the errors, and one more observation to come
            place = min(int(np.ceil(coverage * (k + 1))) - 1, k - 1)
            factor = self.quantiles[max(place, 0)]
        return np.asarray(self._scale(x) * factor)

    def _scale(self, x: Any) -> Array:
        if self.layer is None:
            return np.ones((x.shape[0], len(self.center)))
        return np.exp(0.5 * self._log_square(_features(self.layer, self.layer.inputs(x))))

    def _log_square(self, phi: Array) -> Array:
        raw = phi.astype(np.float64) @ self.coef
        far = np.log(rules.NOISE_RANGE)
        return np.clip(raw, self.center - far, self.center + far)


def constant_noise(noise: Array) -> NoiseModel:
    """The same normal noise everywhere."""
    nothing = np.zeros((0, len(noise)))
    return NoiseModel(None, nothing, np.zeros(len(noise)), noise, nothing)


def fit_noise(layer: FittedLayer, inputs: Any, errors: Array, keys: Array) -> NoiseModel:
    """From errors, n × C, on rows that were not learned from, and their inputs in their form.

    The scale is a ridge regression of the log of the squared error. Errors are judged by a scale
    that half of the rows have found for the other half; rows with one of the `keys` stay together.
    """
    step = -(-len(errors) // rules.MOST_NOISE_ROWS)
    inputs, errors, keys = inputs[::step], errors[::step], keys[::step]
    outputs = errors.shape[1]
    size = np.sqrt(np.mean(errors**2, axis=0))
    different, place = np.unique(keys, return_inverse=True)
    if len(different) < rules.NOISE_ROWS or not (size > 0).all():
        kept = _quantiles(np.abs(errors))
        nothing = np.zeros((0, outputs))
        return NoiseModel(None, nothing, np.zeros(outputs), size, kept)
    phi = _features(layer, inputs)
    target = np.log(errors**2 + (1e-3 * size) ** 2)
    halves = place.ravel() % 2  # keys are random
    models, scores = [], np.empty_like(errors)
    for half in (0, 1):
        fit, other = halves == half, halves != half
        coef = _solve(phi[fit], target[fit])
        center = target[fit].mean(axis=0)
        model = NoiseModel(layer, coef, center, np.ones(outputs), np.zeros((0, outputs)))
        scores[other] = errors[other] / np.exp(0.5 * model._log_square(phi[other]))
        models.append(model)
    return NoiseModel(
        layer=layer,
        coef=(models[0].coef + models[1].coef) / 2,
        center=(models[0].center + models[1].center) / 2,
        unit=np.sqrt(np.mean(scores**2, axis=0)),
        quantiles=_quantiles(np.abs(scores)),
    )


def _quantiles(scores: Array) -> Array:
    ordered = np.sort(scores, axis=0)
    if len(ordered) <= _KEPT:
        return ordered
    return ordered[np.round(np.linspace(0, len(ordered) - 1, _KEPT)).astype(int)]


def _features(layer: FittedLayer, inputs: Any) -> Array:
    z = project(inputs, layer.components[:, : rules.NOISE_FEATURES])
    return features(layer.sigma, z)


def _solve(phi: Array, target: Array) -> Array:
    sums = NormalEquations.empty(phi.shape[1] - 1, target.shape[1])
    sums.add(phi.astype(np.float64), target)
    return sums.solve(gcv_penalty(sums, True).alpha)
