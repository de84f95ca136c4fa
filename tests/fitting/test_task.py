"""The quadratic model of a loss as a least squares problem."""

from dataclasses import replace

import numpy as np
import pytest

from rflaf.bases import RBF
from rflaf.fitting import FitSettings
from rflaf.inputs.target_means import Coded
from rflaf.losses import Logistic, SquaredError
from rflaf.rows.sample import fold_keys
from tests.fitting.conftest import rows_of, task_of

SETTINGS = FitSettings(n_components=20, basis=RBF(8), seed=3, n_members=3)


@pytest.mark.parametrize("targets", ["numbers", 2, 3, 5])
def test_targets_are_centred_and_of_unit_variance(targets, rng):
    n = 240
    if targets == "numbers":
        loss, y = SquaredError(), rng.standard_normal((n, 2)) * [1, 50] + 7
    else:
        loss, y = Logistic(), rng.integers(0, targets, n)
    weights = rng.uniform(0.1, 2, n)
    task = task_of(rows_of(rng.standard_normal((n, 2)), y, weights), SETTINGS, loss)
    member = task.member_rows(1)
    rows, share = member.first.rows, member.first.rows.weights / member.first.rows.weights.sum()
    assert rows.y.shape == (np.count_nonzero(task.fold != 1), task.loss.outputs)
    np.testing.assert_allclose(share @ rows.y, 0, atol=1e-12)
    assert np.mean(share @ rows.y**2) == pytest.approx(1)
    # other rows in the same units
    again = task.regression(member.rows, member.constant, like=member.first)
    np.testing.assert_allclose(again.rows.y, rows.y)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_model_has_the_slope_and_the_curvature_of_the_loss(classes, rng):
    """At the scores where it is taken, so that a penalty of the one is one of the other."""
    n = 90
    task = task_of(
        rows_of(rng.standard_normal((n, 2)), rng.integers(0, classes, n)), SETTINGS, Logistic()
    )
    member = task.member_rows(0)
    scores = rng.standard_normal((len(member.rows.weights), task.loss.outputs))
    scores = task.loss.moderate(scores)  # centred, and no surer than makes a difference
    rows, centre, spread, unit = task.regression(member.rows, scores)
    _, slope = task.loss.slopes(scores, member.rows.y)
    bend = rows.weights / member.rows.weights
    response = rows.y * spread + centre
    np.testing.assert_allclose(2 * bend[:, None] * (scores - response), slope, atol=1e-12)
    curvature = task.loss.curvature(scores, member.rows.y).mean(axis=1)
    np.testing.assert_allclose(2 * bend, curvature)
    assert unit == pytest.approx(np.average(bend, weights=member.rows.weights))


def test_one_class_alone_tells_nothing(rng):
    """Rows of a member may miss all classes but one."""
    y = np.where(np.arange(60) < 5, 1, 0)
    task = task_of(rows_of(rng.standard_normal((60, 2)), y), SETTINGS, Logistic())
    member = task.member_rows(0)
    alone = member.rows._replace(y=np.zeros(len(member.rows.y), int))
    found = task.regression(alone, np.zeros(1))
    np.testing.assert_allclose(found.rows.y, 0, atol=1e-9)
    assert found.spread == 1


def test_means_of_levels_leave_the_inner_fold_out(rng):
    """Whatever the targets of an inner fold are, the means of its rows do not change by a bit."""
    n = 300
    x = np.column_stack([rng.standard_normal(n), rng.integers(0, 30, n)])
    y = rng.integers(-8, 8, n) / 4
    settings = replace(SETTINGS, coded=Coded(np.array([1]), (32,)))
    loss = task_of(rows_of(x, y), settings).loss
    task = task_of(rows_of(x, y), settings, like=loss)
    outside = np.flatnonzero(task.fold != 0)
    inner = task.sample.keys[outside] % np.uint64(5) == 2
    spoilt = y.copy()
    spoilt[outside[inner]] *= 100
    other = task_of(rows_of(x, spoilt), settings, like=loss)
    first, second = (each.member_rows(0) for each in (task, other))
    assert first.rows.x.shape == (len(outside), 2)
    # up to the units of all targets of the member
    mine, its = (
        each.rows.x[inner, 1] * each.first.spread + each.first.centre[0] for each in (first, second)
    )
    np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-9)
    assert not np.allclose(first.rows.x[~inner, 1], second.rows.x[~inner, 1])


def test_a_level_that_one_group_has_tells_nothing_of_new_rows(rng):
    """Its own rows were shown the mean of all, so that new ones are shown it, too."""
    group = np.repeat(np.arange(40), 10)
    x = np.column_stack([rng.standard_normal(400), group])
    y = rng.standard_normal(40)[group]
    keys = fold_keys(3, 0, 40)[group]
    settings = replace(SETTINGS, coded=Coded(np.array([1]), (42,)))
    member = task_of(rows_of(x, y, keys=keys), settings).member_rows(0)
    assert len(np.unique(member.means(x)[:, 1])) == 1
    assert len(np.unique(member.rows.x[:, 1])) <= 5  # one for each inner fold
    apart = task_of(rows_of(x, y), settings).member_rows(0)
    assert len(np.unique(apart.means(x)[:, 1])) == 40
