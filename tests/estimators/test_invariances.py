"""What must not matter to a fit: units, order of columns, rows of no weight, copies of rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf import RFLAFClassifier, RFLAFRegressor

SMALL = {"n_components": 80, "random_state": 0}


def table(seed, n=200):
    """Numbers, a category of few levels and one of many, and targets."""
    rng = np.random.default_rng(seed)
    town, effect = rng.integers(0, 60, n), rng.standard_normal(60)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(n),
            "b": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2, 2, n)),
            "kind": rng.choice(["x", "y", "z"], n),
            "town": [f"t{k}" for k in town],
        }
    )
    y = 3 * effect[town] + np.sin(2 * frame["a"]) + (frame["kind"] == "x")
    return frame, (y + 0.1 * rng.standard_normal(n)).to_numpy()


@settings(max_examples=6, deadline=None)
@given(exponent=st.floats(-15, 15), seed=st.integers(0, 3))
def test_the_unit_of_weights(exponent, seed):
    """Equal weights of any size are no weights at all, to the bit."""
    frame, y = table(seed)
    plain = RFLAFRegressor(**SMALL).fit(frame, y).predict(frame)
    weights = np.full(len(y), 10.0**exponent)
    weighted = RFLAFRegressor(**SMALL).fit(frame, y, sample_weight=weights).predict(frame)
    np.testing.assert_array_equal(weighted, plain)


@settings(max_examples=6, deadline=None)
@given(exponent=st.integers(-40, 40), seed=st.integers(0, 3))
def test_uneven_weights_in_another_unit(exponent, seed):
    frame, y = table(seed)
    weights = np.random.default_rng(seed).uniform(0.2, 3, len(y))
    one, other = (
        RFLAFRegressor(**SMALL).fit(frame, y, sample_weight=w).predict(frame)
        for w in (weights, weights * 2.0**exponent)
    )
    np.testing.assert_array_equal(one, other)


@settings(max_examples=6, deadline=None)
@given(exponent=st.integers(-220, 220), seed=st.integers(0, 3))
def test_the_unit_of_targets(exponent, seed):
    frame, y = table(seed)
    unit = 10.0**exponent
    one = RFLAFRegressor(**SMALL).fit(frame, y).predict(frame)
    other = RFLAFRegressor(**SMALL).fit(frame, y * unit).predict(frame) / unit
    np.testing.assert_allclose(one, other, atol=1e-3 * y.std())


@pytest.mark.parametrize("estimator", [RFLAFRegressor, RFLAFClassifier])
@settings(max_examples=5, deadline=None)
@given(value=st.sampled_from([0.0, 1e6, -1e300, np.nan]), level=st.text(max_size=3))
def test_rows_of_weight_zero_are_not_there(estimator, value, level):
    frame, y = table(1)
    y = y if estimator is RFLAFRegressor else y > 0
    strange = pd.DataFrame({"a": [value] * 9, "b": value, "kind": level, "town": level})
    more = pd.concat([frame, strange], ignore_index=True)
    weights = np.append(np.ones(len(y)), np.zeros(9))
    one = estimator(**SMALL).fit(frame, y)
    other = estimator(**SMALL).fit(more, np.append(y, y[:9]), sample_weight=weights)
    np.testing.assert_array_equal(one.predict(frame), other.predict(frame))
    assert one.encoder_.get_feature_names_out().tolist() == (
        other.encoder_.get_feature_names_out().tolist()
    )


@settings(max_examples=5, deadline=None)
@given(order=st.permutations(range(4)), seed=st.integers(0, 3))
def test_the_order_of_columns(order, seed):
    """Another order is another rounding, which matters less than another seed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(300)
    predict = [
        RFLAFRegressor(80, random_state=s).fit(X[:, o], y).predict(X[:, o])
        for s, o in ((0, [0, 1, 2, 3]), (0, list(order)), (1, [0, 1, 2, 3]))
    ]
    apart = [np.sqrt(np.mean((predict[0] - other) ** 2)) for other in predict[1:]]
    assert apart[0] <= apart[1]


def test_copies_of_rows_share_a_fold():
    """60 rows, each five times, say nothing about new rows; the score must not claim that."""
    scores, covered = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 8)), rng.standard_normal(60)
        with pytest.warns(UserWarning, match="100% of the rows are duplicates"):
            model = RFLAFRegressor(**SMALL).fit(np.repeat(X, 5, axis=0), np.repeat(y, 5))
        scores.append(model.oof_score_)
        new = rng.standard_normal((400, 8))
        low, high = model.predict_interval(new)
        truth = rng.standard_normal(400)
        covered.append(np.mean((low <= truth) & (truth <= high)))
    assert max(scores) < 0.3
    assert min(covered) > 0.75


def test_few_copies_are_not_warned_about():
    frame, y = table(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RFLAFRegressor(**SMALL).fit(
            pd.concat([frame, frame[:5]], ignore_index=True), np.append(y, y[:5])
        )


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_groups_protect_means_of_the_target(classes, nested):
    """A patient's name tells everything about known patients, and nothing about new ones."""
    scores, fresh, covered = [], [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        patient = np.repeat(np.arange(60), 10)
        visit = patient * 3 + rng.integers(0, 3, 600) if nested else patient
        y = rng.standard_normal(60)[patient] + 0.2 * rng.standard_normal(600)
        frame = pd.DataFrame({"name": [f"p{k}" for k in visit], "x": rng.standard_normal(600)})
        new = pd.DataFrame({"name": [f"n{k}" for k in range(300)], "x": rng.standard_normal(300)})
        truth = rng.standard_normal(300)
        estimator = RFLAFClassifier if classes else RFLAFRegressor
        model = estimator(**SMALL).fit(frame, y > 0 if classes else y, groups=patient)
        scores.append(model.oof_score_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all names are unknown
            fresh.append(model.score(new, truth > 0 if classes else truth))
            if not classes:
                low, high = model.predict_interval(new)
                covered.append(np.mean((low <= truth) & (truth <= high)))
    assert abs(np.mean(scores) - np.mean(fresh)) < 0.12
    assert not covered or min(covered) > 0.8
