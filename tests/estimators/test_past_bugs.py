"""Inputs that once gave wrong answers without an error."""

import numpy as np
import pytest
from scipy import sparse

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor, rules
from tests.estimators.conftest import classifier, regressor


@pytest.fixture(scope="module")
def shifted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) + 5
    return X, np.sin(X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("form", ["raw", "both"])
def test_sparse_rows_for_a_model_of_dense_ones(shifted, form):
    X, y = shifted
    model = regressor(input_form=form).fit(X, y)
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), model.predict(X), rtol=1e-5)
    features = RandomFeatures(9, random_state=0).fit(X)
    np.testing.assert_allclose(features.transform(sparse.csr_array(X)), features.transform(X))


def test_the_noise_of_conjugate_gradients_is_that_of_unseen_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = X[:, 0] + rng.standard_normal(400)
    for alpha in (1e-9, "auto"):
        model = regressor(solver="cg", n_members=1, n_components=600, alpha=alpha).fit(X, y)
        assert model.noise_ > 0.8
        assert model.oof_prediction_ is not None


def test_importances_of_many_inputs(rng):
    X = rng.standard_normal((200, 3000))
    y = np.sin(2 * X[:, 7])
    model = regressor(metric="diagonal", input_form="raw").fit(X, y)
    assert model.feature_importances_.shape == (3000,)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_importances_are_those_of_shuffled_inputs(shifted):
    """Only the columns of an input change when it is shuffled: the mean squares agree."""
    X, y = shifted
    model = regressor(input_form="both").fit(X, y)
    expected = []
    before = model.predict(X)
    for j in range(3):
        shuffled = X.copy()
        shuffled[:, j] = np.random.default_rng(j).permutation(X[:, j])
        expected.append(np.mean((model.predict(shuffled) - before) ** 2))
    expected = np.array(expected) / np.sum(expected)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.12)


def test_warm_start_with_other_ranks(shifted):
    X, y = shifted
    model = regressor(input_form="both", warm_start=True).fit(X, y)
    rough = X.copy()
    rough[:, 2] = np.round(X[:, 2]) > 5  # two values: no ranks
    model.fit(rough, y)
    assert model.metric_.shape[0] == 5
    given = regressor(warm_start=True, input_form="raw").fit(X, y).set_params(alpha=0.25).fit(X, y)
    assert all(record["alpha"] == pytest.approx(0.25) for record in given.history_)


def test_more_rows_bring_their_noise(shifted):
    X, y = shifted
    noisy = y + 2 * np.random.default_rng(1).standard_normal(300)
    model = regressor().partial_fit(X[:150], y[:150])
    before = model.predict_std(X).mean()
    model.partial_fit(X[150:], noisy[150:])
    assert model.predict_std(X).mean() > 2 * before


@pytest.mark.parametrize("make", [regressor, classifier])
def test_more_members_than_rows_can_judge(make, shifted):
    X, y = shifted
    with pytest.raises(ValueError, match=r"'n_members' must be at most 150 for 300 rows.* Got 200"):
        make(n_members=200).fit(X, y > y.mean())


@pytest.mark.parametrize("unit", [1e-170, 1e-30, 1e30, 1e154])
def test_targets_far_from_one(unit, shifted):
    X, y = shifted
    plain, model = regressor().fit(X, y), regressor().fit(X, y * unit)
    np.testing.assert_allclose(model.predict(X) / unit, plain.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning")  # sklearn
def test_targets_beyond_what_a_model_can_hold(shifted):
    X, y = shifted
    huge = np.where(y > y.mean(), 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match=r"'y' must lie between .* Got 1.7e\+308"):
        regressor().fit(X, huge)


def test_kinds_say_what_was_learned(rng):
    X = rng.standard_normal((19, 2))
    few = RFLAFRegressor(30, metric="full", random_state=0).fit(X, X[:, 0])
    assert few.metric_kind_ == "diagonal"
    assert few.metric_.ndim == 1


def test_a_constant_target_without_an_intercept(rng):
    X = rng.standard_normal((200, 2))
    model = regressor(fit_intercept=False).fit(X, np.full(200, 3.0))
    assert abs(model.oof_score_) < 1e6


def test_few_rows_of_the_sample_count(monkeypatch, rng):
    """Most classes have no weight, and only about twenty rows of the sample are left."""
    monkeypatch.setattr(rules, "SAMPLE_ROWS", 1000)
    X = rng.standard_normal((3000, 2))
    y = np.where(np.arange(3000) % 50 == 0, 1 + (X[:, 0] > 0), 0)
    model = RFLAFClassifier(20, max_iter=2, class_weight={0: 0}, random_state=0).fit(X, y)
    rare = y > 0
    assert np.mean(model.predict(X[rare]) == y[rare]) > 0.8
