"""Where learning starts from."""

import numpy as np
import pytest

from rflaf.bases import RBF, Fixed, Polynomial
from rflaf.solvers.sketches import Problem, Sampler, Size
from rflaf.solvers.starts import Learned, LearnSettings, start_on_few_rows, start_on_sketch


def test_a_row_of_weight_two_is_two_rows(rng):
    x, y = rng.standard_normal((25, 2)), rng.standard_normal((25, 1))
    weights = rng.integers(1, 4, 25)
    twice = np.repeat(np.arange(25), weights)
    w = rng.standard_normal((2, 60))
    found, expected = (
        start_on_few_rows(Problem(a, b, c, w), RBF(16), "none", LearnSettings())
        for a, b, c in ((x, y, weights.astype(float)), (x[twice], y[twice], np.ones(len(twice))))
    )
    assert found.alpha == pytest.approx(expected.alpha)
    np.testing.assert_allclose(found.coefficients, expected.coefficients)


def test_settings_that_are_given_are_kept(rng):
    x, y = rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    problem = Problem(x, y, np.ones(60), rng.standard_normal((2, 30)))
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
    problem = Problem(x, y, np.ones(80), rng.standard_normal((2, 40)), np.array([1.0, 1e-3]))
    found = start_on_few_rows(problem, RBF(16), "none", LearnSettings())
    assert found.metric[0] > 100 * found.metric[1]


def test_features_that_overflow_are_named(rng):
    x, y = 1e6 * rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    problem = Problem(x, y, np.ones(60), rng.standard_normal((2, 30)))
    settings = LearnSettings(coefficients=np.ones(80))
    with pytest.raises(ValueError, match="The features overflow"):
        start_on_few_rows(problem, Polynomial(80), "none", settings)


def test_a_fixed_activation_chooses_a_scale(rng):
    x = rng.standard_normal((90, 1))
    problem = Problem(x, np.cos(5 * x), np.ones(90), rng.standard_normal((1, 40)))
    settings = LearnSettings(coefficients=np.ones(1))
    slow, fast = (
        start_on_few_rows(problem, Fixed("cos"), kind, settings) for kind in ("none", "diagonal")
    )
    assert fast.metric[0] > slow.metric[0]
