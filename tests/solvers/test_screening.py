"""Which inputs matter, seen before anything is learned."""

import numpy as np
import pytest
from scipy import sparse

from rflaf import RFLAFRegressor
from rflaf.solvers.screening import screened

FUNCTIONS = {
    "sum": (2, lambda x: x[:, 0] + x[:, 1]),
    "product of two": (2, lambda x: x[:, 0] * x[:, 1]),
    "product of three": (3, lambda x: x[:, 0] * x[:, 1] * x[:, 2]),
    "signs of two": (2, lambda x: np.sign(x[:, 0] * x[:, 1])),
    "wave of a sum": (3, lambda x: np.sin(4 * x[:, :3].sum(axis=1) / np.sqrt(3))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_those_that_matter_stand_out(name, seed):
    rng = np.random.default_rng(seed)
    count, function = FUNCTIONS[name]
    x = rng.uniform(-1, 1, (3000, 30))
    shares = screened(x, function(x)[:, None], np.ones(3000))
    assert shares[:count].min() > 3 * shares[count:].max()


def test_noise_has_none():
    rng = np.random.default_rng(0)
    found = [
        screened(rng.standard_normal((1000, 20)), rng.standard_normal((1000, 1)), np.ones(1000))
        for _ in range(20)
    ]
    assert sum(shares is None for shares in found) >= 15


def test_units_weights_and_kinds_of_rows():
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (800, 6)).astype(float)
    y = np.column_stack([x[:, 0] * x[:, 1], rng.standard_normal(800)])
    weights = rng.uniform(0.5, 2, 800)
    shares = screened(x, y, weights)
    np.testing.assert_allclose(screened(x, 1e3 * y, 7 * weights), shares, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(screened(sparse.csr_array(x), y, weights), shares)
    order = rng.permutation(6)
    np.testing.assert_allclose(screened(x[:, order], y, weights), shares[order], rtol=1e-4)


def test_constant_targets_few_rows_and_one_input():
    x = np.random.default_rng(0).standard_normal((500, 4))
    assert screened(x, np.ones((500, 1)), np.ones(500)) is None
    assert screened(x[:50], x[:50, :1], np.ones(50)) is None
    assert screened(x[:, :1], x[:, :1], np.ones(500)) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_finds_two_of_many_that_matter_only_together(seed):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (1000, 50))
    y = 3 * X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(1000)
    model = RFLAFRegressor(100, random_state=seed).fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > 0.95
