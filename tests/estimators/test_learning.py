"""What is learned: at once, from more rows or further steps, and with one seed always the same."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

import rflaf
from rflaf import Activation, RandomFeatures, RFLAFRegressor
from rflaf.bases import RBF, BSpline
from rflaf.runtime import threads
from tests.estimators.conftest import classifier, regressor

# ---- it learns


def test_regression_beats_plain_features(friedman):
    X, y, new_X, new_y = friedman
    learned = regressor(n_components=150, max_iter=60, n_members=5).fit(X, y)
    plain = make_pipeline(RandomFeatures(150, activation="relu", random_state=0), Ridge(1e-2))
    assert learned.score(new_X, new_y) > 0.99
    assert learned.score(new_X, new_y) > plain.fit(X, y).score(new_X, new_y)
    assert learned.n_iter_ == len(learned.history_) <= 60


def test_classification(moons, three):
    for X, y, new_X, new_y in (moons, three):
        model = classifier(n_components=80, max_iter=30).fit(X, y)
        assert model.score(new_X, new_y) > 0.88
        assert log_loss(new_y, model.predict_proba(new_X), labels=model.classes_) < 0.3


def test_linear_data(rng):
    X = rng.standard_normal((600, 5))
    y = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + 0.1 * rng.standard_normal(600) + 7
    model = RFLAFRegressor(n_components=200, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.99


@pytest.mark.parametrize(
    "activation",
    [
        "rbf",
        "bspline",
        "chebyshev",
        "relu",
        "gelu",
        RBF(9),
        BSpline(8),
        Activation(RBF(5), [0.0, 1.0, -1.0, 0.5, 2.0]),
    ],
    ids=repr,
)
def test_every_kind_of_activation(activation, friedman, moons):
    X, y, new_X, new_y = friedman
    model = regressor(activation=activation).fit(X, y)
    assert model.score(new_X, new_y) > 0.6
    if isinstance(activation, Activation):
        assert model.activation_ == activation
    X, y, new_X, new_y = moons
    assert classifier(activation=activation).fit(X, y).score(new_X, new_y) > 0.8


@pytest.mark.parametrize("metric", ["full", "diagonal", "none"])
@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
def test_metrics_and_projections(metric, projection, friedman):
    X, y, new_X, new_y = friedman
    model = regressor(metric=metric, projection=projection).fit(X, y)
    assert model.metric_.shape == ((10, 10) if metric == "full" else (10,))
    assert model.score(new_X, new_y) > 0.6


def test_nothing_is_learned_where_there_is_nothing_to_learn(friedman):
    X, y, _, _ = friedman
    fixed = regressor(activation="relu", metric="none").fit(X, y)
    assert fixed.n_iter_ == 1
    assert fixed.history_ == []
    np.testing.assert_array_equal(fixed.activation_.coefficients, [1.0])
    assert regressor(max_iter=0).fit(X, y).history_ == []
    assert regressor(activation="relu", metric="diagonal").fit(X, y).n_iter_ > 0


def test_a_given_penalty_is_kept_and_gives_the_ridge_solution(friedman):
    X, y, _, _ = friedman
    for fit_intercept in (True, False):
        model = regressor(
            alpha=0.03, fit_intercept=fit_intercept, activation="tanh", n_members=1
        ).fit(X, y)
        assert model.alpha_ == 0.03
        x = (X - model.mean_) / model.scale_
        phi = model.activation_(x @ model.components_.astype(float))
        ridge = Ridge(0.03 * len(y), fit_intercept=fit_intercept).fit(phi, y)
        np.testing.assert_allclose(model.predict(X), ridge.predict(phi), rtol=1e-3, atol=0.02)
    assert model.intercept_ == 0


# ---- partial_fit, warm_start, determinism


def test_adding_rows_is_fitting_them_all(friedman):
    """With everything else from the first rows, blocks of any size give one solution."""
    X, y, new_X, _ = friedman
    one, other = (
        regressor(alpha=1e-3, n_members=1).partial_fit(X[:200], y[:200]) for _ in range(2)
    )
    one.partial_fit(X[200:], y[200:])
    first = other.predict(new_X)
    for k in range(200, 400, 37):
        other.partial_fit(X[k : min(k + 37, 400)], y[k : min(k + 37, 400)])
    assert one.activation_ == other.activation_
    assert np.abs(one.predict(new_X) - first).max() > 0.1
    np.testing.assert_allclose(one.predict(new_X), other.predict(new_X), atol=1e-2)
    x = (X - one.mean_) / one.scale_
    phi = one.activation_(x @ one.components_.astype(float))
    ridge = Ridge(1e-3 * 400).fit(phi, y)
    np.testing.assert_allclose(one.predict(X), ridge.predict(phi), atol=0.05)


def test_more_rows_help(friedman):
    X, y, new_X, new_y = friedman
    model = regressor(n_components=100, max_iter=30).partial_fit(X[:150], y[:150])
    before = model.score(new_X, new_y)
    for k in range(150, 400, 50):
        model.partial_fit(X[k : k + 50], y[k : k + 50], sample_weight=np.full(50, 1.5))
    assert model.score(new_X, new_y) > before
    assert model.warm_start is False  # the parameter is as it was given


def test_partial_fit_checks_its_rows(friedman):
    X, y, _, _ = friedman
    model = regressor().partial_fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(np.full((3, 10), np.inf), y[:3])
    with pytest.raises(ValueError, match=r"target|output|shape|column"):
        model.partial_fit(X[:50], np.column_stack([y, y])[:50])


def test_warm_start_goes_on_from_where_it_was(friedman):
    X, y, _, _ = friedman
    model = regressor(warm_start=True, n_components=150, max_iter=30).fit(X, y)
    before, activation = model.history_, model.activation_
    model.set_params(max_iter=4).fit(X, y)
    cold = regressor(n_components=150, max_iter=4).fit(X, y)
    assert model.n_iter_ <= 4
    warm, first, again = (  # single sketches are noisy
        np.mean([record["loss"] for record in history[:4]])
        for history in (model.history_, before, cold.history_)
    )
    assert warm < first
    assert warm < again
    assert model.activation_ != activation
    labels = classifier(warm_start=True).fit(X, y > 14)
    assert labels.fit(X, y > 14).score(X, y > 14) > 0.8


@pytest.mark.parametrize(
    "change",
    [
        {"n_basis": 16},
        {"activation": "relu"},
        {"activation": Activation("tanh")},
        {"activation": "bspline"},
        {"grid": (-3.0, 3.0)},
        {"metric": "none"},
        {"metric": "diagonal"},
        {"n_components": 50},
    ],
    ids=str,
)
def test_warm_start_with_other_parameters(change, friedman):
    """What does not fit any more is started anew."""
    X, y, _, _ = friedman
    for model, target in ((regressor(), y), (classifier(), y > 14)):
        model.set_params(warm_start=True).fit(X, target).set_params(**change).fit(X, target)
        fresh = clone(model).fit(X, target)
        if "metric" in change:  # else the rows say what kind it is
            assert model.metric_.shape == fresh.metric_.shape
        assert model.activation_.basis == fresh.activation_.basis
        assert model.score(X, target) > 0.5


def test_warm_start_with_other_inputs(friedman):
    X, y, _, _ = friedman
    for model, target in ((regressor(), y), (classifier(), np.digitize(y, [12, 17]))):
        model.set_params(warm_start=True).fit(X, y > 14)
        assert model.fit(X[:, :5], target).score(X[:, :5], target) > 0.5
        assert model.feature_importances_.shape == (5,)


@pytest.mark.parametrize("make", [regressor, classifier], ids=["regressor", "classifier"])
def test_the_same_seed_gives_the_same_model(make, friedman, monkeypatch):
    X, y, new_X, _ = friedman
    y = y if make is regressor else np.digitize(y, [12, 17])

    def fit(seed, count):
        monkeypatch.setattr(threads, "thread_count", lambda: count)
        return make(random_state=seed, n_components=150).fit(X, y)

    models = [fit(0, 1), fit(0, 2), fit(0, 3), fit(np.random.RandomState(0), 1)]
    for other in models[1:]:
        assert other.output_weights_.tobytes() == models[0].output_weights_.tobytes()
        assert other.activation_ == models[0].activation_
        np.testing.assert_array_equal(other.predict(new_X), models[0].predict(new_X))
    assert not np.array_equal(fit(1, 1).output_weights_, models[0].output_weights_)
    global_state = np.random.get_state()[1].copy()  # noqa: NPY002
    fit(0, 1)
    np.testing.assert_array_equal(np.random.get_state()[1], global_state)  # noqa: NPY002


def test_another_process_fits_the_same_model(friedman, tmp_path):
    """With another number of threads, by the variable."""
    X, y, _, _ = friedman
    np.savez(tmp_path / "data.npz", X=X, y=y)
    code = """
import sys, numpy as np
from rflaf import RFLAFRegressor
data = np.load(sys.argv[1] + "/data.npz")
model = RFLAFRegressor(
    n_components=40, max_iter=10, n_members=2, input_form="raw", random_state=0
).fit(data["X"], data["y"])
print(model.output_weights_.tobytes().hex())
"""
    source = str(Path(rflaf.__file__).parent.parent)
    found = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": source, "RFLAF_NUM_THREADS": count},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.strip()
        for count in ("1", "2")
    }
    assert found == {regressor().fit(X, y).output_weights_.tobytes().hex()}
