"""Places where the printed text is wrong or says too little, each shown by a computation."""

from math import comb, log, pi, prod, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

from rflaf.theory import Target, largest_spacing, largest_width


def test_lemma_a4_needs_root_three():
    """P(|Y| >= e) <= 2 exp(-e²/K²) gives a norm of √3 K at most; the printed √2 K is too small."""

    def moment(factor):
        """E exp(Y²/(factor K²)) for the Y whose tail is exactly min(1, 2 exp(-e²/K²))."""
        start = log(2)
        return quad(lambda s: 2 * np.exp(s / factor - s), start, np.inf)[0]

    assert moment(2.0) > 2.8  # the norm needs 2 at most
    assert moment(3.0) < 2.0


def test_last_sum_of_the_second_recurrence_has_the_wrong_range():
    def odd_factorial(n):
        return prod(range(n, 0, -2))

    def term(k, j):
        return odd_factorial(2 * k - 1) // odd_factorial(2 * j - 1) * comb(k, j)

    def square_coefficient(k, i, low, high):
        return sum(term(k, j) * term(k, i - j) for j in range(low, high + 1))

    k, i = 2, 2  # P_2² = (p² - 6p + 3)² has 42 p²
    assert square_coefficient(k, i, max(0, i - k), min(i, k)) == 42
    assert square_coefficient(k, i, max(0, i - k + 1), min(i, k - 1)) == 36


def test_condition_on_lambda_fails_in_one_dimension():
    """E exp(λ²·2L²w²) <= exp(4L²λ²) is claimed up to 4L²λ² = 1, where it is infinite."""

    def left(x):  # x = 4 L² λ²
        return 1 / sqrt(1 - x)

    assert left(0.95) > np.exp(0.95)
    assert left(log(2)) <= 2  # the norm that the proof takes from it is right all the same


def test_more_cells_matter_than_are_counted():
    """An interval of length 2th meets up to two cells more than 2th divided by their length."""
    h, t, cell = 0.1, 1.0, 0.15
    edges = -0.9 * cell + cell * np.arange(-5, 6) - 0.0001
    meeting = sum((edges[:-1] < t * h) & (edges[1:] > -t * h))
    assert meeting > 2 * t * h / cell


def test_printed_grid_size_loses_its_meaning_for_wide_supports():
    target = Target(1.0, 1e-5, 4e5, 1.0)
    h = largest_width(0.5, target)
    assert log(8 * 4e5 / (sqrt(2 * pi) * 0.5 * h * h)) < 0
    assert largest_spacing(0.5, h, target) > 0


@pytest.mark.parametrize("dimension", [1, 3])
def test_moments_behind_the_sharp_constant(dimension):
    """1/(1-x) <= e^(2x) up to 2/3, all that the constant 6 R² in place of 10 R² needs."""
    x = np.linspace(0, 2 / 3, 1000)
    assert (1 / (1 - x) <= np.exp(2 * x)).all()
    # E exp(λ² |w|²) for w of the dimension, the left side of the same step
    rate = 0.3
    value = quad(lambda s: np.exp(rate * s) * chi2(dimension).pdf(s), 0, 300, limit=200)[0]
    assert value == pytest.approx((1 - 2 * rate) ** (-dimension / 2), rel=1e-6)
    assert (1 - 0.75) ** -0.5 == 2.0  # where the norm √32 R = √(16·6/3) R comes from
