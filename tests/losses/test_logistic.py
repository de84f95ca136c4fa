"""Cross-entropy: what is its own besides the contract."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.metrics import log_loss

from rflaf import rules
from rflaf.losses import Logistic


def opened(count):
    return Logistic(None, np.array(list("abcdefgh")[:count]), np.ones(count))


def scores_of(loss, n, size=3.0, seed=0):
    rng = np.random.default_rng(seed)
    scores = size * rng.standard_normal((n, loss.outputs))
    return scores, rng.integers(0, len(loss.classes), n), rng.uniform(0.1, 2, n)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_value_is_that_of_scikit_learn(count):
    loss = opened(count)
    scores, codes, weights = scores_of(loss, 40)
    p = loss.probabilities(scores)
    assert p.shape == (40, count)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    expected = log_loss(codes, p, sample_weight=weights, labels=np.arange(count))
    assert loss.value(scores, codes, weights) == pytest.approx(expected)


def test_of_two_classes_one_score_stands_for_both():
    odds = np.linspace(-4, 4, 9)[:, None]
    both = np.hstack([np.zeros((9, 1)), odds])
    for code in (0, 1):
        codes = np.full(9, code)
        value, slope = opened(2).slopes(odds, codes)
        np.testing.assert_allclose(value, -log_softmax(both, axis=1)[:, code])
        of_both = opened(3).slopes(np.hstack([both, np.full((9, 1), -1e3)]), codes)
        np.testing.assert_allclose(slope[:, 0], of_both[1][:, 1], atol=1e-12)


@pytest.mark.parametrize("count", [2, 3])
def test_huge_scores_stay_finite(count):
    loss = opened(count)
    scores = np.array([[1e6, -1e6, 0.0], [-1e6, 1e6, 3.0]])[:, : loss.outputs]
    for code in range(count):
        codes = np.full(2, code)
        value, slope = loss.slopes(scores, codes)
        assert 1e6 <= value.max() <= 2e6
        assert np.isfinite(slope).all()
        assert np.isfinite(loss.curvature(scores, codes)).all()
        response, bend = loss.quadratic_model(scores, codes)
        assert np.isfinite(response).all()
        assert (bend > 0).all()
    assert np.isfinite(np.log(loss.probabilities(scores))).all()


def test_a_class_without_a_row_has_hardly_a_chance():
    loss = opened(4)
    constant = loss.constant(np.array([0, 2, 2]), np.ones(3))
    p = loss.probabilities(constant[None])[0]
    np.testing.assert_allclose(p, [1 / 3, 0, 2 / 3, 0], atol=1e-8)


@given(
    seed=st.integers(0, 1000), count=st.sampled_from([2, 4]), size=st.sampled_from([1.0, 8.0, 50.0])
)
def test_moderate_scores_are_no_surer_than_makes_a_difference(seed, count, size):
    loss = opened(count)
    scores, *_ = scores_of(loss, 30, size, seed)
    moderate = loss.moderate(scores)
    one, other = loss.probabilities(scores), loss.probabilities(moderate)
    np.testing.assert_array_equal(one.argmax(axis=1), other.argmax(axis=1))
    gaps = np.ptp(moderate, axis=1) if count > 2 else np.abs(moderate[:, 0])
    assert gaps.max() <= rules.SUREST + 1e-9
    gaps = np.ptp(scores, axis=1) if count > 2 else np.abs(scores[:, 0])
    small = gaps <= rules.SUREST
    np.testing.assert_allclose(other[small], one[small], rtol=1e-9)
    np.testing.assert_allclose(loss.moderate(moderate), moderate, atol=1e-9)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 100.0])
def test_scores_that_are_too_sure_are_divided(count, factor):
    """Classes are drawn by the scores; what they were multiplied by is found."""
    loss = opened(count)
    scores, _, weights = scores_of(loss, 20_000, 1.0)
    p = loss.probabilities(scores)
    codes = (np.random.default_rng(1).uniform(size=(20_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    found = loss.temperature(factor * scores, np.minimum(codes, count - 1), weights)
    assert found == pytest.approx(min(factor, rules.MOST_TEMPERATURE), rel=0.1)
