"""Conjugate gradients: the ridge solution without a Gram matrix."""

import numpy as np
import pytest
from scipy import sparse

from rflaf import fused
from rflaf.bases import RBF, Fixed, get_basis
from rflaf.rows import ArrayRows
from rflaf.runtime import threads
from rflaf.solvers import layer as layer_module
from rflaf.solvers.cg import WideProblem, WideSettings, solve_cg
from rflaf.solvers.features import KeptBlocks, features, project
from rflaf.solvers.layer import Layer
from rflaf.solvers.parts import RowPart
from rflaf.solvers.preconditioner import SampledRows
from rflaf.solvers.ridge import NormalEquations

N, D, M = 700, 3, 60


@pytest.fixture
def sigma():
    return fused.basis_layout(RBF(9)).table(np.random.default_rng(1).standard_normal(9))


@pytest.fixture
def data(rng):
    x = rng.standard_normal((N, D)).astype(np.float32)
    y = np.column_stack([np.sin(2 * x[:, 0]) + 3, x[:, 1] * x[:, 2]])
    w = (0.4 * rng.standard_normal((D, M))).astype(np.float32)
    return x, y, w, rng.uniform(0.2, 2, N)


def part(x, y, weights=None, step=250):
    """Rows in blocks of `step`, for a number of bytes in which to keep features."""
    rows = ArrayRows(x, y, np.ones(len(y)) if weights is None else weights)
    return lambda room: RowPart(rows, step, KeptBlocks(room))


def exact(sigma, x, y, w, weights, alpha, fit_intercept=True):
    sums = NormalEquations.empty(w.shape[1], y.shape[1])
    sums.add(features(sigma, project(x, w)).astype(np.float64), y, weights)
    return sums.solve(alpha, fit_intercept)


def predictions(sigma, x, w, solution):
    return fused.apply(sigma, np.asarray(x @ w)) @ solution.coef + solution.intercept


def solve(sigma, x, y, w, weights=None, held=None, callback=None, **options):
    options = {"alpha": 1e-3, "tol": 1e-6, "max_iter": 300, **options}
    sample_weights = np.ones(len(y)) if weights is None else weights
    problem = WideProblem(sigma, w, part(x, y, weights), held, x, sample_weights)
    return solve_cg(problem, WideSettings(**options), np.random.default_rng(0), callback)


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_the_solution_is_that_of_the_normal_equations(sigma, data, weighted, fit_intercept, alpha):
    x, y, w, weights = data
    weights = weights if weighted else None
    found = solve(sigma, x, y, w, weights, alpha=alpha, fit_intercept=fit_intercept)
    expected = features(sigma, project(x, w)) @ exact(sigma, x, y, w, weights, alpha, fit_intercept)
    error = np.linalg.norm(predictions(sigma, x, w, found) - expected)
    assert error < 1e-3 * np.linalg.norm(expected - expected.mean(axis=0))
    if not fit_intercept:
        assert not found.intercept.any()


def test_more_features_than_rows(sigma, data, rng):
    x, y, _, _ = data
    w = (0.4 * rng.standard_normal((D, 2 * N))).astype(np.float32)
    found = solve(sigma, x, y, w, alpha=1e-2)
    expected = features(sigma, project(x, w)) @ exact(sigma, x, y, w, None, 1e-2)
    np.testing.assert_allclose(predictions(sigma, x, w, found), expected, atol=5e-3)


def test_double_precision_stays_so(sigma, data):
    x, y, w, _ = data
    x, w = x.astype(np.float64), w.astype(np.float64)
    found = solve(sigma, x, y, w, tol=1e-10)
    expected = exact(sigma, x, y, w, None, 1e-3)
    np.testing.assert_allclose(found.coef, expected[:-1], atol=1e-7 * np.abs(expected).max())


def test_an_activation_without_a_table(data):
    x, y, w, _ = data
    tanh = fused.Direct(Fixed("tanh"), np.ones(1))
    found = solve(tanh, x, y, w, alpha=1e-2)
    expected = features(tanh, project(x, w)) @ exact(tanh, x, y, w, None, 1e-2)
    np.testing.assert_allclose(predictions(tanh, x, w, found), expected, atol=5e-3)


def test_sparse_rows_are_like_dense_ones(sigma, data):
    x, y, w, _ = data
    dense, thin = solve(sigma, x, y, w), solve(sigma, sparse.csr_array(x), y, w)
    close = 2e-2 * np.abs(dense.coef).max()
    np.testing.assert_allclose(thin.coef, dense.coef, atol=close)
    np.testing.assert_allclose(
        predictions(sigma, x, w, thin), predictions(sigma, x, w, dense), atol=2e-3
    )


def test_kept_features_change_nothing(sigma, data):
    x, y, w, weights = data
    rooms = 0, 1 << 30, 300 * M * 4  # none of them, all, some
    layers = [Layer(sigma, w, [part(x, y, weights)(room)]) for room in rooms]
    p = np.random.default_rng(0).standard_normal((M, 2))
    for layer in layers:
        layer.sums()
    results = [[layer.normal(p, np.zeros(2)) for _ in range(2)] for layer in layers]
    for each in results[1:]:
        np.testing.assert_allclose(each, results[0], rtol=1e-4, atol=1e-3)
    phi = fused.apply(sigma, x @ w).astype(np.float64)
    expected = phi.T @ (weights[:, None] * (phi @ p))
    np.testing.assert_allclose(results[0][0], expected, rtol=1e-3, atol=1e-2)
    none, every, some = (len(layer.parts[0].kept._found) for layer in layers)
    assert every > some > none == 0


def test_parts_stand_one_behind_the_other(sigma, data):
    x, y, w, weights = data
    whole = Layer(sigma, w, [part(x, y, weights)(0)])
    pieces = [slice(0, 300), slice(300, 310), slice(310, None)]
    several = Layer(sigma, w, [part(x[at], y[at], weights[at])(1 << 30) for at in pieces])
    for got, expected in zip(several.sums(), whole.sums(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    p = np.random.default_rng(0).standard_normal((M, 2))
    np.testing.assert_allclose(several.forward(p), whole.forward(p), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        several.normal(p, np.ones(2)), whole.normal(p, np.ones(2)), rtol=1e-4, atol=1e-2
    )
    for got, expected in zip(several.targets(), (y, weights), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_threads_and_strips_change_nothing(sigma, data, monkeypatch):
    x, y, w, weights = data
    monkeypatch.setattr(layer_module, "_STRIP", 50 * M)
    results = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        results.append(solve(sigma, x, y, w, weights).coef)
    np.testing.assert_array_equal(*results)


def test_held_out_rows_choose_the_penalty(sigma, data, rng):
    x, y, w, _ = data
    noisy = y + rng.standard_normal(y.shape)
    fit, held = slice(0, 500), slice(500, None)
    found = solve(
        sigma, x[fit], noisy[fit], w, held=part(x[held], noisy[held]), alpha=1e-4, tol=1e-4
    )
    tried = [record["alpha"] for record in found.path]
    assert found.alpha in tried
    assert found.alpha > 1e-4
    assert min(found.path, key=lambda r: r["loss"])["loss"] <= found.path[0]["loss"]
    kept = solve(
        sigma, x[fit], noisy[fit], w, held=part(x[held], noisy[held]), alpha=1e-4, search=False
    )
    assert kept.alpha == 1e-4
    assert len(kept.path) == 1


def test_held_out_rows_are_learned_from_in_the_end(sigma, data):
    x, y, w, _ = data
    fit, held = slice(0, 60), slice(60, None)  # too few rows alone
    found = solve(sigma, x[fit], y[fit], w, held=part(x[held], y[held]), tol=1e-4)
    alone = solve(sigma, x[fit], y[fit], w, alpha=found.alpha)
    error, alone_error = (
        np.mean((predictions(sigma, x[held], w, each) - y[held]) ** 2) for each in (found, alone)
    )
    assert error < 0.7 * alone_error


def test_the_preconditioner_inverts(rng):
    b = rng.standard_normal((20, 50))
    inverse = SampledRows(b)
    r = rng.standard_normal((50, 2))
    for alpha in (30.0, 1e-9):
        inverse.damp(alpha)
        expected = np.linalg.solve(b.T @ b / 20 + inverse.mu * np.eye(50), r)
        np.testing.assert_allclose(inverse(r), expected, rtol=1e-9)
        assert inverse.mu == max(alpha, inverse.rest)
    squares = []  # of rows outside of the span of those before them
    for k in range(10, 20):
        on_span, *_ = np.linalg.lstsq(b[:k].T, b[k], rcond=None)
        squares.append(np.sum((b[k] - b[:k].T @ on_span) ** 2) / 20)
    assert inverse.rest == pytest.approx(np.mean(squares))


def test_the_preconditioner_saves_iterations(sigma, data):
    x, y, w, _ = data
    few = solve(sigma, x, y, w, tol=1e-4).path[0]["steps"]
    many = solve(sigma, x, y, w, tol=1e-4, max_bytes=0).path[0]["steps"]  # a sample of 50 rows
    assert few < many


def test_records_reach_the_callback(sigma, data):
    x, y, w, _ = data
    records = []
    found = solve(sigma, x, y, w, callback=records.append)
    assert len(records) == found.path[0]["steps"]
    assert records[-1]["residual"] < 1e-4 * records[0]["residual"]
    direct = np.mean((predictions(sigma, x, w, found) - y) ** 2)
    assert found.path[0]["loss"] == pytest.approx(direct, rel=1e-2)


def test_a_constant_target_and_overflow(sigma, data):
    x, y, w, _ = data
    found = solve(sigma, x, np.full((N, 1), 2.0), w)
    np.testing.assert_allclose(predictions(sigma, x, w, found), 2, atol=1e-6)
    steep = fused.Direct(Fixed("relu"), np.ones(1))
    with pytest.raises(ValueError, match="overflow"), np.errstate(over="ignore"):
        solve(steep, x * np.float32(1e30), y, w * np.float32(1e30))


def test_a_scale_at_which_features_overflow_is_not_taken(data):
    x, y, w, _ = data
    powers = fused.Direct(get_basis("polynomial", 60), np.eye(60)[59])
    edge = np.abs(x @ w).max() / 1.9  # the largest power is in range here, and not at 1.25
    found = solve(
        powers, x[:-200], y[:-200], (w / edge).astype(np.float32),
        held=part(x[-200:], y[-200:]), alpha=1e-2, rescale=True, max_iter=100, tol=1e-4,
    )  # fmt: skip
    assert np.isfinite(found.coef).all()


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_scale_that_does_not_suit_is_found_out(sigma, data, rng, factor):
    x, _, w, _ = data
    y = fused.apply(sigma, x @ w) @ rng.standard_normal((w.shape[1], 1)) / 10
    held = part(x[-200:], y[-200:])
    options = {"alpha": 1e-4, "max_iter": 100, "tol": 1e-4}
    wrong = (w / factor).astype(np.float32)
    found, kept = (
        solve(sigma, x[:-200], y[:-200], wrong, held=held, rescale=on, **options)
        for on in (True, False)
    )
    losses = [min(record["loss"] for record in each.path) for each in (found, kept)]
    assert losses[0] < 0.9 * losses[1]
    assert kept.scale == 1
    assert (found.scale > 1) == (factor > 1)
    rescaled = found.scale * wrong
    error = predictions(sigma, x[-200:], rescaled.astype(np.float32), found) - y[-200:]
    assert np.mean(error**2) < 1.5 * losses[0]
