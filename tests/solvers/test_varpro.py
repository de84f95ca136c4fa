"""Variable projection: its gradient, and what learning does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rflaf import fused, rules
from rflaf.bases import RBF, BSpline, Fixed, get_basis
from rflaf.projection import gaussian
from rflaf.rows import Block
from rflaf.runtime import threads
from rflaf.solvers.features import apply_metric, features, project
from rflaf.solvers.ridge import NormalEquations
from rflaf.solvers.sketches import Problem, Sketch, held_out_loss
from rflaf.solvers.starts import Learned, LearnSettings
from rflaf.solvers.varpro import learn_activation, sketch_size

D, M = 4, 15
BASES = [RBF(9), BSpline(9, degree=3), BSpline(8, extrapolate="linear"), get_basis("chebyshev", 6)]


def make_sigma(basis, a):
    """A table fine enough for its slopes to be those of the function."""
    if basis.tail == "direct":
        return fused.Direct(basis, a)
    return fused.basis_layout(basis, 64, 1e-12).table(a)


def make_sketch(rng, weighted, n_outputs, dtype=np.float64):
    def rows(n):
        x = rng.standard_normal((n, D))
        y = np.column_stack([np.sin(2 * x[:, k % D]) + x[:, 1] + 0.5 for k in range(n_outputs)])
        w = rng.uniform(0.2, 2, n) if weighted else np.ones(n)
        return Block(0, x.astype(dtype), y.astype(dtype), w)

    return Sketch(rows(40), rows(30), rng.standard_normal((D, M)).astype(dtype))


def differences(function, at, step):
    """Central differences of a function of an array."""
    at = np.asarray(at, float)
    gradient = np.empty(at.shape)
    for index in np.ndindex(at.shape):
        move = np.zeros(at.shape)
        move[index] = step
        gradient[index] = (function(at + move) - function(at - move)) / (2 * step)
    return gradient


def close(got, expected, tol=1e-5):
    assert np.shape(got) == np.shape(expected)
    assert np.abs(expected).max() > 1e-6  # there is something to compare
    np.testing.assert_allclose(got, expected, atol=tol * np.abs(expected).max(), rtol=0)


def start_metric(kind, rng):
    size = rules.FILL / np.sqrt(D)
    if kind == "full":
        return size * (np.eye(D) + 0.3 * rng.standard_normal((D, D)))
    return size * rng.uniform(0.5, 1.5, D)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_gradient_against_finite_differences(basis, kind, fit_intercept, weighted, n_outputs, rng):
    sketch = make_sketch(rng, weighted, n_outputs)
    a, metric, log_alpha = rng.standard_normal(basis.n), start_metric(kind, rng), np.log(0.02)

    def loss(a=a, metric=metric, log_alpha=log_alpha):
        sigma = make_sigma(basis, a)
        return held_out_loss(sigma, metric, float(np.exp(log_alpha)), sketch, fit_intercept)[0]

    value, by_a, by_metric, by_alpha = held_out_loss(
        make_sigma(basis, a), metric, 0.02, sketch, fit_intercept
    )
    assert value == loss()
    close(by_a, differences(lambda x: loss(a=x), a, 1e-5))
    close(by_metric, differences(lambda x: loss(metric=x), metric, 1e-5))
    close(by_alpha, differences(lambda x: loss(log_alpha=float(x)), log_alpha, 1e-4)[()])


@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("name", ["tanh", "cos", "gelu"])
def test_gradient_for_a_fixed_activation(name, kind, rng):
    sketch, metric = make_sketch(rng, True, 2), start_metric(kind, rng)
    sigma = fused.Direct(Fixed(name), np.ones(1))
    _, _, by_metric, _ = held_out_loss(sigma, metric, 0.02, sketch)
    close(by_metric, differences(lambda x: held_out_loss(sigma, x, 0.02, sketch)[0], metric, 1e-5))


def test_gradient_with_sparse_inputs(rng):
    dense, metric = make_sketch(rng, True, 2), start_metric("full", rng)
    sides = (side._replace(x=sparse.csr_array(side.x)) for side in dense[:2])
    thin = Sketch(*sides, dense.projection)
    sigma = make_sigma(RBF(9), rng.standard_normal(9))
    for got, expected in zip(
        held_out_loss(sigma, metric, 0.02, thin),
        held_out_loss(sigma, metric, 0.02, dense),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_single_precision_is_near(rng):
    sigma, metric = make_sigma(RBF(9), rng.standard_normal(9)), start_metric("full", rng)
    state = rng.bit_generator.state
    wide = held_out_loss(sigma, metric, 0.02, make_sketch(rng, True, 2))
    rng.bit_generator.state = state
    narrow = held_out_loss(sigma, metric, 0.02, make_sketch(rng, True, 2, np.float32))
    for got, expected in zip(narrow, wide, strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-3 * np.abs(expected).max(), rtol=0)


def test_the_loss_is_that_of_the_ridge_solution(rng):
    sketch, metric = make_sketch(rng, True, 2), start_metric("diagonal", rng)
    sigma = make_sigma(RBF(9), rng.standard_normal(9))
    for fit_intercept in (True, False):
        loss = held_out_loss(sigma, metric, 0.02, sketch, fit_intercept)[0]
        parts = []
        for _, x, y, w, _ in sketch[:2]:
            parts.append(NormalEquations.empty(M, 2))
            phi = features(sigma, project(x, apply_metric(metric, sketch.projection)))
            parts[-1].add(phi, y, w)
        expected = parts[1].loss(parts[0].solve(0.02, fit_intercept)).mean()
        assert loss == pytest.approx(expected, rel=1e-6)


# ---- learning


def target(x):
    return (np.sin(3 * x[:, :1]) + x[:, 1:2] ** 2 - 1).astype(x.dtype)


def rows(n, d=3, seed=0, dtype=np.float32):
    x = np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)
    return x, target(x)


def learn(
    x, y, kind="full", *, seed=1, m=60, basis=None, weights=None, start=None, callback=None,
    **options,
):  # fmt: skip
    rng = np.random.default_rng(seed)
    w = gaussian(x.shape[1], m, rng).astype(x.dtype)
    settings = LearnSettings(**{"max_iter": 30, **options})
    problem = Problem(Block(0, x, y, np.ones(len(y)) if weights is None else weights), w)
    learned = learn_activation(
        problem, basis or RBF(17), kind, settings, rng=rng, start=start, callback=callback
    )
    return learned, w


def error_on_new_rows(learned, w, basis=None, target=target):
    """The error on new rows of the ridge solution on others."""
    basis = basis or RBF(17)
    sigma = make_sigma(basis, learned.coefficients)
    full = apply_metric(learned.metric, w).astype(np.float64)
    sums = []
    for n, seed in ((600, 2), (1000, 3)):
        x, _ = rows(n, len(w), seed, np.float64)
        sums.append(NormalEquations.empty(w.shape[1], 1))
        sums[-1].add(features(sigma, project(x, full)), target(x))
    return float(sums[1].loss(sums[0].solve(learned.alpha))[0])


@pytest.mark.parametrize("metric", ["full", "diagonal", "none"])
@pytest.mark.parametrize("basis", [RBF(17), BSpline(17)], ids=repr)
def test_learning_lowers_the_loss(metric, basis):
    x, y = rows(800)
    gains = []
    for seed in range(3):
        before, w = learn(x, y, metric, basis=basis, seed=seed, max_iter=0)
        after, _ = learn(x, y, metric, basis=basis, seed=seed)
        assert before.history == []
        assert 0 < len(after.history) <= 30
        assert (after.metric.ndim == 2) == (metric == "full")
        gains.append(error_on_new_rows(after, w, basis) / error_on_new_rows(before, w, basis))
    assert np.median(gains) < (0.95 if metric == "none" else 0.2)


def test_only_what_is_asked_for_is_learned():
    x, y = rows(300)
    a = np.ones(17)
    kept, _ = learn(x, y, coefficients=a, max_iter=8)
    np.testing.assert_array_equal(kept.coefficients, a)
    start, _ = learn(x, y, coefficients=a, max_iter=0)
    assert not np.array_equal(kept.metric, start.metric)
    assert kept.alpha != start.alpha
    fixed, _ = learn(x, y, alpha=0.125, max_iter=8)
    assert fixed.alpha == pytest.approx(0.125, rel=1e-12)
    still, _ = learn(x, y, "none", max_iter=8)
    unmoved, _ = learn(x, y, "none", max_iter=0)
    np.testing.assert_array_equal(still.metric, unmoved.metric)
    assert not np.array_equal(still.coefficients, unmoved.coefficients)


def test_it_starts_where_it_is_told():
    x, y = rows(300)
    start = Learned(np.linspace(-1, 1, 17), np.eye(3) / 3, 0.03)
    same, _ = learn(x, y, start=start, max_iter=0)
    np.testing.assert_array_equal(same.coefficients, start.coefficients)
    np.testing.assert_array_equal(same.metric, start.metric)
    assert same.alpha == pytest.approx(0.03)


def test_a_fixed_activation_learns_its_metric():
    def along(x):
        return np.sin(2 * x[:, :1] + 2 * x[:, 1:2])

    x, _ = rows(800)
    basis = Fixed("tanh")
    before, w = learn(x, along(x), basis=basis, max_iter=0)
    after, _ = learn(x, along(x), basis=basis)
    np.testing.assert_array_equal(after.coefficients, [1.0])
    one, other = (error_on_new_rows(learned, w, basis, along) for learned in (before, after))
    assert other < 0.7 * one


def assert_same(one, other):
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    np.testing.assert_array_equal(one.metric, other.metric)
    assert one.alpha == other.alpha
    assert one.history == other.history


def test_the_same_seed_gives_the_same_bits_whatever_the_threads(monkeypatch):
    x, y = rows(2500)
    results = []
    for count in (1, 2, 3):
        monkeypatch.setenv("RFLAF_NUM_THREADS", str(count))
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        results.append(learn(x, y, max_iter=6, m=150)[0])
    for other in results[1:]:
        assert_same(results[0], other)
    another, _ = learn(x, y, max_iter=6, m=150, seed=2)
    assert not np.array_equal(another.coefficients, results[0].coefficients)


@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_idle_columns_are_silenced(metric):
    x, _ = rows(2000, d=6)
    y = np.sin(2 * x[:, :1]) + np.sin(2 * x[:, 1:2])
    learned, _ = learn(x, y, metric, m=100, max_iter=60)
    share = np.sum(learned.metric**2, axis=1) if metric == "full" else learned.metric**2
    share = share / share.sum()
    assert share[:2].min() > 0.1
    assert share[2:].max() < 0.05


def test_penalties_on_the_activation():
    x, y = rows(400)
    plain, _ = learn(x, y, max_iter=30)

    def bends(learned):
        a = learned.coefficients
        return np.mean(np.diff(a, 2) ** 2) / np.mean(a**2)

    def spread(learned):
        a = learned.coefficients
        return np.mean(np.abs(a)) / np.sqrt(np.mean(a**2))

    assert bends(learn(x, y, smoothness=10.0)[0]) < 0.7 * bends(plain)
    assert spread(learn(x, y, l1=30.0)[0]) < 0.95 * spread(plain)


def test_rows_of_weight_zero_do_not_count():
    x, y = rows(400)
    weights = np.ones(400)
    weights[::3] = 0
    spoilt = y.copy()
    spoilt[::3] = 1e6
    one, _ = learn(x, y, weights=weights, max_iter=5)
    other, _ = learn(x, spoilt, weights=weights, max_iter=5)
    assert_same(one, other)


def test_sparse_inputs_learn_the_same():
    x, y = rows(400)
    x[np.abs(x) < 0.7] = 0
    one, _ = learn(x, y, max_iter=5)
    other, _ = learn(sparse.csr_array(x), y, max_iter=5)
    np.testing.assert_allclose(other.coefficients, one.coefficients, rtol=0.02, atol=0.02)


def test_many_targets_are_mixed_down():
    x, y = rows(300)
    many = np.hstack([y] * 40)
    learned, _ = learn(x, many, max_iter=5)
    assert np.isfinite(learned.coefficients).all()
    assert learned.history[-1]["loss"] > 0


def test_without_a_metric_z_may_be_computed_once():
    """What is learned is the same, but for rounding."""
    x, y = rows(300)
    known, again = (learn(x, y, "none", max_iter=40, known_bytes=room)[0] for room in (1 << 30, 0))
    np.testing.assert_allclose(known.coefficients, again.coefficients, atol=1e-3)
    assert len(known.history) == len(again.history) == 40


def test_every_step_is_reported():
    x, y = rows(300)
    seen = []
    learned, _ = learn(x, y, max_iter=10, tol=0.0, callback=seen.append)
    assert seen == learned.history
    assert {"loss", "alpha"} <= seen[0].keys()


def sizes(learned):
    """The features of the sketches, in their order, with the number of steps on each."""
    found = {}
    for record in learned.history:
        found[record["features"]] = found.get(record["features"], 0) + 1
    return found


def test_a_large_tolerance_stops_early(monkeypatch):
    """Each size of sketches has two rounds at least, for there is nothing to compare before."""
    monkeypatch.setattr(rules, "ROUND", 8)
    monkeypatch.setattr(rules, "STAGES", ((3e4, 0.5), (3e5, 0.4), (1e6, 0.1)))
    monkeypatch.setattr(rules, "SKETCH_FEATURES", 10)
    x, y = rows(600)
    hasty, patient = (sizes(learn(x, y, max_iter=80, tol=tol)[0]) for tol in (0.99, 1e-6))
    assert list(hasty) == list(patient) == sorted(patient)
    assert list(hasty.values()) == [16, 16, 8]
    assert sum(patient.values()) > sum(hasty.values())


@given(
    n=st.integers(2, 10**6), m=st.integers(1, 20_000), work=st.floats(1e5, 1e11, allow_nan=False)
)
def test_a_sketch_has_no_more_than_there_is_and_costs_what_it_may(n, m, work):
    size = sketch_size(n, m, work)
    assert 0 < size.features <= m
    assert size.fit_rows + size.held_out_rows <= n
    assert size.fit_rows * size.features**2 <= work
    larger = sketch_size(n, m, 2 * work)
    assert all(b >= a for a, b in zip(size, larger))


@pytest.fixture
def small_stages(monkeypatch):
    """As usual, but with sketches so small that a few hundred rows will do."""
    changes = {
        "STAGES": ((5e4, 0.5), (2e5, 0.4), (5e5, 0.1)),
        "LIMITED_STAGE": (2e6, 0.1),
        "MANY_STAGE": (1e6, 0.15),
        "WIDE_STAGES": ((1e5, 0.4), (8e5, 0.3), (5e6, 0.3)),
        "SKETCH_FEATURES": 10,
    }
    for name, value in changes.items():
        monkeypatch.setattr(rules, name, value)


def test_sketches_grow_and_the_last_ones_suit_the_model(small_stages, monkeypatch, rng):
    """They are larger where more features lose much less, and where there are many."""
    x, y = rows(2000)
    noise = rng.standard_normal(y.shape).astype(np.float32)
    limited, noisy = (sizes(learn(x, t, "none", m=100, max_iter=40)[0]) for t in (y, noise))
    assert list(limited) == sorted(limited)
    assert list(limited)[:2] == list(noisy)[:2]
    assert max(limited) > max(noisy)
    monkeypatch.setattr(rules, "MANY_FEATURES", 80)
    many = sizes(learn(x, noise, "none", m=100, max_iter=40)[0])
    assert max(many) > max(noisy)
    monkeypatch.setattr(rules, "WIDE_FEATURES", 90)
    wide = sizes(learn(x, noise, "none", m=100, max_iter=40)[0])
    assert min(wide) > min(noisy)
    assert max(wide) > max(many)
