"""Out-of-fold probabilities of the classifier."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import log_loss

from rflaf import RFLAFClassifier, rules

FEW = {"n_components": 50, "max_iter": 10, "random_state": 0}


def test_they_are_those_of_members_that_have_not_seen_the_row():
    X, y = make_moons(400, noise=0.3, random_state=0)
    weights = np.ones(400)
    weights[:5] = 0
    model = RFLAFClassifier(**FEW).fit(X, y, sample_weight=weights)
    found = model.oof_prediction_
    assert np.isnan(found[:5]).all()
    np.testing.assert_allclose(found[5:].sum(axis=1), 1)
    assert np.mean(found[5:].argmax(axis=1) == y[5:]) == pytest.approx(model.oof_score_)
    new_X, new_y = make_moons(2000, noise=0.3, random_state=1)
    new = log_loss(new_y, model.predict_proba(new_X))
    assert log_loss(y[5:], found[5:]) == pytest.approx(new, rel=0.2)


def test_three_classes_and_the_page(tmp_path):
    pytest.importorskip("jinja2")
    X, y = load_iris(return_X_y=True)
    model = RFLAFClassifier(**FEW).fit(X, y)
    assert model.oof_prediction_.shape == (150, 3)
    text = model.report(tmp_path / "page.html", X_train=X, y_train=y).read_text(encoding="utf-8")
    assert "training rows, out of fold" in text


@pytest.mark.parametrize("stalls", [False, True])
def test_with_many_classes_rows_held_out_end_the_steps(monkeypatch, stalls):
    """The penalty is then one of those tried, whose weights are there, and none between them."""
    monkeypatch.setattr(rules, "STALL_OUTPUTS", 3 if stalls else 4)
    monkeypatch.setattr(rules, "STALL_ROWS", 50)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 3))
    y = (x[:, 0] > 0) + 2 * (x[:, 1] + 0.3 * rng.standard_normal(600) > 0)
    model = RFLAFClassifier(n_components=50, n_members=3, random_state=0).fit(x[:400], y[:400])
    tried = [record["alpha"] for record in model.alpha_path_]
    assert (model.alpha_ in tried) == stalls
    assert model.score(x[400:], y[400:]) > 0.85
    assert model.oof_score_ == pytest.approx(model.score(x[400:], y[400:]), abs=0.06)
