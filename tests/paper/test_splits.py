"""Training and test rows of each set, from small files of its format, in both protocols."""

import numpy as np
import pytest

from rflaf.datasets import fetch, info, names, sets, synthetic
from rflaf.datasets.stream import Stream
from rflaf.paper.splits import SCALINGS, load_split
from tests.datasets import conftest as make

GENERATED = ["diabetes", "friedman1", "digits", "breast_cancer", "wine", "iris"]
data_folder = make.data_folder


def cells(content: bytes, skip=0):
    return np.array(
        [line.split(",") for line in content.decode().split("\n")[skip:] if line], float
    )


def parts(n):
    order = Stream(0).permutation(n)
    return order[: int(0.8 * n)], order[int(0.8 * n) :]


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("protocol", ["published", "corrected"])
def test_small_sets(name, protocol):
    data, about = load_split(name, protocol), info(name)
    both = np.concatenate([data.X_train, data.X_test]).astype(float) * SCALINGS[name].scale
    rows = both if protocol == "published" else both[: len(data.X_train)]
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-5)
    spread = rows.std(axis=0)
    assert (np.isclose(spread, 1, atol=1e-5) | (spread == 0)).all()
    assert len(both) == about.n_rows
    assert both.shape[1] == about.n_inputs == len(data.feature_names)


@pytest.mark.parametrize("name", ["f1", "iris", "diabetes"])
def test_types(name):
    data = load_split(name)
    classes = data.task == "classification"
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert X.dtype == np.float32
        assert X.flags.c_contiguous
        assert y.dtype == (np.int64 if classes else np.float32)
        assert y.shape == (len(X),)
    assert data.n_classes == (3 if classes else None)
    assert (data.sigma is not None) == (name == "f1")
    assert data.protocol == "corrected"


def test_mnist(data_folder):
    make.write(data_folder, make.mnist_files())
    data = load_split("mnist")
    assert data.X_train.shape == (20, 784)
    assert data.X_test.shape == (10, 784)
    pixels = np.random.default_rng(0).integers(0, 256, (20, 784))
    np.testing.assert_array_equal(data.X_train, (pixels / (255 * 45)).astype(np.float32))
    published = load_split("mnist", "published")
    np.testing.assert_array_equal(data.X_test, published.X_test)


@pytest.mark.parametrize("where", ["cifar10", "cifar-10-batches-bin", "tar", "tar in cifar10"])
def test_cifar10(data_folder, where):
    batches = make.cifar_batches()
    if where.startswith("tar"):
        packed = make.tarred({f"cifar-10-batches-bin/{k}": v for k, v in batches.items()})
        folder = "cifar10/" if where.endswith("cifar10") else ""
        make.write(data_folder, {f"{folder}cifar-10-binary.tar.gz": packed})
    else:
        make.write(data_folder, {f"{where}/{k}": v for k, v in batches.items()})
    data = load_split("cifar10", "published")
    table = np.frombuffer(b"".join(batches.values()), np.uint8).reshape(-1, 3073)
    expected = ((table[:, 1:] / 255 - 0.5) / 65).astype(np.float32)
    np.testing.assert_allclose(data.X_train, expected[:15], rtol=2e-6, atol=1e-9)
    np.testing.assert_array_equal(data.y_test, table[15:, 0])
    assert len(fetch("cifar10")) == (1 if where.startswith("tar") else 6)


def test_adult(data_folder):
    make.write(data_folder, {"adult/adult.data": make.adult_file()})
    data = load_split("adult", "published")
    train, test = parts(5)
    np.testing.assert_array_equal(data.y_train, np.array([0, 1, 0, 1, 1])[train])
    assert len(data.X_test) == 1
    columns = dict(zip(data.feature_names, np.vstack([data.X_train, data.X_test]).T))
    back = np.argsort(np.concatenate([train, test]))
    # "?" sorts first, so it is the level that is dropped; "White" stays, "Black" goes
    assert [n for n in columns if n.startswith("native")] == [
        "native-country=Cuba",
        "native-country=United-States",
    ]
    np.testing.assert_allclose(columns["race=White"][back], [0.1, 0.1, 0, 0.1, 0.1], atol=1e-7)
    ages = np.array([39, 50, 38, 52, 31.0])
    np.testing.assert_allclose(
        columns["age"][back], (ages - ages.mean()) / ages.std() / 10, atol=1e-7
    )


@pytest.mark.parametrize("form", ["plain", "gz"])
@pytest.mark.parametrize("protocol", ["published", "corrected"])
def test_protein(data_folder, form, protocol):
    content = make.tables()["protein/CASP.csv"]
    if form == "gz":
        make.write(data_folder, {"protein/CASP.csv.gz": make.packed(content)})
    else:
        make.write(data_folder, {"protein/CASP.csv": content})
    data = load_split("protein", protocol)
    table = cells(content, skip=1)
    train, test = parts(len(table))
    fitting = table if protocol == "published" else table[train]
    X = (table - fitting.mean(axis=0)) / fitting.std(axis=0) / 10
    np.testing.assert_allclose(data.X_train, X[train, 1:], atol=1e-6)
    np.testing.assert_allclose(data.X_test, X[test, 1:], atol=1e-6)
    np.testing.assert_allclose(data.y_test, table[test, 0] / 10, atol=1e-6)


def test_ct_leaves_the_patient_out(data_folder):
    make.write(data_folder, make.tables())
    data = load_split("ct")
    assert data.feature_names == sets.CT[1:-1]
    assert data.X_train.shape == (20, 384)
    np.testing.assert_array_equal(data.X_train[:, 6], 0)  # the column that never varies
    np.testing.assert_allclose(np.delete(data.X_train, 6, axis=1).std(axis=0), 1 / 45, rtol=1e-4)


def test_workloads_drops_ids_duplicates_and_nan(data_folder):
    make.write(data_folder, make.tables())
    data = load_split("workloads", "published")
    assert len(data.X_train) + len(data.X_test) == 25
    assert data.feature_names == ("x", "y", "x_range", "y_range", "count", "sum_")
    (data_folder / "workloads" / "datasets.zip").unlink()
    text = make.workloads_text(np.random.default_rng(3).normal(size=(25, 7)))
    make.write(data_folder, {"workloads/Range-Queries-Aggregates.csv": text})
    plain = load_split("workloads", "published")
    table = cells(b"\n".join(text.split(b"\n")[1:26]))[:, 1:]
    np.testing.assert_allclose(plain.y_train, table[parts(25)[0], -1] / 100, atol=1e-7)


def test_millionsongs_differs_between_the_protocols(data_folder):
    make.write(data_folder, make.tables(50))
    published, corrected = load_split("millionsongs", "published"), load_split("millionsongs")
    assert published.X_train.shape == (40, 89)
    assert corrected.X_train.shape == (50 * 463_715 // 515_345, 90)
    assert len(corrected.X_train) + len(corrected.X_test) == 50
    assert corrected.feature_names[1:] == published.feature_names
    years = corrected.y_train * 10 + 2000
    np.testing.assert_allclose(years, np.round(years), atol=1e-3)
    assert years.min() >= 1950
    # what is an input of one is the target of the other, up to its mean and scale
    timbre = np.concatenate([corrected.X_train[:, 0], corrected.X_test[:, 0]])
    target = np.empty(50)
    order = np.concatenate(parts(50))
    target[order] = np.concatenate([published.y_train, published.y_test])
    assert np.corrcoef(timbre, target)[0, 1] == pytest.approx(1, abs=1e-6)


def test_covtype(data_folder):
    make.write(data_folder, make.tables())
    data = load_split("covtype")
    assert data.X_train.shape == (20, 54)
    assert data.n_classes == 7
    assert set(np.concatenate([data.y_train, data.y_test])) <= set(range(7))
    np.testing.assert_allclose(data.X_train[:, :10].std(axis=0), 0.1, rtol=1e-4)


def test_masked_sets(data_folder):
    make.write(data_folder, make.tables())
    data = load_split("kin40k")
    assert (data.X_train.shape, data.X_test.shape) == ((20, 8), (5, 8))
    np.testing.assert_allclose(data.y_train.std(), 1, rtol=1e-5)
    bike = load_split("bike")
    assert "x4" not in bike.feature_names  # constant in the file
    assert bike.X_train.shape == (20, 16)


def test_published_uses_samples_and_keeps_them(data_folder, monkeypatch):
    monkeypatch.setattr(synthetic, "N_POINTS", 160)
    monkeypatch.setattr(synthetic, "N_SAMPLES", 1600)
    first = load_split("f2", "published")
    monkeypatch.setattr(synthetic, "sampled", None)  # the second time nothing is computed
    second = load_split("f2", "published")
    np.testing.assert_array_equal(first.y_train, second.y_train)
    assert len(first.X_train) == 128
    assert not np.array_equal(first.y_train, load_split("f2").y_train)
    assert first.sigma is synthetic.TARGETS["f2"].sigma


def test_every_set_has_a_scaling():
    assert set(SCALINGS) == set(names())


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"must be one of mnist, .* Got 'mnits' instead"):
        load_split("mnits")
    with pytest.raises(ValueError, match=r"'protocol' parameter .* Got 'original' instead"):
        load_split("iris", "original")
