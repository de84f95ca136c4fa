"""More than one metric for a layer.

With one metric all features see the inputs alike. Where the target is a sum of parts with inputs of
their own, as in sin(6 x1 x2) + cos(5 x3) x4, the metric that suits one part hides another: a larger
scale of x3 alone gains nothing, and disturbs the first part. So what the features leave of the
targets is screened. Where inputs stand out in it, another metric is learned from what is left, and
the features are shared out evenly among the metrics, if that lowers the error on other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from rflaf import rules
from rflaf.arrays import Array
from rflaf.fitting.honest import honest_scores
from rflaf.fitting.task import MemberRows, Regression, Task
from rflaf.fused import BinnedMatrix, Sigma
from rflaf.runtime.clock import may_learn
from rflaf.solvers.features import apply_metric, features, project
from rflaf.solvers.objective import FeatureMap
from rflaf.solvers.ridge import NormalEquations
from rflaf.solvers.screening import screened
from rflaf.solvers.sketches import Problem, Sampler, Sketch, sketch_ridge
from rflaf.solvers.starts import PENALTIES, Learned, lowest
from rflaf.solvers.varpro import mix_targets, sketch_size

Metrics = tuple[Array, ...]


def apply_metrics(metrics: Metrics, w: Array) -> Array:
    """L W, where each of several L has every so many columns of W."""
    found = np.empty(w.shape)
    for k, metric in enumerate(metrics):
        found[:, k :: len(metrics)] = apply_metric(metric, w[:, k :: len(metrics)])
    return found


def learn_more_metrics(
    task: Task,
    member: MemberRows,
    problem: Problem,
    sigma: Sigma,
    first: Learned,
    rng: np.random.Generator,
    learn: Callable[[Regression, int, Learned | None], Learned],
) -> Metrics:
    """The metric of a layer, and those of what its features leave.

    `problem` is what the first metric was learned from, with inputs in their form. The penalty of
    `first` is one of the loss. `learn` learns a metric for another regression of these rows and
    the same activation, in so many steps, from a start or none.
    """
    metrics: Metrics = (first.metric,)
    problem = replace(problem, rows=problem.rows._replace(y=mix_targets(problem.rows.y, rng)))
    unit, settings = member.first.unit, task.settings
    alphas = PENALTIES if settings.alpha is None else np.array([settings.alpha / unit])
    w, intercept = problem.projection, settings.fit_intercept
    seen = problem.rows.x.shape[1] > 1 and not isinstance(problem.rows.x, BinnedMatrix)
    for _ in range(rules.MORE_METRICS if seen else 0):
        components = apply_metrics(metrics, w).astype(w.dtype)
        judged = replace(problem, projection=components)
        leaves = _leaves_something(judged, sigma, first.alpha / unit, intercept, rng)
        if not leaves or not may_learn():
            break
        features = FeatureMap(sigma, components, float(intercept))
        scores = honest_scores(member, task.loss, features, first.alpha)
        if scores is None:
            break
        flattest = rules.FLATTEST * 2 * unit  # the unit is half the curvature
        left = task.regression(member.rows, scores, flattest=flattest, left=True)
        seed = int(rng.integers(1 << 31))  # the same sketches for all that are compared
        least = rules.METRIC_GAIN * _loss(judged, sigma, alphas, intercept, seed)
        other, few = None, min(rules.TRIAL_STEPS, settings.max_iter)
        for steps in (few, settings.max_iter - few):  # most are not worth all of them
            if other is not None and not (steps and may_learn()):
                break
            other = learn(left, steps, other)
            tried = (*metrics, other.metric)
            judged = replace(problem, projection=apply_metrics(tried, w).astype(w.dtype))
            if not _loss(judged, sigma, alphas, intercept, seed) < least:
                return metrics
        metrics = tried
    return metrics


def _sketches(problem: Problem, rng: np.random.Generator) -> Iterator[Sketch]:
    n, m = problem.rows.x.shape[0], problem.projection.shape[1]
    sampler, size = Sampler(problem, rng), sketch_size(n, m, rules.STAGES[1][0])
    for _ in range(rules.JUDGED_SKETCHES):
        yield sampler.draw(size)


def _loss(problem: Problem, sigma: Sigma, alphas: Array, intercept: bool, seed: int) -> float:
    """The held-out error of features on sketches, with the best penalty for each."""
    total = 0.0
    for sketch in _sketches(problem, np.random.default_rng(seed)):
        ridge, _ = sketch_ridge(sigma, np.ones(()), sketch, intercept)
        total += lowest(ridge.loss, alphas, len(alphas) // 2)[1]
    return total


def _leaves_something(
    problem: Problem, sigma: Sigma, alpha: float, intercept: bool, rng: np.random.Generator
) -> bool:
    """Whether inputs, alone or in pairs, explain what the features leave of held-out rows."""
    fit, held_out, w = next(_sketches(problem, rng))
    sums = NormalEquations.empty(w.shape[1], fit.y.shape[1])
    phi, others = (
        features(sigma, project(side.x, w), float(intercept)).astype(np.float64)
        for side in (fit, held_out)
    )
    sums.add(phi, fit.y, fit.weights)
    left = held_out.y - others @ sums.solve(alpha, intercept)
    share = held_out.weights / held_out.weights.sum()
    if np.sum(share @ left**2) < rules.LEAST_LEFT * np.sum(share @ held_out.y**2):
        return False
    shares = screened(held_out.x, left, held_out.weights)
    return shares is not None and float(shares.max()) > rules.SCREENED_LEFT
