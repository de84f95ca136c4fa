"""Tables of 20,000 columns: nothing is counted pair by pair, and the model fits into a file."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

import rflaf
from rflaf.tabular import TableError, read_table, split_target

COLUMNS = 20_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    values = np.random.default_rng(0).normal(size=(30, COLUMNS)).round(2)
    frame = pd.DataFrame(values, columns=[f"c{k}" for k in range(COLUMNS)])
    frame.assign(y=values[:, 0] + values[:, 1]).to_csv(path, index=False)
    return path


def test_a_name_that_is_not_there(path):
    with pytest.raises(TableError, match=r"no column 'z'. Its .*'c19' and 19,981 more\.$"):
        split_target(read_table(path), "z", "auto", (), False)


def test_fitted_saved_and_loaded(path, tmp_path):
    """The file was refused before, after minutes: each column of each member had two arrays."""
    frame = read_table(path)
    y = frame.pop("y")
    model = rflaf.RFLAFRegressor(5, activation="relu", n_members=2, input_form="ranks").fit(
        frame, y
    )
    rflaf.save(model, tmp_path / "model.skops")
    same = rflaf.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(same.predict(frame), model.predict(frame))
    entries = zipfile.ZipFile(io.BytesIO((tmp_path / "model.skops").read_bytes())).namelist()
    assert len(entries) < 200
