"""What every loss of RFLAFRegressor does from end to end."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma, norm
from sklearn.base import clone

import rflaf
from rflaf import RFLAFRegressor
from rflaf.losses import LOSSES, Quantile
from rflaf.rows import Blocks

CASES = {
    **{name: {"loss": name} for name in LOSSES},
    "tweedie of 1.2": {"loss": "tweedie", "power": 1.2},
    "quantile of 0.8": {"loss": "quantile", "quantile": 0.8},
    "three quantiles": {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
}
every_loss = pytest.mark.parametrize("name", CASES)
positive_losses = pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie"])


def rows(n, seed=0):
    """Inputs, positive targets, and their means."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    mean = 5 * np.exp(np.sin(3 * X[:, 0]) + X[:, 1] ** 2)
    return X, mean * rng.gamma(8.0, 1 / 8, n), mean


X, Y, _ = rows(300)
NEW_X, NEW_Y, MEAN = rows(2000, seed=1)


def model(name, **options):
    given = {"n_components": 60, "n_members": 2, "max_iter": 10, "random_state": 0, **options}
    return RFLAFRegressor(**CASES[name], **given)


def fixed(name):
    """A model that nothing is chosen for: what is left are the sums over rows."""
    return model(name, n_members=1, max_iter=0, alpha=1e-3, metric="none", input_form="raw")


@cache
def fitted(name):
    return model(name).fit(X, Y)


def error(name, model):
    """The distance from the truth, over the truth's standard deviation, on new rows."""
    found = model.predict(NEW_X)
    if name == "three quantiles":
        found = found[:, 1]
    truth = MEAN * gamma.ppf(0.8, 8.0) / 8 if name == "quantile of 0.8" else MEAN
    return np.sqrt(np.mean((found - truth) ** 2)) / truth.std()


@every_loss
def test_predictions(name):
    found = fitted(name).predict(NEW_X)
    assert found.shape == ((2000, 3) if name == "three quantiles" else (2000,))
    assert error(name, fitted(name)) < 0.45
    assert fitted(name).feature_importances_.argmin() == 2
    assert 0.35 < fitted(name).oof_score_ < 1
    assert f"oof {fitted(name).loss_.score_name} 0." in fitted(name).summary()
    assert fitted(name).oof_prediction_.shape == (300, *found.shape[1:])


@every_loss
def test_blocks_are_predicted_as_all(name):
    blocks = np.concatenate(list(fitted(name).predict_blocks(Blocks([NEW_X[:700], NEW_X[700:]]))))
    np.testing.assert_allclose(blocks, fitted(name).predict(NEW_X), rtol=1e-9)


@every_loss
def test_a_source_is_fitted_as_arrays(name):
    source = Blocks([(X[k : k + 70], Y[k : k + 70]) for k in range(0, 300, 70)])
    found = model(name).fit(source).predict(NEW_X)
    np.testing.assert_allclose(found, fitted(name).predict(NEW_X), rtol=1e-5)


@every_loss
def test_targets_in_another_unit_give_the_same_model(name):
    for unit in (2.0**-660, 1024.0, 2.0**500):
        found = fixed(name).fit(X, unit * Y).predict(NEW_X)
        expected = fixed(name).fit(X, Y).predict(NEW_X)
        np.testing.assert_allclose(found / unit, expected, rtol=1e-6)


@every_loss
def test_weights(name):
    """Weights have no unit, and a row of weight 2 is the same as two rows."""
    weights = 1.0 + (np.arange(12) % 2)
    twice = np.repeat(np.arange(12), weights.astype(int))  # so few that none are held out
    one = model(name).fit(X[:12], Y[:12], sample_weight=weights).predict(NEW_X)
    same = model(name).fit(X[:12], Y[:12], sample_weight=1e6 * weights).predict(NEW_X)
    np.testing.assert_allclose(same, one, rtol=1e-9)
    copies = model(name).fit(X[twice], Y[twice]).predict(NEW_X)
    np.testing.assert_allclose(copies, one, atol=1e-5 * np.ptp(Y))


@every_loss
def test_groups_and_frames(name):
    group = np.arange(300) // 5
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["town"] = pd.Categorical(np.where(X[:, 0] > 0, "north", "south"))
    found = model(name).fit(frame, Y, groups=group)
    assert 0 < found.oof_score_ < 1
    assert np.isfinite(found.predict(frame)).all()


@every_loss
def test_more_rows(name):
    first = model(name).partial_fit(X[:120], Y[:120])
    before = error(name, first)
    for k in range(120, 300, 60):
        first.partial_fit(X[k : k + 60], Y[k : k + 60])
    assert first.n_samples_fit_ == 300
    assert error(name, first) < max(before, 0.35)


@every_loss
@pytest.mark.parametrize("n", [3, 12])
def test_few_rows(name, n):
    assert np.isfinite(model(name).fit(X[:n], Y[:n]).predict(NEW_X)).all()


@every_loss
def test_a_constant_target_is_predicted(name):
    found = model(name).fit(X[:50], np.full(50, 7.0)).predict(NEW_X)
    np.testing.assert_allclose(found, 7.0, rtol=1e-6)


@every_loss
def test_a_fit_that_fails_changes_nothing(name):
    found = pickle.loads(pickle.dumps(fitted(name)))
    with pytest.raises(ValueError, match="NaN"):
        found.fit(X, np.where(np.arange(300) == 7, np.nan, Y))
    if name in ("poisson", "gamma", "tweedie"):
        with pytest.raises(ValueError, match=rf"loss='{name}' takes .* Got -1 in row 7\."):
            found.fit(X, np.where(np.arange(300) == 7, -1.0, Y))
    np.testing.assert_array_equal(found.predict(NEW_X), fitted(name).predict(NEW_X))


@every_loss
@pytest.mark.parametrize("online", [False, True])
def test_model_files(name, online, tmp_path):
    found = model(name).partial_fit(X, Y) if online else fitted(name)
    rflaf.save(found, tmp_path / "model")
    same = rflaf.load(tmp_path / "model")
    assert same.get_params()["loss"] == CASES[name]["loss"]
    np.testing.assert_array_equal(same.predict(NEW_X), found.predict(NEW_X))
    if online:
        same.partial_fit(X[:50], Y[:50])


@every_loss
def test_onnx(name, tmp_path):
    onnx = pytest.importorskip("rflaf.onnx")
    runtime = pytest.importorskip("onnxruntime")
    onnx.export(fitted(name), tmp_path / "model.onnx", dtype="float64")
    session = runtime.InferenceSession(
        (tmp_path / "model.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(["prediction"], {"X": NEW_X})
    np.testing.assert_allclose(found, fitted(name).predict(NEW_X), atol=1e-5 * NEW_Y.max())
    (none,) = session.run(["prediction"], {"X": np.full((1, 3), np.inf)})
    assert np.isnan(none).all()


@every_loss
def test_standard_deviations_and_intervals(name):
    found = fitted(name)
    if name == "three quantiles":
        assert found.noise_ is None
        for method in (found.predict_std, found.predict_interval):
            with pytest.raises(ValueError, match="loss='quantile' with 3 predictions"):
                method(NEW_X)
        return
    assert (found.predict_std(NEW_X) > 0).all()
    low, high = found.predict_interval(NEW_X, 0.8)
    assert np.mean((low <= NEW_Y) & (high >= NEW_Y)) == pytest.approx(0.8, abs=0.1)
    assert low.min() >= 0 or name not in ("poisson", "gamma", "tweedie")
    far = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    with pytest.warns(UserWarning, match="outside"):
        _, std = found.predict(far, return_std=True)
    assert std[1] > std[0]


@every_loss
def test_what_does_not_go_together(name):
    if name != "squared_error":
        with pytest.raises(ValueError, match="solver='cg' takes a quadratic loss"):
            model(name, n_members=1, solver="cg").fit(X, Y)
    pair = np.column_stack([Y, 2 * Y])
    if name in ("squared_error", "absolute_error", "huber"):
        assert model(name).fit(X, pair).predict(NEW_X).shape == (2000, 2)
        return
    with pytest.raises(ValueError, match=rf"loss='{CASES[name]['loss']}' takes one target per row"):
        model(name).fit(X, pair)


@every_loss
def test_parameters_are_kept(name):
    given = model(name)
    assert clone(given).get_params() == given.get_params()
    given.fit(X[:30], Y[:30])
    assert given.get_params() == model(name).get_params()


@pytest.mark.parametrize(
    "given",
    [{"quantile": 0.0}, {"quantile": [0.5, 0.1]}, {"quantile": []}, {"power": 2.5}, {"power": 0}],
    ids=repr,
)
def test_bad_parameters(given):
    loss = "quantile" if "quantile" in given else "tweedie"
    with pytest.raises(ValueError, match=f"'{next(iter(given))}'"):
        RFLAFRegressor(loss=loss, **given).fit(X, Y)


@positive_losses
def test_a_bad_target_of_a_source_is_named_by_its_row(name):
    bad = np.where(np.arange(300) == 207, -3.0, Y)
    source = Blocks([(X[k : k + 50], bad[k : k + 50]) for k in range(0, 300, 50)])
    with pytest.raises(ValueError, match=rf"loss='{name}' takes .* Got -3 in row 207\."):
        model(name).fit(source)


def test_rates_weighted_by_exposure_are_counts():
    rng = np.random.default_rng(3)
    inputs, _, mean = rows(3000, seed=3)
    years = rng.uniform(0.1, 2, 3000)
    rate = rng.poisson(0.2 * mean * years) / years
    found = model("poisson", max_iter=40).fit(inputs, rate, sample_weight=years)
    assert np.sqrt(np.mean(np.log(found.predict(NEW_X) / (0.2 * MEAN)) ** 2)) < 0.12
    assert np.average(found.predict(inputs), weights=years) == pytest.approx(
        np.average(rate, weights=years), rel=0.01
    )


def test_folds_without_events():
    y = np.zeros(300)
    y[5] = 1.0
    with pytest.warns(UserWarning, match="one positive target"):
        found = model("poisson").fit(X, y).predict(NEW_X)
    assert np.isfinite(found).all()
    assert found.mean() < 0.1


def test_outliers_hardly_move_robust_losses():
    """5 % of the targets are far off, all to one side."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1, 1, (800, 3))
    truth = np.sin(3 * inputs[:, 0]) + inputs[:, 1] * inputs[:, 2]
    y = truth + 0.2 * rng.standard_normal(800)
    spoilt = np.where(rng.random(800) < 0.05, y + 100 * rng.random(800), y)
    new = y + 0.2 * rng.standard_normal(800)

    def mean_error(loss, targets):
        found = model(loss, max_iter=40).fit(inputs, targets).predict(inputs)
        return np.mean(np.abs(found - new))

    for loss in ("huber", "absolute_error"):
        assert mean_error(loss, spoilt) < 1.1 * mean_error(loss, y)
    assert mean_error("squared_error", spoilt) > 2 * mean_error("huber", spoilt)


def test_quantiles_hold_their_share_and_never_cross():
    rng = np.random.default_rng(0)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    inputs, new = rng.uniform(-1, 1, (1500, 3)), rng.uniform(-1, 1, (1500, 3))

    def middle_and_scale(x):
        return np.sin(3 * x[:, 0]), 0.4 * np.exp(x[:, 1])

    middle, scale = middle_and_scale(inputs)
    y = middle + scale * rng.standard_normal(1500)
    found = RFLAFRegressor(80, loss="quantile", quantile=levels, max_iter=40, random_state=0)
    predicted = found.fit(inputs, y).predict(new)
    middle, scale = middle_and_scale(new)
    share = norm.cdf((predicted - middle[:, None]) / scale[:, None]).mean(axis=0)
    np.testing.assert_allclose(share, levels, atol=0.03)
    outside = found.predict(10 * new)  # where lines go on
    for each in (predicted, outside, found.oof_prediction_):
        assert (np.diff(each, axis=1) >= 0).all()
    wide = predicted[:, -1] - predicted[:, 0]
    assert np.corrcoef(wide, scale)[0, 1] > 0.8


@every_loss
def test_pages_and_scores(name, tmp_path):
    pytest.importorskip("jinja2")
    found = fitted(name)
    text = found.report(tmp_path / "page.html", NEW_X, NEW_Y).read_text(encoding="utf-8")
    several = name == "three quantiles"
    assert ("actual values below" in text) == several
    assert ("Prediction intervals" in text) != several
    assert ("actual values in their distributions" in text) != several
    inside = found.report(tmp_path / "page.html", X_train=X, y_train=Y)
    assert "out of fold" in inside.read_text(encoding="utf-8")
    assert 0 < found.score(NEW_X, NEW_Y) < 1
    half = np.arange(len(NEW_Y)) < len(NEW_Y) // 2
    weighted = found.score(NEW_X, NEW_Y, sample_weight=half.astype(float))
    assert weighted == pytest.approx(found.score(NEW_X[half], NEW_Y[half]))


@every_loss
def test_distributions(name):
    found = fitted(name)
    if name == "three quantiles":
        with pytest.raises(ValueError, match="loss='quantile' with 3 predictions"):
            found.predict_dist(NEW_X)
        return
    dist = found.predict_dist(NEW_X)
    np.testing.assert_allclose(dist.std, found.predict_std(NEW_X))
    low, high = found.predict_interval(NEW_X, 0.8)
    quantiles = found.predict_quantiles(NEW_X, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(quantiles[:, [0, 2]], np.column_stack([low, high]))
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert np.isfinite(dist.logpdf(NEW_Y)).all()
    assert np.mean(dist.crps(NEW_Y)) < np.mean(np.abs(NEW_Y - np.median(Y)))
    np.testing.assert_array_equal(dist.sample(2, 0), dist.sample(2, 0))
    if name in ("squared_error", "poisson", "gamma", "tweedie"):
        np.testing.assert_allclose(dist.mean, found.predict(NEW_X))


@pytest.mark.parametrize("quantile", [["a"], [[0.1, 0.2]], [0.5, 0.2], []])
def test_quantiles_that_are_none(quantile):
    with pytest.raises(ValueError, match="'quantile' must be a number between 0 and 1, or several"):
        Quantile(quantile=quantile)
