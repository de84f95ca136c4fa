"""Where learning starts from."""

import numpy as np
import pytest

from rflaf import fused, rules
from rflaf.bases import RBF, Fixed, Polynomial
from rflaf.rows import Block
from rflaf.solvers.sketches import Problem, Sampler, Size, Sketch, sketch_ridge
from rflaf.solvers.starts import (
    Learned,
    LearnSettings,
    compiled,
    lowest,
    start_on_few_rows,
    start_on_sketch,
    turn_metric,
)


def make_problem(x, y, w, weights=None, scales=None):
    return Problem(Block(0, x, y, np.ones(len(y)) if weights is None else weights), w, scales)


def test_a_row_of_weight_two_is_two_rows(rng):
    x, y = rng.standard_normal((25, 2)), rng.standard_normal((25, 1))
    weights = rng.integers(1, 4, 25)
    twice = np.repeat(np.arange(25), weights)
    w = rng.standard_normal((2, 60))
    found, expected = (
        start_on_few_rows(make_problem(a, b, w, c), RBF(16), "none", LearnSettings())
        for a, b, c in ((x, y, weights.astype(float)), (x[twice], y[twice], None))
    )
    assert found.alpha == pytest.approx(expected.alpha)
    np.testing.assert_allclose(found.coefficients, expected.coefficients)


def test_settings_that_are_given_are_kept(rng):
    x, y = rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    problem = make_problem(x, y, rng.standard_normal((2, 30)))
    a = np.linspace(-1, 1, 9)
    settings = LearnSettings(alpha=0.125, coefficients=a)
    sketch = Sampler(problem, rng).draw(Size(20, 40, 20))
    for found in (
        start_on_few_rows(problem, RBF(9), "full", settings),
        start_on_sketch(sketch, RBF(9), "diagonal", settings, None),
    ):
        assert isinstance(found, Learned)
        assert found.alpha == 0.125
        np.testing.assert_array_equal(found.coefficients, a)
        assert found.metric.shape == (2,)  # few rows are too few for a full one


def test_the_units_of_the_inputs_are_tried(rng):
    """Of two inputs only the one with the large unit counts: its unit is undone."""
    x = rng.standard_normal((80, 2))
    y = np.sin(2 * x[:, :1])
    w = rng.standard_normal((2, 40))
    problem = make_problem(x, y, w, scales=np.array([1.0, 1e-3]))
    found = start_on_few_rows(problem, RBF(16), "none", LearnSettings())
    assert found.metric[0] > 100 * found.metric[1]


def test_features_that_overflow_are_named(rng):
    x, y = 1e6 * rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    problem = make_problem(x, y, rng.standard_normal((2, 30)))
    settings = LearnSettings(coefficients=np.ones(80))
    with pytest.raises(ValueError, match="The features overflow"):
        start_on_few_rows(problem, Polynomial(80), "none", settings)


def test_a_fixed_activation_chooses_a_scale(rng):
    x = rng.standard_normal((90, 1))
    problem = make_problem(x, np.cos(5 * x), rng.standard_normal((1, 40)))
    settings = LearnSettings(coefficients=np.ones(1))
    slow, fast = (
        start_on_few_rows(problem, Fixed("cos"), kind, settings) for kind in ("none", "diagonal")
    )
    assert fast.metric[0] > slow.metric[0]


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_turning_finds_the_one_direction_that_matters(rng, kind):
    d = 8
    x = rng.standard_normal((1500, d)).astype(np.float32)
    along = np.ones(d) / np.sqrt(d) if kind == "full" else np.eye(d)[2]
    y = np.sin(2 * x @ along)[:, None].astype(np.float32)
    w = rng.standard_normal((d, 200)).astype(np.float32)
    sampler = Sampler(make_problem(x, y, w), rng)
    size, settings = Size(150, 900, 500), LearnSettings()
    state = start_on_sketch(sampler.draw(size), RBF(32), kind, settings, None)
    before = share(state.metric, along)
    assert before == pytest.approx(1 / d, abs=0.01)
    for _ in range(3):
        state = turn_metric(sampler.draw(size), sampler.draw(size), RBF(32), state, settings)
    assert share(state.metric, along) > 0.8
    assert state.metric.ndim == (2 if kind == "full" else 1)
    assert 0.2 * rules.FILL < np.linalg.norm(state.metric) < 10 * rules.FILL


def share(metric, along):
    """Of the metric, what lies along one direction."""
    full = metric if metric.ndim == 2 else np.diag(metric)
    return np.sum((along @ full) ** 2) / np.sum(full**2)


def test_turning_keeps_what_is_given_and_what_is_constant(rng):
    x = rng.standard_normal((300, 3)).astype(np.float32)
    w = rng.standard_normal((3, 40)).astype(np.float32)
    settings = LearnSettings(alpha=0.125)
    for y in (np.zeros((300, 1), np.float32), x[:, :1]):
        sampler = Sampler(make_problem(x, y, w), rng)
        sketches = [sampler.draw(Size(30, 150, 100)) for _ in range(2)]
        state = start_on_sketch(sketches[0], RBF(16), "full", settings, None)
        turned = turn_metric(*sketches, RBF(16), state, settings)
        assert turned.alpha == 0.125
        assert np.isfinite(turned.metric).all()
        np.testing.assert_array_equal(turned.coefficients, state.coefficients)


def test_errors_of_a_sketch_are_those_of_its_ridge_solution(rng):
    x, w = rng.standard_normal((90, 3)), rng.standard_normal((3, 20))
    y, weights = np.sin(x[:, :2]), rng.uniform(0.5, 2, 90)
    fit, held = slice(0, 60), slice(60, None)
    rows = Block(0, x, y, weights)
    sketch = Sketch(rows.at(fit), rows.at(held), w)
    sigma, metric, alpha = compiled(RBF(16), rng.standard_normal(16)), np.full(3, 0.4), 0.01
    phi = np.hstack([fused.apply(sigma, (x * metric) @ w), np.ones((90, 1))])
    root = np.sqrt(weights[fit] / weights[fit].sum())[:, None]
    penalty = np.sqrt(alpha) * np.eye(21)[:20]
    left = np.vstack([root * phi[fit], penalty])
    right = np.vstack([root * y[fit], np.zeros((20, 2))])
    v = np.linalg.lstsq(left, right, rcond=None)[0]
    error = np.mean((phi[held] @ v - y[held]) ** 2, axis=1)
    expected = np.average(error, weights=weights[held])
    ridge, _ = sketch_ridge(sigma, metric, sketch, True)
    assert ridge.loss(alpha) == pytest.approx(expected, rel=1e-6)
    alphas = 10.0 ** np.arange(-8, 3)
    losses = [ridge.loss(each) for each in alphas]
    for start in range(len(alphas)):  # the best of some penalties, from wherever it walks
        assert lowest(ridge.loss, alphas, start) == (int(np.argmin(losses)), min(losses))
    huge = compiled(Polynomial(9), 1e200 * np.ones(9))
    assert sketch_ridge(huge, 1e9 * metric, sketch, True)[0].loss(alpha) == np.inf
