"""The estimators as scikit-learn and its users see them."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rflaf import Activation, RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import RBF, BSpline
from tests.estimators.conftest import classifier, regressor

pytestmark = pytest.mark.filterwarnings("ignore:partial_fit started with:UserWarning")


@parametrize_with_checks(
    [
        RFLAFRegressor(n_components=30, max_iter=4),
        RFLAFRegressor(n_components=20, max_iter=3, activation="tanh", metric="full", alpha=1e-3),
        RFLAFClassifier(n_components=20, max_iter=3, activation="bspline", alpha=1e-2),
        RFLAFClassifier(n_components=30, max_iter=4),
        RandomFeatures(n_components=10),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- scikit-learn's tools


def test_pipeline_and_cross_validation(moons):
    X, y, _, _ = moons
    for model in (
        make_pipeline(StandardScaler(), classifier()),
        make_pipeline(RandomFeatures(20, random_state=0), classifier(activation="tanh")),
    ):
        assert cross_val_score(model, X, y, cv=3).mean() > 0.8


def test_grid_search(friedman):
    X, y, new_X, new_y = friedman
    grid = {"alpha": [1e-4, 1e3], "n_basis": [8, 16]}
    search = GridSearchCV(regressor(metric="none", max_iter=4), grid, cv=2).fit(X, y)
    assert search.best_params_["alpha"] == 1e-4
    assert search.best_estimator_.activation_.basis.n == search.best_params_["n_basis"]
    assert search.score(new_X, new_y) > 0.5


@pytest.mark.parametrize(
    "model",
    [
        regressor(activation=BSpline(8), alpha=0.5),
        classifier(class_weight={0: 1.0}, activation=Activation(RBF(5), np.ones(5))),
        RandomFeatures(7, activation="tanh", scale=2.0, random_state=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_clone(model, rng):
    copy = clone(model)
    assert copy is not model
    assert str(copy.get_params()) == str(model.get_params())
    X = rng.standard_normal((30, 2))
    model.fit(X, np.arange(30) % 2)
    assert not any(name.endswith("_") and not name.startswith("_") for name in vars(clone(model)))


def test_not_fitted(rng):
    X = rng.standard_normal((5, 2))
    for model, names in (
        (regressor(), ("predict", "plot_activation", "summary")),
        (classifier(), ("predict", "predict_proba", "decision_function")),
        (RandomFeatures(), ("transform",)),
    ):
        for name in names:
            with pytest.raises(NotFittedError):
                getattr(model, name)(*(() if name in ("plot_activation", "summary") else (X,)))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 0), ("activation", "nothing"), ("metric", "cosine"), ("alpha", -1.0),
        ("alpha", "best"), ("solver", "magic"), ("validation_fraction", 0.9), ("max_iter", -1),
        ("grid", (1.0, -1.0)), ("grid", (0.0,)), ("n_basis", 0), ("projection", "sobol"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameter, value, rng):
    X = rng.standard_normal((120, 2))
    for model in (regressor(), classifier()):
        with pytest.raises(ValueError, match="low" if value == (1.0, -1.0) else parameter):
            model.set_params(**{parameter: value}).fit(X, X[:, 0] > 0)


def test_set_output_and_feature_names(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
    model = RandomFeatures(4, random_state=0).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == [f"randomfeatures{k}" for k in range(4)]
    assert list(model.get_feature_names_out()) == list(out.columns)
    assert list(model.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library, friedman):
    frames = pytest.importorskip(library)
    X, y, new_X, _ = friedman
    names = [f"x{k}" for k in range(10)]
    frame, new = (
        frames.DataFrame({n: part[:, k] for k, n in enumerate(names)}) for part in (X, new_X)
    )
    target = frames.Series(y)
    model = regressor().fit(frame, target)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(model.predict(new), regressor().fit(X, y).predict(new_X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(new[names[::-1]])
    assert "x3" in model.summary()
    labels = classifier().fit(frame, frames.Series(np.where(y > 14, "high", "low")))
    assert set(labels.predict(new)) == {"high", "low"}
    assert list(RandomFeatures(5).fit(frame).feature_names_in_) == names


def test_routing_of_weights(friedman):
    X, y, _, _ = friedman
    weights = np.linspace(0, 2, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(regressor().set_fit_request(sample_weight=True))
        pipeline.fit(X, y, sample_weight=weights)
        expected = regressor().fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(pipeline.predict(X), expected.predict(X))
        assert not np.array_equal(pipeline.predict(X), regressor().fit(X, y).predict(X))
        search = GridSearchCV(
            classifier(max_iter=2)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=False),
            {"alpha": [1e-3, 1e-1]},
            cv=2,
        )
        search.fit(X, y > 14, sample_weight=weights)
        assert search.best_score_ > 0.6


# ---- weights, targets, precision


@pytest.mark.parametrize("make", [regressor, classifier], ids=["regressor", "classifier"])
def test_a_row_of_weight_zero_is_not_seen(make, rng):
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(float)
    weights = np.ones(300)
    weights[::3] = 0
    spoilt = y.copy()
    spoilt[::3] = 1 - y[::3]
    one, other = (make().fit(X, target, sample_weight=weights) for target in (y, spoilt))
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-6)


def test_weights_pull(rng):
    """The same inputs with two answers: the heavier one wins."""
    X = np.repeat(rng.standard_normal((150, 2)), 2, axis=0)
    y = np.tile([0.0, 1.0], 150)
    for heavy in (0, 1):
        weights = np.where(y == heavy, 9.0, 1.0)
        prediction = regressor().fit(X, y, sample_weight=weights).predict(X)
        assert abs(prediction.mean() - (0.9 if heavy else 0.1)) < 0.05
        labels = classifier().fit(X, y, sample_weight=weights)
        assert (labels.predict(X) == heavy).all()
        assert abs(labels.predict_proba(X)[:, heavy].mean() - 0.9) < 0.05


def test_many_targets(friedman):
    X, y, new_X, new_y = friedman
    Y = np.column_stack([y, -2 * y + 100, X[:, 0] * 1e-6])
    model = regressor(n_components=150, max_iter=30).fit(X, Y)
    prediction = model.predict(new_X)
    assert prediction.shape == (300, 3)
    assert model.output_weights_.shape == (150, 3)
    assert model.intercept_.shape == model.noise_.shape == (3,)
    expected = np.column_stack([new_y, -2 * new_y + 100, new_X[:, 0] * 1e-6])
    assert (np.mean((prediction - expected) ** 2, axis=0) < 0.12 * expected.var(axis=0)).all()
    np.testing.assert_allclose(prediction[:, 1], -2 * prediction[:, 0] + 100, rtol=1e-4)
    _, std = model.predict(new_X, return_std=True)
    assert std.shape == (300, 3)
    np.testing.assert_allclose(std[:, 1], 2 * std[:, 0], rtol=1e-3)


def test_one_column_of_targets_keeps_its_shape(friedman):
    X, y, _, _ = friedman
    flat, column = regressor().fit(X, y), regressor().fit(X, y[:, None])
    assert column.predict(X).shape == (400, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], flat.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_have_the_precision_of_targets(dtype, friedman, moons):
    X, y, new_X, new_y = (part.astype(dtype) for part in friedman)
    model = regressor(max_iter=40).fit(X, y)
    prediction, std = model.predict(new_X, return_std=True)
    assert prediction.dtype == std.dtype == dtype
    assert model.score(new_X, new_y) > 0.7
    X = moons[0].astype(dtype)
    labels = classifier().fit(X, moons[1])
    assert labels.predict_proba(X).dtype == labels.decision_function(X).dtype == np.float64
    assert RandomFeatures(5).fit_transform(X).dtype == dtype


def test_integers_and_booleans_are_inputs_too(rng):
    X = rng.integers(0, 5, (200, 3))
    y = X[:, 0] * 2 - X[:, 1]
    prediction = regressor().fit(X, y).predict(X)
    assert prediction.dtype == np.float64
    np.testing.assert_array_equal(
        prediction, regressor().fit(X.astype(float), y.astype(float)).predict(X.astype(float))
    )
    assert classifier().fit(X > 2, y > 2).score(X > 2, y > 2) > 0.6


# ---- sparse inputs


def sparse_data():
    """Columns of mean zero, where sparse and dense standardisation agree."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 6)) * (rng.random((150, 6)) < 0.4)
    X = np.vstack([X, -X])
    return X, X[:, 0] + np.sin(2 * X[:, 1])


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_equals_dense(make):
    X, y = sparse_data()
    dense = regressor(max_iter=0).fit(X, y)
    thin = regressor(max_iter=0).fit(make(X), y)
    np.testing.assert_allclose(thin.scale_, dense.scale_, rtol=1e-12)
    np.testing.assert_allclose(thin.predict(make(X)), dense.predict(X), atol=2e-3)
    np.testing.assert_allclose(thin.predict(X), thin.predict(make(X)), atol=1e-4)
    deviations = [thin.predict(each, return_std=True)[1] for each in (X, make(X))]
    np.testing.assert_allclose(*deviations, rtol=1e-3)


def test_sparse_inputs_learn(moons):
    X, y = sparse_data()
    thin = sparse.csr_array(X)
    model = regressor(max_iter=30).fit(thin, y)
    assert model.score(thin, y) > 0.9
    labels = classifier().fit(thin, y > 0)
    assert labels.score(thin, y > 0) > 0.85
    np.testing.assert_allclose(labels.predict_proba(thin), labels.predict_proba(X), atol=1e-4)
    features = RandomFeatures(10, random_state=0)
    np.testing.assert_allclose(
        features.fit(thin).transform(thin), features.fit(X).transform(X), atol=1e-6
    )
