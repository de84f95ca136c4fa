"""The real files, where RFLAF_DATA has them: shapes, and figures that others have found."""

import numpy as np
import pytest

from rflaf.datasets import info, names
from rflaf.paper import load_split

SHAPES = {
    "mnist": ((60_000, 784), (10_000, 784)),
    "cifar10": ((50_000, 3072), (10_000, 3072)),
    "adult": ((26_048, 100), (6_513, 100)),
    "protein": ((36_584, 9), (9_146, 9)),
    "ct": ((42_800, 384), (10_700, 384)),
    "covtype": ((464_809, 54), (116_203, 54)),
    "millionsongs": ((463_715, 90), (51_630, 90)),
    "kin40k": ((36_000, 8), (4_000, 8)),
    "bike": ((15_642, 17), (1_737, 17)),
    "f1-authors": ((12_000, 2), (3_000, 2)),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RFLAF_CACHE", str(tmp_path))


def real(name, protocol="corrected"):
    if name not in names(available=True):
        pytest.skip(f"the files of {name} are not in RFLAF_DATA")
    return load_split(name, protocol)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    data = real(name)
    assert (data.X_train.shape, data.X_test.shape) == SHAPES[name]
    assert info(name).n_inputs == data.X_train.shape[1]
    assert info(name).n_rows == len(data.X_train) + len(data.X_test)
    assert np.isfinite(data.X_train).all()
    assert data.n_classes is None or set(data.y_test) == set(range(data.n_classes))


def test_protein_split_is_the_authors():
    """Their KAN could learn a constant only; its test loss is that of the best one."""
    y = real("protein", "published").y_test.astype(float)
    batches = [y[start : start + 128] for start in range(0, len(y), 128)]
    loss = np.mean([np.mean((batch - y.mean()) ** 2) for batch in batches])
    assert loss == pytest.approx(0.372408, abs=1e-6)


def test_adult_keeps_unknown_as_a_level():
    data = real("adult")
    assert "workclass=Private" in data.feature_names
    assert not any(name.endswith("=?") for name in data.feature_names)  # first, and so dropped
    assert "workclass=Federal-gov" in data.feature_names
    assert 0.23 < data.y_train.mean() < 0.25
