"""Classes counted, weighted and as codes."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from rflaf.losses import Logistic
from rflaf.losses.logistic import ClassTally
from rflaf.rows import ArrayRows


def tally(*blocks):
    found = ClassTally()
    for y, weights in blocks:
        found.add(np.asarray(y), np.asarray(weights, float))
    return found


@pytest.mark.parametrize("kind", [str, int, float, object])
def test_counting_in_blocks(kind, rng):
    labels = np.array(["1", "3", "20", "-4"]).astype(kind)[rng.integers(0, 4, 60)]
    weights = rng.uniform(0, 2, 60)
    whole = tally((labels, weights))
    parts = tally(*((labels[k : k + 7], weights[k : k + 7]) for k in range(0, 60, 7)))
    merged = ClassTally()
    for k in (0, 20, 40):
        merged.merge(tally((labels[k : k + 20], weights[k : k + 20])))
    merged.merge(ClassTally())
    for found in (whole, parts, merged):
        np.testing.assert_array_equal(found.classes, np.unique(labels))
        expected = [weights[labels == name].sum() for name in np.unique(labels)]
        np.testing.assert_allclose(found.weights, expected)


def test_balanced_is_that_of_scikit_learn():
    y = np.repeat([3, 7, 9], [5, 20, 75])
    weights = tally((y, np.ones(100))).class_weights("balanced")
    expected = compute_class_weight("balanced", classes=np.array([3, 7, 9]), y=y)
    np.testing.assert_allclose(weights, expected, rtol=1e-11)
    weighted = tally((y, np.where(y == 9, 0.0, 2.0))).class_weights("balanced")
    np.testing.assert_allclose(weighted, [2.5, 0.625, 0])


def test_weights_by_name_and_what_will_not_do():
    found = tally((["a", "b", "c"], [1, 2, 3]))
    np.testing.assert_array_equal(found.class_weights({"b": 4}), [1, 4, 1])
    with pytest.raises(ValueError, match="'class_weight' must have classes of 'y' as keys"):
        found.class_weights({"z": 1})
    with pytest.raises(ValueError, match="must not be negative"):
        found.class_weights({"a": -1})
    with pytest.raises(ValueError, match="must be finite"):
        found.class_weights({"a": np.inf})
    with pytest.raises(ValueError, match="must not differ by more than"):
        found.class_weights({"a": 1e-200})
    with pytest.raises(ValueError, match="at least 2 classes with a positive weight"):
        found.class_weights({"a": 0, "b": 0})
    with pytest.raises(ValueError, match="samples of at least 2 classes"):
        tally((["a"], [1])).class_weights(None)


@pytest.mark.parametrize("largest", [1e-200, 1.0, 1e200])
def test_weights_of_any_size(largest):
    """Those that float32 could not hold are divided by the largest."""
    weights = tally((["a", "b"], [1, 1])).class_weights({"a": largest, "b": largest / 1e3})
    assert weights[0] / weights[1] == pytest.approx(1e3)
    assert 1e-13 < weights.min() < weights.max() < 1e13


def test_places_among_the_classes():
    y = np.array(["a", "b", "c"])
    loss = Logistic({"c": 2})
    sample = ArrayRows(np.zeros((3, 1)), y, np.arange(1.0, 4)).sample(lambda _: 9, 0, loss.tally)
    loss = loss.opened(sample, fit_intercept=True)
    codes, weights = loss.encode(np.array(["c", "a"]), np.array([1.0, 5.0]))
    assert codes.tolist() == [2, 0]
    assert weights.tolist() == [2, 5]
    for strange in ("0", "bb", "z"):
        with pytest.raises(ValueError, match=f"The class '{strange}' did not occur"):
            loss.encode(np.array(["a", strange]), np.ones(2))
