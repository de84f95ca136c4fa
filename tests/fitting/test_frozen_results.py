"""A fit takes frozen settings and rows, and returns a frozen result."""

import dataclasses
import pickle

import numpy as np
import pytest

from rflaf.bases import RBF
from rflaf.fitting import FitSettings, extend, fit
from rflaf.inputs.forms import Standardised
from rflaf.losses import Logistic, SquaredError
from rflaf.rows import ArrayRows
from rflaf.rows.sample import fold_keys
from tests.fitting.conftest import sample_of

SETTINGS = FitSettings(
    n_components=15,
    basis=RBF(8),
    seed=3,
    metric="diagonal",
    input_form=Standardised,
    max_iter=2,
    n_members=2,
)
ONLINE = dataclasses.replace(SETTINGS, online=True)


@pytest.fixture
def arrays(rng):
    x = rng.standard_normal((400, 3))
    return x, np.sin(2 * x[:, 0]) + 7, rng.uniform(0, 2, 400) * (rng.random(400) < 0.8)


def bits(found):
    names = [field.name for field in dataclasses.fields(found)]
    return {name: pickle.dumps(getattr(found, name)) for name in names}


@pytest.mark.parametrize("classes", [False, True], ids=["numbers", "classes"])
def test_nothing_that_is_given_is_changed(arrays, classes):
    x, y, weights = arrays
    y, loss = ((y > 7).astype(int), Logistic()) if classes else (y, SquaredError())
    given = x, y, weights
    before = [part.copy() for part in given]
    settings, plain = pickle.dumps(ONLINE), pickle.dumps(loss)
    first = fit(ArrayRows(*given), loss, ONLINE)
    known = bits(first)
    more = extend(first, ArrayRows(x[:50], y[:50], weights[:50], first=400), ONLINE)
    assert bits(first) == known != bits(more)
    assert (pickle.dumps(ONLINE), pickle.dumps(loss)) == (settings, plain)
    for part, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(part, old)
    member = first.members[0]
    for result in (
        *(first, ONLINE, first.loss, first.online, first.online.folds),
        *(member, member.layer, member.layer.form),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, dataclasses.fields(result)[0].name, None)


def test_the_seed_decides(arrays):
    rows = ArrayRows(*arrays)
    one, same = (fit(rows, SquaredError(), SETTINGS) for _ in range(2))
    other = fit(rows, SquaredError(), dataclasses.replace(SETTINGS, seed=4))
    assert bits(one) == bits(same)
    assert not np.array_equal(one.members[0].coef, other.members[0].coef)


def test_rows_that_are_added_are_those_of_one_sum(arrays):
    """The folds go on with the numbers of the rows; the layer stays that of the first."""
    x, y, weights = arrays
    first = fit(ArrayRows(x[:250], y[:250], weights[:250]), SquaredError(), ONLINE)
    more = first
    for a, b in ((250, 251), (251, 400)):
        rows = ArrayRows(x[a:b], y[a:b], weights[a:b], first=a)
        more = extend(more, rows, ONLINE)
    assert more.rows_seen == 400
    assert more.online.first_rows == first.online.first_rows
    fold = first.online.folds(fold_keys(SETTINGS.seed, 0, 400))
    for k, (member, pair) in enumerate(zip(more.members, more.online.sums, strict=True)):
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

    def scaled(y, fit_intercept):
        sample = dataclasses.replace(sample_of(np.zeros((90, 1)), y, 0), weights=weights)
        loss = SquaredError().opened(sample, fit_intercept)
        return loss, loss.encode(y, weights)[0]

    loss, target = scaled(y, True)
    share = weights / weights.sum()
    np.testing.assert_allclose(share @ target, 0, atol=1e-12)
    np.testing.assert_allclose(share @ target**2, 1)
    np.testing.assert_array_equal(scaled(y, False)[0].mean, 0)
    flat, constant = scaled(np.full(90, 0.1), True)
    np.testing.assert_array_equal(constant, 0)  # exactly
    assert flat.single
    assert not loss.single


def test_units_of_the_target_come_back(arrays):
    x, y, weights = arrays
    plain = fit(ArrayRows(x, y, weights), SquaredError(), SETTINGS)
    large = fit(ArrayRows(x, 1e6 * y - 5, weights), SquaredError(), SETTINGS)
    for one, other in zip(plain.members, large.members, strict=True):
        assert other.alpha == pytest.approx(one.alpha)
        np.testing.assert_allclose(other.coef, 1e6 * one.coef, rtol=1e-4)
        np.testing.assert_allclose(other.intercept, 1e6 * one.intercept - 5, rtol=1e-4)
    np.testing.assert_allclose(large.noise, 1e6 * plain.noise, rtol=1e-4)
    assert large.oof_score == pytest.approx(plain.oof_score, rel=1e-4)
