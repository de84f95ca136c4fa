"""Each set from small files of its format; names, infos and errors."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from rflaf.datasets import DataNotAvailable, fetch, info, load, names
from tests.datasets import conftest as make

GENERATED = [
    *("f1", "f2", "f3", "airfoil", "diabetes", "friedman1", "digits", "breast_cancer", "wine"),
    "iris",
]


@pytest.mark.parametrize("name", GENERATED)
def test_tables_that_need_no_file(name):
    data, about = load(name), info(name)
    assert data.X.shape == (about.n_rows, about.n_inputs)
    assert len(data.y) == about.n_rows
    assert len(data.feature_names) == about.n_inputs
    if about.task == "classification":
        assert set(data.y) == set(range(about.n_outputs))
    assert (about.sigma is not None) == (name in ("f1", "f2", "f3"))


def test_tables_are_as_their_files_have_them(data_folder):
    make.write(data_folder, make.tables(50))
    protein = load("protein")
    content = make.tables(50)["protein/CASP.csv"].decode().split("\n")
    np.testing.assert_allclose([protein.y[0], *protein.X[0]], [*map(float, content[1].split(","))])
    assert protein.is_number.all()
    assert not len(protein.is_test)
    songs = load("millionsongs")
    assert songs.X.shape == (50, 90)
    assert songs.y.min() >= 1950
    assert (~songs.is_test).sum() == 50 * 463_715 // 515_345


def test_infos_are_complete():
    for name in names():
        about = info(name)
        assert about.name == name
        assert about.source.startswith("https://")
        assert about.description.endswith(".")
        for file in about.files:
            forms = (file, *file.variants)
            assert all(not Path(form.path).is_absolute() for form in forms)
            assert all(url.startswith("https://") for form in forms for url in form.urls)
            assert all(form.sha256 is None or len(form.sha256) == 64 for form in forms)


def test_names_by_what_is_there(data_folder):
    assert list(names(available=True)) == GENERATED
    make.write(data_folder, {"protein/CASP.csv": b"there, whatever it holds"})
    assert set(names(available=True)) == {"protein", *GENERATED}
    assert set(names(available=True)) | set(names(available=False)) == set(names())


@pytest.mark.usefixtures("no_download")
def test_missing_file_is_one_error_that_helps(data_folder):
    with pytest.raises(DataNotAvailable) as caught:
        load("protein")
    message = str(caught.value)
    assert str(data_folder / "protein" / "CASP.csv") in message
    assert str(data_folder / "protein" / "CASP.csv.gz") in message
    assert "https://archive.ics.uci.edu/ml/machine-learning-databases/00265/CASP.csv" in message
    assert "no network" in message
    with pytest.raises(DataNotAvailable, match="not offered for download"):
        load("f1-authors")


def test_missing_pooch_is_said(data_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataNotAvailable, match=r"pip install 'rflaf\[data\]'"):
        fetch("protein")


def test_several_folders(data_folder, tmp_path, monkeypatch):
    other = tmp_path / "other"
    make.write(other, make.tables())
    places = map(str, (data_folder, tmp_path / "not there", other))
    monkeypatch.setenv("RFLAF_DATA", os.pathsep.join(places))
    assert fetch("protein") == [other / "protein" / "CASP.csv"]


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"must be one of mnist, .* Got 'mnits' instead"):
        load("mnits")
