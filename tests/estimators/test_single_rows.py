"""A few rows take a shorter way to the same bits, and to the same errors."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from rflaf import RFLAFClassifier, RFLAFRegressor, load, save
from rflaf.bases import Fixed

SMALL = {"n_components": 40, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(3).standard_normal((200, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2


@pytest.fixture(scope="module")
def model(rows):
    return RFLAFRegressor(**SMALL, n_members=3, input_form="both").fit(*rows)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "options",
    [
        {"n_members": 1},
        {"n_members": 3, "input_form": "both"},
        {"n_members": 2, "input_form": "ranks"},
        {"n_members": 1, "activation": "tanh"},
        {"n_members": 1, "activation": Fixed("cos", phase=0.3)},
    ],
    ids=repr,
)
def test_the_same_bits(options, dtype, rows, monkeypatch):
    X, y = rows
    X = X.astype(dtype)
    model = RFLAFRegressor(**SMALL, **options).fit(X, y)
    short = [model.predict(X[i : i + k]) for i, k in ((0, 1), (5, 1), (10, 7))]
    monkeypatch.setattr(RFLAFRegressor, "_needs_no_checks", lambda self, X: False)
    long = [model.predict(X[i : i + k]) for i, k in ((0, 1), (5, 1), (10, 7))]
    for one, other in zip(short, long, strict=True):
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_array_equal(one, other)


def test_classes_too(rows, monkeypatch):
    X, y = rows
    model = RFLAFClassifier(**SMALL, n_members=2).fit(X, np.digitize(y, [0.0, 1.0]))
    short = model.predict_proba(X[:1])
    monkeypatch.setattr(RFLAFClassifier, "_needs_no_checks", lambda self, X: False)
    np.testing.assert_array_equal(model.predict_proba(X[:1]), short)


def test_rows_that_are_cut_out_of_others(model, rows):
    """Rows that lie apart in memory, or the wrong way round."""
    X, _ = rows
    expected = model.predict(X[:6:2].copy())
    np.testing.assert_array_equal(model.predict(X[:6:2]), expected)
    np.testing.assert_array_equal(model.predict(np.asfortranarray(X[:6:2])), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x + np.inf, "contains infinity"),
        (lambda x: x[:, :3], "3 features"),
        (lambda x: x[0], "2D array"),
        (lambda x: x[:0], "0 sample"),
    ],
)
def test_the_same_errors(change, message, model, rows):
    with pytest.raises(ValueError, match=message):
        model.predict(change(rows[0][:1]))


def test_not_fitted(rows):
    with pytest.raises(NotFittedError):
        RFLAFRegressor().predict(rows[0][:1])


def test_names_of_columns_are_still_asked_for(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = RFLAFRegressor(**SMALL, n_members=1).fit(frame, y)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X[:1])


def test_nothing_that_was_prepared_is_saved(model, rows, tmp_path):
    fresh = pickle.loads(pickle.dumps(model))
    size = len(pickle.dumps(fresh))
    expected = fresh.predict(rows[0][:1])
    assert len(pickle.dumps(fresh)) == size
    save(fresh, tmp_path / "m")
    again = load(tmp_path / "m")
    assert all(
        set(vars(m)) == {"layer", "coef", "intercept", "alpha", "weight", "local"}
        for m in again.members_
    )
    np.testing.assert_array_equal(again.predict(rows[0][:1]), expected)
