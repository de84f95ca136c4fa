"""Rows that come in blocks give the model that they give in memory."""

import numpy as np
import pytest

from rflaf.estimators import validation
from rflaf.fitting import budget
from rflaf.rows import Arrays, Blocks, Parquet
from rflaf.rows.sample import SAMPLE, row_keys
from tests.estimators.streaming.conftest import SAMPLED, SEED, N, classifier, cut, regressor


def assert_same(one, other):
    assert one.activation_ == other.activation_
    for name in (
        "output_weights_",
        "intercept_",
        "mean_",
        "scale_",
        "metric_",
        "components_",
        "alpha_",
    ):
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
    assert not np.array_equal(whole.output_weights_, regressor().fit(X, Y).output_weights_)


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
    keys = row_keys(SEED, SAMPLE, 0, N)
    outside = keys > np.sort(keys)[SAMPLED - 1]
    assert outside.sum() == N - SAMPLED
    other = regressor().fit(X, np.where(outside, 3.0, y))
    assert other.activation_ == model.activation_
    np.testing.assert_allclose(other.mean_, X[~outside].mean(axis=0))
    assert np.abs(other.predict(X) - model.predict(X)).max() > 0.1


def test_a_class_outside_the_sample_is_known(rows):
    X, y, _ = rows
    keys = row_keys(SEED, SAMPLE, 0, N)
    labels = np.where(y > 0.5, "b", "a").astype(object)
    labels[keys.argsort()[-5:]] = "rare"
    model = classifier().fit(cut(100, X, labels))
    assert list(model.classes_) == ["a", "b", "rare"]
    p = model.predict_proba(X)
    assert 1e-5 < p[:, 2].mean() < 0.05
    only = np.where(labels == "rare", 1, 0)  # and the sample has a single class
    assert classifier().fit(cut(100, X, only)).predict_proba(X)[:, 1].mean() < 0.05


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
def test_arrays_on_disk(dtype, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "_READ_AT_ONCE", 0)
    X, y, weights = rows
    values = (X * 100).astype(dtype)
    on_disk = np.memmap(tmp_path / "x", dtype, "w+", shape=X.shape)
    on_disk[:] = values
    model = regressor().fit(on_disk, y, sample_weight=weights)
    assert_same(model, regressor().fit(values, y, sample_weight=weights))
    assert_same(model, regressor().fit(Arrays(on_disk, y, weights)))
    prediction = model.predict(on_disk)
    assert prediction.dtype == np.float64
    np.testing.assert_allclose(prediction, model.predict(values), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="requires y"):
        regressor().fit(on_disk)
    one_weight = regressor().fit(on_disk, y, sample_weight=2.0)
    assert_same(one_weight, regressor().fit(values, y, sample_weight=2.0))


def test_predictions_in_blocks(rows, monkeypatch):
    X, y, _ = rows
    monkeypatch.setattr(budget, "_BLOCK_NUMBERS", 25 * 100)
    for model in (regressor().fit(X, y), classifier().fit(X, y > 0.5)):
        for given_X in (X, cut(77, X)):
            blocks = list(model.predict_blocks(given_X))
            assert len(blocks) == 13
            np.testing.assert_array_equal(np.concatenate(blocks), model.predict(X))
