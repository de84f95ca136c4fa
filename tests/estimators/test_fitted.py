"""What fitted models give: probabilities, standard deviations, a look at themselves, features."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from rflaf import Activation, RandomFeatures, RFLAFRegressor
from rflaf.bases import RBF
from tests.estimators.conftest import classifier, regressor

# whether so small a model's inputs stay inside the grid is not what most of these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")


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
    # a little more than 95%: the noise has the errors of single members, not of their mean
    assert 0.93 < np.mean(shares) < 0.985


def test_deviations_follow_the_noise_of_the_rows(rng):
    X = rng.uniform(-1, 1, (2800, 2))
    noise = 0.1 * np.exp(X[:, 0])
    y = np.sin(2 * X[:, 1]) + noise * rng.standard_normal(2800)
    model = regressor(n_components=100).fit(X[:800], y[:800])
    prediction, std = model.predict(X[800:], return_std=True)
    assert np.corrcoef(np.log(std), np.log(noise[800:]))[0, 1] > 0.7
    assert np.mean(std**2) == pytest.approx(np.mean(noise**2), rel=0.5)
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(X[800:], coverage)
        np.testing.assert_allclose((low + high) / 2, prediction, rtol=1e-6, atol=1e-9)
        inside = (low < y[800:]) & (y[800:] < high)
        assert np.mean(inside) == pytest.approx(coverage, abs=0.08)
    with pytest.raises(ValueError, match="'coverage' must lie between 0 and 1"):
        model.predict_interval(X, 1.0)


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


@pytest.mark.parametrize("form", ["raw", "both", "ranks"])
@pytest.mark.parametrize("metric", ["full", "diagonal", "none"])
def test_every_form_has_importances_and_a_summary(form, metric, friedman):
    X, y, _, _ = friedman
    X = np.column_stack([X, np.full(len(X), 3.0)])
    model = regressor(input_form=form, metric=metric, n_members=2, max_iter=2).fit(X, y)
    shares = model.feature_importances_
    assert shares.shape == (11,)
    assert shares.sum() == pytest.approx(1)
    assert shares[10] == 0
    text = model.summary()
    assert "40 random features of 11 inputs, 2 members" in text
    expected = {"raw": "standardised\n", "both": "standardised, and ranks\n", "ranks": " ranks\n"}
    assert expected[form] in text


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
    mean, first, second = ax.lines  # of two members, scaled alike
    z = first.get_xdata()
    np.testing.assert_allclose(first.get_ydata(), model.activation_(z))
    np.testing.assert_allclose(
        mean.get_ydata(), (first.get_ydata() + second.get_ydata()) / 2, atol=1e-12
    )
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
    assert f"{2 * model.n_iter_}/20" in shown  # of two members
    assert "held_out_loss" in shown
    make().fit(X, y > 14)
    assert capfd.readouterr() == ("", "")


def test_progress_without_tqdm(friedman, capsys, monkeypatch):
    X, y, _, _ = friedman
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    regressor(verbose=1, max_iter=20, metric="full").fit(X, y)  # 400 rows get 16 steps
    assert "32/32, held out loss" in capsys.readouterr().err  # of two members


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
    learned = regressor(n_components=100, max_iter=40, metric="none").fit(X, y).activation_
    model = make_pipeline(  # 0.6 is the spread of Z that the activation was learned for
        RandomFeatures(200, activation=learned, scale=0.6, random_state=1),
        regressor(activation="relu", n_members=1),
    )
    assert model.fit(X, y).score(new_X, new_y) > 0.6
    with pytest.raises(ValueError, match="activation"):
        RandomFeatures(activation="rbf").fit(X)  # a basis alone is no activation
