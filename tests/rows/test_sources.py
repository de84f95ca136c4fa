"""Sources: what they give, as often as they are asked."""

import numpy as np
import pytest

from rflaf.rows import Arrays, Blocks, Parquet, Source


def test_blocks_start_again():
    def read():
        yield from (1, 2)

    for start in (read, [1, 2], (1, 2)):
        source = Blocks(start)
        assert list(source) == list(source) == [1, 2]
    with pytest.raises(TypeError, match="can be read once"):
        Blocks(read())
    with pytest.raises(TypeError, match=r"'start' parameter of Blocks .* Got int"):
        Blocks(3)


def test_arrays_in_blocks(rng):
    X, y, weight = rng.normal(size=(70_000, 2)), np.arange(70_000), np.ones(70_000)
    assert all(len(block) == 1 for block in Arrays(X))
    blocks = list(Arrays(X, y, weight))
    assert len(blocks) == 2
    for part, whole in zip(zip(*blocks), (X, y, weight), strict=True):
        np.testing.assert_array_equal(np.concatenate(part), whole)
    with pytest.raises(ValueError, match="'y' parameter of Arrays must have 70000 rows"):
        Arrays(X, y[1:])
    with pytest.raises(ValueError, match="needs 'y'"):
        Arrays(X, weight=weight)


def test_wide_arrays_come_in_short_blocks():
    wide = np.broadcast_to(np.zeros(1), (300, 100_000))
    assert [len(X) for (X,) in Arrays(wide)] == [83, 83, 83, 51]


def test_a_source_is_what_has_blocks():
    with pytest.raises(TypeError):
        Source()


@pytest.fixture
def folder(rng, tmp_path):
    """Two files, the first with two groups of rows."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for name, n in (("b.parquet", 5), ("a.parquet", 30)):
        table = {
            "k": np.arange(n),
            "x": rng.normal(size=n).astype(np.float32),
            "y": rng.normal(size=n),
            "w": np.ones(n),
            "label": np.array(["no", "yes"])[np.arange(n) % 2],
        }
        parquet.write_table(arrow.table(table), tmp_path / name, row_group_size=20)
    return tmp_path


def test_parquet(folder):
    source = Parquet(folder / "a.parquet", target="y", columns=["x", "k"], weight="w", batch_rows=7)
    for _ in range(2):
        blocks = list(source)
        assert max(len(X) for X, _, _ in blocks) <= 7
        assert sum(len(X) for X, _, _ in blocks) == 30
        assert blocks[0][0].column_names == ["x", "k"]
    both = list(Parquet(folder, target=["y", "w"]))
    assert sum(len(y) for _, y in both) == 35
    assert both[0][0].column_names == ["k", "x", "label"]
    assert both[0][1].shape[1] == 2
    np.testing.assert_array_equal(
        np.concatenate([np.asarray(X["k"]) for X, _ in both]), [*range(30), *range(5)]
    )
    labels = list(Parquet(folder, target="label", columns=["x"]))
    assert set(labels[0][1]) == {"no", "yes"}
    assert not any(isinstance(block, tuple) for block in Parquet(folder, columns=["x"]))


def test_parquet_names_what_is_missing(folder):
    with pytest.raises(ValueError, match=r"has no column 'age', 'z'. It has: 'k', 'x'"):
        Parquet(folder, target="age", columns=["x", "z"])
    with pytest.raises(ValueError, match="'weight' parameter of Parquet needs 'target'"):
        Parquet(folder, weight="w")
    for wrong in (0, -3, 2.5, None):
        with pytest.raises(ValueError, match="'batch_rows' parameter of Parquet must be an int"):
            Parquet(folder, batch_rows=wrong)
    with pytest.raises(ValueError, match="no input columns"):
        Parquet(folder, target="y", columns=[])
    with pytest.raises(FileNotFoundError):
        Parquet(folder / "nothing.parquet")
