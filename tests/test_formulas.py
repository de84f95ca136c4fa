"""Formulas for curves that are known."""

import time

import numpy as np
import pytest
from scipy.special import expit, ndtr

from rflaf import Activation
from rflaf.bases import RBF, BSpline
from rflaf.formulas import LIBRARY, describe

KNOWN = {
    "line": lambda z: 3 * z - 1,
    "square": lambda z: (z - 0.5) ** 2,
    "cube": lambda z: 2 * z**3,
    "fourth power": lambda z: (z + 0.2) ** 4 - 1,
    "absolute value": lambda z: np.abs(z + 0.3),
    "ReLU": lambda z: 2 * np.maximum(0.5 - z, 0) + 1,
    "leaky ReLU": lambda z: np.where(z > 0, 3 * z, 0.03 * z),
    "softplus": lambda z: np.logaddexp(3 * z, 0),
    "SiLU": lambda z: -z * expit(2 * z),
    "GELU": lambda z: z * ndtr(z),
    "ELU": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
    "sine": lambda z: np.cos(4 * z) + 0.3,
    "tanh": lambda z: np.tanh(1.5 * z),
    "logistic": lambda z: expit(-3 * z),
    "exponential": lambda z: np.exp(-z) - 2,
    "Gaussian": lambda z: np.exp(-0.5 * (z - 0.5) ** 2),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_known_activations_are_recognised(name):
    z = np.linspace(-2, 2, 500)
    basis = BSpline(41, degree=3)  # with its error
    sigma = Activation(basis, basis.fit(KNOWN[name]))
    for found in (describe(KNOWN[name], z), sigma.describe()):
        assert found[0].name == name
        assert found[0].r2 > 0.999
        np.testing.assert_allclose(found[0](z), KNOWN[name](z), atol=0.06)
        assert len({each.name for each in found}) == len(found) == 5


def test_errors_count_where_the_data_is():
    basis = BSpline(41, -4, 4, degree=3)
    sigma = Activation(basis, basis.fit(lambda z: np.where(z < 0, np.tanh(z), np.sin(6 * z))))
    left, right = (sigma.describe(np.linspace(*ends, 300), 1)[0] for ends in ((-4, -0.2), (0.2, 4)))
    assert (left.name, right.name) == ("tanh", "sine")


def test_same_every_time_and_fast():
    rng = np.random.default_rng(0)
    sigma = Activation(RBF(33), rng.normal(size=33))
    z = rng.normal(size=100_000)
    first = sigma.describe(z)
    start = time.perf_counter()
    assert sigma.describe(z) == first
    assert time.perf_counter() - start < 2  # 0.1 s on an idle machine
    assert all(-1 <= each.r2 <= 1 for each in first)


def test_scale_of_z_and_sigma_do_not_matter():
    for size in (1e-6, 1.0, 1e6):
        best = describe(lambda z: size * np.tanh(z / size), np.linspace(-2, 2, 50) * size, 1)[0]  # noqa: B023
        assert best.name == "tanh"
        assert best.a * best.b == pytest.approx(1, rel=1e-3)


def test_a_constant_has_no_formula():
    assert Activation(RBF(5), np.zeros(5)).describe() == []
    assert describe(np.sin, np.zeros(10)) == []


@pytest.mark.parametrize(
    ("curve", "text"),
    [
        (lambda z: -np.tanh(z), "-tanh(z)"),
        (lambda z: 2 * z**2 - 1, "2 z² - 1"),
        (lambda z: np.maximum(1 - z, 0), "relu(-z + 1)"),
    ],
)
def test_text(curve, text):
    assert str(describe(curve, np.linspace(-2, 2, 99), 1)[0]) == text
