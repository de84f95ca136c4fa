"""Damaged and mis-shaped files give an error that names them, or the right data; nothing else."""

import hashlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rflaf.datasets import DataNotAvailable, load, loading, readers
from rflaf.datasets.catalogue import ENTRIES
from rflaf.datasets.types import File
from tests.datasets import conftest as make

# packed forms carry checksums of their own; in plain text a changed digit is just another number
PACKED = {
    "protein": ("protein/CASP.csv.gz", make.packed(make.tables(6)["protein/CASP.csv"])),
    "adult": ("adult/adult.data.gz", make.packed(make.adult_file())),
    "covtype": ("covtype/covtype.data.gz", make.tables(6)["covtype/covtype.data.gz"]),
    "millionsongs": (
        "millionsongs/YearPredictionMSD.txt.zip",
        make.tables(6)["millionsongs/YearPredictionMSD.txt.zip"],
    ),
    "workloads": ("workloads/datasets.zip", make.tables(6)["workloads/datasets.zip"]),
    "cifar10": (
        "cifar10/cifar-10-binary.tar.gz",
        make.tarred({f"cifar-10-batches-bin/{k}": v for k, v in make.cifar_batches(1).items()}),
    ),
}


@pytest.mark.parametrize("name", PACKED)
def test_damage_is_found(name, tmp_path):
    path = tmp_path / PACKED[name][0].rpartition("/")[2]
    whole = PACKED[name][1]
    entry = ENTRIES[name]
    files = (path,) * len(entry.info.files)
    path.write_bytes(whole)
    right = entry.read(files)

    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def check(data):
        damaged = bytearray(whole)
        if data.draw(st.booleans(), label="cut"):
            del damaged[data.draw(st.integers(0, len(whole) - 1)) :]
        else:
            for _ in range(data.draw(st.integers(1, 3))):
                place = data.draw(st.integers(0, len(whole) - 1))
                damaged[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(damaged)
        message = ""
        try:
            found = entry.read(files)
        except ValueError as error:
            found, message = None, str(error)
        if found is None:
            assert str(path) in message
        else:
            np.testing.assert_array_equal(found.X, right.X)
            np.testing.assert_array_equal(found.y, right.y)

    check()


@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_in_a_plain_file(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    for name in ("protein", "adult"):
        with pytest.raises(ValueError, match="any' cannot be read"):
            ENTRIES[name].read((path,))
    for dimensions in (1, 3):
        with pytest.raises(ValueError, match="wrong magic"):
            readers.idx(path, dimensions)


def replaced(name, file, old, new, data_folder):
    files = make.tables() | make.mnist_files()
    assert old in files[file]
    make.write(data_folder, files | {file: files[file].replace(old, new, 1)})
    with pytest.raises(ValueError, match="cannot be read") as caught:
        load(name)
    assert str(data_folder / file) in str(caught.value)
    return str(caught.value)


def test_header(data_folder):
    message = replaced("protein", "protein/CASP.csv", b"F3", b"X3", data_folder)
    assert "first line is not the header 'RMSD,F1,F2" in message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1,2,3", "line 3 has 3 cells, expected 10"),
        ("1,2,3,4,5,six,7,8,9,10", "line 3: 'six' is not a number"),
        ("1,2,3,4,5,,7,8,9,10", "line 3: '' is not a number"),
        ("1,2,3,4,5,nan,7,8,9,10", "line 3: 'nan' is not a finite number"),
        ("1,2,3,4,5,1e999,7,8,9,10", "line 3: '1e999' is not a finite number"),
    ],
)
def test_a_bad_line_is_named(data_folder, line, says):
    good = make.tables()["protein/CASP.csv"].decode().split("\n")
    make.write(data_folder, {"protein/CASP.csv": "\n".join([*good[:2], line]).encode()})
    with pytest.raises(ValueError, match=r"CASP\.csv' cannot be read") as caught:
        load("protein")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1, 2", "line 2 has 2 cells, expected 15"),
        (make.ADULT_LINES[1].replace(">50K", "50K"), "line 2: income is '50K'"),
        (make.ADULT_LINES[1].replace("83311", "many"), "line 2: 'many' is not a number"),
    ],
)
def test_a_bad_line_of_adult_is_named(data_folder, line, says):
    content = "\n".join([make.ADULT_LINES[0], line]).encode()
    make.write(data_folder, {"adult/adult.data": content})
    with pytest.raises(ValueError, match="cannot be read") as caught:
        load("adult")
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["protein", "adult"])
def test_empty_files(data_folder, name):
    path = ENTRIES[name].info.files[0].path
    make.write(data_folder, {path: b""})
    with pytest.raises(ValueError, match=r"no rows|not the header"):
        load(name)


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("train-images-idx3", np.zeros((20, 28, 27)), "expected \\(28, 28\\)"),
        ("train-images-idx3", np.zeros((20, 784)), "wrong magic"),
        ("t10k-labels-idx1", np.zeros(7), "7 labels for 10 images"),
        ("t10k-labels-idx1", np.full(10, 10), "label above 9"),
        ("t10k-labels-idx1", np.zeros(0), "no rows"),
    ],
)
def test_bad_mnist(data_folder, name, array, says):
    file = {f"mnist/{name}-ubyte.gz": make.packed(make.idx(array))}
    make.write(data_folder, make.mnist_files() | file)
    with pytest.raises(ValueError, match=says):
        load("mnist")


def test_short_idx(data_folder):
    file = {"mnist/t10k-labels-idx1-ubyte.gz": make.packed(make.idx(np.zeros(10))[:-1])}
    make.write(data_folder, make.mnist_files() | file)
    with pytest.raises(ValueError, match=r"header says \(10,\), but 9 bytes follow"):
        load("mnist")


def test_bad_cifar(data_folder):
    batches = {f"cifar10/{k}": v for k, v in make.cifar_batches().items()}
    make.write(data_folder, batches | {"cifar10/test_batch.bin": bytes(3072)})
    with pytest.raises(ValueError, match="3072 bytes, not rows of 3073"):
        load("cifar10")
    make.write(data_folder, {"cifar10/test_batch.bin": bytes([10]) + bytes(3072)})
    with pytest.raises(ValueError, match="label above 9"):
        load("cifar10")
    make.write(data_folder, {"cifar10/test_batch.bin": b""})
    with pytest.raises(ValueError, match="0 bytes"):
        load("cifar10")


def test_bad_masks_and_classes(data_folder):
    files = make.tables()
    mask = make.packed(b"0,0,0,0,0,0,0,0,0,0\n")
    make.write(data_folder, files | {"uci/bike.mask.csv.gz": mask})
    with pytest.raises(ValueError, match="expected 25 rows of masks"):
        load("bike")
    row = ",".join(["0"] * 54 + ["8"])
    make.write(data_folder, {"covtype/covtype.data.gz": make.packed(row.encode())})
    with pytest.raises(ValueError, match="not one of 1 to 7"):
        load("covtype")


def test_archive_without_the_member(data_folder):
    make.write(data_folder, {"workloads/datasets.zip": make.zipped("other.csv", b"1")})
    with pytest.raises(ValueError, match=r"no member 'Range-Queries-Aggregates\.csv'"):
        load("workloads")


def test_pickles_are_not_loaded(data_folder):
    objects = np.array([{"a": 1}], dtype=object)
    (data_folder / "synthetic").mkdir()
    for name in ("X_sin", "y_sin"):
        np.save(data_folder / "synthetic" / f"{name}.npy", objects, allow_pickle=True)
    with pytest.raises(ValueError, match=r"X_sin\.npy' cannot be read: .*allow_pickle"):
        load("f1-authors")


@pytest.mark.parametrize("array", [np.zeros((4, 3)), np.zeros(4), np.full((4, 2), np.nan)])
def test_bad_arrays(data_folder, array):
    (data_folder / "synthetic").mkdir()
    np.save(data_folder / "synthetic" / "X_sin.npy", array)
    np.save(data_folder / "synthetic" / "y_sin.npy", np.zeros(4))
    with pytest.raises(ValueError, match=r"X_sin\.npy' cannot be read"):
        load("f1-authors")


def test_right_size_with_a_wrong_digest_is_damage(data_folder, monkeypatch):
    """A flipped digit in plain text is seen only by the digest, where one is known."""
    content = make.tables()["protein/CASP.csv"]
    known = File("protein/CASP.csv", (), hashlib.sha256(content).hexdigest(), len(content))
    entry = ENTRIES["protein"]
    about = type(entry.info)(**{**entry.info.__dict__, "files": (known,)})
    changed = type(entry)(**{**entry.__dict__, "info": about})
    monkeypatch.setitem(loading.ENTRIES, "protein", changed)
    make.write(data_folder, {"protein/CASP.csv": content})
    load("protein")
    place = content.rindex(b"1")
    flipped = content[:place] + b"2" + content[place + 1 :]
    make.write(data_folder, {"protein/CASP.csv": flipped})
    with pytest.raises(ValueError, match="SHA-256"):
        load("protein")
    assert not issubclass(readers.BadFile, DataNotAvailable)


def test_a_table_cut_at_the_end_of_a_line_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv("RFLAF_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "protein").mkdir()
    (tmp_path / "protein" / "CASP.csv").write_bytes(make.tables(6)["protein/CASP.csv"])
    for _ in range(2):  # read, and from the cache
        with pytest.warns(UserWarning, match=r"CASP.csv' has \d+ rows; .* has 45,730"):
            load("protein")
