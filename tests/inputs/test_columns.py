"""What a column is."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rflaf.inputs import column_kind
from rflaf.inputs.column import column_of, columns_of, level_name


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "number"),
        ([1.5, None, 3], "number"),
        (pd.array([1, None, 3], dtype="Int64"), "number"),
        ([decimal.Decimal("1.5"), None], "number"),
        ([True, False], "boolean"),
        ([True, None, False], "boolean"),
        (pd.array([True, None], dtype="boolean"), "boolean"),
        (["a", "b", "a", "b"], "category"),
        (["a", None, "a", "a"], "category"),
        (pd.Categorical([1, 2, 1]), "category"),
        (["Ann", "Bo", "Cy"], "text"),
        (["1", "2", "?", "4"], "almost number"),
        (["1", "2", "3+"] * 5, "category"),
        ([str(20 + k % 40) for k in range(200)] + ["?"], "almost number"),
        (["2024-05-01", "2024-05-02T10:00"], "date"),
        (["1/2/2024", "11/12/2024"] * 4, "date"),
        (pd.to_datetime(["2024-05-01", "2024-05-02"]), "date"),
        ([datetime.date(2024, 5, 1), None], "date"),
        (pd.to_timedelta([1, 2], unit="s"), "number"),
        ([datetime.timedelta(1), None], "number"),
        ([datetime.time(12, 30), None], "date"),
        (pd.period_range("2024-01", periods=3, freq="M"), "date"),
        (pd.to_datetime(["2024-05-01"], utc=True), "date"),
        (["True", "False", None], "boolean"),
        ([1, "a", None, 2.5, True] * 4, "category"),
        (["2024-02-30", "2024-01-01"] * 4, "category"),
        (["", None], "empty"),
        (pd.Categorical(["Ann", "Bo", "Cy"]), "category"),
        ([None, None], "empty"),
        ([1j, 2j], "other"),
        ([[1], [2]], "other"),
        ([str(k // 2) + "x" for k in range(2002)], "category"),
        ([str(k) + "x" for k in range(2002)], "text"),
        ([{"a": 1}, {"a": 2}], "other"),
    ],
)
def test_kinds(values, kind):
    assert column_kind(pd.Series(values)) == kind


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "userId", "Row ID", "Unnamed: 0"])
def test_numbers_that_only_tell_rows_apart(name):
    assert column_kind(pd.Series(range(100), name=name)) == "id"
    assert column_kind(pd.Series([k % 50 for k in range(100)], name=name)) == "number"
    assert column_kind(pd.Series(np.linspace(0, 1, 100), name=name)) == "number"


@pytest.mark.parametrize("name", ["humid", "bid", "size", "width", "AID", "idle"])
def test_names_that_are_no_ids(name):
    assert column_kind(pd.Series(range(100), name=name)) == "number"


def test_polars_and_pandas_are_read_alike():
    frame = pl.DataFrame(
        {
            "f": [1.5, None],
            "i": [1, None],
            "b": [True, None],
            "s": ["a", ""],
            "d": [datetime.date(2024, 5, 1), None],
            "t": [datetime.datetime(2024, 5, 1, 12, 30), None],
            "l": [datetime.timedelta(hours=1), None],
            "c": pl.Series(["x", None], dtype=pl.Categorical),
            "n": pl.Series([decimal.Decimal("1.5"), None]),
            "o": [[1], None],
            "z": pl.Series([datetime.datetime(2024, 5, 1, 12), None]).dt.replace_time_zone(
                "Asia/Tokyo"
            ),
        }
    )
    other = frame.to_pandas()
    other["d"] = pd.to_datetime(other["d"])
    for a, b in zip(columns_of(frame), columns_of(other)):
        assert a.name == b.name
        assert (a.boolean, a.declared, list(a.levels)) == (b.boolean, b.declared, list(b.levels))
        for part in ("numbers", "times", "codes"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part), err_msg=a.name)


def test_levels_have_one_name_however_they_are_stored():
    assert [level_name(v) for v in (1, 1.0, "1", np.int8(1), 1.5, True)] == [
        "1",
        "1",
        "1",
        "1",
        "1.5",
        "True",
    ]
    column = column_of(pd.Series([1, "1", 1.0, "x"], dtype=object, name="a"))
    assert column.codes.tolist() == [0, 0, 0, 1]
