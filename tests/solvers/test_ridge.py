"""Ridge regression from sums, against scikit-learn and brute force."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from rflaf.runtime import threads
from rflaf.solvers import ridge
from rflaf.solvers.ridge import NormalEquations, add_gram, choose_alpha, gcv_penalty

each_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


@pytest.fixture
def problem(rng):
    """Features with means of their own, two targets, weights of which some are zero."""
    phi = rng.standard_normal((90, 12)) @ rng.standard_normal((12, 12)) + rng.standard_normal(12)
    y = phi[:, :2] - 2 * phi[:, 3:5] + rng.standard_normal((90, 2)) + [5.0, -1.0]
    weights = rng.uniform(0, 3, 90)
    weights[::7] = 0
    return phi, y, weights


def with_ones(phi):
    return np.column_stack([phi, np.ones(len(phi))]).astype(phi.dtype)


def sums(phi, y, weights=None, block=None):
    equations = NormalEquations.empty(phi.shape[1], y.shape[1])
    step = block or len(y)
    for k in range(0, len(y), step):
        rows = slice(k, k + step)
        equations.add(with_ones(phi[rows]), y[rows], None if weights is None else weights[rows])
    return equations


@each_intercept
@each_weighting
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 30.0])
def test_against_scikit_learn(problem, fit_intercept, weighted, alpha):
    phi, y, weights = problem
    w = weights if weighted else None
    total = weights.sum() if weighted else len(y)
    expected = Ridge(alpha * total, fit_intercept=fit_intercept, solver="cholesky")
    expected.fit(phi, y, sample_weight=w)
    got = sums(phi, y, w).solve(alpha, fit_intercept)
    assert got.shape == (13, 2)
    np.testing.assert_allclose(got[:-1], expected.coef_.T, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(got[-1], np.broadcast_to(expected.intercept_, 2), atol=1e-8)


@each_intercept
def test_loss_is_the_mean_squared_error(problem, fit_intercept):
    phi, y, weights = problem
    v = sums(phi[:40], y[:40]).solve(0.3, fit_intercept)
    error = with_ones(phi) @ v - y
    np.testing.assert_allclose(sums(phi, y).loss(v), np.mean(error**2, axis=0))
    expected = weights @ error**2 / weights.sum()
    np.testing.assert_allclose(sums(phi, y, weights).loss(v), expected)


def test_a_row_twice_is_a_row_of_weight_two(problem):
    phi, y, _ = problem
    weights = np.where(np.arange(90) < 30, 2.0, 1.0)
    stacked = sums(np.vstack([phi, phi[:30]]), np.vstack([y, y[:30]]))
    weighted = sums(phi, y, weights)
    assert weighted.weight == stacked.weight == 120
    np.testing.assert_allclose(weighted.gram, stacked.gram)
    np.testing.assert_allclose(weighted.solve(0.2), stacked.solve(0.2), rtol=1e-9)


def test_a_row_of_weight_zero_is_no_row(problem):
    phi, y, weights = problem
    kept = weights > 0
    everything, without = sums(phi, y, weights), sums(phi[kept], y[kept], weights[kept])
    assert everything.rows == without.rows == kept.sum() < 90
    np.testing.assert_allclose(everything.solve(0.2), without.solve(0.2), rtol=1e-9)


@each_weighting
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 7, 89, 90, 1000])
def test_blocks_of_any_size_give_the_same_sums(problem, weighted, dtype, block):
    phi, y, weights = (part.astype(dtype) for part in problem)
    w = weights if weighted else None
    whole, parts = sums(phi, y, w), sums(phi, y, w, block)
    rtol = 1e-12 if dtype == np.float64 else 2e-5
    assert parts.gram.dtype == parts.moment.dtype == np.float64
    assert parts.rows == whole.rows
    for name in ("gram", "moment", "square", "weight"):
        got, expected = getattr(parts, name), getattr(whole, name)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def test_sums_of_parts_add_up(problem):
    phi, y, weights = problem
    a, b = sums(phi[:50], y[:50], weights[:50]), sums(phi[50:], y[50:], weights[50:])
    before = a.gram.copy()
    np.testing.assert_allclose((a + b).solve(0.1), sums(phi, y, weights).solve(0.1), rtol=1e-9)
    np.testing.assert_array_equal(a.gram, before)  # neither part is changed


@each_intercept
@pytest.mark.parametrize("start", [1e-5, 1e-2, 1e2])
def test_choose_alpha_finds_the_best_on_held_out_rows(rng, fit_intercept, start):
    phi = rng.standard_normal((60, 40))
    y = phi[:, :1] + 2 * rng.standard_normal((60, 1)) + 0.5
    fit, held = sums(phi[:45], y[:45]), sums(phi[45:], y[45:])
    factor, path, weights = choose_alpha([(fit, held)], [start], fit_intercept=fit_intercept)
    alpha = factor * start
    np.testing.assert_array_equal(weights[0], fit.solve(alpha, fit_intercept))

    def held_out(a):
        model = Ridge(a * 45, fit_intercept=fit_intercept).fit(phi[:45], y[:45])
        return np.mean((model.predict(phi[45:]).reshape(-1, 1) - y[45:]) ** 2)

    grid = start * 4.0 ** np.arange(-12, 13)
    best = min(map(held_out, grid))
    assert held_out(alpha) <= best * (1 + 1e-6)
    assert held_out(grid[0]) > 1.05 * best  # there was something to find
    alphas = [record["alpha"] for record in path]
    assert alphas == sorted(alphas)
    for record in path:
        assert record["loss"] == pytest.approx(held_out(record["alpha"]), rel=1e-5)
        assert record["loss"] >= held_out(alpha) * (1 - 1e-6)


def test_choose_alpha_stops(problem):
    """Pure noise wants an infinite penalty, and a linear target none."""
    phi, y, _ = problem
    noise = np.sign(np.random.default_rng(3).standard_normal(y.shape))
    for target in (noise, phi[:, :2]):
        fit, held = sums(phi[:60], target[:60]), sums(phi[60:], target[60:])
        alpha, path, _ = choose_alpha([(fit, held)], [1.0], most=8)
        assert np.isfinite(alpha)
        assert alpha > 0
        assert len(path) <= 9


def test_choose_alpha_over_members(rng):
    """One factor for penalties of their own, by the mean over the rows that they hold out."""
    phi = rng.standard_normal((60, 40))
    y = phi[:, :1] + 2 * rng.standard_normal((60, 1))
    folds = np.repeat([0, 1, 2], [10, 20, 30])
    starts = np.array([1e-3, 2e-3, 4e-3])
    pairs = [
        (sums(phi[folds != k], y[folds != k]), sums(phi[folds == k], y[folds == k]))
        for k in range(3)
    ]
    factor, path, weights = choose_alpha(pairs, starts)
    for (fit, _), start, found in zip(pairs, starts, weights):
        np.testing.assert_array_equal(found, fit.solve(factor * start))

    def mean_loss(factor):
        losses = []
        for k in range(3):
            fit = folds != k
            model = Ridge(factor * starts[k] * fit.sum()).fit(phi[fit], y[fit])
            losses.append(np.sum((model.predict(phi[~fit]).reshape(-1, 1) - y[~fit]) ** 2))
        return np.sum(losses) / 60

    assert mean_loss(factor) <= min(map(mean_loss, 4.0 ** np.arange(-8, 9))) * (1 + 1e-6)
    for record in path:
        assert record["loss"] == pytest.approx(mean_loss(record["alpha"] / 1e-3), rel=1e-5)


def test_nothing_to_learn_from(rng):
    """Features that are all zero leave the mean of y."""
    y = rng.standard_normal((30, 2)) + 4
    for alpha in (0.0, 1e-3):
        v = sums(np.zeros((30, 6)), y).solve(alpha)
        np.testing.assert_allclose(v[:-1], 0, atol=1e-12)
        np.testing.assert_allclose(v[-1], y.mean(axis=0))


@pytest.mark.parametrize("alpha", [0.0, 1e-300])
def test_repeated_columns_without_a_penalty(problem, alpha):
    phi, y, _ = problem
    v = sums(np.hstack([phi, phi, phi]), y).solve(alpha)
    expected = Ridge(1e-9).fit(phi, y).predict(phi)
    np.testing.assert_allclose(with_ones(np.hstack([phi] * 3)) @ v, expected, atol=1e-4)
    assert np.abs(v).max() < 1e3


def test_without_rows_held_out_the_penalty_is_by_generalised_cross_validation(problem):
    everything = sums(*problem)
    alpha, path = gcv_penalty(everything, True)
    assert alpha == min(path, key=lambda record: record["loss"])["alpha"]
    assert np.ptp([record["loss"] for record in path]) > 0


@each_intercept
def test_the_freedom_that_is_left(problem, fit_intercept):
    phi, y, _ = problem
    alpha, n = 0.3, len(y)
    design = phi - fit_intercept * phi.mean(axis=0)
    hat = design @ np.linalg.solve(design.T @ design / n + alpha * np.eye(12), design.T) / n
    expected = 1 - (np.trace(hat) + fit_intercept) / n
    assert sums(phi, y).freedom(alpha, fit_intercept) == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 4, 5, 8, 23])
def test_gram_matrices_in_tiles(rng, dtype, width, monkeypatch):
    """They are added to what is there, and the number of threads changes no bit."""
    monkeypatch.setattr(ridge, "_TILE", 4)
    left = rng.standard_normal((30, width)).astype(dtype)
    found = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        monkeypatch.setattr(threads, "_pool", None)
        monkeypatch.setattr(threads, "_available_processors", lambda: 3)
        gram = np.ones((width, width))
        add_gram(gram, left)
        found.append(gram)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[0].T)
    tol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found[0], 1 + left.T @ left, rtol=tol, atol=tol)
