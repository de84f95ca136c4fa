"""The way from rows to a regression model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting import budget
from rflaf.fitting.judged import Pair, RegressionFit, TargetScale, in_units, judged_fit
from rflaf.fitting.learn import Examples, FittedLayer
from rflaf.fitting.members import (
    FoldPlan,
    InputsOnce,
    Member,
    Seat,
    few_rows,
    learn_members,
    mix_teams,
    out_of_fold,
    plan_folds,
    resolve,
    rotations,
    teams_of,
    weighted,
)
from rflaf.fitting.settings import FitSettings
from rflaf.fitting.wide import solve_wide
from rflaf.rows import ArrayRows, Block, Rows, Sample
from rflaf.runtime.threads import parallel, use_threads
from rflaf.solvers.features import Workspace, features, project
from rflaf.solvers.ridge import NormalEquations, choose_alpha, gcv_penalty

Array = NDArray[Any]

_MOST_HELD = 200_000  # rows that choose when conjugate gradients stop


@dataclass(frozen=True)
class SumMembers:
    """For each member the sums over rows that it may see, and over those of its fold."""

    seats: list[Seat]
    target: TargetScale
    plan: FoldPlan
    seed: int
    exact: bool
    rotations: list[Array | None]

    def __call__(self, blocks: Iterable[Block]) -> list[Pair]:
        outputs = len(self.target.mean)
        sums = []
        for seat, rotation in zip(self.seats, self.rotations):
            m = (seat.layer.components if rotation is None else rotation).shape[1]
            sums.append(tuple(NormalEquations.empty(m, outputs) for _ in range(2)))
        spaces = [Workspace() for _ in self.seats]
        for block in blocks:
            used = block.weights > 0
            fold = np.where(used, self.plan.folds(block.fold_keys(self.seed)), -2)
            rows = Block(block.start, block.x, self.target.scaled(block.y), block.weights)
            inputs = InputsOnce(block.x)
            found = [inputs.of(seat.layer) for seat in self.seats]

            def task(
                k: int, rows: Block = rows, fold: Array = fold, found: list[Any] = found
            ) -> None:
                held = fold == self.seats[k].fold
                mine = rows._replace(x=found[k])
                for pair, at in zip(sums[k], (~held & (fold >= 0), held)):
                    if at.any():
                        self._add(k, pair, mine, slice(None) if at.all() else at, spaces[k])

            parallel(task, len(self.seats))
        return sums  # type: ignore[return-value]

    def _add(self, k: int, sums: NormalEquations, block: Block, at: Any, space: Workspace) -> None:
        """Add rows whose inputs are in the layer's form, and whose targets are scaled."""
        layer, rotation, weights = self.seats[k].layer, self.rotations[k], block.weights[at]
        x, y, w = block.x[at], block.y[at], layer.components
        z = project(x, w, space.array("z", (x.shape[0], w.shape[1]), w.dtype))
        phi = space.array("phi", (x.shape[0], w.shape[1] + 1), w.dtype)
        features(layer.sigma, z, out=phi)
        if self.exact:
            phi = phi.astype(np.float64)
        if rotation is not None:
            phi = np.hstack([phi[:, :-1] @ rotation.astype(phi.dtype), phi[:, -1:]])
        plain = bool((weights == 1).all())
        sums.add(phi, y.astype(phi.dtype), None if plain else weights)


def add_sums(one: list[Pair], other: list[Pair]) -> list[Pair]:
    """Sums over the rows of both."""
    return [(a[0] + b[0], a[1] + b[1]) for a, b in zip(one, other)]


def fit_regression(rows: Rows, settings: FitSettings, keep_sums: bool = False) -> RegressionFit:
    """Learn a model of rows whose targets are n or n × C.

    One pass draws a sample. On it the form of the inputs is chosen, and activation, metric and a
    first penalty of each member are learned. A second pass sums over all rows, and the output
    weights are solved for from the sums. With many features conjugate gradients take the place of
    the sums.
    """
    max_bytes = settings.max_bytes
    if settings.n_components is not None and (keep_sums or settings.solver not in ("auto", "cg")):
        budget.check_gram(settings.n_components, max_bytes)
    sample = rows.sample(lambda x: budget.sample_rows(x, max_bytes), settings.seed)
    m = resolve(settings, sample.used, False).components
    wide = not keep_sums and budget.takes_cg(settings.solver, sample.used, m, max_bytes)
    if (
        settings.solver == "auto"
        and (settings.n_members or 1) > 1
        and budget.gram_fits(m, max_bytes)
    ):
        wide = False
    settings = resolve(settings, sample.used, wide, few_rows(sample))
    if wide and settings.n_members != 1:
        raise ValueError(f"solver='cg' takes n_members=1. Got n_members={settings.n_members}.")
    plan = plan_folds(sample, settings, _MOST_HELD if wide else None)
    outputs = sample.y[:1].size
    budget.check_fit(
        sample.used, sample.x.shape[1], outputs, m, len(plan.held) * (1 + settings.mixes),
        wide=wide, all_features=keep_sums,
    )  # fmt: skip
    with use_threads(settings.n_jobs):
        target = TargetScale.of(sample.y, sample.weights, settings.fit_intercept)
        examples = Examples(sample.x, target.scaled(sample.y), sample.weights)
        fold = plan.folds(sample.keys)
        seats, form_path = learn_members(examples, fold, plan, settings)
        if keep_sums:
            seats = [seat for seat in seats if not seat.layer.linear]
        everything = ArrayRows.of_sample(sample) if sample.whole else rows
        if wide:
            fit = solve_wide(everything, seats[0], target, plan, sample, settings)
            return replace(fit, form_path=form_path)
        turned = rotations(seats, sample, fold, plan)
        turned = [None] * len(turned) if keep_sums else turned  # later rows leave their span
        exact = sample.used * m <= budget.EXACT_FEATURES
        task = SumMembers(seats, target, plan, settings.seed, exact, turned)
        size = budget.block_rows(m, sample.width, max_bytes)
        sums = everything.reduce(task, add_sums, size)
        solved = _solve(sums, task, sample.used, settings)
        fit = _mixed(solved, task, sample, fold, settings)
    if keep_sums:
        places = {(seat.team, seat.fold): k for k, seat in enumerate(seats)}
        kept = [places[member.seat.team, member.seat.fold] for member in fit.members]
        fit = replace(fit, sums=[sums[k] for k in kept])
    return replace(fit, form_path=form_path, block_rows=size)


def _mixed(
    solved: Solved, task: SumMembers, sample: Sample, fold: Array, settings: FitSettings
) -> RegressionFit:
    """The members of the teams that out-of-fold predictions choose."""
    target, seats = task.target, task.seats
    by_team = out_of_fold(solved.judges, sample, fold, len(target.mean))
    seen = np.isfinite(by_team[0, :, 0])
    weights = np.ones(1)
    if len(by_team) > 1:
        share = sample.weights[seen] / sample.weights[seen].sum()
        truth = target.scaled(sample.y[seen])
        errors = np.stack([target.scaled(found[seen]) - truth for found in by_team])
        products = np.einsum("anc,n,bnc->ab", errors, share, errors)
        weights = mix_teams(lambda w: float(w @ products @ w), seats)
    members = weighted(solved.members, weights)
    found = np.tensordot(weights, by_team, axes=1)
    noise = solved.noise
    fit = judged_fit(members, found, target, task.plan, sample, noise, settings.rng(4))
    return replace(fit, alpha_path=solved.path)


def extend_regression(fit: RegressionFit, rows: Rows, settings: FitSettings) -> RegressionFit:
    """Add rows to a fit that has kept its sums; they are numbered from `fit.rows_seen` on."""
    seats = [member.seat for member in fit.members]
    count = rows.reduce(_count_rows, int.__add__, fit.block_rows)
    m = seats[0].layer.components.shape[1]
    settings = replace(settings, n_components=m, n_members=len(fit.plan.held))
    with use_threads(settings.n_jobs):
        exact = count * m <= budget.EXACT_FEATURES
        task = SumMembers(seats, fit.target, fit.plan, settings.seed, exact, [None] * len(seats))
        sums = add_sums(fit.sums, rows.reduce(task, add_sums, fit.block_rows))
        before = _solve(fit.sums, task, fit.first_rows, settings)
        more = _solve(sums, task, fit.first_rows, settings)
    grown = more.noise / np.where(before.noise > 0, before.noise, 1.0)
    model = fit.noise_model
    members = [replace(member, weight=old.weight) for member, old in zip(more.members, fit.members)]
    return replace(
        fit,
        members=members,
        alpha_path=more.path,
        noise=fit.noise * grown,
        noise_model=replace(model, unit=model.unit * grown, quantiles=model.quantiles * grown),
        rows_seen=fit.rows_seen + count,
        sums=sums,
    )


def _count_rows(blocks: Iterable[Block]) -> int:
    return sum(len(block.weights) for block in blocks)


@dataclass(frozen=True)
class Solved:
    """Members with their output weights.

    Attributes
    ----------
    members : list of Member
    judges : list of Member or None
        The same with weights from the rows outside of their folds alone.
    noise : array of C
        The root mean squared error on rows that the weights have not seen.
    path : list of dict
        Penalties that were tried for the first team.
    """

    members: list[Member]
    judges: list[Member | None]
    noise: Array
    path: list[dict[str, Any]]


def _solve(sums: list[Pair], task: SumMembers, first_rows: int, settings: FitSettings) -> Solved:
    """Choose the penalty of each team, and solve; `first_rows` rows were learned from."""
    plan, intercept = task.plan, settings.fit_intercept
    alphas = [0.0] * len(sums)
    honest: list[Any] = [None] * len(sums)
    final: list[Any] = [None] * len(sums)
    teams = teams_of(task.seats)
    paths: list[Any] = [[]] * len(teams)

    def choose(number: int) -> None:
        team = teams[number]
        layers = [task.seats[k].layer for k in team]
        alpha, paths[number], known = _penalty(
            [sums[k] for k in team], layers, first_rows, settings
        )
        for k, weights in zip(team, known):
            alphas[k], honest[k] = alpha, weights

    parallel(choose, len(teams))

    def solve(number: int) -> None:
        k, for_all = divmod(number, 2)
        fit, held = sums[k]
        judged = bool(fit.rows and held.rows)
        if for_all and (plan.single or not judged):
            final[k] = (fit + held).solve(alphas[k], intercept)
        elif not for_all and judged and honest[k] is None:
            honest[k] = fit.solve(alphas[k], intercept)

    parallel(solve, 2 * len(sums))
    final = [v if v is not None else honest[k] for k, v in enumerate(final)]
    members = [_member(task, k, v, alphas[k], settings) for k, v in enumerate(final)]
    judges = [
        None if v is None else _member(task, k, v, alphas[k], settings)
        for k, v in enumerate(honest)
    ]
    noise = _noise(sums, honest, final, alphas, intercept) * task.target.scale
    path: list[dict[str, Any]] = next((tried for tried in paths if tried), [])
    return Solved(members, judges, noise, path)


def _penalty(
    sums: list[Pair], layers: list[FittedLayer], first_rows: int, settings: FitSettings
) -> tuple[float, list[dict[str, Any]], list[Any]]:
    """One penalty for a team, whose features have about one height, and what was tried.

    Also the weights of its members from rows outside of their folds, as far as they are known.
    """
    unknown: list[Any] = [None] * len(sums)
    if settings.alpha is not None:
        return settings.alpha, [], unknown
    start = float(np.exp(np.median([np.log(layer.alpha) for layer in layers])))
    if all(fit.rows and held.rows for fit, held in sums):
        found = choose_alpha(sums, [start] * len(sums), fit_intercept=settings.fit_intercept)
        return found.factor * start, found.path, found.weights
    if sum(part.rows for part in sums[0]) == first_rows and settings.max_iter:
        return start, [], unknown  # chosen with the activation, on these few rows
    return *gcv_penalty(sums[0][0] + sums[0][1], settings.fit_intercept), unknown


def _noise(
    sums: list[Pair], honest: list[Any], final: list[Any], alphas: list[float], intercept: bool
) -> Array:
    """The root mean squared error on rows that the weights have not seen.

    Where there are none, that on the rows fitted to, over the share of freedom that is left.
    """
    if any(v is not None for v in honest):
        known = [(held, v) for (_, held), v in zip(sums, honest) if v is not None]
        weights = np.array([held.weight for held, _ in known])
        losses = [held.loss(v) for held, v in known]
        return np.sqrt(weights / weights.sum() @ np.array(losses))
    fit = sums[0][0] + sums[0][1]
    free = fit.freedom(alphas[0], intercept)
    return np.sqrt(fit.loss(final[0]) / max(free, 1 / max(fit.rows, 1)))


def _member(
    task: SumMembers, k: int, weights: Array, alpha: float, settings: FitSettings
) -> Member:
    """A member in the target's own units, from weights for scaled targets."""
    target, rotation = task.target, task.rotations[k]
    v = weights[:-1] if rotation is None else rotation.astype(np.float64) @ weights[:-1]
    return in_units(task.seats[k], v, weights[-1], alpha, target, settings)
