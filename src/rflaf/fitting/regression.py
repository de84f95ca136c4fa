"""The way from rows to a regression model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting import budget
from rflaf.fitting.learn import FittedLayer, learn_layer, quiet_blas, rescaled
from rflaf.fitting.settings import FEW_ROWS, FitSettings
from rflaf.rows import ArrayRows, Block, Rows, Sample
from rflaf.rows.sample import Keys, fold_cuts, fold_numbers
from rflaf.solvers.cg import WideProblem, WideSettings, solve_cg
from rflaf.solvers.features import KeptBlocks, features, project
from rflaf.solvers.layer import RowPart
from rflaf.solvers.ridge import NormalEquations, Posterior, choose_penalty, posterior

Array = NDArray[Any]

FOLDED_ROWS = 3000  # up to this many rows, alpha is chosen by cross-validation,
N_FOLDS = 5  # because a tenth of them is too small a part to choose by
_MOST_HELD = 200_000  # rows that choose when conjugate gradients stop
POSTERIOR_WIDTH = 5000  # up to this many features the posterior is kept


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
        share = weights / weights.sum()
        mean = share @ targets
        spread = np.sqrt(share @ (targets - mean) ** 2)
        varies = np.ptp(targets, axis=0) > 0
        mean = np.where(varies, mean, targets[0])
        scale = np.where(varies & (spread > 0), spread, 1.0)
        return cls(mean if fit_intercept else np.zeros_like(mean), scale, y.ndim == 1)

    def scaled(self, y: Array) -> Array:
        """Targets of some rows, n × C."""
        return (y.reshape(len(y), -1) - self.mean) / self.scale


@dataclass(frozen=True)
class RegressionFit:
    """A fitted regression model; coefficients are in the target's own units.

    Attributes
    ----------
    layer : FittedLayer
    coef, intercept : array, M × C and C
    single_target : bool
        Whether targets were n, not n × C.
    alpha, alpha_path : float, list of dict
        The penalty, and what was tried.
    noise : array of C
        Standard deviation of the targets about the model.
    posterior : array or None
        Factor of the output weights' covariance, in units of the noise's variance.
    target : TargetScale
    folds : list of NormalEquations
        Sums over the rows of each fold, from which more rows can go on.
    cuts, rows_seen, first_rows, block_rows : array, int, int, int
        Where the folds end in the range of keys, rows read so far, those that were learned from,
        and how many are taken at once.
    """

    layer: FittedLayer
    coef: Array
    intercept: Array
    single_target: bool
    alpha: float
    alpha_path: list[dict[str, Any]]
    noise: Array
    posterior: Array | None
    target: TargetScale
    cuts: Keys
    rows_seen: int
    first_rows: int
    block_rows: int
    folds: list[NormalEquations] = field(default_factory=list)


@dataclass(frozen=True)
class Prepare:
    """Rows of positive weight as the solvers take them, with the keys of their folds.

    With `fold` only the rows of that fold are left.
    """

    layer: FittedLayer
    target: TargetScale
    seed: int
    cuts: Keys | None = None
    fold: int | None = None

    def __call__(self, block: Block) -> Block:
        keys = block.fold_keys(self.seed)
        used = block.weights > 0
        if self.fold is not None and self.cuts is not None:
            used &= fold_numbers(self.cuts, keys) == self.fold
        x, y, weights = block.x, block.y, block.weights
        if not used.all():
            x, y, weights, keys = x[used], y[used], weights[used], keys[used]
        return Block(block.start, self.layer.inputs(x), self.target.scaled(y), weights, keys)


@dataclass(frozen=True)
class SumFolds:
    """The sums over the rows of each fold; of two, the second is the validation part."""

    prepare: Prepare
    cuts: Keys
    exact: bool

    def __call__(self, blocks: Iterable[Block]) -> list[NormalEquations]:
        layer = self.prepare.layer
        m, outputs = layer.components.shape[1], len(self.prepare.target.mean)
        sums = [NormalEquations.empty(m, outputs) for _ in range(len(self.cuts) + 1)]
        for block in map(self.prepare, blocks):
            assert block.keys is not None
            fold = fold_numbers(self.cuts, block.keys)
            for k in np.unique(fold):
                at = slice(None) if len(sums) == 1 else np.flatnonzero(fold == k)
                phi = features(layer.sigma, project(block.x[at], layer.components))
                if self.exact:
                    phi = phi.astype(np.float64)
                weights = block.weights[at]
                plain = bool((weights == 1).all())
                sums[k].add(phi, block.y[at].astype(phi.dtype), None if plain else weights)
        return sums


def add_folds(one: list[NormalEquations], other: list[NormalEquations]) -> list[NormalEquations]:
    """Sums over the rows of both."""
    return [a + b for a, b in zip(one, other)]


def fit_regression(rows: Rows, settings: FitSettings, keep_sums: bool = False) -> RegressionFit:
    """Learn a model of rows whose targets are n or n × C.

    One pass draws a sample, which activation, metric and a first penalty are learned on; a second
    one sums over all rows, and the output weights are solved for from the sums. With many features
    conjugate gradients take the place of the sums.
    """
    m, max_bytes = settings.n_components, settings.max_bytes
    if keep_sums or settings.solver not in ("auto", "cg"):
        budget.check_gram(m, max_bytes)
    sample = rows.sample(lambda x: budget.sample_rows(x, max_bytes), settings.seed)
    with quiet_blas(sample.used, m):
        target = TargetScale.of(sample.y, sample.weights, settings.fit_intercept)
        layer = learn_layer(sample.x, target.scaled(sample.y), sample.weights, settings)
        everything = ArrayRows.of_sample(sample) if sample.whole else rows
        prepare = Prepare(layer, target, settings.seed)
        wide = not keep_sums and budget.takes_cg(settings.solver, sample.used, m, max_bytes)
        cuts = _fold_cuts(sample, settings, wide)
        if wide:
            return _solve_wide(everything, prepare, cuts, sample, settings)
        size = budget.block_rows(m, sample.width, max_bytes)
        task = SumFolds(prepare, cuts, exact=sample.used * m <= budget.EXACT_FEATURES)
        folds = everything.reduce(task, add_folds, size)
        fit = _solve(folds, prepare, len(sample.weights), settings)
    sums = folds if keep_sums else []
    return replace(fit, cuts=cuts, rows_seen=sample.seen, block_rows=size, folds=sums)


def extend_regression(fit: RegressionFit, rows: Rows, settings: FitSettings) -> RegressionFit:
    """Add rows to a fit that has kept its sums; they are numbered from `fit.rows_seen` on."""
    prepare = Prepare(fit.layer, fit.target, settings.seed)
    count = rows.reduce(_count_rows, int.__add__, fit.block_rows)
    with quiet_blas(count, settings.n_components):
        task = SumFolds(
            prepare, fit.cuts, exact=count * settings.n_components <= budget.EXACT_FEATURES
        )
        folds = add_folds(fit.folds, rows.reduce(task, add_folds, fit.block_rows))
        more = _solve(folds, prepare, fit.first_rows, settings)
    seen, size = fit.rows_seen + count, fit.block_rows
    return replace(more, cuts=fit.cuts, rows_seen=seen, block_rows=size, folds=folds)


def _count_rows(blocks: Iterable[Block]) -> int:
    return sum(len(block.weights) for block in blocks)


def _fold_cuts(sample: Sample, settings: FitSettings, wide: bool) -> Keys:
    """Where to cut the range of keys into folds; no cut where nothing can be held out."""
    if settings.alpha is not None or sample.used < FEW_ROWS:
        return sample.keys[:0]
    held = settings.validation_fraction
    if wide:  # conjugate gradients hold the errors of these rows in memory
        held = min(held, _MOST_HELD / sample.used)
    few = sample.used <= FOLDED_ROWS and not wide
    return fold_cuts(sample.keys, [1 / N_FOLDS] * N_FOLDS if few else [1 - held, held])


def _solve(
    folds: list[NormalEquations], prepare: Prepare, first_rows: int, settings: FitSettings
) -> RegressionFit:
    """Choose the penalty, and solve on all rows; `first_rows` of them were learned from."""
    everything = sum(folds[1:], folds[0])
    path: list[dict[str, Any]] = []
    if settings.alpha is not None:
        alpha = settings.alpha
    elif len(folds) == 1 and everything.rows == first_rows and settings.max_iter:
        alpha = prepare.layer.alpha  # chosen with the activation, on these few rows
    else:
        alpha, path = choose_penalty(folds, prepare.layer.alpha, settings.fit_intercept)
    weights = everything.solve(alpha, settings.fit_intercept)
    small = settings.n_components <= POSTERIOR_WIDTH
    unknown = posterior(everything, weights, alpha, settings.fit_intercept, small)
    fit = _in_units(weights[:-1], weights[-1], unknown, prepare, settings)
    return replace(fit, alpha=alpha, alpha_path=path, first_rows=first_rows)


def _solve_wide(
    rows: Rows, prepare: Prepare, cuts: Keys, sample: Sample, settings: FitSettings
) -> RegressionFit:
    """Output weights by conjugate gradients.

    Where there is a cut in the range of keys, the rows above it choose when to stop, and the
    penalty. Where the metric was learned they choose its scale too, for it was learned on fewer
    rows than these.
    """
    layer, automatic = prepare.layer, settings.alpha is None
    m = settings.n_components
    size = budget.wide_block_rows(m, sample.width, settings.max_bytes)
    max_bytes = settings.max_bytes or budget.free_bytes() // 4
    at_hand = rows.held(max_bytes // 4)

    def part(fold: int) -> Callable[[int], RowPart]:
        selected = replace(prepare, cuts=cuts, fold=fold) if cuts.size else prepare
        return lambda room: RowPart(at_hand, selected, size, KeptBlocks(room))

    fitted = fold_numbers(cuts, sample.keys) == 0
    problem = WideProblem(
        sigma=layer.sigma,
        w=layer.components,
        fit=part(0),
        held=part(1) if cuts.size else None,
        sample_x=layer.inputs(sample.x[fitted]),
        sample_weights=sample.weights[fitted],
    )
    rule = WideSettings(
        alpha=layer.alpha if settings.alpha is None else settings.alpha,
        rescale=layer.kind != "none" and bool(layer.history),
        fit_intercept=settings.fit_intercept,
        max_bytes=max_bytes,
        max_iter=100 if automatic else 500,
        tol=1e-4 if automatic else 1e-5,
    )
    solution = solve_cg(problem, rule, settings.rng(1))
    best = min(solution.path, key=lambda record: float(record["loss"]))
    unknown = Posterior(np.sqrt(best["losses"]), None)
    scaled = rescaled(layer, solution.scale, sample.x, settings.rng())
    prepare = replace(prepare, layer=scaled)
    fit = _in_units(solution.coef, solution.intercept, unknown, prepare, settings)
    return replace(fit, alpha=solution.alpha, alpha_path=solution.path)


def _in_units(
    coef: Array, intercept: Array, unknown: Posterior, prepare: Prepare, settings: FitSettings
) -> RegressionFit:
    """A fit in the target's own units, from weights for scaled targets."""
    target = prepare.target
    offset = intercept * target.scale + target.mean
    return RegressionFit(
        layer=prepare.layer,
        coef=coef * target.scale,
        intercept=offset if settings.fit_intercept else np.zeros_like(offset),
        single_target=target.single,
        alpha=0.0,
        alpha_path=[],
        noise=unknown.noise * target.scale,
        posterior=unknown.factor,
        target=target,
        cuts=np.zeros(0, np.uint64),
        rows_seen=0,
        first_rows=0,
        block_rows=0,
    )
