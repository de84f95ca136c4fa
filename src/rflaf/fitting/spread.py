"""How far observations lie from predictions, from errors on rows that were not learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf import rules
from rflaf.bases import Fixed
from rflaf.distributions import ErrorShape
from rflaf.fitting.members import Member, export_mixed, mixed_scores
from rflaf.fitting.settings import FitSettings
from rflaf.inputs.forms import FORMS
from rflaf.losses import Loss

Array = NDArray[Any]

_SMALLEST = 1e-6  # squared error that is learned from, relative to the mean


@dataclass(frozen=True)
class Spread:
    """The distribution of errors, with a scale that depends on the row."""

    # the logarithm of the squared scale of each output; no members: it is the same everywhere
    scales: list[list[Member]]
    shapes: list[ErrorShape]  # of errors over their scale, for each output

    def std(self, loss: Loss, prediction: Array, x: Any) -> Array:
        """The standard deviation of an observation at each row, n × C."""
        known = loss.error_scale(prediction)
        if known is None:
            known = np.hstack([_scale(members, x) for members in self.scales])
        return known * np.array([shape.std for shape in self.shapes])

    def export(self, graph: Any, x: str, readout: Callable[..., str]) -> str:
        """What `std` gives for a loss without a scale of its own; `readout` as `export_mixed`."""
        far, scales = np.log(rules.SCALE_RANGE), []
        for members in self.scales:
            log_square = graph.add("Add", graph.refused(), np.zeros(1))
            if members:
                mixed = export_mixed(graph, members, x, readout)
                log_square = graph.add("Add", log_square, mixed)
            half = graph.add("Mul", log_square, np.float64(0.5))
            scales.append(graph.add("Exp", graph.add("Min", graph.add("Max", half, -far), far)))
        unit = np.array([shape.std for shape in self.shapes])
        return str(graph.add("Mul", graph.joined(scales), unit))

    def scaled(self, by: Array) -> Spread:
        """The same for errors times a number for each output."""
        shapes = [shape.scaled(float(each)) for shape, each in zip(self.shapes, by)]
        return replace(self, shapes=shapes)


def _scale(members: list[Member], x: Any) -> Array:
    return _limited(mixed_scores(members, x)) if members else np.ones((x.shape[0], 1))


def _limited(log_square: Array) -> Array:
    """The scale, not too far from its middle, which is 1."""
    far = np.log(rules.SCALE_RANGE)
    return np.exp(np.clip(log_square / 2, -far, far))


def scale_settings(settings: FitSettings, x: Any) -> FitSettings:
    """Settings for the fit of the scale: small, and the same whatever the model is like."""
    wide = sparse.issparse(x) or x.shape[1] > rules.METRIC_ROWS["full"]
    return FitSettings(
        n_components=min(rules.SCALE_FEATURES, settings.components),
        n_members=rules.SCALE_MEMBERS,
        basis=Fixed.with_phase("cos", -2.0, 2.0),
        coefficients=np.ones(1),
        seed=settings.seed,
        metric="none" if wide else "diagonal",
        input_form=FORMS["raw" if wide else "both"],
        max_iter=0 if wide else settings.max_iter,
        max_bytes=settings.max_bytes,
        n_jobs=settings.n_jobs,
        coded=settings.coded,
        local_models=False,
    )


def largest_errors(errors: Array) -> Array:
    """The largest size in each column: squares of very large or small errors are lost."""
    largest = np.abs(errors).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def root_mean_square(errors: Array, weights: Array) -> Array:
    unit = largest_errors(errors)
    return np.sqrt(np.average((errors / unit) ** 2, axis=0, weights=weights)) * unit


def squared_errors(errors: Array, weights: Array) -> Array:
    """What the scale is learned from: squares in units of their mean, none of them zero."""
    squares = errors**2
    squares = (squares / np.average(squares, axis=0, weights=weights)).mean(axis=1)
    return np.maximum(squares, _SMALLEST)


def error_shapes(loss: Loss, errors: Array, log_square: Array, weights: Array) -> list[ErrorShape]:
    """The distributions of errors over scales that these rows have no part in, centred."""
    over = errors / _limited(log_square)[:, None]
    return [loss.centred(ErrorShape.of_errors(column, weights)) for column in over.T]
