"""Fits on a cluster give the model of one machine."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import pytest
from sklearn.exceptions import NotFittedError

from rflaf import RFLAFClassifier, RFLAFRegressor, load, save
from rflaf.dask import DaskRFLAFClassifier, DaskRFLAFRegressor
from rflaf.dask.estimators import predict_rows
from tests.dask.conftest import OPTIONS, N, assert_near, uneven, unknown

pytestmark = pytest.mark.filterwarnings(
    "ignore:Only .* of the projected inputs:UserWarning",
    "ignore::ResourceWarning",  # sockets of processes that were killed
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


def test_regression(client, rows):
    X, y, weights = rows
    Y = np.column_stack([y, X[:, 0]])
    plain = RFLAFRegressor(**OPTIONS).fit(X, Y, sample_weight=weights)
    model = DaskRFLAFRegressor(**OPTIONS)
    # columns in chunks of their own, targets cut elsewhere
    model.fit(uneven(X, (2, 1)), da.from_array(Y, chunks=(777, 1)), uneven(weights))
    assert_near(model, plain)
    prediction, std = model.predict(uneven(X), return_std=True)
    assert isinstance(prediction, da.Array)
    assert prediction.shape == std.shape == (N, 2)
    expected, expected_std = plain.predict(X, return_std=True)
    with pytest.raises(TypeError, match="take arrays in memory"):
        model.predict_interval(uneven(X))
    near = 1e-6 * np.abs(expected).max()  # members' weights are rounded to float32
    np.testing.assert_allclose(prediction.compute(), expected, rtol=1e-6, atol=near)
    # a regression of the logarithm of errors, some of them near 0, magnifies their rounding
    np.testing.assert_allclose(std.compute(), expected_std, rtol=5e-3)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6, atol=near)


@pytest.mark.parametrize("make", [DaskRFLAFRegressor, DaskRFLAFClassifier])
def test_teams(make, client, rows, two_teams):
    X, y, weights = rows
    y = y + np.floor(3 * X[:, 0]) % 2 + np.floor(2 * X[:, 1]) % 2
    plain = RFLAFRegressor(**OPTIONS, alpha=1e-2)  # a small one makes more of rounding
    if make is DaskRFLAFClassifier:
        plain, y = RFLAFClassifier(**OPTIONS, alpha=1e-2), y > np.median(y)
    plain.fit(X, y, sample_weight=weights)
    model = make(**plain.get_params()).fit(uneven(X), uneven(y), uneven(weights))
    assert {member.layer.form.smooth for member in model.members_} == {True, False}
    rtol = 1e-9 if make is DaskRFLAFRegressor else 1e-4  # logistic regression stops near its least
    assert_near(model, plain, rtol)
    for mine, its in zip(model.members_, plain.members_, strict=True):
        assert mine.weight == its.weight
        assert mine.layer.form.name == its.layer.form.name
        size = np.abs(its.coef).max()
        np.testing.assert_allclose(mine.coef, its.coef, rtol=rtol, atol=rtol * size)


def test_unknown_chunks(client, rows):
    X, y, _ = rows
    model = DaskRFLAFRegressor(**OPTIONS).fit(unknown(uneven(X)), unknown(uneven(y)))
    plain = RFLAFRegressor(**OPTIONS).fit(X, y)
    assert_near(model, plain)
    prediction = model.predict(unknown(uneven(X.astype(np.float32))))
    assert np.isnan(prediction.shape[0])
    assert prediction.dtype == np.float64
    np.testing.assert_allclose(prediction.compute(), plain.predict(X), rtol=1e-3, atol=1e-3)


def test_frames(client, rows, tmp_path):
    X, y, weights = rows
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    parts = [frame[:1000], frame[:0], frame[1000:]]
    frames = dd.from_map(lambda k: parts[k], range(3), meta=frame[:0])
    others = [
        dd.from_map(lambda k, s=s: [s[:1000], s[:0], s[1000:]][k], range(3), meta=s[:0])
        for s in (pandas.Series(y, name="y"), pandas.Series(weights, name="w"))
    ]
    model = DaskRFLAFRegressor(**OPTIONS).fit(frames, *others)
    plain = RFLAFRegressor(**OPTIONS).fit(frame, y, sample_weight=weights)
    assert_near(model, plain)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    prediction = model.predict(frames).compute()
    expected = plain.predict(frame)
    near = 1e-6 * np.abs(expected).max()  # members' weights are rounded to float32
    np.testing.assert_allclose(prediction, expected, rtol=1e-6, atol=near)
    local = model.to_local()
    assert type(local) is RFLAFRegressor
    np.testing.assert_array_equal(local.predict(frame), model.predict(frame))
    save(local, tmp_path / "model.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "model.skops").predict(frame), local.predict(frame)
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frames[["b", "a", "c"]]).compute()


@pytest.mark.parametrize(
    "given",
    [{"loss": "poisson"}, {"loss": "gamma"}, {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}],
    ids=lambda given: given["loss"],
)
def test_other_losses(given, client, rows):
    X, y, weights = rows
    target = np.exp(y)
    options = {**OPTIONS, "alpha": 1e-2, **given}
    plain = RFLAFRegressor(**options).fit(X, target, sample_weight=weights)
    model = DaskRFLAFRegressor(**options).fit(uneven(X), uneven(target), uneven(weights))
    prediction, expected = model.predict(uneven(X)).compute(), plain.predict(X)
    assert prediction.shape == expected.shape
    np.testing.assert_allclose(prediction, expected, atol=1e-3 * np.ptp(target))


@pytest.mark.parametrize("alpha", [1e-2, 1e-4, "auto"])
@pytest.mark.parametrize("names", [["in", "outside"], [3, 1, 7]])
def test_classes(names, alpha, client, rows):
    X, y, weights = rows
    labels = np.array(names)[np.digitize(y, [0.5, 1.0][: len(names) - 1])]
    options = {**OPTIONS, "alpha": alpha, "class_weight": "balanced"}
    plain = RFLAFClassifier(**options).fit(X, labels, sample_weight=weights)
    model = DaskRFLAFClassifier(**options).fit(uneven(X), uneven(labels), uneven(weights))
    # next to no penalty leaves directions in which a step more or less changes the weights alone
    assert_near(model, plain, rtol=1e-9 if model.alpha_ >= 1e-4 else 1e-2)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    p = model.predict_proba(uneven(X))
    assert p.shape == (N, len(names))
    np.testing.assert_allclose(p.compute(), plain.predict_proba(X), atol=2e-5)
    agree = model.predict(uneven(X)).compute() == plain.predict(X)
    assert agree.mean() > 0.999
    scores = model.decision_function(uneven(X))
    assert scores.shape == plain.decision_function(X).shape
    logs = model.predict_log_proba(uneven(X)).compute()
    np.testing.assert_allclose(np.exp(logs), p.compute(), rtol=1e-6)


@pytest.mark.parametrize("names", [["in", "outside"], [3, 1, 7]])
def test_no_more_rows_than_the_sample_has_give_the_very_same_model(names, client, rows):
    X, y, _ = rows
    labels = np.array(names)[np.digitize(y, [0.5, 1.0][: len(names) - 1])]
    few = slice(0, 300)
    small = DaskRFLAFClassifier(**OPTIONS).fit(uneven(X)[few], uneven(labels)[few])
    assert_near(small, RFLAFClassifier(**OPTIONS).fit(X[few], labels[few]), rtol=0)


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
def test_conjugate_gradients(fit_intercept, client, rows):
    X, y, weights = rows
    Y = np.column_stack([y, X[:, 0]])
    options = {**OPTIONS, "solver": "cg", "alpha": 1e-2, "fit_intercept": fit_intercept}
    plain = RFLAFRegressor(**options).fit(X, Y, sample_weight=weights)
    model = DaskRFLAFRegressor(**options).fit(uneven(X), uneven(Y, 2), uneven(weights))
    assert model.activation_ == plain.activation_
    assert model.alpha_ == plain.alpha_
    np.testing.assert_array_equal(model.metric_, plain.metric_)
    expected = plain.predict(X)
    got = model.predict(uneven(X)).compute()
    np.testing.assert_allclose(got, expected, atol=1e-3 * expected.std())


def test_conjugate_gradients_that_held_out_rows_stop(client, rows):
    """As good as on one machine; the same to rounding it is not.

    When to stop and which penalty to try next hang on differences of losses that are as small as
    what float32 makes of other blocks, on one machine too.
    """
    X, y, weights = rows
    options = {**OPTIONS, "solver": "cg", "metric": "none"}
    plain = RFLAFRegressor(**options).fit(X, y, sample_weight=weights)
    model = DaskRFLAFRegressor(**options).fit(uneven(X), uneven(y), uneven(weights))
    assert model.activation_ == plain.activation_
    assert model.score(X, y) == pytest.approx(plain.score(X, y), abs=3e-3)
    assert {"alpha", "loss", "steps"} <= model.alpha_path_[0].keys()


def test_predictions_need_a_fit(rows):
    for model in (DaskRFLAFRegressor(), DaskRFLAFClassifier()):
        with pytest.raises(NotFittedError):
            model.predict(uneven(rows[0]))


def test_a_partition_without_rows(rows):
    X, y, _ = rows
    model = RFLAFRegressor(**OPTIONS).fit(pandas.DataFrame(X, columns=["a", "b", "c"]), y)
    empty = pandas.DataFrame(X[:0], columns=["a", "b", "c"])
    assert predict_rows(model, empty, "predict").shape == (0,)
    model = RFLAFRegressor(**OPTIONS).fit(X, y)
    for dtype in (np.float32, np.float64):
        assert predict_rows(model, X[:0].astype(dtype), "predict").dtype == np.float64


def test_deviations_are_lazy_and_categories_are_refused(client, rows):
    X, y = rows[:2]
    lazy = da.from_array(X, chunks=(400, X.shape[1]))
    model = DaskRFLAFRegressor(n_components=20, max_iter=2, random_state=0)
    model.fit(lazy, da.from_array(y, chunks=400))
    np.testing.assert_allclose(model.predict_std(lazy).compute(), model.predict_std(X), rtol=1e-6)
    model.set_params(categorical_features=[0])
    with pytest.raises(ValueError, match="takes numbers, and no 'categorical_features'"):
        model.fit(lazy, da.from_array(y, chunks=400))
