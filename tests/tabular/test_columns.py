"""Kinds of columns, tasks, reading and writing."""

import datetime
import decimal
import gzip

import numpy as np
import pandas as pd
import pytest

from rflaf.tabular import (
    TableError,
    choose_task,
    column_kind,
    column_kinds,
    read_table,
    write_table,
)
from rflaf.tabular.columns import prepare


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
        (pd.to_timedelta([1, 2], unit="s"), "date"),
        ([None, None], "empty"),
        ([1j, 2j], "other"),
        ([[1], [2]], "other"),
        ([str(k // 2) + "x" for k in range(2002)], "text"),
    ],
)
def test_kinds(values, kind):
    assert column_kind(pd.Series(values)) == kind


def test_all_columns_that_cannot_be_used_are_named():
    table = pd.DataFrame({"who": ["Ann", "Bo"], "when": ["2024-01-01"] * 2, "x": [1, 2]})
    with pytest.raises(TableError, match=r"'who' holds free text .*'when' holds dates") as caught:
        column_kinds(table, table.columns)
    assert caught.value.columns == ["who", "when"]
    assert column_kinds(table, ["x"]) == {"x": "number"}


def test_an_almost_numeric_column_shows_what_is_odd():
    table = pd.DataFrame({"power": ["130", "?", "150", "95"]})
    with pytest.raises(TableError, match=r"numbers but for 1 of 4 rows, such as '\?'"):
        column_kinds(table, ["power"])


def test_infinity_and_nothing_to_learn_from():
    table = pd.DataFrame({"x": [1.0, np.inf], "e": [None, None]})
    with pytest.raises(TableError, match="Infinite values in column 'x'"):
        column_kinds(table, ["x"])
    with pytest.raises(TableError, match="no column to learn from"):
        column_kinds(table, ["e"])


def test_prepare_finds_columns_by_name_and_names_what_is_wrong():
    kinds = {"x": "number", "b": "boolean", "c": "category"}
    table = pd.DataFrame({"c": ["01", None], "other": 1, "b": ["True", "false"], "x": ["2", None]})
    made = prepare(table, kinds)
    assert list(made) == ["x", "b", "c"]
    np.testing.assert_array_equal(made["x"], [2.0, np.nan])
    np.testing.assert_array_equal(made["b"], [1.0, 0.0])
    assert made["c"].tolist() == ["01", None]
    with pytest.raises(TableError, match="lacks columns 'x', 'b'"):
        prepare(table[["c"]], kinds)
    with pytest.raises(TableError, match=r"'x' was numeric in the fit. Got 'big' in row 2"):
        prepare(table.assign(x=["2", "big"]), kinds)


@pytest.mark.parametrize(
    ("values", "task", "dtype"),
    [
        (["a", "b", "a"], "classification", "U"),
        ([True, False, True], "classification", "b"),
        ([0, 1] * 10, "classification", "i"),
        ([0.0, 1.0] * 10, "classification", "i"),
        (list(range(20)) * 10, "classification", "i"),
        ([0, 1] * 9 + [0, 2], "regression", "f"),  # three values in 20 rows
        (list(range(21)) * 10, "regression", "f"),
        ([0.5, 1.0] * 10, "regression", "f"),
    ],
)
def test_tasks(values, task, dtype):
    found = choose_task(pd.Series(values, name="y"))
    assert found.name == task
    assert found.values.dtype.kind == dtype
    assert "'y'" in found.reason


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["a", "b"] * 5, "regression", "needs numbers"),
        ([0.5, 1.5], "classification", "not whole"),
        ([1, 1], "auto", "one value only"),
        ([1.0, np.inf], "auto", "infinite"),
        (["2024-01-01", "2024-01-02"], "auto", "holds dates"),
        ([f"name {k}" for k in range(9)], "auto", "free text"),
        ([1, 2], "both", "'task' parameter"),
    ],
)
def test_targets_that_do_not_suit(values, task, message):
    with pytest.raises(ValueError, match=message):
        choose_task(pd.Series(values, name="y"), task)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "T.CSV"])
def test_round_trip(name, tmp_path):
    table = pd.DataFrame({"a,b": [1.5, None], 'q"': ["x\ny", "<i>"], "é": [True, False]})
    write_table(table, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), table, check_dtype=False)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.txt", b"a\n1\n", "must end in .csv"),
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,a\n1,2\n", "several columns of the name 'a'"),
        ("t.csv", b"a,b\n1,2,3\n", "not a regular CSV"),
        ("t.csv", b"a,b\n1,2\n1,2,3,4\n", "not a regular CSV"),
        ("t.csv", b"a,b\n1,\xff\n", "not UTF-8"),
        ("t.csv.gz", b"a,b\n1,2\n", "not a whole gzip"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "not a whole gzip"),
        ("t.csv.gz", gzip.compress(b"a,b\n", mtime=0)[:10] + b"\xff" * 40, "not a whole gzip"),
        ("t.parquet", b"a,b\n1,2\n", "not a whole Parquet"),
    ],
)
def test_files_that_cannot_be_read(name, data, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name)


@pytest.mark.parametrize("separator", ["", "||", "\n", '"', "é", r"\s+"])
def test_separators_of_ours(separator, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"\(--sep\) must be a single ASCII character.* Got .*"):
        read_table(tmp_path / "t.csv", separator=separator)


@pytest.mark.parametrize("separator", ["\t", r"\t"], ids=["a tab", "as a shell gives it"])
def test_tabs(separator, tmp_path):
    (tmp_path / "t.csv").write_text("a\tb\n1\t2\n")
    assert list(read_table(tmp_path / "t.csv", separator=separator)) == ["a", "b"]


def test_a_byte_order_mark_other_separators_and_leading_zeros(tmp_path):
    (tmp_path / "t.csv").write_bytes("\ufeffa;code\n1;01\n-;02\n".encode())
    table = read_table(tmp_path / "t.csv", separator=";", missing=["-"], strings=["code", "gone"])
    assert table["a"].isna().tolist() == [False, True]
    assert table["code"].tolist() == ["01", "02"]


def test_where_nothing_can_be_written(tmp_path):
    table = pd.DataFrame({"a": [1]})
    with pytest.raises(TableError, match="no folder"):
        write_table(table, tmp_path / "none" / "t.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        write_table(table, tmp_path / "d.csv")
