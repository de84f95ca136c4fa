"""Attributions that add up, gradients, and the spread of importances."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import rflaf
from rflaf import RFLAFRegressor
from rflaf.bases import BSpline
from rflaf.fitting import attribution
from tests.estimators.conftest import classifier, regressor


def scores(model, X):
    if hasattr(model, "classes_"):
        return model.decision_function(X)
    return model.predict(X)


def assert_adds_up(model, X, background=None, tol=1e-9):
    why = model.explain(X, background)
    found = scores(model, X)
    unit = max(float(np.abs(found).max()), 1e-300)
    np.testing.assert_allclose(why.values.sum(axis=1) + why.base_values, found, atol=tol * unit)
    return why


@pytest.fixture(scope="module")
def frame():
    """Numbers with gaps, a boolean, categories of few and of many levels, a date."""
    rng = np.random.default_rng(3)
    n = 600
    town = rng.integers(0, 120, n)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(size=n)),
            "rooms": rng.integers(1, 9, n),
            "new": rng.random(n) < 0.3,
            "kind": pd.Categorical(rng.choice(["flat", "house", "hut"], n)),
            "town": pd.Categorical([f"town {k}" for k in town]),
            "built": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
            "noise": rng.standard_normal(n),
        }
    )
    y = table["rooms"] + 2.0 * (table["kind"] == "hut") + np.sin(town) + table["size"].fillna(0)
    return table, y.to_numpy()


@pytest.mark.parametrize("form", ["raw", "both", "ranks", "bins"])
@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_attributions_add_up_in_every_form(form, metric, friedman):
    X, y, X_new, _ = friedman
    model = regressor(input_form=form, metric=metric).fit(X, y)
    why = assert_adds_up(model, X_new)
    assert why.values.shape == X_new.shape
    assert np.abs(why.values[:, :5]).mean() > 1.8 * np.abs(why.values[:, 5:]).mean()
    np.testing.assert_allclose(why.base_values, model.predict(model.background_).mean())


def test_little_is_left_to_spread(friedman, monkeypatch):
    """The closed form itself adds up, to rounding."""
    X, y, X_new, _ = friedman
    left = []

    def completed(found, wanted):
        left.append(np.abs(wanted - found.sum(axis=1)).max())
        return found

    monkeypatch.setattr(attribution, "_completed", completed)
    for form in ("raw", "both", "bins"):
        regressor(input_form=form, n_components=200).fit(X, y).explain(X_new)
    assert max(left) < 1e-5 * y.std()


def test_they_are_integrals_of_gradients(friedman):
    """Against the definition: the mean gradient on the line from each background row."""
    X, y, X_new, _ = friedman
    model = regressor(input_form="raw").fit(X, y)
    x, others = X_new[:3], X_new[10:14]
    places = (np.arange(400) + 0.5) / 400
    expected = np.zeros_like(x)
    for b in others:
        for row, total in zip(x, expected):
            line = b + places[:, None] * (row - b)
            total += (row - b) * model.gradient(line).mean(axis=0) / len(others)
    found = model.explain(x, others).values
    np.testing.assert_allclose(found, expected, atol=2e-3 * y.std())


def test_frames_add_up(frame):
    X, y = frame
    model = RFLAFRegressor(60, n_members=2, max_iter=10, random_state=0).fit(X[:500], y[:500])
    why = assert_adds_up(model, X[500:])
    assert why.values.shape == (100, 7)
    assert why.feature_names == list(X)
    assert why.data.shape == (100, 7)
    assert np.abs(why.values).mean(axis=0)[1] > 5 * np.abs(why.values).mean(axis=0)[6]
    assert_adds_up(model, X[500:], background=X[X["kind"] == "hut"][:20])
    slopes = model.gradient(X[500:])
    numbers = [0, 1, 6]
    missing = X[500:].iloc[:, numbers].isna().to_numpy()
    assert missing.any()
    np.testing.assert_array_equal(np.isnan(slopes[:, numbers]), missing)
    assert np.isnan(slopes[:, [2, 3, 4, 5]]).all()


def test_classes_add_up(moons, three):
    for X, y, X_new, _ in (moons, three):
        model = classifier(input_form="both").fit(X, y)
        why = assert_adds_up(model, X_new)
        two = len(model.classes_) == 2
        assert why.values.shape == (*X_new.shape, *([] if two else [3]))
        assert why.output_names == (None if two else ["in", "on", "out"])
        assert model.gradient(X_new).shape == why.values.shape


def test_several_targets_add_up(friedman):
    X, y, X_new, _ = friedman
    model = regressor().fit(X, np.column_stack([y, 1e9 * y**2]))
    why = assert_adds_up(model, X_new)
    assert why.values.shape == (*X_new.shape, 2)
    assert why.base_values.shape == (len(X_new), 2)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_any_unit_of_the_target(unit, friedman):
    X, y, X_new, _ = friedman
    assert_adds_up(regressor().fit(X, unit * y), X_new)


@pytest.mark.filterwarnings("ignore:.*rows lie more than a standard deviation outside")
def test_rows_beyond_the_training_rows(rng):
    X = rng.uniform(0, 10, (1500, 3))
    y = 3 * X[:, 0] + np.sin(X[:, 1])
    model = RFLAFRegressor(100, n_members=2, max_iter=40, random_state=0).fit(X, y)
    assert model.outside_.slopes[1, 0, 0] > 1
    for factor in (1.2, 3, 1e9):
        far = X[:50] * factor
        far[::2, 1:] = X[:50:2, 1:]
        why = assert_adds_up(model, far)
        # what comes on top belongs to the column that went beyond
        near = far.copy()
        near[:, 0] = np.minimum(near[:, 0], 10)
        if factor == 1.2:
            moved = np.abs(why.values - model.explain(near).values)[::2]
            assert moved[:, 0].max() > 3
            assert moved[:, 1:].max() < 0.2
    beyond = np.array([[11.0, 5, 5], [-1.0, 5, 5], [1e12, 5, 5], [5, 12.0, 5]])
    assert_adds_up(model, X[:20], background=beyond)
    step = 1e-3
    for j in range(3):
        up, down = beyond.copy(), beyond.copy()
        up[:, j] += step
        down[:, j] -= step
        expected = (model.predict(up) - model.predict(down)) / (2 * step)
        np.testing.assert_allclose(model.gradient(beyond)[:, j], expected, atol=0.03)
    assert model.gradient(beyond)[2, 0] == 0  # the score has reached its bounds


def test_a_linear_function_has_its_own_attributions(rng):
    X = rng.uniform(-1, 1, (1000, 4))
    w = np.array([2.0, -1.0, 0.5, 0.0])
    model = RFLAFRegressor(200, n_members=2, random_state=0, max_iter=60).fit(X, X @ w)
    others = X[:30]
    found = model.explain(X[100:150], others).values
    expected = w * (X[100:150] - others.mean(axis=0))
    assert np.abs(found - expected).max() < 0.1
    assert np.abs(found[:, 3]).max() < 0.05
    np.testing.assert_allclose(model.gradient(X[100:110]).mean(axis=0), w, atol=0.1)


def test_gradients_are_zero_where_no_line_goes_on(friedman):
    X, y, _, _ = friedman
    model = RFLAFRegressor(60, n_members=1, random_state=0).fit(X, y)
    outside = model.outside_
    flat = {name: np.zeros_like(getattr(outside, name)) for name in ("slopes", "reach")}
    model.outside_ = dataclasses.replace(outside, **flat)
    rows = X[:20].copy()
    rows[:, 1] = outside.ends[1, 1] + 2 * outside.scale[1]
    found = model.gradient(rows)
    assert (found[:, 1] == 0).all()
    assert (found[:, 0] != 0).any()


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "relu", "cos"])
@pytest.mark.parametrize("form", ["raw", "both", "bins"])
def test_gradients_are_those_of_differences(activation, form, friedman):
    X, y, X_new, _ = friedman
    model = regressor(activation=activation, input_form=form, metric="diagonal").fit(X, y)
    rows, step = np.clip(X_new[:40], 0.02, 0.98), 1e-3
    found = model.gradient(rows)
    for j in (0, 3):
        up, down = rows.copy(), rows.copy()
        up[:, j] += step
        down[:, j] -= step
        expected = (model.predict(up) - model.predict(down)) / (2 * step)
        apart = np.abs(found[:, j] - expected) / np.abs(expected).max()
        assert np.median(apart) < 2e-3
        assert np.mean(apart > 0.02) < 0.3  # steps over the kinks of ranks, bins and relu


def test_rows_that_are_the_background_have_nothing_to_attribute(friedman):
    X, y, _, _ = friedman
    model = regressor().fit(X, y)
    np.testing.assert_allclose(model.explain(X[:1], X[:1]).values, 0, atol=1e-12)
    assert_adds_up(model, X[:5], X[:5])


def test_missing_values_and_constant_columns(friedman):
    X, y, X_new, _ = friedman
    X, X_new = X.copy(), X_new.copy()
    X[::7, 0] = X_new[::5, 0] = np.nan
    X[:, 9] = 3.0
    model = regressor().fit(X, y)
    why = assert_adds_up(model, X_new)
    assert np.abs(why.values[:, 9]).max() < 1e-3 * y.std()


def test_sparse_rows(rng):
    X = sparse.random_array((400, 20), density=0.2, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    model = regressor().fit(X, y)
    assert model.background_.shape == (64, 20)
    why = assert_adds_up(model, X[:30])
    assert why.values.shape == why.data.shape == (30, 20)
    assert model.gradient(X[:30]).shape == (30, 20)


def test_the_background_stays_with_the_model(friedman, tmp_path):
    X, y, X_new, _ = friedman
    model = regressor().fit(X, y)
    assert model.background_.shape == (64, 10)
    assert (model.background_[:, None] == X).all(axis=2).any(axis=1).all()  # rows of the fit
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.background_, model.background_)
    rflaf.save(model, tmp_path / "model.skops")
    loaded = rflaf.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.explain(X_new).values, model.explain(X_new).values)
    model.background_ = None  # left out of the file
    rflaf.save(model, tmp_path / "model.skops")
    loaded = rflaf.load(tmp_path / "model.skops")
    with pytest.raises(ValueError, match="pass 'background'"):
        loaded.explain(X_new)
    assert_adds_up(loaded, X_new, X[:10])


def test_more_rows_keep_the_background(friedman):
    X, y, X_new, _ = friedman
    model = regressor().partial_fit(X[:200], y[:200])
    before = model.background_
    model.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(model.background_, before)
    assert_adds_up(model, X_new)


def test_blocks_change_nothing(friedman, monkeypatch):
    X, y, X_new, _ = friedman
    model = regressor(input_form="bins").fit(X, y)
    whole = model.explain(X_new).values
    monkeypatch.setattr(attribution, "_BLOCK", 400)
    monkeypatch.setattr(attribution, "_ROOM", 1)
    np.testing.assert_allclose(model.explain(X_new).values, whole, atol=1e-5 * y.std())


@pytest.mark.parametrize(
    "activation", ["rbf", "bspline", "chebyshev", BSpline(9, degree=1), "relu"]
)
@pytest.mark.parametrize("form", ["raw", "bins"])
def test_many_rows_have_what_each_has_alone(activation, form, friedman):
    """Nodes that many rows share change little, and nothing where sigma has kinks."""
    X, y, _, _ = friedman
    model = regressor(activation=activation, input_form=form).fit(X, y)
    rows = np.random.default_rng(0).uniform(X.min(), X.max(), (1500, X.shape[1]))
    found = model.explain(rows).values
    np.testing.assert_allclose(model.explain(rows[:40]).values, found[:40], atol=1e-4 * y.std())
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).explain(rows).values, found)


def test_importances_have_a_spread(friedman, frame):
    X, y, _, _ = friedman
    model = regressor(n_members=3).fit(X, y)
    assert model.feature_importances_std_.shape == (10,)
    assert 0 < model.feature_importances_std_.max() < 0.5
    assert " ± " in model.summary()
    single = regressor(n_members=1).fit(X, y)
    assert not single.feature_importances_std_.any()
    assert " ± " not in single.summary()
    X, y = frame
    assert regressor().fit(X, y).feature_importances_std_.shape == (7,)


def test_an_explanation_cannot_change(friedman):
    X, y, X_new, _ = friedman
    why = regressor().fit(X, y).explain(X_new)
    assert len(why) == len(X_new)
    with pytest.raises(dataclasses.FrozenInstanceError):
        why.values = None


def test_plots(frame, three):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = frame
    model = regressor().fit(X, y)
    ax = model.explain(X[:80]).plot(ax=pyplot.figure().subplots(), top=5)
    assert len(ax.collections) == 5
    ax = model.explain(X[:80]).plot(row=3, ax=pyplot.figure().subplots())
    assert len(ax.patches) == 7
    assert any("kind = " in label.get_text() for label in ax.get_yticklabels())
    ax = model.explain(X[:1]).plot(ax=pyplot.figure().subplots())
    assert len(ax.patches) == 7
    X, y, X_new, _ = three
    why = classifier().fit(X, y).explain(X_new)
    assert why.plot(output=2, ax=pyplot.figure().subplots()).get_title() == "out"
    pyplot.close("all")


def test_shap_takes_it(friedman):
    shap = pytest.importorskip("shap")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y, X_new, _ = friedman
    given = regressor().fit(X, y).explain(X_new[:30]).to_shap()
    assert isinstance(given, shap.Explanation)
    shap.plots.waterfall(given[0], show=False)
    shap.plots.beeswarm(given, show=False)
    shap.plots.bar(given, show=False)
    pyplot.close("all")
