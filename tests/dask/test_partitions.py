"""Partitions, and what is made of them a few at a time, without a cluster."""

import dask
import numpy as np
import pytest

from rflaf import RFLAFRegressor
from rflaf.dask.partitions import merge_draws, open_partition, tree
from rflaf.estimators.validation import InputCheck
from rflaf.losses import Logistic, SquaredError
from rflaf.rows import Block
from rflaf.rows.sample import SampleDraw


def test_a_tree_keeps_the_order():
    for n in (1, 7, 8, 9, 70):
        leaves = [dask.delayed([k]) for k in range(n)]
        joined = tree(leaves, lambda found: [k for part in found for k in part])
        assert joined.compute(scheduler="synchronous") == list(range(n))


def test_what_tasks_gave_stays_as_it_is():
    """The scheduler may run what follows once more."""
    found = []
    for start, labels in ((0, ["a", "b"]), (2, ["b"])):
        n = len(labels)
        found.append(SampleDraw(10, 0, Logistic().tally))
        found[-1].add(Block(start, np.zeros((n, 1)), np.array(labels), np.ones(n)))
    first, second = (merge_draws(found) for _ in range(2))
    for merged in (first, second):
        assert merged.tally.weights.tolist() == [1, 2]
        assert merged.result().y.tolist() == ["a", "b", "b"]
    assert found[0].tally.weights.tolist() == [1, 1]
    assert found[0].count == 2


def test_partitions_that_do_not_fit_together(rows):
    X, y, weights = rows
    check = InputCheck(RFLAFRegressor, SquaredError())
    with pytest.raises(ValueError, match=r"'y' must have 0 rows.*Got 5"):
        open_partition(check, (X[:0], y[:5]), 7, 0)
    with pytest.raises(ValueError, match=r"'sample_weight' must have 5 rows.*Got 4"):
        open_partition(check, (X[:5], y[:5], weights[:4]), 7, 5)
    with pytest.raises(ValueError, match="had 6 rows at first, and 5 later"):
        open_partition(check, (X[:5], y[:5]), 7, 6)
    assert open_partition(check, (X[:0], y[:0]), 7, 0) is None
    opened = open_partition(check, (X[:5], y[:5], weights[:5]), 7, 5)
    assert opened.first == 7
    np.testing.assert_array_equal(opened.weights, weights[:5])
