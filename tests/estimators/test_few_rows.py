"""Models of few rows: as good as what suits them, and never far off."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_friedman1, make_regression
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss

from rflaf import Activation, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import RBF, Polynomial


@pytest.mark.parametrize("n", [30, 60, 90])
def test_a_linear_target_is_seen_to_be_linear(n):
    X, y = make_regression(n + 500, 10, noise=50, random_state=2)
    line = RidgeCV(np.logspace(-4, 4, 17)).fit(X[:n], y[:n])
    model = RFLAFRegressor(300, random_state=0).fit(X[:n], y[:n])
    slack = 0.15 if n < 50 else 0.05
    assert model.score(X[n:], y[n:]) > line.score(X[n:], y[n:]) - slack


def test_a_curved_target_is_seen_to_be_curved(rng):
    x = rng.uniform(-1, 1, (560, 1))
    y = np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(560)
    assert RFLAFRegressor(random_state=0).fit(x[:60], y[:60]).score(x[60:], y[60:]) > 0.95


def test_ninety_rows_are_enough_to_learn_from():
    """Where all rows chose the activation, interpolations were taken, far off on new rows."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        X = rng.standard_normal((1090, 4))
        y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(len(X))
        model = RFLAFRegressor(random_state=seed).fit(X[:90], y[:90])
        assert model.score(X[90:], y[90:]) > 0.8


@pytest.mark.parametrize("m", [35, 40, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_as_many_features_as_rows_do_no_harm(m, seed):
    """Noise among few rows, where an interpolation is within reach."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + rng.standard_normal(40)
    new = rng.standard_normal((1000, 5))
    model = RFLAFRegressor(m, random_state=0).fit(X, y)
    assert np.mean((model.predict(new) - new[:, 0]) ** 2) < 1.5


@pytest.mark.parametrize("weight", [1e-9, 1.5, 1e200])
def test_the_unit_of_weights_is_of_no_account(rng, weight):
    X, new = rng.standard_normal((60, 5)), rng.standard_normal((500, 5))
    y = X[:, 0] + 0.5 * rng.standard_normal(60)
    plain = RFLAFRegressor(200, random_state=0).fit(X, y)
    model = RFLAFRegressor(200, random_state=0).fit(X, y, np.full(60, weight))
    np.testing.assert_allclose(model.predict(new), plain.predict(new), rtol=1e-6, atol=1e-8)
    assert np.mean((plain.predict(new) - new[:, 0]) ** 2) < 0.5
    classes = RFLAFClassifier(200, class_weight={0: 1, 1: 5}, random_state=0).fit(X, y > 0)
    assert classes.score(new, new[:, 0] > 0) > 0.6


@pytest.mark.filterwarnings("ignore:partial_fit started with:UserWarning")
def test_rows_that_are_added_choose_the_penalty_anew(rng):
    X, new = rng.standard_normal((95, 5)), rng.standard_normal((500, 5))
    y = X[:, 0] + 0.5 * rng.standard_normal(95)
    for k in (2, 3, 10):
        model = RFLAFRegressor(200, random_state=0).partial_fit(X[:k], y[:k])
        model.partial_fit(X[k:], y[k:])
        assert np.mean((model.predict(new) - new[:, 0]) ** 2) < 1


def test_order_and_shift_of_two_rows_do_not_matter(rng):
    X, y = rng.standard_normal((2, 3)), rng.standard_normal(2)
    new = rng.standard_normal((5, 3))
    found = [
        RFLAFRegressor(50, random_state=0).fit(X[order], y[order] + shift).predict(new) - shift
        for order in ([0, 1], [1, 0])
        for shift in (0, 1)
    ]
    np.testing.assert_allclose(found[1:], [found[0]] * 3, atol=1e-6)


def test_warm_start_does_not_go_on_from_what_was_not_learned():
    X, y = make_friedman1(600, noise=0.5, random_state=0)
    flat = np.full(50, 3.0)
    options = {"metric": "full", "input_form": "raw", "n_members": 2, "random_state": 0}
    for first in ({"max_iter": 0}, {}):
        model = RFLAFRegressor(100, warm_start=True, **options)
        rows = (X, y) if first else (X[:50], flat)
        model.set_params(**first).fit(*rows).set_params(max_iter=10).fit(X, y)
        fresh = RFLAFRegressor(100, max_iter=10, **options).fit(X, y)
        assert model.metric_.shape == (10, 10)
        np.testing.assert_allclose(model.predict(X), fresh.predict(X), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")
def test_an_activation_of_ones_own_that_is_replaced():
    X, y = make_friedman1(200, noise=0.5, random_state=0)
    model = RFLAFRegressor(50, warm_start=True, random_state=0, max_iter=4, n_members=2)
    for a in (np.ones(9), np.linspace(-1, 1, 9)):
        model.set_params(activation=Activation(RBF(9), a)).fit(X, y)
        np.testing.assert_array_equal(model.activation_.coefficients, a)


def test_overflow_is_named_with_few_rows_too(rng):
    X = rng.standard_normal((60, 2)).astype(np.float32)
    X[0] *= 4
    powers = Activation(Polynomial(400), np.ones(400))
    for model in (RFLAFRegressor, RFLAFClassifier):
        with pytest.raises(ValueError, match="The features overflow"):
            model(50, activation=powers, metric="none", random_state=0).fit(X, X[:, 0] > 0)


def test_all_steps_are_in_the_history():
    X, y = make_friedman1(420, noise=0.5, random_state=0)
    model = RFLAFRegressor(50, max_iter=16, tol=0, random_state=0).fit(X, y)
    assert model.form_path_  # trials have no part in it
    assert 8 < len(model.history_) == model.n_iter_ <= 16


def test_probabilities_of_few_rows_are_not_sure_of_themselves():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    for n in (40, 80, 130):
        model = RFLAFClassifier(300, random_state=0).fit(X[:n], y[:n])
        assert log_loss(y[n:], model.predict_proba(X[n:])) < 0.35


def test_more_unknowns_than_rows_can_tell_are_not_taken():
    scores = []
    for seed in range(3):
        X, y = make_friedman1(1420, noise=1.0, random_state=seed)
        model = RFLAFRegressor(300, random_state=0).fit(X[:420], y[:420])
        scores.append(model.score(X[420:], y[420:]))
    assert min(scores) > 0.85


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "gamma"])
@pytest.mark.parametrize("n", [3, 12])
def test_intervals_of_few_rows_are_no_surer_than_the_rows_allow(loss, n):
    """A model that passes through its rows has no errors there, whatever they are elsewhere."""
    covered = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((n + 200, 3)), np.exp(rng.standard_normal(n + 200) / 3)
        model = RFLAFRegressor(loss=loss, random_state=0).fit(X[:n], y[:n])
        low, high = model.predict_interval(X[n:], 0.9)
        covered.append(np.mean((low <= y[n:]) & (y[n:] <= high)))
    assert np.mean(covered) > 0.65


def test_a_count_that_stands_alone_is_no_obstacle():
    X = np.arange(6.0)[:, None]
    with pytest.warns(UserWarning, match="one positive target"):
        model = RFLAFRegressor(loss="poisson", random_state=0).fit(X, [0, 0, 0, 2, 0, 0])
    assert np.isfinite(model.predict_std(X)).all()
