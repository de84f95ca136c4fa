"""Several metrics of a layer."""

import numpy as np
import pytest

from rflaf import RFLAFClassifier, RFLAFRegressor, rules
from rflaf.fitting.more_metrics import apply_metrics
from rflaf.io import load, save


def _parts(n=2500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 8))
    waves = np.sin(6 * X[:, 0] * X[:, 1]) + np.cos(5 * X[:, 2]) * X[:, 3]
    return X, waves + np.exp(X[:, 4])


@pytest.fixture(scope="module")
def summed():
    X, y = _parts()
    return RFLAFRegressor(500, n_members=1, input_form="raw", random_state=0).fit(X, y)


def test_parts_of_a_sum_have_metrics_of_their_own(summed, monkeypatch):
    X, y = _parts(1000, seed=1)
    layer = summed.members_[0].layer
    assert len(layer.metrics) > 1
    first, second = (np.abs(each) if each.ndim == 1 else np.linalg.norm(each, axis=1)
                     for each in layer.metrics[:2])  # fmt: skip
    assert first[[0, 1]].min() > 3 * first[[2, 3]].max()
    assert second[2] > 3 * second[0]
    assert " metrics" in summed.summary()
    monkeypatch.setattr(rules, "MORE_METRICS", 0)
    one = RFLAFRegressor(500, n_members=1, input_form="raw", random_state=0).fit(*_parts())
    assert len(one.members_[0].layer.metrics) == 1
    assert 1 - summed.score(X, y) < 0.3 * (1 - one.score(X, y))


def test_saved_and_loaded(summed, tmp_path):
    save(summed, tmp_path / "model.rflaf")
    again = load(tmp_path / "model.rflaf")
    X = _parts(50)[0]
    np.testing.assert_array_equal(again.predict(X), summed.predict(X))
    for one, other in zip(again.members_[0].layer.metrics, summed.members_[0].layer.metrics):
        np.testing.assert_array_equal(one, other)


def test_classes_too():
    X, y = _parts(3000)
    model = RFLAFClassifier(500, n_members=1, input_form="raw", random_state=0)
    model.fit(X, y > np.median(y))
    assert len(model.members_[0].layer.metrics) > 1


def test_one_part_has_one_metric():
    X, _ = _parts()
    model = RFLAFRegressor(300, n_members=1, input_form="raw", random_state=0)
    model.fit(X, np.sin(3 * X[:, 0]) * X[:, 1])
    assert len(model.members_[0].layer.metrics) == 1


def test_columns_are_dealt_out_in_turn(rng):
    w, scale, full = rng.standard_normal((3, 7)), rng.random(3), rng.standard_normal((3, 3))
    found = apply_metrics((np.diag(scale), full), w)
    np.testing.assert_allclose(found[:, ::2], scale[:, None] * w[:, ::2])
    np.testing.assert_allclose(found[:, 1::2], full @ w[:, 1::2])
