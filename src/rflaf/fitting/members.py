"""Cross-fitted members: each learns on the rows outside a fold, and is judged inside it.

What chooses must not have been learned from. Rows are therefore cut into folds before anything is
learned. The errors of the members on their own folds choose the form of the inputs, the kind of
metric and the penalty, and tell how good the model is; its prediction is the members' mean. With
many rows one member is enough, and the rows kept aside for choosing join the others for its last
solve.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused
from rflaf.fitting.budget import gram_fits
from rflaf.fitting.inputs import InputForm, measure_inputs
from rflaf.fitting.learn import (
    Examples,
    FittedLayer,
    choices,
    choose_form,
    learn_layers,
)
from rflaf.fitting.settings import FEW_ROWS, Choice, FitSettings
from rflaf.rows import Sample
from rflaf.rows.sample import Keys, fold_cuts, fold_numbers
from rflaf.solvers.features import project, row_rotation

Array = NDArray[Any]

_MEMBERS = ((5000, 5), (10_000, 3))  # rows up to which there are this many; beyond them, one
_COMPONENTS = ((2000, 500), (10_000, 1000), (30_000, 2000))  # likewise; beyond them, 3000
_LEAST_STEPS, _ROWS_PER_STEP = 16, 100  # few rows gain nothing by many steps of learning
_LEAST_HELD = 100  # rows to choose by, or a third of all


@dataclass(frozen=True)
class Member:
    """A layer and its output weights, M × C and C."""

    layer: FittedLayer
    coef: Array
    intercept: Array
    alpha: float

    def scores(self, x: Any) -> Array:
        """Phi V + intercept in float64, for inputs as they are; infinite where sigma overflows."""
        return self.scores_of(self.layer.inputs(x))

    def scores_of(self, inputs: Any) -> Array:
        """The same for inputs in the layer's form.

        Output weights of at most 1 are used, so that float32 need not hold the target's units.
        """
        unit, readout = self._readout
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(readout(inputs), np.float64) * unit + self.intercept

    @cached_property
    def _readout(self) -> tuple[Array, fused.Readout]:
        largest = np.abs(self.coef).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        layer = self.layer
        return unit, fused.Readout(layer.sigma, layer.components, self.coef / unit)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def mean_scores(members: list[Member], x: Any) -> Array:
    """The mean of the members' scores; inputs that several take in one form are made once."""
    total: Any = 0.0
    for before, member in zip([None, *members], members):
        if before is None or not member.layer.takes_inputs_of(before.layer):
            inputs = member.layer.inputs(x)
        total = total + member.scores_of(inputs)
    return np.asarray(total / len(members))


@dataclass(frozen=True)
class FoldPlan:
    """Which rows each member does not see while it learns.

    Attributes
    ----------
    cuts : array
        Where the folds end in the range of keys.
    held : list of int
        The fold of each member; -1 where there are too few rows for any.
    """

    cuts: Keys
    held: list[int]

    @property
    def single(self) -> bool:
        """Whether one member takes all rows in the end."""
        return len(self.held) == 1

    def folds(self, keys: Keys) -> NDArray[np.intp]:
        """The folds of rows."""
        return fold_numbers(self.cuts, keys)


def resolve(settings: FitSettings, n: int, wide: bool) -> FitSettings:
    """Settings with numbers in place of None, for n rows; wide models have one member."""
    m, members = settings.n_components, settings.n_members
    if m is None:
        m = next((count for rows, count in _COMPONENTS if n <= rows), 3000)
        while m > 100 and not gram_fits(m, settings.max_bytes):
            m //= 2
    if members is None:
        members = 1 if wide else next((count for rows, count in _MEMBERS if n <= rows), 1)
    return replace(
        settings,
        n_components=m,
        n_members=1 if n < FEW_ROWS else members,
        max_iter=min(settings.max_iter, _LEAST_STEPS + n // _ROWS_PER_STEP),
    )


def plan_folds(sample: Sample, settings: FitSettings, most_held: int | None = None) -> FoldPlan:
    """Folds for as many members as there are to be."""
    n, members = len(sample.weights), settings.n_members or 1
    if n < FEW_ROWS:
        return FoldPlan(sample.keys[:0], [-1])
    if members > n // 2:
        raise ValueError(
            f"'n_members' must leave each member some rows of its own to be judged by. Got "
            f"{members} for {n} rows; expected at most {n // 2}."
        )
    if members > 1:
        return FoldPlan(fold_cuts(sample.keys, [1 / members] * members), list(range(members)))
    share = max(settings.validation_fraction, min(1 / 3, _LEAST_HELD / n))
    if most_held is not None:
        share = min(share, most_held / sample.used)
    return FoldPlan(fold_cuts(sample.keys, [1 - share, share]), [1])


def learn_members(
    examples: Examples, fold: Array, plan: FoldPlan, settings: FitSettings
) -> tuple[list[FittedLayer], list[dict[str, Any]]]:
    """The layers of all members, in the form and of the kind that held-out rows choose."""
    inputs = measure_inputs(examples.x, examples.weights)
    start, n = settings.start, len(examples.weights)
    path: list[dict[str, Any]] = []
    if start is not None and _fits(settings, start.choice, inputs):
        choice = start.choice
    else:
        settings = replace(settings, start=None)
        if plan.held == [-1] or not settings.max_iter:
            simple = [c for c in choices(inputs, n, settings) if c.form == settings.plain_form]
            choice = simple[-1]
        else:
            choice, path = choose_form(examples, fold, plan.held, inputs, settings)
    return learn_layers(examples, fold, plan.held, inputs, choice, settings), path


def _fits(settings: FitSettings, choice: Choice, inputs: InputForm) -> bool:
    """Whether what an earlier fit has learned is of a kind that is asked for now."""
    start, given = settings.start, settings.coefficients
    if start is None or start.basis != settings.basis or start.inputs != len(inputs.mean):
        return False
    if choice.form != "raw" and start.ranked != tuple(inputs.ranked.tolist()):
        return False
    if given is not None and not np.array_equal(given, start.learned[0].coefficients):
        return False
    kind_fits = settings.metric in ("auto", choice.kind)
    return kind_fits and settings.input_form in ("auto", choice.form)


def rotations(
    layers: list[FittedLayer], sample: Sample, fold: Array, plan: FoldPlan
) -> list[Array | None]:
    """For members with fewer rows than features, where to solve: in the span of the rows."""
    found: list[Array | None] = []
    for layer, held in zip(layers, plan.held):
        at = np.ones(len(fold), bool) if plan.single else fold != held
        if not sample.whole or np.count_nonzero(at) >= layer.components.shape[1]:
            found.append(None)
            continue
        z = project(layer.inputs(sample.x[at]), layer.components)
        phi = fused.apply(layer.sigma, z, out=z)
        found.append(row_rotation(phi) if np.isfinite(phi).all() else None)
    return found
