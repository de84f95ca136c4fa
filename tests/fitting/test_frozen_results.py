"""A fit takes frozen settings and rows, and returns a frozen result."""

import dataclasses
import pickle

import numpy as np
import pytest

from rflaf.bases import RBF
from rflaf.fitting import (
    FitSettings,
    extend_regression,
    fit_classification,
    fit_regression,
)
from rflaf.fitting.judged import TargetScale
from rflaf.rows import ArrayRows
from rflaf.rows.sample import fold_keys

SETTINGS = FitSettings(
    n_components=15,
    basis=RBF(8),
    seed=3,
    metric="diagonal",
    input_form="raw",
    max_iter=2,
    n_members=2,
)


@pytest.fixture
def arrays(rng):
    x = rng.standard_normal((400, 3))
    return x, np.sin(2 * x[:, 0]) + 7, rng.uniform(0, 2, 400) * (rng.random(400) < 0.8)


def bits(fit):
    return {field.name: pickle.dumps(getattr(fit, field.name)) for field in dataclasses.fields(fit)}


def test_nothing_that_is_given_is_changed(arrays):
    x, y, weights = arrays
    before = [part.copy() for part in arrays]
    settings = pickle.dumps(SETTINGS)
    first = fit_regression(ArrayRows(x, y, weights), SETTINGS, keep_sums=True)
    classes = fit_classification(ArrayRows(x, (y > 7).astype(int), weights), SETTINGS)
    known = bits(first)
    extend_regression(first, ArrayRows(x[:50], y[:50], weights[:50], first=400), SETTINGS)
    assert bits(first) == known
    assert pickle.dumps(SETTINGS) == settings
    for part, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(part, old)
    for result in (
        first,
        classes,
        SETTINGS,
        first.members[0],
        first.members[0].layer,
        first.target,
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, dataclasses.fields(result)[0].name, None)


def test_the_seed_decides(arrays):
    rows = ArrayRows(*arrays)
    one, same = (fit_regression(rows, SETTINGS) for _ in range(2))
    other = fit_regression(rows, dataclasses.replace(SETTINGS, seed=4))
    assert bits(one) == bits(same)
    assert not np.array_equal(one.members[0].coef, other.members[0].coef)


def test_rows_that_are_added_are_those_of_one_sum(arrays):
    """The folds go on with the numbers of the rows; the layer stays that of the first."""
    x, y, weights = arrays
    first = fit_regression(ArrayRows(x[:250], y[:250], weights[:250]), SETTINGS, keep_sums=True)
    more = first
    for a, b in ((250, 251), (251, 400)):
        rows = ArrayRows(x[a:b], y[a:b], weights[a:b], first=a)
        more = extend_regression(more, rows, SETTINGS)
    assert more.rows_seen == 400
    assert more.first_rows == first.first_rows
    fold = first.plan.folds(fold_keys(SETTINGS.seed, 0, 400))
    for k, (member, pair) in enumerate(zip(more.members, more.sums, strict=True)):
        layer = member.layer
        assert layer is first.members[k].layer
        assert sum(part.rows for part in pair) == np.count_nonzero(weights)
        assert sum(part.weight for part in pair) == pytest.approx(weights.sum())
        phi = np.column_stack([layer.activation(layer.inputs(x) @ layer.components), np.ones(400)])
        for part, at in zip(pair, (fold != k, fold == k), strict=True):
            gram = phi[at].T @ (weights[at, None] * phi[at])
            np.testing.assert_allclose(part.gram, gram, rtol=1e-4, atol=1e-3)


def test_targets_in_their_own_units(rng):
    y, weights = rng.standard_normal((90, 2)) * [1, 50] + [3, -8], rng.uniform(0.1, 2, 90)
    target = TargetScale.of(y, weights, fit_intercept=True)
    share = weights / weights.sum()
    np.testing.assert_allclose(share @ target.scaled(y), 0, atol=1e-12)
    np.testing.assert_allclose(share @ target.scaled(y) ** 2, 1)
    raw = TargetScale.of(y, weights, fit_intercept=False)
    np.testing.assert_array_equal(raw.mean, 0)
    flat = TargetScale.of(np.full(90, 0.1), weights, fit_intercept=True)
    np.testing.assert_array_equal(flat.scaled(np.full(90, 0.1)), 0)  # exactly
    assert flat.single
    assert not target.single


def test_units_of_the_target_come_back(arrays):
    x, y, weights = arrays
    plain = fit_regression(ArrayRows(x, y, weights), SETTINGS)
    large = fit_regression(ArrayRows(x, 1e6 * y - 5, weights), SETTINGS)
    for one, other in zip(plain.members, large.members, strict=True):
        assert other.alpha == pytest.approx(one.alpha)
        np.testing.assert_allclose(other.coef, 1e6 * one.coef, rtol=1e-4)
        np.testing.assert_allclose(other.intercept, 1e6 * one.intercept - 5, rtol=1e-4)
    np.testing.assert_allclose(large.noise, 1e6 * plain.noise, rtol=1e-4)
    assert large.oof_score == pytest.approx(plain.oof_score, rel=1e-4)
