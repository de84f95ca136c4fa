"""Tasks, reading and writing."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rflaf.tabular import TableError, choose_task, read_table, split_target, write_table


def test_infinity_nothing_to_learn_from_and_a_name_twice():
    table = pd.DataFrame({"x": [1.0, np.inf], "y": [1.5, 2.5]})
    with pytest.raises(TableError, match="Infinite values in column 'x'"):
        split_target(table, "y")
    with pytest.raises(TableError, match="no column other than the target"):
        split_target(table[["y"]], "y")
    twice = pd.DataFrame([[1, 2, 0.5]] * 3, columns=["a", "a", "y"])
    with pytest.raises(TableError, match=r"several columns of one name\..* 'a' 2 times"):
        split_target(twice, "y")


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
        ([0.5, 1.5], "classification", "non-integers"),
        ([1, 1], "auto", "one value only"),
        ([1.0, np.inf], "auto", "infinite"),
        (["2024-01-01", "2024-01-02"], "auto", "contains dates"),
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
        ("t.csv.gz", b"a,b\n1,2\n", "not a complete gzip"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "not a complete gzip"),
        ("t.csv.gz", gzip.compress(b"a,b\n", mtime=0)[:10] + b"\xff" * 40, "not a complete gzip"),
        ("t.parquet", b"a,b\n1,2\n", "not a complete Parquet"),
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


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("a;b\n1;x\n2;y\n", ["a", "b"], 1),
        ("a\tb\n1\tx\n", ["a", "b"], 1),
        ("a|b\n1|x\n", ["a", "b"], 1),
        ("a;b\n1,5;x\n2,5;y\n", ["a", "b"], 1.5),
        ("a;b\n1.5;x,y\n", ["a", "b"], 1.5),
        ("a;b;c,d\n1,2\n", ["a;b;c", "d"], 1),
        ("a\n1;5\n2\n", ["a"], "1;5"),
        ('"a;b",c\n1,2\n', ["a;b", "c"], 1),
    ],
)
def test_separators_are_noticed(text, names, first, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv")
    assert list(table) == names
    assert table.iloc[0, 0] == first


def test_where_nothing_can_be_written(tmp_path):
    table = pd.DataFrame({"a": [1]})
    with pytest.raises(TableError, match="no folder"):
        write_table(table, tmp_path / "none" / "t.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        write_table(table, tmp_path / "d.csv")


@pytest.mark.parametrize("change", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_tables_of_other_libraries(change):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "k": list("abab"), "n": [1, 2, 3, 4]})
    table["y"] = [0.5, np.nan, 1.5, 2.5]
    given = change(table)
    rows, task = split_target(given, "y", drop=["n"])
    assert type(rows) is type(given)
    assert rows.shape == (3, 2)
    assert task.name == "regression"
    assert task.values.tolist() == [0.5, 1.5, 2.5]
    rows, task = split_target(given, "k")
    assert task.values.tolist() == list("abab")
    assert split_target(change(table.assign(k=table["k"] == "a")), "k")[1].values.dtype == bool
    with pytest.raises(TableError, match="has no column 'z'"):
        split_target(given, "z")
