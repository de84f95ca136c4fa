"""Probabilities of classes: consistent, calibrated, and weighted."""

import numpy as np

from tests.estimators.conftest import classifier


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
