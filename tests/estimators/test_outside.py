"""Beyond the rows of a fit: predictions go on from the edge, and are less sure further out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV

from rflaf import RFLAFClassifier, RFLAFRegressor, load, save

FUNCTIONS = {
    "linear": lambda u: u,
    "saturating": lambda u: np.tanh(2 * u),
    "periodic": lambda u: np.sin(4 * np.pi * u),
}
COLUMNS = {
    "lognormal": lambda rng, n: np.exp(rng.standard_normal(n)),
    "uniform": lambda rng, n: rng.uniform(0, 10, n),
}


def rows_of(function, value, unit, rng):
    others = rng.standard_normal((len(value), 3))
    target = 3 * FUNCTIONS[function](value / unit) + 0.3 * np.sin(2 * others[:, 0])
    target = target + 0.3 * others[:, 1] + 0.1 * rng.standard_normal(len(value))
    return np.column_stack([value, others]), target


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(0)
    X, y = rows_of("linear", np.exp(rng.standard_normal(1500)), 8.0, rng)
    return X, y, RFLAFRegressor(200, random_state=0).fit(X, y)


@pytest.mark.parametrize("column", ["uniform", pytest.param("lognormal", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "function", ["linear", "periodic", pytest.param("saturating", marks=pytest.mark.slow)]
)
def test_known_functions(function, column):
    """No worse than the better of a straight line and a constant, and within three ranges.

    At the end of a long tail a constant hangs on the last row alone, so more is allowed there.
    """
    rng = np.random.default_rng(1)
    value = COLUMNS[column](rng, 2500)
    unit = np.quantile(value, 0.99)
    X, y = rows_of(function, value, unit, rng)
    model = RFLAFRegressor(random_state=0).fit(X, y)
    peers = [HistGradientBoostingRegressor(random_state=0).fit(X, y), RidgeCV().fit(X, y)]
    for times in (1.5, 3.0):
        far = value.max() * rng.uniform(times - 0.4, times + 0.4, 500)
        X_far, y_far = rows_of(function, far, unit, rng)
        errors = [np.sqrt(np.mean((each.predict(X_far) - y_far) ** 2)) for each in (model, *peers)]
        assert errors[0] <= (1.25 if column == "uniform" else 3) * min(errors[1:])
        prediction = model.predict(X_far)
        assert y.min() - 3 * np.ptp(y) <= prediction.min()
        assert prediction.max() <= y.max() + 3 * np.ptp(y)
        low, high = model.predict_interval(X_far)
        assert np.mean((low <= y_far) & (y_far <= high)) >= 0.8


def test_inside_nothing_changes(linear):
    """The bits of rows between the ends are those of the members."""
    X, _, model = linear
    ends = model.outside_.ends
    inside = X[((ends[0] <= X) & (ends[1] >= X)).all(axis=1)]
    together = sum(m.weight * m.scores(inside) for m in model.members_)[:, 0]
    np.testing.assert_array_equal(model.predict(inside), together)


def test_wider_with_the_distance(linear):
    X, _, model = linear
    rows = np.repeat(X[:1], 6, axis=0)
    rows[:, 0] = X[:, 0].max() * np.array([1.0, 1.2, 1.5, 2.0, 4.0, 100.0])
    std = model.predict_std(rows)
    assert (np.diff(std) > 0).all()
    low, high = model.predict_interval(rows)
    assert (np.diff(high - low) > 0).all()


def test_a_column_that_ends_where_targets_pile_up():
    """A target that is cut off at a value does not go past it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (1000, 2))
    y = np.minimum(X[:, 0] + 0.1 * rng.standard_normal(1000), 9.0)
    far = np.array([[15.0, 5.0], [1e6, 5.0]])
    assert (RFLAFRegressor(100, random_state=0).fit(X, y).predict(far) <= 9.0).all()


def test_a_share_of_rows_far_outside_is_said_once(linear):
    X, _, model = linear
    far = X[:100] + np.array([1000.0, 0, 0, 0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.predict(far)
    assert len(said) == 1
    text = str(said[0].message)
    assert "100 of 100 rows" in text
    assert "'x0'" in text or "column 0" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)


def test_classes_stay_sane():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    model = RFLAFClassifier(100, random_state=0).fit(X, X[:, 0] + 0.3 * X[:, 1] > 0)
    far = X[:4] * [1e3, 1, 1]
    p = model.predict_proba(far)[:, 1]
    np.testing.assert_array_equal(p > 0.5, far[:, 0] > 0)
    scores = model.decision_function(X)
    span = np.ptp(scores)
    there = model.decision_function(far)
    assert there.max() <= scores.max() + span
    assert there.min() >= scores.min() - span


@settings(max_examples=60, deadline=None)
@given(
    place=st.lists(
        st.floats(-1e300, 1e300, allow_nan=False, allow_infinity=False), min_size=4, max_size=4
    )
)
def test_any_row_has_a_prediction_within_the_envelope(linear, place):
    _, y, model = linear
    row = np.array([place])
    value = model.predict(row)
    low, high = model.predict_interval(row)
    assert np.isfinite([value, low, high]).all()
    assert y.min() - 3 * np.ptp(y) <= value[0] <= y.max() + 3 * np.ptp(y)
    assert low[0] < value[0] < high[0]


def test_a_path_outwards_has_no_jumps(linear):
    X, y, model = linear
    path = np.repeat(X[:1], 400, axis=0)
    path[:, 0] = np.linspace(0.5, 2.0, 400) * X[:, 0].max()
    steps = np.abs(np.diff(model.predict(path)))
    assert steps.max() < 0.02 * np.ptp(y)


def test_files_and_more_rows(linear, tmp_path):
    X, y, model = linear
    far = X[:20] * [10, 1, 1, 1]
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(far), model.predict(far))
    more = RFLAFRegressor(100, random_state=0).partial_fit(X, y)
    before = more.outside_.seen.copy()
    more.partial_fit(far, far[:, 0])
    assert more.outside_.seen[1, 0] == far[:, 0].max() > before[1, 0]
    np.testing.assert_array_equal(more.outside_.seen[:, 1:], before[:, 1:])


def test_sparse_rows_are_held_at_the_edge():
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 8), density=0.3, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    model = RFLAFRegressor(80, random_state=0).fit(X, y)
    far = sparse.csr_array(X[:5] * 100)
    held = np.clip(far.toarray(), *model.outside_.ends)
    expected = model.predict(sparse.csr_array(held))
    np.testing.assert_allclose(model.predict(far), expected, rtol=1e-6)


def test_codes_of_levels_have_no_end():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 60, 900)
    frame = pd.DataFrame({"town": [f"t{k}" for k in level], "x": rng.standard_normal(900)})
    model = RFLAFRegressor(80, random_state=0).fit(frame, level % 7 + frame["x"])
    assert np.isinf(model.outside_.seen).any()
    new = pd.DataFrame({"town": ["never seen", "t1"], "x": [0.0, 0.0]})
    assert np.isfinite(model.predict(new)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_have_the_precision_of_targets(dtype):
    """float32 inputs neither overflow nor lose the digits of float64 targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2)).astype(np.float32)
    for y in (1e60 * X[:, 0].astype(np.float64), 1.7e9 + X[:, 0].astype(np.float64)):
        model = RFLAFRegressor(60, random_state=0).fit(X, y)
        assert model.predict(X).dtype == np.float64
        assert model.score(X, y) > 0.9
    model = RFLAFRegressor(60, random_state=0).fit(X.astype(dtype), X[:, 0])
    assert model.predict(X.astype(dtype)).dtype == np.float32
    assert model.predict_std(X.astype(dtype)).dtype == np.float32


def test_columns_that_go_together_share_one_way_on():
    """Four noisy copies of one column, and a target that goes on with it: not four times as far."""
    rng = np.random.default_rng(0)
    inside, beyond = rng.uniform(0, 1, 1500), rng.uniform(1.2, 1.5, 200)

    def copies(value):
        return value[:, None] + 0.02 * rng.standard_normal((len(value), 4))

    model = RFLAFRegressor(200, random_state=0).fit(copies(inside), 3 * inside)
    error = np.sqrt(np.mean((model.predict(copies(beyond)) - 3 * beyond) ** 2))
    held = np.sqrt(np.mean((3.0 - 3 * beyond) ** 2))
    assert error < held  # that of a constant


def test_a_line_is_not_followed_for_ever():
    """As a blood pressure of 1000: an error of entry must not take the prediction along."""
    followed = 0
    for seed in range(12):  # a line is taken where the rows of the tail are sure of it
        rng = np.random.default_rng(seed)
        x = rng.normal(80, 9, (400, 2))
        y = x[:, 0] + 2 * rng.standard_normal(400)
        model = RFLAFRegressor(50, n_members=1, random_state=seed).fit(x, y)
        outside = model.outside_
        followed += (outside.slopes[1, 0] > 0).all()
        far = model.predict([[1e3, 80.0], [1e4, 80.0], [1e9, 80.0]])
        assert np.ptp(far) < 1e-6 * abs(far[0])
        assert outside.reach[1, 0] * outside.scale[0] < 20 * np.ptp(x[:, 0])
    assert followed > 0
