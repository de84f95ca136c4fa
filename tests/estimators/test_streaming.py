"""Rows that come in blocks give the model that they give in memory."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rflaf
from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.data import Arrays, Blocks, Parquet
from rflaf.estimators import memory
from rflaf.estimators.rows import Block
from rflaf.estimators.sample import (
    FOLD,
    SAMPLE,
    SampleDraw,
    fold_cuts,
    fold_numbers,
    row_keys,
)
from rflaf.estimators.wide import wide_block_rows
from tests.tables import weighted_rows

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")

N, SAMPLED = 1300, 1000
SMALL = {"n_components": 25, "max_iter": 3, "random_state": 0}


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


@pytest.fixture(autouse=True)
def short_sample(monkeypatch):
    """Fewer rows than the tests have, so that there is a second pass."""
    monkeypatch.setattr(memory, "SAMPLE_ROWS", SAMPLED)


@pytest.fixture(scope="module")
def rows():
    return weighted_rows(N)


def cut(size, *parts):
    """A source with blocks of `size` rows and empty ones between them."""

    def read():
        for start in range(0, len(parts[0]), size):
            block = tuple(part[start : start + size] for part in parts)
            yield block if len(block) > 1 else block[0]
            if start == 0 or size > 1:
                yield tuple(part[:0] for part in parts)

    return Blocks(read)


def assert_same(one, other):
    assert one.activation_ == other.activation_
    for name in ("coef_", "intercept_", "mean_", "scale_", "metric_", "components_", "alpha_"):
        assert (
            np.asarray(getattr(one, name)).tobytes() == np.asarray(getattr(other, name)).tobytes()
        )


# ---- one model


@pytest.mark.parametrize("size", [1, 7, 400, 5000])
def test_blocks_of_any_size_give_the_same_regression(size, rows):
    X, y, _ = rows
    whole = regressor().fit(X, y)
    model = regressor().fit(cut(size, X, y))
    assert_same(model, whole)
    assert model.noise_ == whole.noise_
    np.testing.assert_allclose(model.predict(cut(size, X)), whole.predict(X), rtol=1e-6)
    assert whole.score(X, y) > 0.7


@pytest.mark.parametrize("size", [1, 333])
def test_weights_and_many_targets(size, rows):
    X, y, weights = rows
    Y = np.column_stack([y, X[:, 0]])
    whole = regressor().fit(X, Y, sample_weight=weights)
    model = regressor().fit(cut(size, X, Y, weights))
    assert_same(model, whole)
    _, std = model.predict(cut(size, X), return_std=True)
    np.testing.assert_allclose(std, whole.predict(X, return_std=True)[1], rtol=1e-6)
    assert not np.array_equal(whole.coef_, regressor().fit(X, Y).coef_)


@pytest.mark.parametrize("size", [1, 333])
@pytest.mark.parametrize("names", [["in", "outside"], [3.0, 1.0, 7.0]])
def test_classes(size, names, rows):
    X, y, weights = rows
    labels = np.array(names)[np.digitize(y, [0.5, 1.0][: len(names) - 1])]
    options = {"class_weight": "balanced"} if len(names) == 3 else {}
    whole = classifier(**options).fit(X, labels, sample_weight=weights)
    model = classifier(**options).fit(cut(size, X, labels, weights))
    assert_same(model, whole)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    source = cut(size, X, labels)  # classes that come along are not looked at
    np.testing.assert_array_equal(model.predict(source), whole.predict(X))
    np.testing.assert_allclose(model.predict_proba(source), whole.predict_proba(X), rtol=1e-5)
    assert whole.score(X, labels) > 0.7


def test_fewer_rows_than_the_sample(rows):
    """One pass is enough, and nothing is drawn."""
    X, y, weights = (part[:300] for part in rows)
    passes = []

    def read():
        passes.append(None)
        yield from cut(50, X, y, weights)

    model = regressor().fit(Blocks(read))
    assert len(passes) == 1
    assert_same(model, regressor().fit(X, y, sample_weight=weights))
    labels = y > 0.5
    assert_same(
        classifier().fit(cut(9, X[:80], labels[:80])), classifier().fit(X[:80], labels[:80])
    )


def test_all_rows_count_not_only_the_sample(rows):
    """With the rows outside the sample spoilt, the last solve is another, the activation is not."""
    X, y, _ = rows
    model = regressor().fit(X, y)
    keys = row_keys(model._seed, SAMPLE, 0, N)
    outside = keys > np.sort(keys)[SAMPLED - 1]
    assert outside.sum() == N - SAMPLED
    other = regressor().fit(X, np.where(outside, 3.0, y))
    assert other.activation_ == model.activation_
    np.testing.assert_allclose(other.mean_, X[~outside].mean(axis=0))
    assert np.abs(other.predict(X) - model.predict(X)).max() > 0.1


def test_a_class_outside_the_sample_is_known(rows):
    X, y, _ = rows
    keys = row_keys(regressor().fit(X, y)._seed, SAMPLE, 0, N)
    labels = np.where(y > 0.5, "b", "a").astype(object)
    labels[keys.argsort()[-5:]] = "rare"
    model = classifier().fit(cut(100, X, labels))
    assert list(model.classes_) == ["a", "b", "rare"]
    p = model.predict_proba(X)
    assert 1e-5 < p[:, 2].mean() < 0.05
    only = np.where(labels == "rare", 1, 0)  # and the sample has a single class
    assert classifier().fit(cut(100, X, only)).predict_proba(X)[:, 1].mean() < 0.05


@given(st.integers(0, 2**31 - 2), st.integers(0, 10**12), st.lists(st.integers(0, 30), max_size=6))
@settings(max_examples=40)
def test_keys_depend_on_the_number_alone(seed, start, sizes):
    ends = start + np.cumsum([0, *sizes])
    parts = [row_keys(seed, FOLD, a, b) for a, b in pairwise(ends)]
    whole = row_keys(seed, FOLD, start, ends[-1])
    np.testing.assert_array_equal(np.concatenate([*parts, whole[:0]]), whole)
    if whole.size:
        assert not np.array_equal(whole, row_keys(seed, SAMPLE, start, ends[-1]))


@given(st.integers(5, 400), st.sampled_from([[0.9, 0.1], [1 - 1e-5, 1e-5], [0.2] * 5]))
def test_folds_have_their_shares(n, shares):
    keys = row_keys(1, FOLD, 0, n)
    counts = np.bincount(fold_numbers(fold_cuts(keys, shares), keys), minlength=len(shares))
    assert (np.abs(counts - np.multiply(shares, n)) <= 1).all()
    assert counts[-1] > 0


# ---- kinds of blocks


def test_frames_and_parquet(rows, tmp_path):
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    X, y, weights = rows
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    whole = regressor().fit(frame, y, sample_weight=weights)
    model = regressor().fit(cut(100, frame, pandas.Series(y), pandas.Series(weights)))
    assert_same(model, whole)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    table = arrow.table({**{name: frame[name].to_numpy() for name in frame}, "y": y, "w": weights})
    parquet.write_table(table, tmp_path / "all.parquet", row_group_size=300)
    (tmp_path / "many").mkdir()
    for k in range(3):
        parquet.write_table(table.slice(500 * k, 500), tmp_path / "many" / f"{k}.parquet")
    for path in (tmp_path / "all.parquet", tmp_path / "many"):
        source = Parquet(path, target="y", weight="w", batch_rows=170)
        assert_same(regressor().fit(source), whole)
        bare = Parquet(path, columns=["a", "b", "c"])
        np.testing.assert_allclose(whole.predict(bare), whole.predict(frame), rtol=1e-6)
    with pytest.raises(ValueError, match="feature names"):
        whole.predict(cut(100, frame[["b", "a", "c"]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_arrays_on_disk(dtype, rows, tmp_path):
    X, y, weights = rows
    values = (X * 100).astype(dtype)
    on_disk = np.memmap(tmp_path / "x", dtype, "w+", shape=X.shape)
    on_disk[:] = values
    model = regressor().fit(on_disk, y, sample_weight=weights)
    assert_same(model, regressor().fit(values, y, sample_weight=weights))
    assert_same(model, regressor().fit(Arrays(on_disk, y, weights)))
    prediction = model.predict(on_disk)
    assert prediction.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(prediction, model.predict(values), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="requires y"):
        regressor().fit(on_disk)
    one_weight = regressor().fit(on_disk, y, sample_weight=2.0)
    assert_same(one_weight, regressor().fit(values, y, sample_weight=2.0))


def test_predictions_in_blocks(rows, monkeypatch):
    X, y, _ = rows
    monkeypatch.setattr(memory, "_BLOCK_NUMBERS", 25 * 100)
    for model in (regressor().fit(X, y), classifier().fit(X, y > 0.5)):
        for given_X in (X, cut(77, X)):
            blocks = list(model.predict_blocks(given_X))
            assert len(blocks) == 13
            np.testing.assert_array_equal(np.concatenate(blocks), model.predict(X))


# ---- errors


@pytest.mark.parametrize("make", [regressor, classifier])
@pytest.mark.parametrize("fails_in", [1, 2])
def test_a_reader_that_fails_leaves_no_model(make, fails_in, rows):
    X, y, _ = rows
    model = make().fit(X, y > 0.5)
    passes = []
    failure = OSError("the disk is gone")

    def read():
        passes.append(None)
        for k, block in enumerate(cut(100, X, y > 0.5)):
            if len(passes) == fails_in and k == 7:
                raise failure
            yield block

    with pytest.raises(OSError, match="the disk is gone") as caught:
        model.fit(Blocks(read))
    assert caught.value is failure
    assert set(vars(model)) == set(model.get_params())


def test_a_reader_that_fails_leaves_settings_alone(rows):
    model = regressor()
    model._metadata_request = "as it was"

    def read():
        yield rows[0], rows[1]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(Blocks(read))
    assert set(vars(model)) == {*model.get_params(), "_metadata_request"}


def test_missing_classes(rows):
    X, y, _ = rows
    labels = np.where(y > 0.5, "b", "a").astype(object)
    for nothing in (None, np.nan):
        labels[700] = nothing
        with pytest.raises(ValueError, match="y contains missing classes"):
            classifier().fit(cut(100, X, labels))


def test_passes_that_differ(rows):
    X, y, _ = rows

    def changing(first, later):
        passes = []

        def read():
            passes.append(None)
            return iter(first if len(passes) == 1 else later)

        return Blocks(read)

    blocks = list(cut(100, X, y))
    with pytest.raises(ValueError, match="gave 1300 rows in the first pass and 1200 in a later"):
        regressor().fit(changing(blocks, blocks[:-2]))
    narrow = [(part[:, :2], y) for part, y in blocks]
    with pytest.raises(ValueError, match="2 features, but RFLAFRegressor is expecting 3"):
        regressor().fit(changing(blocks, narrow))
    wide = [(part, np.column_stack([y, y])) for part, y in blocks]
    with pytest.raises(ValueError, match="'y' must have the shape"):
        regressor().fit(changing(blocks, wide))
    classes = [(part, (y > 0.5).astype(int)) for part, y in blocks]
    others = [(part, y + 8) for part, y in classes]
    with pytest.raises(ValueError, match=r"gave the class .*[89].* in a later pass"):
        classifier().fit(changing(classes, others))


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_and_infinity_are_located(value, word, rows):
    pandas = pytest.importorskip("pandas")
    X, y, weights = rows
    spoilt = X.copy()
    spoilt[423, 1] = value
    place = "in row 423, column {} .*rows 400 to 499"
    with pytest.raises(ValueError, match=f"Input X contains {word} " + place.format(1)):
        regressor().fit(cut(100, spoilt, y))
    frame = pandas.DataFrame(spoilt, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=f"Input X contains {word} " + place.format("'b'")):
        regressor().fit(cut(100, frame, y))
    model = regressor().fit(X, y)
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        model.predict(cut(100, spoilt))
    for name, parts in (("y", (X, spoilt[:, 1])), ("weight", (X, y, np.abs(spoilt[:, 1])))):
        with pytest.raises(ValueError, match=rf"Input {name} contains {word} in row 423"):
            regressor().fit(cut(100, *parts))
    with pytest.raises(ValueError, match="must not be negative"):
        regressor().fit(cut(100, X, y, weights - 1))


@pytest.mark.parametrize("make", [regressor, classifier])
def test_sources_that_will_not_do(make, rows):
    sparse = pytest.importorskip("scipy.sparse")
    X, y, _ = rows
    labels = (y > 0.5).astype(int)
    source = cut(100, X, labels)
    with pytest.raises(ValueError, match="targets and weights come from its blocks"):
        make().fit(source, y)
    with pytest.raises(ValueError, match=r"needs blocks \(X, y\)"):
        make().fit(cut(100, X))
    with pytest.raises(ValueError, match="no rows"):
        make().fit(Blocks([]))
    with pytest.raises(ValueError, match="no rows"):
        make().fit(source).predict(Blocks([X[:0]]))
    with pytest.raises(ValueError, match="tuple of 4 parts"):
        make().fit(Blocks([(X, labels, labels, labels)]))
    with pytest.raises(ValueError, match="shape"):
        make().fit(Blocks([(X, labels[:-1])]))
    with pytest.raises(TypeError, match="must be dense"):
        make().fit(Blocks([(sparse.csr_array(X), labels)]))
    with pytest.raises(ValueError, match="positive entry"):
        make().fit(cut(100, X, labels, np.zeros(N)))
    with pytest.raises(ValueError, match="solver='adam' takes arrays"):
        make(solver="adam").fit(source)


def test_classes_that_are_none(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier().fit(cut(100, X, y))
    with pytest.raises(ValueError, match="at least 2 classes"):
        classifier().fit(cut(100, X, np.zeros(N)))
    with pytest.raises(TypeError, match="partial_fit takes arrays"):
        regressor().partial_fit(cut(100, X, y), None)


# ---- memory


def test_the_parameter(rows):
    X, y, _ = rows
    for value in (0, -5, 1.5, "1GB"):
        with pytest.raises(ValueError, match="'memory' parameter"):
            regressor(memory=value).fit(X, y)
    for model in (regressor(solver="ridge"), classifier()):
        model.set_params(n_components=2000, memory=50_000_000)
        with pytest.raises(MemoryError, match=r"n_components=2000 needs 0.16 GB .* 0.05 GB"):
            model.fit(X, y > 0)


def test_wide_rows_are_read_by_fewer():
    for allowed in (None, 10**7):
        for d in (10, 10_000):
            room = 1 << 27 if allowed is None else allowed
            assert memory.read_rows(d, allowed) * d * 8 <= room
            assert wide_block_rows(6000, d, allowed) * d * 8 <= room
    assert memory.read_rows(10**9, 1) == wide_block_rows(6000, 10**9, 1) == 1
    draw = SampleDraw(40, 0)
    for start in range(0, 1000, 10):
        draw.add(Block(start, np.zeros((10, 2)), np.zeros(10), np.ones(10)))
        assert draw._count <= 50
    assert len(draw.result().keys) == 40


def test_features_are_kept_where_there_is_room(rows):
    """What is read again changes with `memory`; blocks and rounding do too, and the last steps."""
    X, y, _ = rows
    counts, models = [], []
    for size in (None, 1_000_000, 160_000):
        passes = []

        def read(passes=passes):
            passes.append(None)
            yield from cut(100, X, y > 0.5)

        models.append(classifier(memory=size).fit(Blocks(read)))
        counts.append(len(passes))
    assert counts[:2] == [2, 2]
    assert counts[2] > 4
    for other in models[1:]:
        assert other.activation_ == models[0].activation_
        np.testing.assert_allclose(other.predict_proba(X), models[0].predict_proba(X), atol=0.02)


CHILD = """
import resource, sys
import numpy as np
from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.data import Blocks

rows, d, blocks = 5000, 50, 120  # 240 MB in all
rng = np.random.default_rng(0)
base = rng.normal(size=(rows, d))

def read(n=blocks):
    for k in range(n):
        X = base + k / n
        yield X, (X[:, 0] > 0.5).astype(float)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

options = dict(n_components=10, max_iter=2, metric="diagonal", random_state=0, memory=60_000_000)
estimators = [RFLAFRegressor(alpha=1e-3, **options), RFLAFClassifier(alpha=0.1, **options)]
for model in estimators:
    model.fit(Blocks(lambda: read(2)))  # what libraries take when first used
before = peak()
for model in estimators:
    model.fit(Blocks(read))
    for _ in model.predict_blocks(Blocks(read)):
        pass
print(peak() - before)
"""


def test_memory_is_bounded(tmp_path):
    """A child process fits rows that take four times the bytes it may."""
    source = str(Path(rflaf.__file__).parent.parent)
    result = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={"PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split()[-1]) < 60_000_000
