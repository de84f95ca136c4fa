"""Inputs that once gave wrong answers without an error."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from scipy import sparse, stats
from sklearn.metrics import d2_pinball_score

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor, rules
from rflaf.distributions.positive import CountDistribution
from rflaf.inputs import ColumnEncoder
from rflaf.rows import Arrays
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


def _score(model, X, y):
    return model.fit(X, y).oof_score_


def test_what_joblib_passes_to_its_workers_is_an_array_like_others(rng):
    """It gives them arrays of more than a megabyte as memmaps, which are streamed if large."""
    X = rng.standard_normal((1400, 100))
    X[:, 0] = rng.integers(0, 6, 1400)
    y = np.array([3.0, -2, 0, 5, -4, 1])[X[:, 0].astype(int)]
    model = RFLAFRegressor(20, random_state=0, n_members=1, max_iter=0, n_jobs=1)
    model.set_params(metric="none", input_form="raw", local_models=False, categorical_features=[0])
    expected = _score(model, X, y)
    found = Parallel(2)(delayed(_score)(model, X, y) for _ in range(2))
    assert found == [expected, expected]
    for given in (Arrays(X, y), sparse.csr_array(X)):
        with pytest.raises(ValueError, match="'categorical_features' needs 'X' as a frame"):
            model.fit(given, None if isinstance(given, Arrays) else y)


def test_entries_of_one_place_are_one_number(rng):
    X = sparse.random(300, 40, 0.1, random_state=0, format="csr")
    y = 5 * X[:, 0].toarray().ravel() + 0.1 * rng.standard_normal(300)
    model = regressor().fit(X, y)
    one = sparse.csr_matrix(np.append(3.0, np.zeros(39))[None])
    four = sparse.csr_matrix((np.full(4, 0.75), np.zeros(4, int), [0, 4]), (1, 40))
    with pytest.warns(UserWarning, match="outside the range"):
        np.testing.assert_array_equal(model.predict(four), model.predict(one))
    assert four.nnz == 4  # it is the caller's


@pytest.mark.parametrize("seed", range(4))
def test_one_odd_row_leaves_the_intervals_of_others_alone(seed):
    """A claim where there are no others: predictions near zero tell nothing of the dispersion."""
    rng = np.random.default_rng(seed)

    def drawn(n):
        X = rng.uniform(-1, 1, (n, 2))
        return X, np.where(X[:, 0] > 0, rng.gamma(4, 2, n) * (rng.random(n) < 0.9), 0)

    (X, y), (new, truth) = drawn(600), drawn(2000)
    y[np.argmin(X[:, 0])] = 3
    model = RFLAFRegressor(60, loss="tweedie", random_state=0, n_members=3).fit(X, y)
    low, high = model.predict_interval(new, 0.9)
    assert 0.88 < np.mean((low <= truth) & (truth <= high)) < 0.99
    assert model.predict_std(new)[new[:, 0] > 0].mean() < 7  # the true one is 4.5


@pytest.mark.parametrize(
    ("name", "value"),
    [("quantile", 0.9), ("loss", "squared_error"), ("monotonic_cst", [1, 0]), ("power", 1.2)],
)
def test_later_rows_do_not_change_parameters(name, value, rng):
    X = rng.standard_normal((150, 2))
    model = RFLAFRegressor(20, loss="quantile", quantile=0.1, random_state=0, max_iter=2)
    model.partial_fit(X, X[:, 0]).partial_fit(X, X[:, 0])
    before = model.predict(X)
    model.set_params(**{name: value})
    with pytest.raises(ValueError, match=f"'{name}' was .* in the first call of partial_fit"):
        model.partial_fit(X, X[:, 0])
    np.testing.assert_array_equal(model.predict(X), before)


def test_equal_parameters_of_other_types_are_no_change(rng):
    X = rng.standard_normal((150, 2))
    model = RFLAFRegressor(20, loss="quantile", quantile=0.9, monotonic_cst=[1, 0], max_iter=2)
    model.partial_fit(X, X[:, 0])
    model.set_params(quantile=np.float64(0.9), monotonic_cst=np.array([1, 0]))
    model.partial_fit(X, X[:, 0])
    classes = RFLAFClassifier(20, class_weight={0: 1, 1: 2}, max_iter=2)
    classes.partial_fit(X, X[:, 0] > 0, classes=[0, 1])
    classes.set_params(class_weight={1: 2, 0: 1}).partial_fit(X, X[:, 0] > 0)


def test_a_change_in_the_middle_of_a_long_parameter_is_seen(rng):
    X = rng.standard_normal((150, 1200))
    model = RFLAFRegressor(20, monotonic_cst=np.zeros(1200, int), max_iter=2)
    model.partial_fit(X, X[:, 0])
    model.monotonic_cst[600] = 1
    with pytest.raises(ValueError, match="'monotonic_cst' was"):
        model.partial_fit(X, X[:, 0])


def test_many_whole_classes_are_no_regression(rng):
    X, y = rng.standard_normal((700, 3)), rng.integers(0, 40, 700)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        RFLAFClassifier(20, max_iter=2, n_members=1, random_state=0).fit(X, y)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_an_encoder_refuses_targets_that_are_no_numbers(odd, rng):
    import pandas as pd

    y = rng.standard_normal(300)
    y[3] = odd
    frame = pd.DataFrame({"level": rng.choice([f"k{i}" for i in range(60)], 300)})
    with pytest.raises(ValueError, match="Input y contains"):
        ColumnEncoder(random_state=0).fit_transform(frame, y)


@pytest.mark.parametrize("mean", [10.0, 1e5, 1e7])
def test_densities_of_large_counts(mean):
    """With hardly more variance than Poisson's, formulas of negative binomials lose all digits."""
    near = CountDistribution(np.array([mean]), np.array([np.sqrt(mean * (1 + 1e-9))]))
    np.testing.assert_allclose(near.logpdf(mean), stats.poisson(mean).logpmf(mean), rtol=1e-6)


def test_missing_classes_of_pandas_are_named(rng):
    import pandas as pd

    y = pd.array(["a", "b", pd.NA] * 20, dtype="string")
    with pytest.raises(ValueError, match="missing classes"):
        classifier().fit(rng.standard_normal((60, 2)), pd.Series(y))


def test_large_integers_that_become_equal_are_named():
    value = 2**62 + np.arange(200)
    with pytest.warns(UserWarning, match=r"rounded, and some become equal, in column 't'"):
        RFLAFRegressor(20, random_state=0, max_iter=2).fit(pd.DataFrame({"t": value}), value % 7)


def test_classes_of_integers_that_may_be_missing_stay_apart(rng):
    X, y = rng.standard_normal((150, 2)), 2**60 + np.arange(150) % 3
    model = RFLAFClassifier(20, random_state=0, max_iter=2).fit(X, pd.Series(y, dtype="Int64"))
    assert model.classes_.tolist() == [2**60, 2**60 + 1, 2**60 + 2]


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
@pytest.mark.parametrize("events", [2, 9])
def test_rare_events_neither_vanish_nor_explode(loss, events):
    X = np.random.default_rng(5).uniform(-1, 1, (600, 3))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y = np.zeros(600)
        y[rng.choice(600, events, replace=False)] = 1
        for effort in ("fast", "default"):
            model = RFLAFRegressor(100, loss=loss, effort=effort, random_state=0).fit(X, y)
            total = model.predict(X).sum() / events
            assert 0.2 < total < 3
            new = model.predict(rng.uniform(-1, 1, (3000, 3))).mean() * 600 / events
            assert 0.05 < new < 8


def test_a_single_event_is_warned_of(rng):
    X, y = rng.uniform(-1, 1, (300, 2)), np.eye(300)[3]
    with pytest.warns(UserWarning, match="has one positive target"):
        model = RFLAFRegressor(40, loss="poisson", random_state=0).fit(X, y)
    assert 0.2 < model.predict(X).sum() < 3


def test_few_rows_of_a_class_are_in_all_folds():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1000, 4))
    y = rng.random(1000) < 0.01 * np.exp(0.5 * X[:, 0])
    for members in (1, 3):
        model = RFLAFClassifier(60, n_members=members, random_state=0).fit(X, y)
        assert "ROC AUC" in model.oof_metrics_  # both classes are among the rows held out
        p = model.predict_proba(rng.standard_normal((4000, 4)))[:, 1]
        assert 0.003 < p.mean() < 0.03


@pytest.mark.parametrize(
    ("loss", "level"), [("quantile", 0.9), ("quantile", 0.5), ("absolute_error", 0.5)]
)
def test_the_score_of_a_robust_loss_is_that_of_its_predictions(loss, level, rng):
    X = rng.uniform(-1, 1, (400, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=400)
    model = RFLAFRegressor(40, loss=loss, quantile=level, random_state=0, n_members=2).fit(X, y)
    expected = d2_pinball_score(y, model.oof_prediction_.ravel(), alpha=level)
    assert model.oof_score_ == pytest.approx(expected)


def test_targets_that_are_constant_are_predicted_exactly(rng):
    X = rng.uniform(-1, 1, (300, 1))
    y = np.column_stack([np.sin(3 * X[:, 0]), np.ones(300)])
    model = RFLAFRegressor(40, random_state=0, n_members=2).fit(X, y)
    assert model.oof_score_ > 0.99


def test_contradicting_rows_are_a_fit(rng):
    X = np.random.default_rng(0).uniform(-1, 1, (600, 3))
    both, y = np.vstack([X, X]), np.repeat([1.0, 0.0], 600)
    model = RFLAFRegressor(60, n_members=2, loss="huber", random_state=0)
    assert np.isfinite(model.fit(both, y, sample_weight=np.repeat([3, 1], 600)).predict(X)).all()
