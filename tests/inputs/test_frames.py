"""Frames of all libraries are read alike."""

import datetime
import decimal
import subprocess
import sys

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf import RFLAFRegressor
from rflaf.inputs import ColumnEncoder
from rflaf.inputs.column import as_frame, column_of, columns_of, is_frame, is_plain
from tests.inputs.conftest import SMALL, mixed_frame, spoilt_rows

NOON = datetime.datetime(2024, 5, 1, 12)
DAY = datetime.date(2024, 5, 1)
MAY = 1_714_521_600.0  # 2024-05-01 in seconds
TYPES = {
    "string": (["a", None, ""], pa.string()),
    "large string": (["a", None, ""], pa.large_string()),
    "dictionary": (["a", None, "b"], pa.dictionary(pa.int32(), pa.string())),
    "moment": ([NOON, None, NOON], pa.timestamp("ns")),
    "zone": ([NOON, None, NOON], pa.timestamp("us", "Asia/Tokyo")),
    "date32": ([DAY, None, DAY], pa.date32()),
    "date64": ([DAY, None, DAY], pa.date64()),
    "bool": ([True, None, False], pa.bool_()),
    "whole bool": ([True, True, False], pa.bool_()),
    "int": ([1, None, 3], pa.int64()),
    "uint8": ([1, None, 3], pa.uint8()),
    "half": ([1.5, None, 3.0], pa.float16()),
    "decimal": ([decimal.Decimal("1.5"), None, decimal.Decimal(2)], pa.decimal128(5, 2)),
    "duration": ([datetime.timedelta(hours=1), None, datetime.timedelta(0)], pa.duration("ms")),
    "time": ([datetime.time(12, 30), None, datetime.time(0)], pa.time64("us")),
    "null": ([None, None, None], pa.null()),
    "list": ([[1], None, [2]], pa.list_(pa.int64())),
    "bytes": ([b"a", None, b"a"], pa.binary()),
}
TABLE = pa.table({name: pa.array(*given) for name, given in TYPES.items()})


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert (a.name, a.boolean, a.declared, list(a.levels), a.other) == (
            (b.name, b.boolean, b.declared, list(b.levels), b.other)
        )
        for part in ("numbers", "times", "codes"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part), err_msg=a.name)


def test_columns_of_an_arrow_table():
    found = {column.name: column for column in columns_of(TABLE)}
    nan = np.nan
    for name, numbers in {
        "int": [1, nan, 3],
        "uint8": [1, nan, 3],
        "half": [1.5, nan, 3],
        "decimal": [1.5, nan, 2],
        "duration": [3600, nan, 0],
        "bool": [1, nan, 0],
        "whole bool": [1, 1, 0],
        "null": [nan] * 3,
    }.items():
        np.testing.assert_array_equal(found[name].numbers, numbers, err_msg=name)
        assert found[name].boolean == name.endswith("bool")
    for name, hours in {"moment": 12, "zone": 12 + 9, "date32": 0, "date64": 0}.items():
        expected = MAY + 3600 * hours
        np.testing.assert_array_equal(found[name].times, [expected, nan, expected], err_msg=name)
    np.testing.assert_array_equal(found["time"].times, [12.5 * 3600, nan, 0])
    for name in ("string", "large string"):
        assert found[name].codes.tolist() == [0, -1, -1]
        assert found[name].levels == ["a"]
        assert not found[name].declared
    assert found["dictionary"].codes.tolist() == [0, -1, 1]
    assert found["dictionary"].declared
    assert found["list"].other == "list"


@pytest.mark.parametrize(
    "change",
    [
        pl.from_arrow,
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
        nw.from_native,
    ],
    ids=["polars", "pandas with Arrow's types", "narwhals"],
)
def test_other_libraries_agree_with_arrow(change):
    table = TABLE
    if change is pl.from_arrow:  # which has no date64
        table = TABLE.drop(["date64"])
    assert_same(columns_of(change(table)), columns_of(table))


VALUES = {
    "float": st.floats(allow_infinity=False, width=64),
    "int": st.integers(-(2**53), 2**53),
    "bool": st.booleans(),
    "text": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3),
    "moment": st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
    "duration": st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999)),
}
ARROW = {
    "float": pa.float64(),
    "int": pa.int64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "moment": pa.timestamp("us"),
    "duration": pa.duration("us"),
}


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_all_libraries_agree_on_all_values(data, kind):
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=8))
    array = pa.array(values, ARROW[kind])
    if array.null_count == len(array):
        return  # pandas tells no type of nothing
    expected = [column_of(pa.chunked_array([array]))]
    assert_same([column_of(pl.from_arrow(array))], expected)
    assert_same([column_of(array.to_pandas())], expected)
    assert_same([column_of(pd.Series(array.to_pylist(), dtype=object))], expected)


def test_objects_of_pandas_are_looked_at_to_the_last():
    """narwhals tells their type by the first hundred."""
    late = pd.Series([None] * 200 + [True, False], dtype=object, name="a")
    assert column_of(late).boolean
    lists = pd.Series(["a"] * 200 + [[1]], dtype=object, name="a")
    assert column_of(lists).other == "list"
    mixed = column_of(pd.Series(["1"] * 200 + [1, 1.0, "b", None], dtype=object, name="a"))
    assert mixed.levels == ["1", "b"]
    assert mixed.codes[-4:].tolist() == [0, 0, 1, -1]


def test_types_of_pandas_that_others_lack():
    months = pd.Series(pd.period_range("1970-01", periods=2, freq="M"), name=3)
    assert column_of(months).times.tolist() == [0, 31 * 86_400]
    assert column_of(months).name == "3"
    assert column_of(pd.Series(pd.arrays.SparseArray([0.0, 1.5]))).numbers.tolist() == [0, 1.5]
    numbers = column_of(pd.Series(pd.Categorical([1.0, None, 2.5], categories=[9.0, 2.5, 1.0])))
    assert numbers.declared
    assert [[*numbers.levels, None][code] for code in numbers.codes] == ["1", None, "2.5"]


def test_what_is_a_frame():
    for frame in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})):
        assert is_frame(frame)
        assert is_plain(frame)
    for other in (np.zeros((2, 2)), [[1.0]], pd.Series([1]), None, "text"):
        assert not is_frame(other)
    for plain, frame in (
        (False, pd.DataFrame({"a": pd.array([1, None], "Int64")})),
        (False, pd.DataFrame({"a": [True]})),
        (False, pl.DataFrame({"a": [True]})),
        (False, pl.DataFrame({"row_id": [1]})),
        (True, pl.DataFrame({"a": [1, None]})),
    ):
        assert is_plain(frame) == plain
    with pytest.raises(ValueError, match="unique column names"):
        as_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_no_library_of_frames_is_imported():
    code = (
        "import sys, numpy\n"
        "from rflaf.inputs.column import is_frame, columns_of\n"
        "assert not is_frame(numpy.zeros((2, 2)))\n"
        "columns_of(numpy.zeros((2, 2)))\n"
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("numbers", [False, True])
def test_lazy_frames_are_refused(numbers):
    frame, y = mixed_frame()
    frame = frame[["size"]] if numbers else frame
    lazy = pl.from_pandas(frame).lazy()
    with pytest.raises(TypeError, match="collect it first"):
        ColumnEncoder().fit(lazy)
    model = RFLAFRegressor(**SMALL)
    with pytest.raises(TypeError, match="collect it first"):
        model.fit(lazy, y)
    model.fit(frame, y)
    with pytest.raises(TypeError, match="collect it first"):
        model.predict(lazy)


def test_fit_and_predict_with_arrow_tables():
    frame, y = mixed_frame()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    model = RFLAFRegressor(**SMALL).fit(table, pa.chunked_array([y]))
    assert model.feature_names_in_.tolist() == list(frame)
    assert model.n_features_in_ == 6
    other = RFLAFRegressor(**SMALL).fit(frame, y)
    np.testing.assert_array_equal(model.predict(table), other.predict(frame))
    rows = spoilt_rows(frame)
    late = pa.Table.from_pandas(rows, preserve_index=False)
    np.testing.assert_array_equal(model.predict(late), other.predict(rows))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.select(list(frame)[::-1]))
    # numbers only, with missing ones
    numbers = frame[["size"]].astype(float)
    table = pa.Table.from_pandas(numbers)
    model = RFLAFRegressor(**SMALL).fit(table, y)
    assert model.feature_names_in_.tolist() == ["size"]
    expected = RFLAFRegressor(**SMALL).fit(numbers, y).predict(numbers)
    np.testing.assert_array_equal(model.predict(table), expected)


def test_a_frame_of_every_type_can_be_learned_from():
    many = pa.concat_tables([TABLE] * 20)
    y = np.tile([1.0, 2.0, 3.0], 20)
    with pytest.warns(UserWarning, match="'list' contains values of type list"):
        encoder = ColumnEncoder(random_state=0).fit(many, y)
    kinds = dict(zip(TABLE.column_names, encoder.kinds_))
    assert kinds.pop("list") == "other"
    assert kinds.pop("null") == "empty"
    assert set(kinds.values()) == {"category", "date", "boolean", "number"}
    assert np.isfinite(encoder.transform(many)).all()
    assert encoder.transform(TABLE).shape == (3, len(encoder.get_feature_names_out()))
