"""solver='cg': the regressor without a Gram matrix."""

import sys

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.utils import check_random_state

from rflaf import RFLAFRegressor
from rflaf.fitting import budget
from rflaf.fitting.budget import takes_cg
from rflaf.inputs.forms import FORMS
from rflaf.projection import draw
from rflaf.rows import Blocks
from rflaf.solvers.features import apply_metric

FIT = sys.modules["rflaf.fitting.fit"]  # the package has a function of this name
FAST = {
    "n_components": 120, "max_iter": 4, "n_members": 1, "input_form": "raw", "random_state": 0
}  # fmt: skip


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(500, noise=0.5, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
def test_it_agrees_with_ridge_at_the_same_penalty(friedman, outputs, fit_intercept):
    X, y, X_test, _ = friedman
    Y = y if outputs == 1 else np.column_stack([y, X[:, 0] - y])
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    options = {**FAST, "alpha": 1e-2, "fit_intercept": fit_intercept}
    ridge, cg = (
        RFLAFRegressor(solver=solver, **options).fit(X, Y, sample_weight=weights)
        for solver in ("ridge", "cg")
    )
    expected, got = ridge.predict(X_test), cg.predict(X_test)
    assert got.shape == expected.shape
    assert cg.output_weights_.shape == ridge.output_weights_.shape
    assert np.shape(cg.intercept_) == np.shape(ridge.intercept_)
    assert np.linalg.norm(got - expected) < 1e-3 * np.linalg.norm(expected - expected.mean(0))


def test_penalty_noise_and_seed(friedman):
    X, y, X_test, y_test = friedman
    first, second = (RFLAFRegressor(solver="cg", **FAST).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.output_weights_, second.output_weights_)
    tried = [record["alpha"] for record in first.alpha_path_]
    assert min(tried) <= first.alpha_ <= max(tried)
    assert 0.3 < first.noise_ < 3
    assert first.score(X_test, y_test) > 0.8
    assert len(first.history_) > 0


def test_what_it_cannot_do(friedman):
    X, y, _, _ = friedman
    model = RFLAFRegressor(solver="cg", **FAST)
    with pytest.raises(ValueError, match=r"partial_fit takes solver 'auto' or 'ridge'. Got 'cg'"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"solver='cg' takes n_members=1. Got n_members=2"):
        model.set_params(n_members=2).fit(X, y)


def test_it_has_one_member_unless_told_otherwise(friedman):
    """And rows that it has not seen, which tell its deviation and its score."""
    X, y, X_test, y_test = friedman
    model = RFLAFRegressor(solver="cg", **{**FAST, "n_members": "auto"}).fit(X, y)
    assert len(model.members_) == 1
    prediction, std = model.predict(X_test, return_std=True)
    np.testing.assert_allclose(std, std[0])
    assert std[0] == pytest.approx(model.noise_, rel=0.05)  # the shape of the errors is smoothed
    assert np.mean(np.abs(prediction - y_test) < 1.96 * std) > 0.85
    assert 0.5 < model.oof_score_ < 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_every_form_of_the_inputs(friedman, form, outputs):
    X, y, X_test, _ = friedman
    Y = y if outputs == 1 else np.column_stack([y, X[:, 0] - y])
    options = {**FAST, "input_form": form, "alpha": 1e-2}
    ridge, cg = (RFLAFRegressor(solver=solver, **options).fit(X, Y) for solver in ("ridge", "cg"))
    expected, got = ridge.predict(X_test), cg.predict(X_test)
    assert np.linalg.norm(got - expected) < 1e-2 * np.linalg.norm(expected - expected.mean(0))


@pytest.mark.parametrize("n", [1, 5, 40])
def test_few_rows(friedman, n):
    X, y, X_test, _ = friedman
    model = RFLAFRegressor(solver="cg", **FAST).fit(X[:n], y[:n])
    assert np.isfinite(model.predict(X_test)).all()


def test_auto_takes_what_fits_and_is_cheaper():
    assert takes_cg("cg", 1000, 10, None)
    assert not takes_cg("ridge", 10**6, 10**6, None)
    assert not takes_cg("auto", 10**6, 1000, None)
    assert takes_cg("auto", 36_000, 30_000, 10**12)
    assert not takes_cg("auto", 10**7, 6000, 10**12)
    assert takes_cg("auto", 10**7, 6000, 10**9)


def test_auto_fits_what_the_memory_does_not_allow_otherwise(friedman):
    X, y, X_test, y_test = friedman
    model = RFLAFRegressor(**FAST, max_bytes=10**5).fit(X, y)
    assert "steps" in model.alpha_path_[0]
    assert model.score(X_test, y_test) > 0.8
    with pytest.raises(MemoryError, match="n_components=120"):
        RFLAFRegressor(**FAST, solver="ridge", max_bytes=10**5).fit(X, y)


def test_a_source_gives_the_model_of_the_arrays(friedman, monkeypatch):
    X, y, X_test, _ = friedman
    monkeypatch.setattr(budget, "sample_rows", lambda *_: 300)
    options = {**FAST, "solver": "cg"}
    whole = RFLAFRegressor(**options).fit(X, y)
    streamed = RFLAFRegressor(**options).fit(Blocks([(X[:150], y[:150]), (X[150:], y[150:])]))
    expected = whole.predict(X_test)
    np.testing.assert_allclose(streamed.predict(X_test), expected, atol=1e-3 * expected.std())


def test_the_scale_of_the_metric_is_chosen_at_full_width(friedman, monkeypatch):
    """What is stored agrees with what the weights were found for, and "none" is left alone."""
    X, y, X_test, y_test = friedman

    learn_layers = FIT.learn_layers

    def learn_too_small(*arguments):
        return [each.scaled(0.5, X, np.random.default_rng(0)) for each in learn_layers(*arguments)]

    monkeypatch.setattr(FIT, "learn_layers", learn_too_small)
    model = RFLAFRegressor(solver="cg", **FAST).fit(X, y)
    tried = [record["scale"] for record in model.alpha_path_]
    assert {1.0, 1.25} <= set(tried)
    best = min(model.alpha_path_, key=lambda record: record["loss"])
    assert best["scale"] > 1.0
    seed = check_random_state(0).randint(np.iinfo(np.int32).max)
    w = draw("gaussian", X.shape[1], 120, np.random.default_rng(seed), np.float32)
    drawn = np.linalg.solve(apply_metric(model.metric_, np.eye(len(w))), model.components_)
    # rows of W go to columns by what these are, and not by their order
    by_first = [rows[np.argsort(rows[:, 0])] for rows in (drawn, w)]
    np.testing.assert_allclose(*by_first, atol=1e-3)
    assert model.score(X_test, y_test) > 0.8
    plain = RFLAFRegressor(solver="cg", metric="none", **FAST).fit(X, y)
    assert {record["scale"] for record in plain.alpha_path_} == {1.0}
