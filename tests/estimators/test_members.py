"""What estimators say of their members."""

import numpy as np
import pytest
from sklearn.base import clone

from rflaf.inputs.forms import FORMS
from rflaf.rows import Blocks
from tests.estimators.conftest import classifier, regressor


def test_predictions_of_members_that_have_not_seen_a_row(friedman):
    X, y, new_X, new_y = friedman
    weights = np.ones(len(y))
    weights[::5] = 0
    model = regressor(n_components=100).fit(X, y, sample_weight=weights)
    assert len(model.members_) == 2
    assert model.oof_prediction_.shape == y.shape
    np.testing.assert_array_equal(np.isnan(model.oof_prediction_), weights == 0)
    used = weights > 0
    error = model.oof_prediction_[used] - y[used]
    assert model.oof_score_ == pytest.approx(1 - np.mean(error**2) / np.var(y[used]))
    assert model.oof_score_ == pytest.approx(model.score(new_X, new_y), abs=0.15)
    two = regressor().fit(X, np.column_stack([y, X[:, 0]]))
    assert two.oof_prediction_.shape == (len(y), 2)


def test_one_member_has_some_rows_that_it_has_not_seen(friedman):
    X, y, _, _ = friedman
    model = regressor(n_members=1).fit(X, y)
    assert len(model.members_) == 1
    assert np.isfinite(model.oof_prediction_).sum() == 100
    assert 0 < model.oof_score_ < 1
    # the last solve has seen them
    held = np.isfinite(model.oof_prediction_)
    honest, last = model.oof_prediction_[held] - y[held], model.predict(X[held]) - y[held]
    assert np.mean(last**2) < np.mean(honest**2)


def test_few_rows_leave_none_out(friedman):
    X, y, _, _ = friedman
    for model, target in ((regressor(n_members=5), y), (classifier(n_members=5), y > 14)):
        model.fit(X[:19], target[:19])
        assert len(model.members_) == 1
        assert np.isnan(model.oof_score_)
        # equal rows are one, as they are with weights
        twice = clone(model).fit(np.repeat(X[:19], 2, axis=0), np.repeat(target[:19], 2))
        assert len(twice.members_) == 1
        heavy = clone(model).fit(X[:19], target[:19], sample_weight=np.full(19, 2.0))
        np.testing.assert_allclose(twice.predict(X), heavy.predict(X), rtol=1e-6)
        model.fit(X[:20], target[:20])
        assert len(model.members_) == 5
        assert np.isfinite(model.oof_score_)


def test_rows_of_a_source_have_no_place_to_be_told(friedman):
    X, y, _, _ = friedman
    source = Blocks([(X[:150], y[:150]), (X[150:], y[150:])])
    whole, streamed = regressor().fit(X, y), regressor().fit(source)
    assert streamed.oof_score_ == pytest.approx(whole.oof_score_)


@pytest.mark.parametrize("alpha", ["auto", 0.01])
@pytest.mark.parametrize("n_members", [1, 3])
def test_classes_by_members_that_have_not_seen_a_row(moons, alpha, n_members):
    X, y, new_X, new_y = moons
    model = classifier(alpha=alpha, n_members=n_members).fit(X, y)
    assert model.oof_score_ == pytest.approx(model.score(new_X, new_y), abs=0.1)
    assert 1 / 3 <= model.temperature_ <= 3


@pytest.mark.parametrize("form", ["auto", *FORMS])
def test_the_form_of_the_inputs(friedman, form):
    X, y, new_X, new_y = friedman
    model = regressor(n_components=100, input_form=form, metric="diagonal").fit(X, y)
    assert model.input_form_ in (["raw", "both", "bins"] if form == "auto" else [form])
    assert bool(model.form_path_) == (form == "auto")
    width = {"raw": 10, "both": 20, "ranks": 10, "bins": 240}[model.input_form_]
    assert model.components_.shape[0] == width
    assert model.n_features_in_ == len(model.mean_) == 10
    assert {member.layer.form.name for member in model.members_} == {model.input_form_}
    assert model.score(new_X, new_y) > 0.7
