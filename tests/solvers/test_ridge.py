"""Ridge regression from sums, against scikit-learn and brute force."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from rflaf import rules
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


@each_weighting
def test_a_bend_is_a_weight_that_is_not_counted(problem, weighted, rng):
    """The loss of a row is bend (y - f)², and the mean is over the weights alone."""
    phi, y, weights = problem
    w = weights if weighted else np.ones(90)
    bend = rng.uniform(0.1, 4, 90)
    bent = NormalEquations.empty(12, 2)
    for at in (slice(0, 50), slice(50, 90)):
        given = weights[at] if weighted else None
        bent.add(with_ones(phi[at]), y[at], given, bend[at])
    plain = sums(phi, y, w * bend)
    np.testing.assert_allclose(bent.gram, plain.gram, rtol=1e-12)
    assert bent.weight == pytest.approx(w.sum())
    # a penalty of the one problem is another of the other
    unit = bent.weight / plain.weight
    np.testing.assert_allclose(bent.solve(0.2), plain.solve(0.2 * unit), rtol=1e-9)
    v = rng.standard_normal((13, 2))
    error = with_ones(phi) @ v - y
    np.testing.assert_allclose(bent.loss(v), (w * bend) @ error**2 / w.sum())


@pytest.fixture
def noisy(rng):
    """More noise than signal, so that the best penalty is a large one."""
    phi = rng.standard_normal((60, 40))
    return phi, phi[:, :1] + 2 * rng.standard_normal((60, 1)) + 0.5


def held_out_error(phi, y, alpha, fit_intercept=True, fit=slice(0, 45), held=slice(45, 60)):
    model = Ridge(alpha * len(y[fit]), fit_intercept=fit_intercept).fit(phi[fit], y[fit])
    return np.mean((model.predict(phi[held]).reshape(-1, 1) - y[held]) ** 2)


@each_intercept
@pytest.mark.parametrize("start", [1e-5, 1e-2, 1e2])
def test_choose_alpha_finds_the_best_on_held_out_rows(noisy, fit_intercept, start):
    phi, y = noisy
    fit, held = sums(phi[:45], y[:45]), sums(phi[45:], y[45:])
    alpha, path = choose_alpha([(fit, held)], start, fit_intercept)

    def error(a):
        return held_out_error(phi, y, a, fit_intercept)

    grid = np.geomspace(1e-4, 1e4, 200)
    best = min(map(error, grid))
    assert error(alpha) <= best * (1 + 2e-3)
    assert error(grid[0]) > 1.05 * best  # there was something to find
    alphas = [record["alpha"] for record in path]
    assert alphas == sorted(alphas)
    assert alphas[0] <= alpha <= alphas[-1]
    for record in path:
        assert record["loss"] == pytest.approx(error(record["alpha"]), rel=1e-5)
        assert record["loss"] >= error(alpha) * (1 - 1e-6)


def test_choose_alpha_moves_by_rounding_where_the_sums_do(noisy):
    """And not by a whole step, as the best of some would."""
    phi, y = noisy
    found = []
    for shift in (0.0, 1e-9):
        other = y * (1 + shift * np.arange(60)[:, None])
        pair = sums(phi[:45], other[:45]), sums(phi[45:], other[45:])
        # starts along a step, so that somewhere two penalties of the path are equally good
        found.append([choose_alpha([pair], 4.0 ** (k / 16)).alpha for k in range(16)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_choose_alpha_stops(problem, monkeypatch):
    """Pure noise wants an infinite penalty, and a linear target none."""
    monkeypatch.setattr(rules, "MOST_PENALTIES", 8)
    phi, y, _ = problem
    noise = np.sign(np.random.default_rng(3).standard_normal(y.shape))
    for target in (noise, phi[:, :2]):
        fit, held = sums(phi[:60], target[:60]), sums(phi[60:], target[60:])
        alpha, path = choose_alpha([(fit, held)], 1.0)
        assert np.isfinite(alpha)
        assert alpha > 0
        assert len(path) <= 8


def test_penalties_that_rounding_decides_on_are_not_tried(problem):
    phi, _, _ = problem
    fit, held = sums(phi[:60], phi[:60, :2]), sums(phi[60:], phi[60:, :2])
    _, path = choose_alpha([(fit, held)], 1.0)
    size = np.trace(fit.gram) / fit.weight / len(fit.gram)
    assert min(record["alpha"] for record in path) >= 1e-10 * size


def test_choose_alpha_over_members(noisy):
    """One penalty for all, by the mean over the rows that they hold out."""
    phi, y = noisy
    folds = np.repeat([0, 1, 2], [10, 20, 30])
    pairs = [
        (sums(phi[folds != k], y[folds != k]), sums(phi[folds == k], y[folds == k]))
        for k in range(3)
    ]
    alpha, path = choose_alpha(pairs, 1e-3)

    def mean_loss(alpha):
        at = [folds == k for k in range(3)]
        errors = [held_out_error(phi, y, alpha, fit=~held, held=held) for held in at]
        return np.average(errors, weights=[10, 20, 30])

    assert mean_loss(alpha) <= min(map(mean_loss, np.geomspace(1e-4, 1e4, 100))) * (1 + 2e-3)
    for record in path:
        assert record["loss"] == pytest.approx(mean_loss(record["alpha"]), rel=1e-5)


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
