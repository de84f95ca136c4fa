"""Ridge regression from sums, against scikit-learn and brute force."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from rflaf import fused
from rflaf.bases import RBF
from rflaf.solvers.ridge import (
    NormalEquations,
    choose_alpha,
    choose_penalty,
    leave_one_out_losses,
    posterior,
    prediction_spread,
)

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
    alpha, path = choose_alpha([(fit, held)], start, fit_intercept=fit_intercept)

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
        alpha, path = choose_alpha([(fit, held)], 1.0, most=8)
        assert np.isfinite(alpha)
        assert alpha > 0
        assert len(path) <= 9


def test_choose_alpha_over_folds(rng):
    """The mean over the folds decides."""
    phi = rng.standard_normal((60, 40))
    y = phi[:, :1] + 2 * rng.standard_normal((60, 1))
    folds = np.arange(60) % 3
    pairs = [
        (sums(phi[folds != k], y[folds != k]), sums(phi[folds == k], y[folds == k]))
        for k in range(3)
    ]
    alpha, path = choose_alpha(pairs, 1e-3)

    def mean_loss(a):
        losses = []
        for k in range(3):
            model = Ridge(a * 40).fit(phi[folds != k], y[folds != k])
            error = model.predict(phi[folds == k]).reshape(-1, 1) - y[folds == k]
            losses.append(np.mean(error**2))
        return np.mean(losses)

    grid = 1e-3 * 4.0 ** np.arange(-8, 9)
    assert mean_loss(alpha) <= min(map(mean_loss, grid)) * (1 + 1e-6)
    for record in path:
        assert record["loss"] == pytest.approx(mean_loss(record["alpha"]), rel=1e-5)


def brute_force_leave_one_out(phi, y, alpha, w, fit_intercept):
    """Fit again without each row, at the penalty that all rows together have."""
    total, loss = w.sum(), 0.0
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        model = Ridge(alpha * total, fit_intercept=fit_intercept, solver="cholesky")
        model.fit(phi[kept], y[kept], sample_weight=w[kept])
        error = model.predict(phi[i : i + 1]).reshape(-1) - y[i]
        loss += w[i] / total * np.mean(error**2)
    return loss


@each_intercept
@each_weighting
@pytest.mark.parametrize("m", [5, 40], ids=["tall", "wide"])
def test_leave_one_out_against_brute_force(rng, fit_intercept, weighted, m):
    phi, y = rng.standard_normal((25, m)) + 1, rng.standard_normal((25, 2)) + 3
    w = rng.uniform(0.5, 2, 25) if weighted else np.ones(25)
    alphas = [1e-3, 0.1, 2.0]
    got = leave_one_out_losses(phi, y, alphas, w if weighted else None, fit_intercept)
    expected = [brute_force_leave_one_out(phi, y, a, w, fit_intercept) for a in alphas]
    np.testing.assert_allclose(got, expected, rtol=1e-7)


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


def test_differences_undo_sums(problem):
    phi, y, weights = problem
    a, b = sums(phi[:50], y[:50], weights[:50]), sums(phi[50:], y[50:], weights[50:])
    rest = a + b - b
    assert rest.rows == a.rows
    np.testing.assert_allclose(rest.solve(0.1), a.solve(0.1), rtol=1e-9)


def test_the_penalty_by_what_the_folds_are(problem):
    """Two: the second judges. More: each judges once. One: generalised cross-validation."""
    phi, y, weights = problem
    parts = [sums(phi[k::3], y[k::3], weights[k::3]) for k in range(3)]
    everything = sums(phi, y, weights)
    assert choose_penalty(parts[:2], 0.1, True) == choose_alpha([(parts[0], parts[1])], 0.1)
    pairs = [(everything - part, part) for part in parts]
    got, expected = choose_penalty(parts, 0.1, True), choose_alpha(pairs, 0.1)
    assert got[0] == expected[0]
    np.testing.assert_allclose(
        [record["loss"] for record in got[1]], [record["loss"] for record in expected[1]]
    )
    alpha, path = choose_penalty([everything], 0.1, True)
    assert alpha == min(path, key=lambda record: record["loss"])["alpha"]


def test_folds_without_rows_do_not_judge(problem):
    phi, y, _ = problem
    parts = [sums(phi[k::2], y[k::2]) for k in range(2)]
    nothing = NormalEquations.empty(12, 2)
    got = choose_penalty([*parts, nothing], 0.1, True)
    pairs = [(parts[1], parts[0]), (parts[0], parts[1])]
    assert got[0] == choose_alpha(pairs, 0.1)[0]


@each_intercept
def test_the_posterior_against_the_formulas(problem, fit_intercept):
    phi, y, _ = problem
    alpha, n = 0.3, len(y)
    equations = sums(phi, y)
    v = equations.solve(alpha, fit_intercept)
    found = posterior(equations, v, alpha, fit_intercept, with_factor=True)
    design = with_ones(phi) if fit_intercept else phi
    penalty = alpha * np.eye(design.shape[1])
    if fit_intercept:
        penalty[-1, -1] = 0
    inverse = np.linalg.inv(design.T @ design / n + penalty)
    degrees = np.trace(inverse @ design.T @ design / n)
    residual = y - with_ones(phi) @ v
    expected = np.sqrt(np.sum(residual**2, axis=0) / (n - degrees))
    np.testing.assert_allclose(found.noise, expected, rtol=1e-6 if fit_intercept else 1e-2)
    m = phi.shape[1]
    covariance = (found.factor.astype(np.float64).T @ found.factor)[:m, :m]
    np.testing.assert_allclose(covariance, inverse[:m, :m] / n, rtol=1e-4, atol=1e-8)
    assert posterior(equations, v, alpha, fit_intercept, with_factor=False).factor is None


def test_the_spread_of_a_prediction(rng):
    sigma = fused.basis_layout(RBF(9)).table(rng.standard_normal(9))
    x, w = rng.standard_normal((20, 3)), rng.standard_normal((3, 6))
    factor = rng.standard_normal((7, 7)).astype(np.float32)
    for constant in (True, False):
        phi = np.column_stack([fused.apply(sigma, x @ w), np.full(20, float(constant))])
        expected = np.sqrt(1 + np.sum((phi @ factor.T) ** 2, axis=1))
        np.testing.assert_allclose(prediction_spread(sigma, x, w, factor, constant), expected, 1e-5)
