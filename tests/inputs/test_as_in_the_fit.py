"""Columns at prediction are those of the fit, or are refused by name."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from rflaf import RandomFeatures, RFLAFRegressor, load, save
from rflaf.inputs import ColumnEncoder
from rflaf.rows import Blocks
from tests.inputs.conftest import SMALL, mixed_frame

NAMES = {
    "strings": st.text(max_size=3),
    "integers": st.integers(-(2**62), 2**62),
    "floats": st.floats(allow_nan=False),
    "dates": st.dates(),
    "tuples": st.tuples(st.text(max_size=2), st.integers(0, 3)),
}


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(NAMES)))
def test_columns_in_another_order_are_refused_whatever_their_names(data, kind):
    names = data.draw(st.lists(NAMES[kind], min_size=2, max_size=5, unique_by=str))
    order = data.draw(st.permutations(range(len(names))))
    frame = pd.DataFrame(np.arange(4.0 * len(names)).reshape(4, -1) ** 1.5)
    frame.columns = pd.Index(names, tupleize_cols=data.draw(st.booleans()))
    encoder = ColumnEncoder().fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame[:2]), frame[:2])
    if kind != "strings":  # scikit-learn warns of those
        encoder.transform(frame.to_numpy())
    assume(list(order) != sorted(order))
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform(frame.iloc[:, order])


@pytest.mark.parametrize("mixed", [False, True])
def test_models_compare_names_that_are_no_strings(mixed, tmp_path):
    frame, y = mixed_frame()
    frame = frame if mixed else frame[["size"]].assign(other=np.arange(len(frame)) % 7)
    frame.columns = pd.MultiIndex.from_product([["a"], range(frame.shape[1])])
    model = RFLAFRegressor(**SMALL).fit(frame, y)
    save(model, tmp_path / "model.skops")
    for each in (model, load(tmp_path / "model.skops")):
        assert np.isfinite(each.predict(frame)).all()
        with pytest.raises(ValueError, match=r"Expected \('a', '0'\), .*\('a', '0'\)\.$"):
            each.predict(frame[frame.columns[::-1]])
    model.fit(frame.set_axis([f"c{k}" for k in range(frame.shape[1])], axis=1), y)
    assert not hasattr(model, "column_labels_")


def test_features_compare_names_that_are_no_strings():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3)))
    model = RandomFeatures(5, random_state=0).fit(frame)
    with pytest.raises(ValueError, match=r"Expected 0, 1, 2\. Got 2, 1, 0\."):
        model.transform(frame[[2, 1, 0]])


@pytest.mark.parametrize("names", [["a", "a"], [1, 1]])
def test_a_name_twice_is_named(names):
    frame = pd.DataFrame(np.arange(8.0).reshape(4, 2), columns=names)
    for model in (ColumnEncoder(), RFLAFRegressor(**SMALL), RandomFeatures(5)):
        with pytest.raises(ValueError, match=f"unique column names[^']*'{names[0]}'"):
            model.fit(frame, np.arange(4.0))


def test_lazy_frames_have_to_be_collected():
    lazy = pl.LazyFrame({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match="lazy LazyFrame: collect it first"):
        RandomFeatures(5).fit(lazy)


LEVELS = {
    "numpy": lambda v: np.array(v, object)[:, None],
    "decimals": lambda v: pd.DataFrame({"x0": [decimal.Decimal(value) for value in v]}),
    "lists": lambda v: [[value] for value in v],
    "pandas": lambda v: pd.DataFrame({"x0": pd.Series(v, dtype=object)}),
    "category": lambda v: pd.DataFrame({"x0": pd.Categorical(pd.Series(v, dtype=object))}),
}
INT64 = {
    "numpy": lambda v: np.array(v, np.int64)[:, None],
    "pandas": lambda v: pd.DataFrame({"x0": np.array(v, np.int64)}),
    "missing": lambda v: pd.DataFrame({"x0": pd.array([*v, None], "Int64")})[: len(v)],
    "polars": lambda v: pl.DataFrame({"x0": v}, schema={"x0": pl.Int64}),
    "arrow": lambda v: pa.table({"x0": pa.array(v, pa.int64())}),
}


@given(st.data())
@settings(deadline=None)
def test_integers_of_any_size_are_levels_of_their_own(data):
    size = data.draw(st.sampled_from([2**10, 2**53, 2**60, 2**63 - 1, 10**400, 10**5000]))
    near = st.integers(-size, size) | st.integers(size - 4, size)
    values = data.draw(st.lists(near, min_size=2, max_size=6, unique=True))
    makers = LEVELS if size > 2**63 - 1 else LEVELS | INT64
    fit, late = (makers[data.draw(st.sampled_from(sorted(makers)))] for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, of names
        encoder = ColumnEncoder([0]).fit(fit(values * 3))
        found = encoder.transform(late(values))
    np.testing.assert_array_equal(found.sum(axis=0), 1)
    np.testing.assert_array_equal(found.sum(axis=1), 1)


ONE = [1, 1.0, True, "1", "True", np.int8(1), np.True_, decimal.Decimal("1.0")]
ZERO = [0, 0.0, False, "0", "False", np.int8(0), np.False_, decimal.Decimal("0")]


@given(st.sampled_from(ONE), st.sampled_from(ZERO), st.data())
def test_truth_values_zero_and_one_are_the_same_levels(one, zero, data):
    encoder = ColumnEncoder(["c"]).fit(
        pd.DataFrame({"c": [0, 1, 2] * 4 + [one, zero]}, dtype=object)
    )
    kind = data.draw(st.sampled_from([object, "category"]))
    for value, row in ((one, [0, 1, 0]), (zero, [1, 0, 0])):
        frame = pd.DataFrame({"c": pd.Series([value], dtype=object).astype(kind)})
        assert encoder.transform(frame).tolist() == [row]
    for values in ([True, False], [1, 0], [1.0, 0.0]):
        found = ColumnEncoder(["c"]).fit(pd.DataFrame({"c": values * 4}))
        for late in ([True, False], [1, 0], [1.0, 0.0]):
            assert found.transform(pd.DataFrame({"c": late})).tolist() == [[0, 1], [1, 0]]


def test_a_column_without_any_known_level_is_named_once():
    frame, y = mixed_frame()
    model = RFLAFRegressor(**SMALL, max_bytes=1 << 14).fit(frame, y)
    late = frame.assign(town="?", zone="!")
    methods = [model.predict, model.predict_std, model.encoder_.transform]
    for call in (*methods, lambda rows: model.predict(Blocks([rows[:9], rows[9:]]))):
        with pytest.warns(UserWarning, match=r"unknown to the fit in column 'town' .*'zone'") as w:
            call(late)
        assert len(w) == 1
        assert w[0].filename == __file__
    late.loc[200, ["town", "zone"]] = frame.loc[0, ["town", "zone"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (*methods, lambda rows: model.predict(Blocks([rows[:9], rows[9:]]))):
            call(late)
            call(frame.assign(town=None))  # missing is not unknown


def test_a_rare_level_is_known():
    frame = pd.DataFrame({"c": ["a", "b"] * 20 + ["once"]})
    encoder = ColumnEncoder().fit(pd.concat([frame] * 5 + [pd.DataFrame({"c": ["rare"]})]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.transform(pd.DataFrame({"c": ["rare"]})).tolist() == [[0, 0, 0, 1]]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_durations_are_no_numbers(library):
    numbers = library({"c": [1.0, 2.0, 3.0]})
    durations = library({"c": [datetime.timedelta(seconds=k) for k in (1, 2, 4)]})
    encoder = ColumnEncoder().fit(numbers)
    with pytest.raises(ValueError, match=r"'c' was numeric in the fit\. Got durations"):
        encoder.transform(durations)
    encoder = ColumnEncoder().fit(durations)
    assert encoder.transform(durations).ravel().tolist() == [1, 2, 4]
    with pytest.raises(ValueError, match=r"'c' held durations in the fit\. Got numbers"):
        encoder.transform(numbers)
    with pytest.raises(ValueError, match=r"'c' held durations in the fit\. Got '1'"):
        encoder.transform(library({"c": ["1"]}))
    assert np.isfinite(encoder.transform(library({"c": [float("nan")]}))).all()


@pytest.mark.parametrize("kind", ["m8[s]", "M8[s]"])
def test_arrays_of_times_are_no_numbers(kind):
    times = np.arange(6).reshape(3, 2).astype(kind)
    model = RFLAFRegressor(**SMALL).fit(np.arange(60.0).reshape(30, 2), np.arange(30.0))
    with pytest.raises(ValueError, match="'x0' was numeric in the fit"):
        model.predict(times)
    assert np.isfinite(ColumnEncoder().fit(times).transform(times)).all()


@pytest.mark.parametrize("fit", [pa.date32(), pa.date64()])
@pytest.mark.parametrize("late", [pa.date32(), pa.date64(), pa.timestamp("us")])
def test_dates_of_arrow(fit, late):
    days = [datetime.date(2022, 1, 1) + datetime.timedelta(k) for k in range(60)]
    y = np.arange(60.0)
    model = RFLAFRegressor(**SMALL).fit(pa.table({"d": pa.array([*days[:-1], None], fit)}), y)
    rows = pa.table({"d": pa.array([*days[:-1], None], pa.date32()).cast(late)})
    expected = model.predict(pd.DataFrame({"d": pd.to_datetime([*days[:-1], None])}))
    np.testing.assert_array_equal(model.predict(rows), expected)


@pytest.mark.parametrize("large", [10**400, -(10**400), decimal.Decimal("1e400")])
def test_numbers_that_no_float_can_hold_are_named(large):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "c": pd.Series([large, 1, 2], dtype=object)})
    for model in (ColumnEncoder(), RFLAFRegressor(**SMALL)):
        with pytest.raises(ValueError, match="too large for a float, in column 'c'"):
            model.fit(frame, np.arange(3.0))
        model.fit(frame.assign(c=[1.0, 2.0, 3.0]), np.arange(3.0))
        with pytest.raises(ValueError, match="too large for a float, in column 'c'"):
            getattr(model, "predict" if hasattr(model, "predict") else "transform")(frame)
    if isinstance(large, int):
        with pytest.raises(ValueError, match=r"too large for a float in \['x1'\]"):
            RFLAFRegressor(**SMALL).fit(frame.to_numpy(), np.arange(3.0))


@pytest.mark.parametrize("scale", [1e-307, 1e-310, 5e-324])
@pytest.mark.parametrize("form", ["raw", "ranks", "bins"])
def test_columns_of_tiny_numbers_count_as_constant_and_are_named(scale, form):
    x = np.random.default_rng(0).uniform(1, 9, size=(60, 2))
    y = x[:, 1].copy()
    frame = pd.DataFrame({"a": x[:, 0] * scale, "b": x[:, 1]})
    with pytest.warns(UserWarning, match="below 1e-300 in column 'a', which counts as constant"):
        model = RFLAFRegressor(**SMALL, input_form=form).fit(frame, y)
    assert model.scale_[0] == 0
    assert np.isfinite(model.predict(frame)).all()
    assert model.score(frame, y) > 0.9
    for X, kind in ((frame, RandomFeatures), (sparse.csr_array(frame.to_numpy()), RFLAFRegressor)):
        with pytest.warns(UserWarning, match="below 1e-300 in column '(a|x0)'"):
            kind(20).fit(X, y)
