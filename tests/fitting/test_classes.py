"""Classes counted, weighted and as numbers."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from rflaf.fitting.classes import ClassTally


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
    encoding = tally((y, np.ones(100))).encoding("balanced")
    expected = compute_class_weight("balanced", classes=np.array([3, 7, 9]), y=y)
    np.testing.assert_allclose(encoding.weights, expected, rtol=1e-11)
    assert encoding.total == pytest.approx(100)
    weighted = tally((y, np.where(y == 9, 0.0, 2.0))).encoding("balanced")
    np.testing.assert_allclose(weighted.weights, [2.5, 0.625, 0])


def test_weights_by_name_and_what_will_not_do():
    found = tally((["a", "b", "c"], [1, 2, 3]))
    np.testing.assert_array_equal(found.encoding({"b": 4}).weights, [1, 4, 1])
    assert found.encoding({"b": 4}).total == 12
    with pytest.raises(ValueError, match="'class_weight' must have classes of 'y' as keys"):
        found.encoding({"z": 1})
    with pytest.raises(ValueError, match="must not be negative"):
        found.encoding({"a": -1})
    with pytest.raises(ValueError, match="at least 2 classes with a positive weight"):
        found.encoding({"a": 0, "b": 0})
    with pytest.raises(ValueError, match="samples of at least 2 classes"):
        tally((["a"], [1])).encoding(None)


def test_places_among_the_classes():
    encoding = tally((["a", "b", "c"], [1, 2, 3])).encoding({"c": 2})
    codes, weights = encoding.encode(np.array(["c", "a"]), np.array([1.0, 5.0]))
    assert codes.tolist() == [2, 0]
    assert weights.tolist() == [2, 5]
    for strange in ("0", "bb", "z"):
        with pytest.raises(ValueError, match=f"gave the class .*{strange}.* in a later pass"):
            encoding.encode(np.array(["a", strange]), np.ones(2))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_numbers_are_centred_and_of_unit_variance(n_classes, rng):
    codes, weights = rng.integers(0, n_classes, 200), rng.uniform(0, 2, 200)
    encoding = tally((codes, weights)).encoding(None)
    numbers, spread = encoding.as_numbers(codes, weights)
    assert numbers.shape == (200, 1 if n_classes == 2 else n_classes)
    share = weights / weights.sum()
    np.testing.assert_allclose(share @ numbers, 0, atol=1e-12)
    assert np.mean(share @ numbers**2) == pytest.approx(1)
    assert 0 < spread <= 0.5
    alone, one = encoding.as_numbers(np.zeros(9, int), np.ones(9))
    np.testing.assert_array_equal(alone, 0)
    assert one == 1
