"""Weights, sizes and first rows at the edge: the model, or an error that names the cause."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import RBF
from rflaf.fitting import FitSettings, budget
from rflaf.rows import ArrayRows, Arrays

SMALL = {"n_components": 30, "n_members": 1, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(3).uniform(-1, 1, (200, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1]


# ---- weights


@pytest.mark.parametrize("weight", [1e38, 1e300, 1e-300, 1e-320])
def test_the_unit_of_the_weights_is_of_no_account(weight, rows):
    X, y = rows
    plain = RFLAFRegressor(**SMALL).fit(X, y).predict(X)
    heavy = RFLAFRegressor(**SMALL).fit(X, y, sample_weight=np.full(len(y), weight))
    np.testing.assert_array_equal(heavy.predict(X), plain)
    classes = (y > 0).astype(int)
    plain = RFLAFClassifier(**SMALL).fit(X, classes).predict_proba(X)
    heavy = RFLAFClassifier(**SMALL).fit(X, classes, sample_weight=np.full(len(y), weight))
    np.testing.assert_array_equal(heavy.predict_proba(X), plain)


def test_some_rows_weigh_far_more_than_others(rows):
    X, y = rows
    weights = np.where(np.arange(len(y)) < 100, 1e38, 1.0)
    model = RFLAFRegressor(**SMALL).fit(X, y, sample_weight=weights)
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X[:100], y[:100]) > 0.9


@pytest.mark.parametrize("weight", [1e38, 1e-38])
def test_rows_in_parts_name_the_weights(weight, rows):
    X, y = rows
    weights = np.full(len(y), weight)
    with pytest.raises(ValueError, match=r"largest 'sample_weight' must lie between 1e-20 and"):
        RFLAFRegressor(**SMALL).fit(Arrays(X, y, weights))
    with pytest.raises(ValueError, match=r"largest 'sample_weight' must lie.* divide all weights"):
        RFLAFRegressor(**SMALL).partial_fit(X, y, weights)


def test_later_parts_name_the_weights_too(rows):
    X, y = rows
    model = RFLAFRegressor(**SMALL).partial_fit(X[:150], y[:150])
    before = model.predict(X)
    with pytest.raises(ValueError, match="largest 'sample_weight'"):
        model.partial_fit(X[150:], y[150:], np.full(50, 1e38))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("unit", [1e300, 1e38, 1e-300])
def test_the_unit_of_class_weights(unit, rows):
    X, y = rows
    classes = (y > 0).astype(int)
    plain = RFLAFClassifier(**SMALL, class_weight={0: 1.0, 1: 0.5}).fit(X, classes)
    heavy = RFLAFClassifier(**SMALL, class_weight={0: unit, 1: 0.5 * unit}).fit(X, classes)
    np.testing.assert_allclose(heavy.predict_proba(X), plain.predict_proba(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({0: 1e300, 1: 1e-300}, "'class_weight' must not differ by more than .* 1e-300 and 1e"),
        ({0: np.inf, 1: 1.0}, "'class_weight' must be finite"),
        ({0: 1.0, 1: np.nan}, "'class_weight' must be finite"),
    ],
)
def test_class_weights_that_cannot_be_meant(weights, message, rows):
    X, y = rows
    with pytest.raises(ValueError, match=message):
        RFLAFClassifier(**SMALL, class_weight=weights).fit(X, (y > 0).astype(int))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_classes_have_one_message(missing, rows):
    X, y = rows
    classes = np.where(y > 0, "yes", "no").astype(object)
    classes[7] = missing
    for given in ((X, classes), (Arrays(X, classes),)):
        with pytest.raises(ValueError, match=r"contains missing classes \(None or NaN\)"):
            RFLAFClassifier(**SMALL).fit(*given)


# ---- sizes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RFLAFRegressor(10**9), "n_components=1000000000, .* needs at least .* GB free"),
        (lambda: RFLAFRegressor(10**9, solver="cg"), "n_components=1000000000, .* GB free"),
        (lambda: RFLAFRegressor(10**9, solver="ridge"), "n_components=1000000000 needs .* GB"),
        (lambda: RFLAFClassifier(10**9), "n_components=1000000000 needs .* GB"),
        (lambda: RFLAFRegressor(n_basis=10**7), r"n_basis=10000000 needs .* enough for n_basis="),
        (lambda: RFLAFRegressor(n_basis=10**12), "n_basis=1000000000000 needs .* GB"),
        (lambda: RandomFeatures(10**10), "n_components=10000000000 needs .* GB"),
    ],
    ids=["auto", "cg", "ridge", "classes", "basis", "huge basis", "features"],
)
def test_absurd_sizes_are_refused_before_anything_is_drawn(make, message, rows):
    X, y = rows
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=message):
            make().fit(X, y > 0)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("solver", ["ridge", "cg", "auto"])
def test_what_is_free_decides(solver, rows, monkeypatch):
    X, y = rows
    monkeypatch.setattr(budget, "free_bytes", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"needs at least .* There are 1e-05 GB free"):
        RFLAFRegressor(**SMALL, solver=solver, n_basis=4).fit(X, y)


def test_members_multiply(monkeypatch):
    x = np.zeros((9000, 5))
    sample = ArrayRows(x, x[:, 0], np.ones(9000)).sample(lambda _: 10**6, 0)
    settings = FitSettings(n_components=2000, basis=RBF(8), seed=0)
    gram = 8 * 2001**2
    monkeypatch.setattr(budget, "free_bytes", lambda: 6 * gram)
    budget.check_fit(sample, 1, settings, folds=1)
    with pytest.raises(MemoryError, match="n_members=5 "):
        budget.check_fit(sample, 1, settings, folds=5)
    with pytest.raises(MemoryError, match="n_members=2 "):  # of two teams
        budget.check_fit(sample, 1, replace(settings, mixes=True), folds=1)
    monkeypatch.setattr(budget, "free_bytes", lambda: 4 * gram)
    with pytest.raises(MemoryError, match="n_members=1 "):
        budget.check_fit(sample, 1, settings, folds=1)


# ---- even activations


@pytest.mark.parametrize("activation", ["cos", "gaussian"])
def test_even_activations_learn_odd_functions(activation, rows):
    X, y = rows
    model = RFLAFRegressor(60, n_members=1, activation=activation, random_state=0)
    assert model.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.95
    features = RandomFeatures(60, activation=activation, random_state=0)
    linear = make_pipeline(features, RidgeCV(np.logspace(-6, 3, 10))).fit(X[:150], y[:150])
    assert linear.score(X[150:], y[150:]) > 0.95


# ---- partial_fit


def test_a_handful_of_first_rows_is_warned_of(rows):
    X, y = rows
    with pytest.warns(UserWarning, match=r"started with 5 rows .* pass 1,000 rows or more"):
        RFLAFRegressor(**SMALL).partial_fit(X[:5], y[:5])


def test_a_hundred_are_not(rows, recwarn):
    X, y = rows
    RFLAFRegressor(**SMALL).partial_fit(X[:100], y[:100])
    assert not [w for w in recwarn if "partial_fit" in str(w.message)]
