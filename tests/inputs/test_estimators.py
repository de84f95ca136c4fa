"""The estimators on frames, and scikit-learn's tools around them."""

import copy
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import rflaf
from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.inputs import ColumnEncoder
from rflaf.rows import Blocks
from tests.inputs.conftest import SMALL, mixed_frame, spoilt_rows

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def fitted():
    frame, y = mixed_frame()
    return regressor().fit(frame, y)


def test_it_learns_from_all_columns(fitted):
    frame, y = mixed_frame(seed=1)
    assert fitted.feature_names_in_.tolist() == list(frame)
    assert fitted.n_features_in_ == 6
    assert fitted.feature_importances_.shape == (6,)
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    assert fitted.score(frame, y) > 0.4
    assert "inputs from 6 columns" in fitted.summary()
    assert (fitted.predict(frame, return_std=True)[1] > 0).all()
    low, high = fitted.predict_interval(frame)
    assert (low < high).all()


def test_importances_are_sums_over_what_a_column_became():
    frame, y = mixed_frame()
    frame = frame.drop(columns="zone")  # of many levels: its means are learned with the model
    model = regressor().fit(frame, y)
    encoder = ColumnEncoder().fit(frame)
    plain = regressor().fit(encoder.transform(frame), y)
    shares = np.bincount(encoder.origin_, plain.feature_importances_, minlength=5)
    np.testing.assert_allclose(model.feature_importances_, shares)


@pytest.mark.parametrize("members", [1, 3])
def test_a_column_of_many_levels_has_its_importance(members):
    """All of the target is in it, whichever place its means have among the inputs."""
    frame, _ = mixed_frame()
    zone = frame["zone"].str[1:].astype(int).to_numpy()
    for y in (np.sin(zone), np.column_stack([np.sin(zone), np.cos(zone)])):
        model = regressor(n_members=members, n_components=60).fit(frame, y)
        assert model.feature_importances_.argmax() == list(frame).index("zone")
        assert model.feature_importances_.max() > 0.8


def test_polars_and_blocks_of_rows_give_the_same(fitted):
    frame, y = mixed_frame()
    other = regressor().fit(pl.from_pandas(frame), pl.Series(y))
    expected = fitted.predict(frame)
    np.testing.assert_array_equal(other.predict(pl.from_pandas(frame)), expected)
    small = copy.deepcopy(fitted).set_params(max_bytes=1)
    blocks = list(small.predict_blocks(frame))
    assert len(blocks) > 3
    np.testing.assert_allclose(np.concatenate(blocks), expected, atol=1e-5 * expected.std())
    source = Blocks(lambda: (frame[k : k + 50] for k in range(0, len(frame), 50)))
    np.testing.assert_allclose(fitted.predict(source), expected)


def test_unknown_levels_and_late_gaps(fitted):
    frame, _ = mixed_frame()
    rows = spoilt_rows(frame)
    found = fitted.predict(rows)
    assert np.isfinite(found).all()
    same = [0, 7, 8, 9, 10, 11]
    np.testing.assert_array_equal(found[same], fitted.predict(frame[:12])[same])
    # a late gap in numbers is the median
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0)
    model = regressor().fit(X, y)
    late, median = X[:3].copy(), X[:3].copy()
    late[1, 0], median[1, 0] = np.nan, np.median(X[:, 0])
    np.testing.assert_array_equal(model.predict(late), model.predict(median))


def test_arrays_with_gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 3 * (X[:, 1] > 1)
    X[X[:, 1] > 1, 1] = np.nan  # that it is missing tells the most
    model = regressor(n_components=60).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.feature_importances_.shape == (3,)
    classes = RFLAFClassifier(**SMALL).fit(X.astype(np.float32), y > 1)
    assert classes.predict_proba(X.astype(np.float32)).dtype == np.float64
    X[:, 2] = np.nan
    assert regressor().fit(X, y).feature_importances_[2] == 0


def test_numbers_only_are_fitted_as_before():
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = X[:, 0] - X[:, 1]
    frame = pd.DataFrame(X, columns=list("abc"))
    expected = regressor().fit(X, y).predict(X)
    for given in (frame, pl.from_pandas(frame)):
        found = regressor().fit(given, y)
        assert found.encoder_.is_identity
        np.testing.assert_allclose(found.predict(given), expected, rtol=1e-6)


def test_classes():
    frame, y = mixed_frame()
    labels = pd.Series(np.where(y > np.quantile(y, 0.6), "high", "low")).mask(y < 0, "none")
    model = RFLAFClassifier(**SMALL).fit(frame, labels)
    assert set(model.predict(frame)) <= {"high", "low", "none"}
    assert model.score(frame, labels) > 0.6


def test_adding_rows_keeps_the_first_encoder():
    frame, y = mixed_frame()
    model = regressor().partial_fit(frame[:160], y[:160])
    encoder = model.encoder_
    more = frame[160:].assign(town="Atlantis")
    model.partial_fit(more, y[160:])
    assert model.encoder_ is encoder
    assert np.isfinite(model.predict(frame)).all()
    with pytest.raises(ValueError, match="was numeric in the fit"):
        model.partial_fit(frame.assign(size="big"), y)


def test_a_fit_that_fails_changes_nothing(fitted):
    frame, y = mixed_frame()
    model = clone(fitted).fit(frame, y)
    before = model.predict(frame)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(frame.assign(size=np.inf), y)
    with pytest.raises(ValueError, match="requires y"):
        model.fit(frame, None)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(frame, y[:-1])
    np.testing.assert_array_equal(model.predict(frame), before)


def test_seeds():
    frame, y = mixed_frame()
    one, same = (regressor(random_state=3).fit(frame, y).predict(frame) for _ in range(2))
    np.testing.assert_array_equal(one, same)


def test_files(fitted, tmp_path):
    frame, _ = mixed_frame()
    rflaf.save(fitted, tmp_path / "model.skops")
    same = rflaf.load(tmp_path / "model.skops")
    rows = spoilt_rows(frame)
    np.testing.assert_array_equal(same.predict(rows), fitted.predict(rows))
    assert same.encoder_.kinds_ == fitted.encoder_.kinds_


def test_searches_and_cross_validation():
    frame, y = mixed_frame()
    scores = cross_val_score(regressor(), frame, y, cv=3)
    assert np.isfinite(scores).all()
    given = {"n_components": [10, 30], "categorical_features": ["from_dtype", ["zone"]]}
    search = GridSearchCV(regressor(), given, cv=2, error_score="raise").fit(frame, y)
    assert search.best_estimator_.feature_names_in_.tolist() == list(frame)
    assert np.isfinite(search.predict(spoilt_rows(frame))).all()


def test_permutation_and_partial_dependence(fitted):
    frame, y = mixed_frame()
    found = permutation_importance(fitted, frame, y, n_repeats=2, random_state=0)
    assert found.importances_mean.shape == (6,)
    assert np.isfinite(found.importances_mean).all()
    pytest.importorskip("matplotlib").use("Agg")
    whole = frame.dropna().astype({"size": float})  # a grid of doubles suits no float32 column
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # matplotlib's own
        shown = PartialDependenceDisplay.from_estimator(
            fitted, whole, ["size", "town"], categorical_features=["town"], grid_resolution=5
        )
    assert len(shown.pd_results) == 2


def test_columns_in_another_order_are_refused(fitted):
    frame, _ = mixed_frame()
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[list(frame)[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.drop(columns="zone"))


def test_after_a_table_vectorizer():
    skrub = pytest.importorskip("skrub")
    frame, y = mixed_frame()
    model = make_pipeline(skrub.TableVectorizer(), regressor()).fit(frame, y)
    assert np.isfinite(model.predict(spoilt_rows(frame))).all()
