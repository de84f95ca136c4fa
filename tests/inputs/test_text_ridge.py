"""Text as predictions of the target: no row sees its own."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from rflaf.inputs import text_ridge
from rflaf.inputs.target_means import Coded, learn_means
from rflaf.inputs.text_ridge import learn_text

AT = np.arange(1, 13)


def rows(seed=0, n=400, width=1):
    """A column of numbers, twelve of a text, and targets that follow the text."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 13))
    targets = x[:, AT] @ rng.normal(size=(12, width)) + 0.5 * rng.normal(size=(n, width)) + 3
    return x, targets, rng.uniform(0.5, 2, n), rng.integers(0, 5, n)


@pytest.mark.parametrize("width", [1, 3])
def test_it_is_ridge_regression_on_other_folds(width, monkeypatch):
    monkeypatch.setattr(text_ridge, "_PENALTIES", (3.0,))
    x, targets, weights, fold = rows(width=width)
    found = learn_text(x, AT, targets, weights, fold)
    heavy = weights / weights.mean()
    text = x[:, AT] - np.average(x[:, AT], axis=0, weights=weights)
    centre = np.average(targets, axis=0, weights=weights)

    def expected(used, asked):
        ridge = Ridge(3.0).fit(text[used], targets[used], heavy[used])
        return centre + text[asked] @ ridge.coef_.reshape(width, -1).T

    made = found(x, fold)
    np.testing.assert_array_equal(made[:, width:], x[:, AT[:10]])
    made = made[:, :width]
    for k in range(5):
        np.testing.assert_allclose(made[fold == k], expected(fold != k, fold == k), rtol=1e-9)
    every = np.full(len(x), True)
    whole = np.clip(expected(every, every), made.min(axis=0), made.max(axis=0))
    np.testing.assert_allclose(found(x)[:, :width], whole, rtol=1e-9)
    mixed = np.where(np.arange(len(x)) % 2, fold, -1)
    np.testing.assert_array_equal(found(x, mixed)[::2], found(x)[::2])
    np.testing.assert_array_equal(found(x, mixed)[1::2], found(x, fold)[1::2])
    np.testing.assert_array_equal(found.published()(x, fold), found(x))
    np.testing.assert_array_equal(found(x[40:41]), found(x)[40:41])


def test_a_row_has_not_seen_its_own_fold(monkeypatch):
    """But for the mean of all, which says nothing of rows, and the penalty; here there is one."""
    monkeypatch.setattr(text_ridge, "_PENALTIES", (3.0,))
    x, targets, weights, fold = rows()
    before = learn_text(x, AT, targets, weights, fold)
    for k in range(5):
        changed = np.where((fold == k)[:, None], 1.5 * targets + x[:, :1], targets)
        after = learn_text(x, AT, changed, weights, fold)
        for number in range(5):
            moved = after.of_fold[number][:-1] - before.of_fold[number][:-1]
            assert (np.abs(moved).max() < 1e-9) == (number == k)


@pytest.mark.parametrize(("unit", "shift"), [(1e200, 0.0), (1e-200, 0.0), (1.0, 1e6)])
def test_units_do_not_matter(unit, shift):
    x, targets, weights, fold = rows(1)
    one = learn_text(x, AT, targets, weights, fold)(x, fold)[:, :1]
    other = learn_text(x, AT, unit * targets + shift, 1e-9 * weights, fold)(x, fold)[:, :1]
    np.testing.assert_allclose((other - shift) / unit, one, rtol=1e-6, atol=1e-6)


def test_rows_of_weight_zero_do_not_count():
    x, targets, weights, fold = rows(2)
    targets[::3], weights[::3] = 1e300, 0
    there = weights > 0
    one = learn_text(x, AT, targets, weights, fold)
    other = learn_text(x[there], AT, targets[there], weights[there], fold[there])
    np.testing.assert_array_equal(one(x, fold), other(x, fold))


def test_noise_becomes_the_mean():
    x, _, weights, fold = rows(3)
    targets = np.random.default_rng(9).normal(size=(len(x), 1))
    found = learn_text(x, AT, targets, weights, fold)
    assert not np.ptp(found(x), axis=0).any()
    assert found(x)[0, 0] == pytest.approx(np.average(targets[:, 0], weights=weights))
    alone = learn_text(x, AT, targets, weights, np.zeros_like(fold))
    assert not alone(x).any()  # of one fold nothing is learned


def test_beside_codes():
    x, targets, weights, fold = rows(4, width=2)
    x = np.column_stack([x, np.arange(len(x)) % 7])
    coded = Coded(np.array([13]), (9,), (AT,))
    found = learn_means(x, coded, targets, weights, fold)
    assert found.origin.tolist() == [0, 13, 13, 1, 1, *range(1, 11)]
    assert coded.width(14, 2) == 15
    text = learn_text(x, AT, targets, weights, fold)
    np.testing.assert_array_equal(found(x, fold)[:, 3:], text(x, fold))
    np.testing.assert_array_equal(found(x, fold)[:, 0], x[:, 0])
    np.testing.assert_array_equal(found.published()(x, fold), found(x))
