"""The runs behind figures 2 and 3, on few rows."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from rflaf.datasets import synthetic
from rflaf.paper import recovery_runs


@pytest.fixture
def few_rows(monkeypatch):
    """f by quadrature at a few points: to sample the published arrays takes long."""

    def rows(dataset, split):
        rng = np.random.default_rng(split)
        x = rng.standard_normal((1500, 2))
        y = synthetic.exact(synthetic.TARGETS[dataset], x)
        x, y = x.astype(np.float32), y.astype(np.float32)
        return (x[:1200], y[:1200]), (x[1200:], y[1200:])

    monkeypatch.setattr(recovery_runs, "_rows", rows)


@pytest.mark.parametrize("method", recovery_runs.METHODS)
def test_each_method_gives_a_record(few_rows, method):
    if method == "paper":
        pytest.importorskip("torch")
    found = recovery_runs.run_recovery("f2", method, 1, quick=True)
    assert json.loads(json.dumps(found)) == found
    z, sigma, truth = (np.array(found[name]) for name in ("z", "sigma", "truth"))
    assert z.shape == sigma.shape == truth.shape == (201,)
    on_grid = np.linalg.norm(sigma - truth) / np.linalg.norm(truth)
    assert found["error"] == pytest.approx(on_grid, abs=0.02)
    assert 0 < found["error"] <= 1
    assert found["extras"]["test_loss"] > 0
    if method == "smooth-v":
        assert found["error"] < 0.15


def test_rows_are_split_by_the_seed(monkeypatch):
    x = np.arange(20.0).reshape(10, 2)
    data = SimpleNamespace(X_train=x[:8], y_train=x[:8, 0], X_test=x[8:], y_test=x[8:, 0])
    monkeypatch.setattr(recovery_runs, "load_split", lambda dataset, protocol: data)
    published, *drawn = (recovery_runs._rows("f1", split) for split in (0, 1, 1, 2))
    assert published[0][0] is data.X_train
    for (x_train, y_train), (x_test, _) in drawn:
        assert len(x_train) == 8
        assert {*y_train, *x_test[:, 0]} == {*x[:, 0]}
    np.testing.assert_array_equal(drawn[0][0][0], drawn[1][0][0])
    assert not np.array_equal(drawn[0][0][0], drawn[2][0][0])


@pytest.mark.parametrize(
    ("dataset", "method", "message"),
    [("f4", "paper", "'dataset' parameter"), ("f1", "guess", "'method' parameter")],
)
def test_bad_names(dataset, method, message):
    with pytest.raises(ValueError, match=message):
        recovery_runs.run_recovery(dataset, method, 0)
