"""The estimators as scikit-learn and its users see them."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rflaf
from rflaf import Activation, RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import RBF, BSpline
from rflaf.fused import threads

SMALL = {"n_components": 40, "max_iter": 10, "random_state": 0}
# whether so small a model's inputs stay inside the grid is not what most of these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(n_samples=700, noise=0.1, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(700, noise=0.2, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def three():
    """Three classes with names."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 3))
    radius = np.hypot(X[:, 0], X[:, 1])
    y = np.array(["in", "on", "out"])[np.digitize(radius, [0.8, 1.5])]
    return X[:300], y[:300], X[300:], y[300:]


@parametrize_with_checks(
    [
        RFLAFRegressor(n_components=30, max_iter=4),
        RFLAFRegressor(n_components=20, max_iter=3, activation="tanh", metric="full", alpha=1e-3),
        RFLAFClassifier(n_components=20, max_iter=3, activation="bspline", alpha=1e-3),
        RFLAFClassifier(n_components=30, max_iter=4),
        RandomFeatures(n_components=10),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- it learns


def test_regression_beats_plain_features(friedman):
    X, y, new_X, new_y = friedman
    learned = regressor(n_components=150, max_iter=60).fit(X, y)
    plain = make_pipeline(RandomFeatures(150, activation="relu", random_state=0), Ridge(1e-2))
    assert learned.score(new_X, new_y) > 0.95
    assert learned.score(new_X, new_y) > plain.fit(X, y).score(new_X, new_y)
    assert learned.history_[-1]["loss"] < learned.history_[0]["loss"]
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
        model = regressor(alpha=0.03, fit_intercept=fit_intercept, activation="tanh").fit(X, y)
        assert model.alpha_ == 0.03
        x = (X - model.mean_) / model.scale_
        phi = model.activation_(x @ model.components_.astype(float))
        ridge = Ridge(0.03 * len(y), fit_intercept=fit_intercept).fit(phi, y)
        np.testing.assert_allclose(model.predict(X), ridge.predict(phi), rtol=1e-3, atol=0.02)
    assert model.intercept_ == 0


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
    assert model.coef_.shape == (150, 3)
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
def test_precision_in_is_precision_out(dtype, friedman, moons):
    X, y, new_X, new_y = (part.astype(dtype) for part in friedman)
    model = regressor(max_iter=40).fit(X, y)
    prediction, std = model.predict(new_X, return_std=True)
    assert prediction.dtype == std.dtype == dtype
    assert model.score(new_X, new_y) > 0.7
    X = moons[0].astype(dtype)
    labels = classifier().fit(X, moons[1])
    assert labels.predict_proba(X).dtype == labels.decision_function(X).dtype == dtype
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


# ---- partial_fit, warm_start, determinism


def test_adding_rows_is_fitting_them_all(friedman):
    """With everything else from the first rows, blocks of any size give one solution."""
    X, y, new_X, _ = friedman
    one = regressor(alpha=1e-3).partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    other = regressor(alpha=1e-3).partial_fit(X[:200], y[:200])
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
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((3, 10), np.nan), y[:3])
    with pytest.raises(ValueError, match=r"target|output|shape|column"):
        model.partial_fit(X[:50], np.column_stack([y, y])[:50])


def test_warm_start_goes_on_from_where_it_was(friedman):
    X, y, _, _ = friedman
    model = regressor(warm_start=True, n_components=100, max_iter=30).fit(X, y)
    before, activation = model.history_, model.activation_
    model.set_params(max_iter=4).fit(X, y)
    cold = regressor(n_components=100, max_iter=4).fit(X, y)
    assert model.n_iter_ <= 4
    assert model.history_[0]["loss"] < before[0]["loss"]
    assert model.history_[0]["loss"] < cold.history_[0]["loss"]
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
        assert other.coef_.tobytes() == models[0].coef_.tobytes()
        assert other.activation_ == models[0].activation_
        np.testing.assert_array_equal(other.predict(new_X), models[0].predict(new_X))
    assert not np.array_equal(fit(1, 1).coef_, models[0].coef_)
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
model = RFLAFRegressor(n_components=40, max_iter=10, random_state=0).fit(data["X"], data["y"])
print(model.coef_.tobytes().hex())
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
    assert found == {regressor().fit(X, y).coef_.tobytes().hex()}


# ---- probabilities


def test_probabilities(three, moons):
    for X, y, new_X, _ in (three, moons):
        model = classifier().fit(X, y)
        p, scores = model.predict_proba(new_X), model.decision_function(new_X)
        assert p.shape == (len(new_X), len(model.classes_))
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(new_X))
        np.testing.assert_allclose(model.predict_log_proba(new_X), np.log(p), rtol=1e-6)
        if len(model.classes_) == 2:
            np.testing.assert_allclose(scores, np.log(p[:, 1] / p[:, 0]), rtol=1e-6)
        else:
            ratio = np.log(p[:, 1] / p[:, 0])
            np.testing.assert_allclose(scores[:, 1] - scores[:, 0], ratio, rtol=1e-6, atol=1e-9)


def test_classes_of_every_kind(moons):
    X, y, new_X, new_y = moons
    for names in (np.array([3, -7]), np.array(["b", "a"]), np.array([True, False]), [2.0, 1.0]):
        names = np.asarray(names)
        model = classifier().fit(X, names[y])
        assert model.predict(new_X).dtype == names.dtype
        np.testing.assert_array_equal(model.classes_, np.sort(names))
        assert np.mean(model.predict(new_X) == names[new_y]) > 0.85


def test_class_weight(rng):
    """Weights of classes are weights of their rows, and 'balanced' finds the rare one."""
    X = rng.standard_normal((600, 2))
    y = (X[:, 0] + rng.standard_normal(600) > 1.8).astype(int)
    assert y.mean() < 0.15
    given = classifier(class_weight={0: 1.0, 1: 5.0}).fit(X, y)
    weighted = classifier().fit(X, y, sample_weight=np.where(y, 5.0, 1.0))
    np.testing.assert_allclose(given.predict_proba(X), weighted.predict_proba(X), rtol=1e-9)
    plain, balanced = classifier().fit(X, y), classifier(class_weight="balanced").fit(X, y)
    assert balanced.predict(X)[y == 1].mean() > plain.predict(X)[y == 1].mean() + 0.2
    # rows of weight zero do not make their class less rare
    more = np.concatenate([X, X[y == 1]]), np.concatenate([y, y[y == 1]])
    weights = np.concatenate([np.ones(600), np.zeros(y.sum())])
    ignored = classifier(class_weight="balanced", alpha=0.01, max_iter=0).fit(*more, weights)
    same = classifier(class_weight="balanced", alpha=0.01, max_iter=0).fit(X, y)
    np.testing.assert_allclose(ignored.predict_proba(X), same.predict_proba(X), rtol=1e-5)


def test_predictions_are_probabilities_in_earnest(rng):
    """Noise of the labels shows in what is predicted."""
    X = rng.standard_normal((1500, 2))
    true = 1 / (1 + np.exp(-2 * np.sin(2 * X[:, 0])))
    y = rng.random(1500) < true
    model = classifier(n_components=100, max_iter=30).fit(X[:1000], y[:1000])
    got = model.predict_proba(X[1000:])[:, 1]
    assert np.mean(np.abs(got - true[1000:])) < 0.1


# ---- standard deviations


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_intervals_cover_what_they_say(n, noise):
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (n + 2000, 3))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.standard_normal(len(X))
        model = RFLAFRegressor(n_components=100, max_iter=60, random_state=seed)
        prediction, std = model.fit(X[:n], y[:n]).predict(X[n:], return_std=True)
        assert std.shape == (2000,)
        shares.append(np.mean(np.abs(prediction - y[n:]) < 1.96 * std))
        if n == 1500:
            assert model.noise_ == pytest.approx(noise, rel=0.5 if noise == 0.1 else 0.15)
    assert 0.92 < np.mean(shares) < 0.98


def test_deviations_grow_away_from_the_rows(rng):
    X = rng.uniform(-1, 1, (400, 2))
    model = regressor(activation="tanh").fit(X, X[:, 0] + 0.1 * rng.standard_normal(400))
    _, std = model.predict(np.array([[0.0, 0.0], [3.0, -3.0]]), return_std=True)
    assert model.noise_ <= std[0] < 1.2 * model.noise_
    assert std[1] > 1.5 * std[0]


def test_plain_and_with_deviations_predict_the_same(friedman):
    X, y, new_X, _ = friedman
    for fit_intercept in (True, False):
        model = regressor(fit_intercept=fit_intercept).fit(X, y)
        prediction, std = model.predict(new_X, return_std=True)
        np.testing.assert_array_equal(prediction, model.predict(new_X))
        assert (std > 0).all()


# ---- looking at a model


@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_importances_show_idle_columns(metric, rng):
    X = rng.uniform(-1, 1, (1500, 6)) * [1, 10, 1e-3, 1, 5, 1] + [0, 0, 0, 0, 100, 3]
    X[:, 5] = 3.0
    y = np.sin(3 * X[:, 0]) + np.sin(0.3 * X[:, 1])
    model = RFLAFRegressor(n_components=100, metric=metric, max_iter=80, random_state=0).fit(X, y)
    importances = model.feature_importances_
    assert importances.shape == (6,)
    assert importances.sum() == pytest.approx(1)
    assert importances[:2].min() > 0.2
    assert importances[2:].max() < 0.05
    assert importances[5] == 0


def test_coverage_warns(friedman):
    X, y, _, _ = friedman
    with pytest.warns(UserWarning, match=r"Only \d+% of the projected inputs lie inside the grid"):
        narrow = regressor(grid=(-0.3, 0.3), metric="none").fit(X, y)
    assert narrow.grid_coverage_ < 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = regressor(grid=(-5.0, 5.0), metric="none").fit(X, y)
    assert wide.grid_coverage_ > 0.99
    assert regressor(activation="relu", metric="none").fit(X, y).grid_coverage_ == 1.0


def test_the_warning_points_at_the_caller(friedman):
    X, y, _, _ = friedman
    for model, target in ((regressor(), y), (classifier(), y > 14)):
        with pytest.warns(UserWarning, match="Only") as caught:
            model.set_params(grid=(-0.3, 0.3), metric="none").fit(X, target)
        assert Path(caught[0].filename) == Path(__file__)


def test_plot_activation(friedman):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y, _, _ = friedman
    model = regressor().fit(X, y)
    figure, ax = pyplot.subplots()
    assert model.plot_activation(ax) is ax
    z = ax.lines[0].get_xdata()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), model.activation_(z))
    histogram = figure.axes[1]
    counted = sum(patch.get_height() for patch in histogram.patches)
    low = min(patch.get_x() for patch in histogram.patches)
    high = max(patch.get_x() + patch.get_width() for patch in histogram.patches)
    inside = np.sum((model.z_sample_ >= low) & (model.z_sample_ <= high))
    assert counted == inside > 1000
    pyplot.close(figure)
    assert classifier(activation="relu").fit(X, y > 14).plot_activation() is not None
    pyplot.close("all")


def test_summary(friedman):
    X, y, _, _ = friedman
    text = regressor(alpha=0.125).fit(X, y).summary()
    for part in ("RFLAFRegressor: 40 random features of 10 inputs", "RBF(n=32", "0.125", "steps"):
        assert part in text
    assert "classifier" in classifier().fit(X, y > 14).summary().lower()
    plain = regressor(metric="none", activation="relu").fit(X, y).summary()
    assert "steps" not in plain
    assert "none" in plain


def test_the_picture_of_a_model(friedman):
    X, y, _, _ = friedman
    model = regressor().fit(X, y)
    assert model.activation_.basis.grid == (-2.0, 2.0)
    assert 0 < model.z_sample_.size <= 2000
    assert model.components_.shape == (10, 40)
    assert model.alpha_ > 0
    assert {"alpha", "loss"} <= model.alpha_path_[0].keys()


@pytest.mark.parametrize("make", [regressor, classifier], ids=["regressor", "classifier"])
def test_progress(make, friedman, capfd):
    pytest.importorskip("tqdm")
    X, y, _, _ = friedman
    model = make(verbose=1, tol=0.0, metric="full").fit(X, y > 14)
    shown = "".join(capfd.readouterr())
    assert "learning the activation" in shown
    assert f"{model.n_iter_}/" in shown
    assert "held_out_loss" in shown
    make().fit(X, y > 14)
    assert capfd.readouterr() == ("", "")


def test_progress_without_tqdm(friedman, capsys, monkeypatch):
    X, y, _, _ = friedman
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    regressor(verbose=1, max_iter=40, metric="full").fit(X, y)
    assert "10/40, loss" in capsys.readouterr().out


# ---- RandomFeatures


def test_features_are_sigma_of_the_projection(rng):
    X = rng.standard_normal((50, 3)) * [1, 10, 0.1] + 5
    for activation in ("relu", Activation(RBF(9), rng.standard_normal(9))):
        model = RandomFeatures(20, activation=activation, scale=1.5, random_state=0).fit(X)
        x = (X - X.mean(axis=0)) / X.std(axis=0)
        expected = model.activation_(x @ model.components_)
        np.testing.assert_allclose(model.transform(X), expected, atol=1e-5)
    raw = RandomFeatures(20, standardise=False, random_state=0).fit(X)
    np.testing.assert_allclose(raw.transform(X), np.maximum(X @ raw.components_, 0), atol=1e-9)


def test_the_scale_is_that_of_z(rng):
    X = rng.standard_normal((500, 8)) * 30
    model = RandomFeatures(400, scale=0.7, random_state=0).fit(X)
    z = (X - model.mean_) / model.scale_ @ model.components_
    assert z.std() == pytest.approx(0.7, rel=0.05)


def test_a_learned_activation_serves_elsewhere(friedman):
    X, y, new_X, new_y = friedman
    learned = regressor(n_components=100, max_iter=40).fit(X, y).activation_
    model = make_pipeline(
        RandomFeatures(200, activation=learned, random_state=1), regressor(activation="relu")
    )
    assert model.fit(X, y).score(new_X, new_y) > 0.6
    with pytest.raises(ValueError, match="activation"):
        RandomFeatures(activation="rbf").fit(X)  # a basis alone is no activation
