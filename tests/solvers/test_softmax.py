"""Multinomial logistic regression on features, against scikit-learn."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from rflaf import fused
from rflaf.bases import RBF, Fixed, Polynomial
from rflaf.rows import ArrayRows, Block
from rflaf.solvers.features import row_rotation
from rflaf.solvers.softmax import (
    ClassRows,
    Objective,
    SoftmaxProblem,
    SoftmaxSettings,
    cross_entropy,
    fit_softmax,
)
from rflaf.solvers.softmax_few import fit_few

D, M = 3, 20
each_count = pytest.mark.parametrize("n_classes", [2, 4])
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def make(n, n_classes, weighted=False, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    w = np.random.default_rng(99).standard_normal((D, M)).astype(dtype)
    x = rng.standard_normal((n, D)).astype(dtype)
    score = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.4 * rng.standard_normal(n)
    target = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    weights = rng.uniform(0.2, 2, n) if weighted else np.ones(n)
    return Data(x, w, target, weights)


class Data(NamedTuple):
    x: Any
    w: Any
    target: Any
    weights: Any

    def at(self, rows):
        return Data(self.x[rows], self.w, self.target[rows], self.weights[rows])

    def rows(self, size=1000):
        parts = ArrayRows(self.x, self.target, self.weights)
        return ClassRows(parts, float(self.weights.sum()), size)


def fit(sigma, data, n_classes, *, size=1000, **options):
    """Fit to all rows with a given penalty, as far as it goes."""
    settings = SoftmaxSettings(n_classes, **{"tol": 1e-14, "max_iter": 5000, **options})
    return solve(sigma, data, data.rows(size), settings)


def solve(sigma, data, rows, settings, held=None, every=None, held_too=False):
    problem = SoftmaxProblem(sigma, data.w, rows, held, every, 1e-4, held_too=held_too)
    return fit_softmax([problem], settings)[0]


def objective(sigma, data, rows, fit_intercept=True):
    problem = SoftmaxProblem(sigma, data.w, rows, None, None, 1e-4)
    return Objective(problem, rows, fit_intercept, 1 << 20)


@pytest.fixture
def sigma():
    a = np.random.default_rng(4).standard_normal(9)
    return fused.basis_layout(RBF(9), 16, 1e-10).table(a)


def phi_of(sigma, rows):
    return fused.apply(sigma, np.asarray(rows.x @ rows.w))


def oracle(sigma, rows, alpha, fit_intercept):
    total = rows.weights.sum()
    model = LogisticRegression(
        C=1 / (2 * alpha * total), fit_intercept=fit_intercept, tol=1e-10, max_iter=20000
    )
    return model.fit(phi_of(sigma, rows), rows.target, sample_weight=rows.weights)


def scores_of(sigma, rows, solution):
    return phi_of(sigma, rows) @ solution.coef + solution.intercept


def probabilities(scores):
    full = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    e = np.exp(full - full.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@each_count
@each_intercept
@each_weighting
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_against_scikit_learn(sigma, n_classes, fit_intercept, weighted, alpha):
    rows = make(150, n_classes, weighted)
    solution = fit(sigma, rows, n_classes, alpha=alpha, fit_intercept=fit_intercept)
    assert solution.alpha == alpha
    assert solution.coef.shape == (M, 1 if n_classes == 2 else n_classes)
    expected = oracle(sigma, rows, alpha, fit_intercept)
    got = probabilities(scores_of(sigma, rows, solution))
    np.testing.assert_allclose(got, expected.predict_proba(phi_of(sigma, rows)), atol=2e-4)
    np.testing.assert_allclose(solution.coef, expected.coef_.T, atol=2e-3)
    if not fit_intercept:
        np.testing.assert_array_equal(solution.intercept, 0)


@each_count
@each_intercept
@each_weighting
def test_few_rows_solve_the_same_problem(sigma, n_classes, fit_intercept, weighted):
    rows = make(60, n_classes, weighted)
    few = fit_few(phi_of(sigma, rows), rows.target, rows.weights, n_classes, 1e-2, fit_intercept)
    many = fit(sigma, rows, n_classes, alpha=1e-2, fit_intercept=fit_intercept)
    assert few.coef.shape == many.coef.shape
    np.testing.assert_allclose(few.coef, many.coef, atol=1e-4)
    got, expected = (probabilities(scores_of(sigma, rows, s)) for s in (few, many))
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_fewer_rows_than_features(sigma):
    rows = make(8, 2)
    solution = fit_few(phi_of(sigma, rows), rows.target, rows.weights, 2, 1e-3, True)
    expected = oracle(sigma, rows, 1e-3, True)
    np.testing.assert_allclose(solution.coef, expected.coef_.T, atol=1e-4)


@each_count
def test_a_row_twice_is_a_row_of_weight_two(sigma, n_classes):
    rows = make(120, n_classes)
    twice = rows.at(np.r_[0:120, 0:50])
    rows = rows._replace(weights=np.where(np.arange(120) < 50, 2.0, 1.0))
    weighted, stacked = (fit(sigma, each, n_classes, alpha=1e-2) for each in (rows, twice))
    np.testing.assert_allclose(weighted.coef, stacked.coef, atol=1e-4)


@each_count
def test_cross_entropy_and_its_gradient(n_classes, rng):
    scores = 3 * rng.standard_normal((7, 1 if n_classes == 2 else n_classes))
    target, weights = rng.integers(0, n_classes, 7), rng.uniform(0.1, 2, 7)
    loss, gradient = cross_entropy(scores, target, weights)
    p = probabilities(scores)[np.arange(7), target]
    assert loss == pytest.approx(-(weights @ np.log(p)) / weights.sum())
    for index in np.ndindex(scores.shape):
        move = np.zeros(scores.shape)
        move[index] = 1e-6
        up, down = (cross_entropy(scores + s * move, target, weights)[0] for s in (1, -1))
        assert gradient[index] == pytest.approx((up - down) / 2e-6, abs=1e-8)


def test_huge_scores_stay_finite():
    scores = np.array([[1e6, -1e6, 0.0], [-1e6, 1e6, 3.0]])
    loss, gradient = cross_entropy(scores, np.array([0, 0]), np.ones(2))
    assert loss == pytest.approx(1e6)
    assert np.isfinite(gradient).all()


@each_count
@each_intercept
def test_the_loss_its_gradient_and_its_curvature(sigma, n_classes, fit_intercept, rng):
    data = make(40, n_classes, weighted=True)
    problem = objective(sigma, data, data.rows(7), fit_intercept)
    v = 0.3 * rng.standard_normal((M + 1, 1 if n_classes == 2 else n_classes))
    if not fit_intercept:
        v[-1] = 0
    loss, by_v = problem.loss(v, 0.05)
    scores = phi_of(sigma, data) @ v[:-1] + v[-1]
    expected = cross_entropy(scores, data.target, data.weights)[0] + 0.05 * np.sum(v[:-1] ** 2)
    assert loss == pytest.approx(expected)
    for index in [(0, 0), (5, 0), (M - 1, v.shape[1] - 1), (M, 0)]:
        move = np.zeros(v.shape)
        move[index] = 1e-5
        slope = (problem.loss(v + move, 0.05)[0] - problem.loss(v - move, 0.05)[0]) / 2e-5
        if index[0] == M and not fit_intercept:
            slope = 0
        assert by_v[index] == pytest.approx(slope, rel=1e-4, abs=1e-8)
    p = probabilities(scores)
    p = p[:, 1:] if n_classes == 2 else p
    phi = np.column_stack([phi_of(sigma, data), np.full(40, float(fit_intercept))])
    share = data.weights / data.weights.sum() * np.mean(p * (1 - p), axis=1)
    curvature = phi.T @ (share[:, None] * phi)
    if not fit_intercept:
        curvature[-1, -1] = 1
    np.testing.assert_allclose(problem.curvature(v), curvature, atol=1e-12)


@each_count
def test_blocks_do_not_matter(sigma, n_classes):
    """Features kept or computed again, all or some, in one block or many."""
    data = make(150, n_classes, weighted=True)
    whole = fit(sigma, data, n_classes, alpha=1e-2)
    for size, room in ((1000, 0), (7, 1 << 30), (64, 0), (64, 70 * (M + 3) * 8)):
        parts = fit(sigma, data, n_classes, alpha=1e-2, size=size, room=room)
        np.testing.assert_allclose(parts.coef, whole.coef, atol=1e-4)


def test_rows_are_prepared_as_they_come(sigma):
    """Inputs in other units, classes by name, and rows of weight zero that have no class."""
    data = make(150, 3)
    expected = fit(sigma, data, 3, alpha=1e-2)

    def prepare(block):
        used = block.weights > 0
        codes = np.searchsorted(["a", "b", "c"], block.y[used])
        return Block(block.start, block.x[used] / 4, codes, block.weights[used])

    names = np.array(["a", "b", "c"])[data.target]
    more = np.r_[names, np.full(9, "?")]
    x = np.vstack([4 * data.x, np.zeros((9, D))])
    rows = ArrayRows(x, more, np.r_[data.weights, np.zeros(9)])
    every = ClassRows(rows, 150.0, 40, prepare)
    settings = SoftmaxSettings(3, alpha=1e-2, tol=1e-14, max_iter=5000)
    found = solve(sigma, data, every, settings)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-4)


@each_count
def test_the_penalty_is_the_best_on_held_out_rows(sigma, n_classes):
    rows = make(300, n_classes)
    fit, held = rows.at(slice(0, 200)), rows.at(slice(200, 300))
    settings = SoftmaxSettings(n_classes, max_iter=2000, tol=1e-12)
    solution = solve(sigma, rows, fit.rows(), settings, held.rows(), rows.rows())
    losses = {record["alpha"]: record["loss"] for record in solution.path}
    for alpha in (0.1, 0.03, 0.01, 1e-3, 1e-4):  # noisy classes want a large penalty
        p = oracle(sigma, fit, alpha, True).predict_proba(phi_of(sigma, held))
        loss = -np.mean(np.log(p[np.arange(100), held.target]))
        assert min(losses.values()) < loss + 0.01
    assert solution.alpha == min(losses, key=losses.get)
    for alpha, loss in losses.items():
        p = oracle(sigma, fit, alpha, True).predict_proba(phi_of(sigma, held))
        assert loss == pytest.approx(-np.mean(np.log(p[np.arange(100), held.target])), abs=5e-3)
    # and then all rows are fitted to
    expected = oracle(sigma, rows, solution.alpha, True).predict_proba(phi_of(sigma, rows))
    got = probabilities(scores_of(sigma, rows, solution))
    np.testing.assert_allclose(got, expected, atol=0.01)


@pytest.mark.parametrize("alpha", [None, 1e-2])
def test_weights_that_have_not_seen_the_held_out_rows(sigma, alpha):
    """Whether the penalty is chosen or given; and whatever the last fit takes."""
    rows = make(300, 3)
    fit, held = rows.at(slice(0, 200)), rows.at(slice(200, 300))
    spoilt = held._replace(target=(held.target + 1) % 3)
    settings = SoftmaxSettings(3, alpha=alpha)
    for last in ({}, {"every": rows.rows()}, {"held_too": True}):
        solution = solve(sigma, rows, fit.rows(), settings, held.rows(), **last)
        v = np.vstack([solution.coef, solution.intercept])
        assert (np.abs(solution.honest - v).max() < 0.05) == (not last)
        if alpha is not None:
            other = solve(sigma, rows, fit.rows(), settings, spoilt.rows(), **last)
            np.testing.assert_array_equal(other.honest, solution.honest)
        expected = oracle(sigma, fit, solution.alpha, True).predict_proba(phi_of(sigma, held))
        p = probabilities(phi_of(sigma, held) @ solution.honest[:-1] + solution.honest[-1])
        np.testing.assert_allclose(p, expected, atol=0.02)
    assert solve(sigma, rows, fit.rows(), SoftmaxSettings(3, alpha=0.1)).honest is None


def test_rows_of_two_parts_are_those_of_both(sigma):
    """As the last fit takes them: what was kept of each part is not made again."""
    data, made = make(300, 3), []

    def watched(at):
        rows = data.at(at).rows(70)
        return replace(rows, prepare=lambda block: made.append(block.start) or block)

    parts = [objective(sigma, data, watched(at)) for at in (slice(0, 90), slice(90, 300))]
    both, whole = parts[0].with_rows_of(parts[1]), objective(sigma, data, data.rows(70))
    v = np.random.default_rng(0).standard_normal((whole.width, 3))
    for one, other in zip(both.loss(v, 0.1), whole.loss(v, 0.1)):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    np.testing.assert_allclose(both.curvature(v), whole.curvature(v), rtol=1e-8, atol=1e-12)
    assert len(made) == 5  # blocks, once each, though there were two passes
    assert parts[0].weight == 90  # and is as it was
    assert both.weight == 300


def test_models_share_a_penalty_and_go_their_own_ways(sigma):
    """The path is that of the first two models' mean loss, by the weights of their judges."""
    rows = make(300, 3, weighted=True)
    parts = [np.arange(300) % 3 == k for k in range(3)]
    problems = [
        SoftmaxProblem(sigma, rows.w, rows.at(~at).rows(), rows.at(at).rows(), None, 1e-3)
        for at in parts
    ]
    together = fit_softmax(problems, SoftmaxSettings(3))
    assert len({solution.alpha for solution in together}) == 1
    losses = {record["alpha"]: record["loss"] for record in together[0].path}
    assert together[0].alpha == min(losses, key=losses.get)
    found = []
    for at, solution in zip(parts, together, strict=True):
        alone = fit(sigma, rows.at(~at), 3, alpha=solution.alpha)
        got, expected = (probabilities(scores_of(sigma, rows, s)) for s in (solution, alone))
        np.testing.assert_allclose(got, expected, atol=0.01)
        held = rows.at(at)
        scores = phi_of(sigma, held) @ solution.honest[:-1] + solution.honest[-1]
        found.append(cross_entropy(scores, held.target, held.weights)[0])
    sizes = [rows.weights[at].sum() for at in parts[:2]]
    # the path was walked with less care than the last solve
    expected = np.average(found[:2], weights=sizes)
    assert losses[together[0].alpha] == pytest.approx(expected, rel=1e-3)
    spoilt = replace(problems[2], held=rows.at(parts[2])._replace(target=parts[2][:100] * 1).rows())
    others = fit_softmax([*problems[:2], spoilt], SoftmaxSettings(3))
    assert others[2].path == together[2].path  # the third has no part in the choice
    np.testing.assert_array_equal(others[2].honest, together[2].honest)


@each_count
def test_a_rotation_changes_nothing(sigma, n_classes):
    """With fewer rows than features their span is enough."""
    few = make(15, n_classes)
    plain = fit(sigma, few, n_classes, alpha=1e-2)
    turned = SoftmaxProblem(
        sigma, few.w, few.rows(), None, None, 1e-2, row_rotation(phi_of(sigma, few))
    )
    settings = SoftmaxSettings(n_classes, alpha=1e-2, tol=1e-14, max_iter=5000)
    solution = fit_softmax([turned], settings)[0]
    assert solution.coef.shape == plain.coef.shape
    np.testing.assert_allclose(solution.coef, plain.coef, atol=1e-5)
    np.testing.assert_allclose(solution.intercept, plain.intercept, atol=1e-5)


def test_sparse_inputs(sigma):
    data = make(150, 3)
    thin = data._replace(x=sparse.csr_array(data.x))
    dense, same = (fit(sigma, each, 3, alpha=1e-2) for each in (data, thin))
    np.testing.assert_allclose(same.coef, dense.coef, atol=1e-5)


def test_single_precision_is_near(sigma):
    wide, narrow = make(200, 3), make(200, 3, dtype=np.float32)
    one, other = (
        fit(sigma, each, 3, alpha=1e-3, max_iter=500, tol=1e-10) for each in (wide, narrow)
    )
    got, expected = (probabilities(scores_of(sigma, wide, s)) for s in (other, one))
    np.testing.assert_allclose(got, expected, atol=5e-3)


def test_the_steps_are_few_and_the_tolerance_is_kept(sigma):
    """Within 1e-6 of the least loss, relatively, in a few dozen steps."""
    data = make(400, 3)
    settings = SoftmaxSettings(3, alpha=1e-4)
    found = solve(sigma, data, data.rows(), settings)
    best = fit(sigma, data, 3, alpha=1e-4)
    problem = objective(sigma, data, data.rows())
    losses = [problem.loss(np.vstack([s.coef, s.intercept]), 1e-4)[0] for s in (found, best)]
    assert losses[0] <= losses[1] * (1 + 3e-6)
    curvature = problem.curvature(np.zeros((M + 1, 3)))
    _, steps = problem.solve(curvature, 1e-4, np.zeros((M + 1, 3)), 1e-6, 1000)
    assert steps < 100


def test_an_activation_without_a_table_and_overflow():
    data = make(150, 3)
    tanh = fused.Direct(Fixed("tanh"), np.ones(1))
    expected = oracle(tanh, data, 1e-2, True)
    np.testing.assert_allclose(fit(tanh, data, 3, alpha=1e-2).coef, expected.coef_.T, atol=2e-3)
    powers = fused.Direct(Polynomial(400), np.ones(400))
    with pytest.raises(ValueError, match="overflow"), np.errstate(all="ignore"):
        fit(powers, data, 3, alpha=1e-2)


@pytest.mark.parametrize("present", [[0, 2], [1, 2], [0, 1, 3]])
def test_classes_without_a_row_have_hardly_a_chance(sigma, present):
    data = make(60, len(present))
    target = np.array(present)[data.target]
    solution = fit_few(phi_of(sigma, data), target, data.weights, 4, 1e-2, True)
    p = probabilities(scores_of(sigma, data, solution))
    absent = [k for k in range(4) if k not in present]
    assert p[:, absent].max() < 1e-6
    expected = fit_few(phi_of(sigma, data), data.target, data.weights, len(present), 1e-2, True)
    np.testing.assert_allclose(
        p[:, present], probabilities(scores_of(sigma, data, expected)), atol=1e-6
    )
