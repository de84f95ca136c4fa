"""What every kind of rows gives: the same sample, and each row once in every pass."""

import numpy as np
import pytest
from scipy import sparse

from rflaf import RFLAFRegressor
from rflaf.estimators.validation import InputCheck
from rflaf.losses import SquaredError
from rflaf.losses.logistic import ClassTally
from rflaf.rows import ArrayRows, Arrays, Blocks, Parquet, SourceRows
from rflaf.rows.sample import FOLD, SAMPLE, row_keys

N, SEED = 1000, 12
_rng = np.random.default_rng(5)
X = _rng.standard_normal((N, 3))
Y = _rng.integers(0, 4, N).astype(float)
WEIGHTS = _rng.uniform(0, 2, N) * (_rng.random(N) < 0.9)


def check():
    return InputCheck(RFLAFRegressor, SquaredError())


def in_memory(tmp_path, X=X):
    return ArrayRows(X, Y, WEIGHTS)


def thin(tmp_path):
    return ArrayRows(sparse.csr_array(X), Y, WEIGHTS)


def in_blocks(size):
    def make(tmp_path):
        cuts = range(0, N, size)
        parts = [(X[k : k + size], Y[k : k + size], WEIGHTS[k : k + size]) for k in cuts]
        empty = X[:0], Y[:0], WEIGHTS[:0]
        return SourceRows(Blocks([empty, *parts[:1], empty, *parts[1:]]), check())

    return make


def generated(tmp_path):
    def read():
        yield X[:1], Y[:1], WEIGHTS[:1]
        yield X[1:], Y[1:], WEIGHTS[1:]

    return SourceRows(Blocks(read), check(), max_bytes=10_000)  # a few rows at a time


def on_disk(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return SourceRows(Arrays(np.load(tmp_path / "x.npy", mmap_mode="r"), Y, WEIGHTS), check())


def parquet(tmp_path):
    arrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y, "w": WEIGHTS})
    files.write_table(table, tmp_path / "rows.parquet", row_group_size=333)
    source = Parquet(tmp_path / "rows.parquet", target="y", weight="w", batch_rows=77)
    return SourceRows(source, check())


KINDS = {
    "arrays": in_memory,
    "sparse": thin,
    "blocks of 1": in_blocks(1),
    "blocks of 300": in_blocks(300),
    "one block": in_blocks(N),
    "generated": generated,
    "on disk": on_disk,
    "parquet": parquet,
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def rows(request, tmp_path):
    return request.param(tmp_path)


def dense(x):
    return x.toarray() if sparse.issparse(x) else x


def collect(blocks):
    return [block._replace(x=dense(block.x)) for block in blocks]


def join(one, other):
    raise AssertionError("there is one place only")


@pytest.mark.parametrize("size", [1, 64, N - 1, N, 5 * N])
def test_a_pass_has_each_row_once_in_order(rows, size):
    for _ in range(2):
        blocks = rows.reduce(collect, join, size)
        assert [len(block.weights) for block in blocks[:-1]] == [size] * (len(blocks) - 1)
        assert [block.start for block in blocks] == list(range(0, N, size))
        for name, whole in (("x", X), ("y", Y), ("weights", WEIGHTS)):
            got = np.concatenate([getattr(block, name) for block in blocks])
            np.testing.assert_array_equal(got, whole)
        keys = np.concatenate([block.fold_keys(SEED) for block in blocks])
        np.testing.assert_array_equal(keys, row_keys(SEED, FOLD, 0, N))


@pytest.mark.parametrize("size", [1, 100, 900, N, 10 * N])
def test_the_sample_is_the_same_for_all_kinds(rows, size):
    """The rows of positive weight with the smallest keys, in their order."""
    sample = rows.sample(lambda x: size, SEED)
    order = row_keys(SEED, SAMPLE, 0, N).astype(float)
    order[WEIGHTS == 0] = np.inf
    used = int(np.count_nonzero(WEIGHTS))
    chosen = np.sort(np.argsort(order)[: min(size, used)])
    np.testing.assert_array_equal(dense(sample.x), X[chosen])
    np.testing.assert_array_equal(sample.y, Y[chosen])
    np.testing.assert_array_equal(sample.weights, WEIGHTS[chosen])
    np.testing.assert_array_equal(sample.keys, row_keys(SEED, FOLD, 0, N)[chosen])
    assert (sample.seen, sample.used, sample.whole) == (N, used, size >= used)
    assert sample.tally is None


def test_the_size_of_a_sample_is_asked_for_with_inputs(rows):
    asked = []

    def size(x):
        asked.append(x)
        return 10

    rows.sample(size, SEED)
    (x,) = asked
    assert x.shape[1] == 3
    assert x.dtype == np.float64


def test_a_tally_sees_all_rows(rows):
    for _ in range(2):  # and each time a new one
        tally = rows.sample(lambda x: 5, SEED, ClassTally).tally
        np.testing.assert_array_equal(tally.classes, np.unique(Y))
        expected = [WEIGHTS[label == Y].sum() for label in np.unique(Y)]
        np.testing.assert_allclose(tally.weights, expected, rtol=1e-12)


@pytest.mark.parametrize("room", [0, 10**9])
def test_rows_that_are_held_are_the_same(rows, room):
    before = rows.reduce(collect, join, 100)
    rows.sample(lambda x: 5, SEED)
    held = rows.held(room)
    for got, expected in zip(held.reduce(collect, join, 100), before, strict=True):
        assert got.start == expected.start
        for a, b in zip(got[1:4], expected[1:4], strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_error_in_a_task_comes_through_and_leaves_the_rows_usable(rows):
    def task(blocks):
        next(iter(blocks))
        raise MemoryError("no more")

    with pytest.raises(MemoryError, match="no more"):
        rows.reduce(task, join, 10)
    assert len(rows.reduce(collect, join, 10)) == N // 10


def test_what_is_held_is_read_no_more():
    passes = []

    def read():
        passes.append(None)
        yield X, Y, WEIGHTS

    rows = SourceRows(Blocks(read), check())
    assert rows.held(10**9) is rows  # how many there are is not known before the first pass
    rows.sample(lambda x: 5, SEED)
    held = rows.held(10**9)
    assert isinstance(held, ArrayRows)
    count = len(passes)
    for _ in range(3):
        held.reduce(collect, join, 100)
    assert len(passes) == count
    assert rows.held(100) is rows


def test_rows_that_are_numbered_from_elsewhere():
    whole = ArrayRows(X, Y, WEIGHTS)
    later = ArrayRows(X[400:], Y[400:], WEIGHTS[400:], first=400)
    streamed = SourceRows(Blocks([(X[400:], Y[400:], WEIGHTS[400:])]), check(), start=400)
    keys = np.concatenate([b.fold_keys(SEED) for b in whole.reduce(collect, join, 100)[4:]])
    for rows in (later, streamed):
        blocks = rows.reduce(collect, join, 100)
        assert [block.start for block in blocks] == [400, 500, 600, 700, 800, 900]
        np.testing.assert_array_equal(np.concatenate([b.fold_keys(SEED) for b in blocks]), keys)
        sample = rows.sample(lambda x: 10**6, SEED)
        np.testing.assert_array_equal(sample.keys, keys[WEIGHTS[400:] > 0])


def test_the_rows_of_a_sample_keep_their_folds():
    sample = ArrayRows(X, Y, WEIGHTS).sample(lambda x: 300, SEED)
    rows = ArrayRows.of_sample(sample)
    keys = np.concatenate([b.fold_keys(SEED) for b in rows.reduce(collect, join, 70)])
    np.testing.assert_array_equal(keys, sample.keys)
    again = rows.sample(lambda x: 10**6, SEED)
    np.testing.assert_array_equal(again.keys, sample.keys)


def test_nothing_to_draw_from():
    with pytest.raises(ValueError, match="Found no rows"):
        SourceRows(Blocks([]), check()).sample(lambda x: 5, SEED)
    for rows in (
        ArrayRows(X, Y, 0 * WEIGHTS),
        SourceRows(Blocks([(X, Y, 0 * WEIGHTS)]), check()),
    ):
        with pytest.raises(ValueError, match="positive entry"):
            rows.sample(lambda x: 5, SEED)
