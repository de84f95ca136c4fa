"""What is on the page about a model."""

import re

import numpy as np
import pytest
from sklearn.metrics import log_loss

from rflaf import RFLAFRegressor
from rflaf.report import write_report
from rflaf.report.evidence import on_test_rows
from rflaf.report.reasons import attribution_section
from rflaf.report.subject import Subject
from tests.paper.report.test_page import TAGS, Outline
from tests.report.made_models import CLASSES, FEW, HOSTILE, frame

MORE_TAGS = {"strong", "i", "b"}
TILE = re.compile(r'<span class="name">([^<]*)</span><strong>([^<]*)</strong>')
COMMON = {"summary", "scores", "importances", "effects", "learned", "rows", "columns"}


@pytest.fixture(scope="module")
def texts(pages):
    return {name: path.read_text(encoding="utf-8") for name, path in pages.items()}


def tiles(text):
    return dict(TILE.findall(text))


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_names_stay_text_and_nothing_comes_from_outside(texts, kind):
    outline = Outline(texts[kind])
    assert set(outline.tags) <= TAGS | MORE_TAGS
    assert outline.tags.count("script") == 1
    assert not {name for name in outline.attributes if name.startswith("on")}
    assert all(link.startswith("#") or link == "data:," for link in outline.links)
    assert "url(" not in texts[kind]
    text = "".join(outline.text)
    assert all(name in text for name in (*HOSTILE, *(CLASSES if kind == "classes" else ())))
    assert "49 & 'quoted'" not in text


def test_sections_of_numbers(texts, numbers_model):
    outline = Outline(texts["numbers"])
    assert COMMON | {"predicted", "intervals"} <= set(outline.ids)
    assert "missing" not in outline.ids
    assert "<h1>Model of &lt;i&gt;price&lt;/i&gt;</h1>" in texts["numbers"]
    model, (X, _), (T, t) = numbers_model
    assert f"{len(X)} rows, 4 columns" in texts["numbers"]
    found = tiles(texts["numbers"])
    assert found["R², this model"] == f"{model.score(T, t):.3f}"
    assert found["R², out of fold"] == f"{model.oof_score_:.3f}"
    low, high = model.predict_interval(T, 0.9)
    assert found["coverage of 90% intervals"] == f"{np.mean((low <= t) & (t <= high)):.0%}"


def test_sections_of_classes(texts, classes_model):
    outline = Outline(texts["classes"])
    assert COMMON | {"probabilities", "confusion"} <= set(outline.ids)
    model, _, (T, t) = classes_model
    found = tiles(texts["classes"])
    assert found["log-loss, this model"] == f"{log_loss(t, model.predict_proba(T)):.3f}"
    assert {"log-loss, constant model", "ROC AUC, this model"} <= set(found)
    assert not any(name.startswith("accuracy") for name in found)
    confusion = texts["classes"].split('id="confusion"')[1].split("</section>")[0]
    counts = [int(n) for n in re.findall(r'<td style="[^"]*" class="number " .*?>(\d+)', confusion)]
    assert len(counts) == 9
    assert sum(counts) == len(t)
    assert sum(counts[::4]) == round(model.score(T, t) * len(t))


def test_the_simple_models_are_what_they_say(texts, numbers_model):
    from sklearn.linear_model import RidgeCV

    _, (X, y), (T, t) = numbers_model
    X, T = (part.to_numpy() for part in (X, T))
    line = RidgeCV(np.logspace(-3, 4, 15)).fit((X - X.mean(0)) / X.std(0), y)
    expected = line.score((T - X.mean(0)) / X.std(0), t)
    constant = 1 - np.sum((t - y.mean()) ** 2) / np.sum((t - t.mean()) ** 2)
    found = tiles(texts["numbers"])
    assert float(found["R², linear model"]) == pytest.approx(expected, abs=2e-3)
    assert float(found["R², constant model"]) == pytest.approx(constant, abs=1e-3)
    assert "fitted to the training rows" in texts["numbers"]


def test_rows_with_the_largest_residuals_come_first(texts, numbers_model):
    model, _, (T, t) = numbers_model
    rows = texts["numbers"].split('id="rows"')[1].split("</section>")[0]
    labels = [int(label) for label in re.findall(r'<th scope="row">(\d+)</th>', rows)]
    residual = np.abs(t.to_numpy() - model.predict(T))
    assert labels == np.argsort(-residual)[:15].tolist()


def test_without_rows_it_shows_what_the_model_holds(numbers_model, tmp_path):
    text = numbers_model[0].report(tmp_path / "a.html").read_text(encoding="utf-8")
    outline = Outline(text)
    assert {"scores", "importances", "learned", "missing"} <= set(outline.ids)
    assert not {"predicted", "effects", "intervals", "rows", "columns"} & set(outline.ids)
    assert "pass X_test and y_test" in text
    assert tiles(text) == {"R², out of fold": f"{numbers_model[0].oof_score_:.3f}"}


def test_out_of_fold_predictions_where_there_are_no_test_rows(numbers_model, tmp_path):
    model, (X, y), _ = numbers_model
    path = model.report(tmp_path / "a.html", X_train=X, y_train=y, title="A <title>")
    text = path.read_text(encoding="utf-8")
    outline = Outline(text)
    assert {"predicted", "effects", "rows"} <= set(outline.ids)
    assert "intervals" not in outline.ids, "the model has seen these rows"
    kept = np.isfinite(model.oof_prediction_)
    assert f"{kept.sum()} training rows, out of fold" in text
    assert float(tiles(text)["R², this model"]) == pytest.approx(model.oof_score_, abs=6e-4)
    assert "<h1>A &lt;title&gt;</h1>" in text


def test_without_training_rows_it_says_how_the_line_was_fitted(classes_model, tmp_path):
    model, _, (T, t) = classes_model
    text = model.report(tmp_path / "a.html", T, t).read_text(encoding="utf-8")
    assert "fitted in five folds to the test rows" in text
    assert "Pass X_train and y_train for a fair comparison" in text


def test_classes_that_the_model_does_not_know(classes_model, tmp_path):
    model, _, (T, t) = classes_model
    other = np.where(np.arange(len(t)) < 7, "never seen", t.astype(object))
    text = model.report(tmp_path / "a.html", T, other).read_text(encoding="utf-8")
    assert "7 test rows are ignored" in text
    assert f"on {len(t) - 7} test rows" in text


def test_several_targets(tmp_path):
    X = frame(120)
    y = np.column_stack([X.iloc[:, 0], 100 * X.iloc[:, 1]])
    model = RFLAFRegressor(**FEW).fit(X.to_numpy(), y)
    path = model.report(tmp_path / "a.html", X.to_numpy(), y, X_train=X.to_numpy(), y_train=y)
    text = path.read_text(encoding="utf-8")
    assert "target 1, actual against predicted" in text
    assert "x1" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X_test": np.zeros((3, 4))}, "'y_test' must be passed with 'X_test'"),
        ({"y_train": np.zeros(3)}, "'X_train' must be passed with 'y_train'"),
        ({"X_test": np.zeros((3, 4)), "y_test": np.zeros(2)}, "'y_test' must have 3 rows. Got 2"),
        ({"X_test": np.zeros(4), "y_test": np.zeros(4)}, "'X_test' must be an array or a frame"),
        ({"X_test": np.zeros((2, 4)), "y_test": [1.0, np.nan]}, "'y_test' must be finite"),
        ({"X_test": frame(2), "y_test": np.zeros((2, 3))}, "must have 1 columns"),
    ],
)
def test_arguments_are_named(tmp_path, numbers_model, given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        write_report(numbers_model[0], tmp_path / "a.html", **given)
    assert not list(tmp_path.iterdir())


def test_models_that_cannot_be_shown(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import Ridge

    with pytest.raises(NotFittedError):
        RFLAFRegressor().report(tmp_path / "a.html")
    with pytest.raises(TypeError, match="Got Ridge instead"):
        write_report(Ridge().fit([[0.0], [1.0]], [0, 1]), tmp_path / "a.html")


def test_nothing_half_written(tmp_path, numbers_model, full_disk):
    (tmp_path / "a.html").write_text("before")
    with pytest.raises(OSError, match=r"No space left on device: '.*/a\.html'$"):
        numbers_model[0].report(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_test_rows_far_outside_are_said(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    model = RFLAFRegressor(20, max_iter=2, random_state=0).fit(X, X[:, 0])
    far = X.copy()
    far[:50] *= 100
    write_report(model, tmp_path / "page.html", X_test=far, y_test=far[:, 0])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "25.0% of the test rows lie more than a standard deviation outside" in text


def test_a_page_says_why_what_is_constrained_and_with_what_effort(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=200)
    model = RFLAFRegressor(
        30, n_members=2, effort="fast", max_iter=2, monotonic_cst=[1, -1, 0, 0], random_state=0
    ).fit(X[:150], y[:150])
    page = model.report(tmp_path / "model.html", X[150:], y[150:]).read_text(encoding="utf-8")
    assert "Why these predictions" in page
    assert "typical" in page
    assert "target never falls in x0" in page
    assert "target never rises in x1" in page
    assert "standard deviation over members" in page
    assert "fast" in page


def test_a_page_of_a_model_without_background_says_nothing_of_reasons(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = RFLAFRegressor(20, n_members=1, max_iter=1, random_state=0).fit(X, X[:, 0])
    model.background_ = None
    page = model.report(tmp_path / "model.html", X, X[:, 0]).read_text(encoding="utf-8")
    assert "Why these predictions" not in page


def test_reasons_of_other_losses(tmp_path):
    """Those of the quantile that is shown, and of the logarithm where that is what adds up."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 2))
    y = np.exp(X[:, 0]) * rng.gamma(5, 0.2, 120)
    small = {"n_components": 20, "max_iter": 2, "n_members": 2, "random_state": 0}
    gamma = RFLAFRegressor(loss="gamma", **small).fit(X, y)
    several = RFLAFRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], **small).fit(X, y)
    write_report(gamma, tmp_path / "gamma.html", X_test=X, y_test=y)
    assert "column to the logarithm of the prediction" in (tmp_path / "gamma.html").read_text()
    subject = Subject(several)
    assert subject.shown_level == 1
    section = attribution_section(subject, on_test_rows(subject, X, y), ["a", "b"])
    shown = sum(float(bar.text) for bar in section.subsections[0].bars[0].bars)
    worst = int(section.subsections[0].bars[0].title.split()[1].rstrip(","))
    expected = several.explain(X[[worst]]).values[0].sum(axis=0)
    assert abs(shown - expected[1]) < 0.02 * np.abs(expected).max() + 0.02
