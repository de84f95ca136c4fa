"""Looking at a fitted model: importances, summary, pictures, warnings, progress, links."""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from rflaf import RFLAFClassifier, RFLAFRegressor
from tests.estimators.conftest import classifier, regressor


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
    assert re.match(r"RFLAFRegressor: oof R² -?\d\.\d\d \(2 members\)\n", text)
    assert "40 per member, 11 inputs" in text
    expected = {"raw": "standardised columns,", "both": "and their ranks,", "ranks": "ranks of"}
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
    mean, first, second, formula = ax.lines  # of two members, scaled alike
    assert formula.get_linestyle() == "--"
    assert formula.get_label() == ax.get_legend().get_texts()[0].get_text()
    assert f"looks like     {formula.get_label()} (R² " in model.summary()
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


def test_plot_warps(friedman):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y, _, _ = friedman
    model = regressor(input_form="bins", metric="diagonal").fit(X, y)
    axes = model.plot_warps()
    assert len(axes) == 6
    important = np.argsort(-model.feature_importances_)[:6]
    assert [ax.get_xlabel() for ax in axes] == [f"x{j}" for j in important]
    for ax, j in zip(axes, important):
        edges, heights = ax.lines[0].get_data()
        assert (np.diff(heights) >= 0).all()
        assert (edges.min(), edges.max()) == (X[:, j].min(), X[:, j].max())
    (alone,) = model.plot_warps(["x3"])
    assert alone.get_ylabel() == "learned scale, summed"
    assert alone.get_xlabel() == "x3"
    with pytest.raises(ValueError, match=r"'columns' must be binned columns: .* Got \[10\]"):
        model.plot_warps([10])
    with pytest.raises(ValueError, match="needs binned inputs"):
        regressor().fit(X, y).plot_warps()
    pyplot.close("all")


def test_warps_of_members_with_bins_of_their_own(rng):
    """Means of a target by level are a member's own, and so are the edges of its bins."""
    pandas = pytest.importorskip("pandas")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    level = rng.integers(0, 300, 600)
    X = pandas.DataFrame({"level": [f"level {k}" for k in level], "a": rng.standard_normal(600)})
    y = np.sin(2 * X["a"]) + 0.1 * rng.standard_normal(600)
    model = regressor(input_form="bins", metric="diagonal", n_members=5).fit(X, y)
    assert len({member.layer.form.bins.edges.tobytes() for member in model.members_}) > 1
    names = [ax.get_xlabel() for ax in model.plot_warps()]
    assert names[0] == "a"
    assert len(names) == 2
    pyplot.close("all")


def test_summary(friedman):
    X, y, _, _ = friedman
    text = regressor(alpha=0.125).fit(X, y).summary()
    for part in ("RFLAFRegressor: oof R²", "RBF(32 on [-2, 2])\n", "0.125", "steps"):
        assert part in text
    model = classifier().fit(X, y > 14)
    ours, constant = model.oof_metrics_["log-loss"]
    assert f"RFLAFClassifier: oof log-loss {ours:.3g} ({constant:.3g})" in model.summary()
    assert list(model.oof_metrics_) == ["log-loss", "ROC AUC", "average precision", "accuracy"]
    assert model.oof_metrics_["accuracy"][0] == model.oof_score_
    assert ours < constant
    assert "1 member, no rows held out" in regressor().fit(X[:19], y[:19]).summary()
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
    regressor(verbose=1, max_iter=20, metric="full").fit(X, y)  # 400 rows get 12 steps
    assert "24/24, held out loss" in capsys.readouterr().err  # of two members


@pytest.mark.parametrize("kind", [RFLAFRegressor, RFLAFClassifier])
def test_a_wrong_parameter_is_an_error_of_the_class_that_was_called(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected"):
        kind(n_component=3)


def test_the_text_form_is_scikit_learns():
    assert repr(RFLAFRegressor(alpha=0.5)) == "RFLAFRegressor(alpha=0.5)"


def test_importances_are_drawn_with_their_spread():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = RFLAFRegressor(20, n_members=2, max_iter=1, random_state=0).fit(X, X[:, 1])
    ax = model.plot_importances(pyplot.figure().gca(), top=2)
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "x1"
    assert len(ax.containers) == 2  # bars, and what shows their spread
    pyplot.close("all")
