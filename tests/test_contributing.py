"""The examples of CONTRIBUTING.md run as they are, and do what is said of them."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import rflaf

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# Appended to the example of a form. It runs in a process of its own: the estimators read the names
# of forms when they are imported, and here they are already.
CHECKS = """
from rflaf.onnx import export

assert {type(member.layer.form) for member in model.members_} == {SignedLogs}
assert model.input_form_ == "logs"
assert model.oof_score_ > 0.7, model.oof_score_
assert "signed logarithms of columns" in model.summary()
form, rows, step = model.members_[0].layer.form, X[:50], 1e-6
change = form.dense(rows + step, np.float64) - form.dense(rows - step, np.float64)
assert np.allclose(form.derivative(rows), change / (2 * step), rtol=1e-4, atol=1e-6)
export(model, "model.onnx", check=rows)
"""


def example(title: str) -> str:
    """The one block of Python under a heading."""
    section = re.search(rf"\n## {title}\n(.*?)(?=\n## )", TEXT, re.DOTALL)
    assert section is not None
    (block,) = re.findall(r"```python\n(.*?)```", section[1], re.DOTALL)
    return block


def test_every_block_is_an_example():
    titles = [f"How to add a {what}" for what in ("basis", "form", "loss")]
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert blocks == [example(title) for title in titles]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the example under a heading, as a module somewhere on the path."""
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def imported(title):
        names.append(f"example_of_{title.rpartition(' ')[2]}")
        (tmp_path / f"{names[-1]}.py").write_text(example(title), encoding="utf-8")
        return importlib.import_module(names[-1])

    yield imported
    for name in names:
        sys.modules.pop(name, None)


def check_saved(model, kind, rows, path):
    """A model with a type of one's own is saved and loaded where the type is named."""
    pytest.importorskip("skops", reason="needs skops: pip install 'rflaf[io]'")
    with pytest.raises(ValueError, match=kind.__name__):
        rflaf.save(model, path)
    if "trusted" not in inspect.signature(rflaf.save).parameters:
        return
    rflaf.save(model, path, trusted=[kind])
    with pytest.raises(ValueError, match=kind.__name__):
        rflaf.load(path)
    same = rflaf.load(path, trusted=[kind])
    assert np.array_equal(same.predict(rows), model.predict(rows))


def test_a_basis(run, tmp_path):
    module = run("How to add a basis")
    basis, model = module.Cosines(9), module.model
    z, step = np.linspace(-1.9, 1.9, 50), 1e-6
    change = basis(z + step) - basis(z - step)
    assert np.allclose(basis.derivative(z), change / (2 * step), atol=1e-6)
    assert np.allclose(basis.derivative([-2.0, 2.0]), 0, atol=1e-12)
    assert type(model.activation_.basis) is module.Cosines
    assert model.oof_score_ > 0.99
    check_saved(model, module.Cosines, module.X, tmp_path / "model.skops")


def test_a_form(tmp_path):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'rflaf[onnx]'")
    script = tmp_path / "example.py"
    script.write_text(example("How to add a form") + CHECKS, encoding="utf-8")
    source = str(Path(rflaf.__file__).parent.parent)
    result = subprocess.run(
        [sys.executable, "-W", "error:::rflaf", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([source, os.getenv("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith("logs")


def test_a_loss(run, tmp_path):
    module = run("How to add a loss")
    loss, model, X = module.LogCosh(), module.model, module.X
    rng, step = np.random.default_rng(0), 1e-6
    scores, targets = rng.standard_normal((30, 1)), 3 * rng.standard_t(2, 30)
    (above, slope_above), (below, slope_below) = (
        loss.slopes(scores + sign * step, targets) for sign in (1, -1)
    )
    assert np.allclose(loss.slopes(scores, targets)[1][:, 0], (above - below) / (2 * step))
    assert np.allclose(loss.curvature(scores, targets), (slope_above - slope_below) / (2 * step))
    constant = np.full((30, 1), loss.constant(targets, np.ones(30)))
    assert abs(loss.slopes(constant, targets)[1].sum()) < 1e-9

    expected = 3 * np.sin(3 * X[:, 0]) + 2 * X[:, 1]
    assert np.sqrt(np.mean((model.predict(X) - expected) ** 2)) < 0.15
    assert model.oof_score_ > 0.7
    with pytest.raises(ValueError, match="Input y contains NaN"):
        clone(model).fit(X, np.full(1500, np.nan))
    check_saved(model, module.LogCosh, X, tmp_path / "model.skops")
