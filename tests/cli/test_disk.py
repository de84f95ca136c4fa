"""Disks that are full, and folders that a user may not write to."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rflaf
from rflaf.paper import Spec, Store
from tests.cli.conftest import run
from tests.tabular.test_model import table

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX users and limits")


def python(code, folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(rflaf.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """A disk of 512 kB, with a table."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        table().to_csv(disk / "t.csv", index=False)
        monkeypatch.chdir(disk)
        yield disk
    finally:
        monkeypatch.chdir(tmp_path)
        subprocess.run(["umount", str(disk)], check=True)


def fill(disk):
    """Take all room that is left but one page."""
    room = shutil.disk_usage(disk).free
    (disk / "filler").write_bytes(bytes(max(0, room - 4096)))


def test_a_fit_on_a_full_disk_keeps_the_old_model(small_disk):
    run("fit", "t.csv", "-t", "y", "--components", 5)
    old = (small_disk / "model.skops").read_bytes()
    fill(small_disk)
    before = sorted(os.listdir(small_disk))
    said = run("fit", "t.csv", "-t", "y", "--components", 1000, code=1).stderr
    assert "Error: 'model.skops': No space left on device." in said
    page = ["--components", 5, "--report", "page.html"]
    said = run("fit", "t.csv", "-t", "y", *page, "--out", "new.skops", code=1).stderr
    assert "Error: 'page.html': No space left on device." in said
    assert sorted(os.listdir(small_disk)) == before
    assert (small_disk / "model.skops").read_bytes() == old


def test_reproduce_goes_on_where_the_disk_was_full(small_disk, monkeypatch):
    done = []

    def record(spec):
        done.append(spec.key)
        noise = np.random.default_rng(len(done)).bytes(1500).hex()
        made = {"key": spec.key, "spec": spec.to_dict(), "status": "finished", "seconds": 3.0}
        return {**made, "kind": "training", "test_loss": 0.24, "noise": noise}

    monkeypatch.setattr("rflaf.paper.runs.run", record)
    words = ["reproduce", "table1", "--datasets", "protein", "--models", "rfmlp-relu", "--seeds", 3]
    fill(small_disk)
    said = run(*words, "--out", "results", code=1).stderr
    assert "Error: 'results/records.jsonl': No space left on device." in said.splitlines()
    assert 1 < len(done) < 6
    (small_disk / "filler").unlink()
    with pytest.warns(UserWarning, match="incomplete"):
        run(*words, "--out", "results")
    # only the run whose record had no room is done again
    assert len(done) == 7
    assert len(set(done)) == 6
    assert Store("results").keys() == set(done)


@posix
def test_a_limit_to_the_size_of_files_keeps_the_old_model(tmp_path):
    """As a quota does, without the rights that a small disk needs."""
    table().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "model.skops").write_bytes(b"before")
    code = """
import resource, sys
from rflaf import tabular
fit_table = tabular.fit_table
def limited(*given, **named):
    model = fit_table(*given, **named)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    return model
tabular.fit_table = limited
from rflaf.cli import main
sys.argv = ["rflaf", "fit", "t.csv", "-t", "y", "--components", "50"]
main()
"""
    status, _, err = python(code, tmp_path)
    assert status == 1
    assert err.splitlines()[-1] == "Error: 'model.skops': File too large."
    assert (tmp_path / "model.skops").read_bytes() == b"before"
    assert sorted(os.listdir(tmp_path)) == ["model.skops", "t.csv"]


# root may write everywhere, so it becomes somebody else, once all is imported and compiled: the
# interpreter's own files may be root's alone
UNWRITABLE = """
import json, os, sys
import numpy as np, pandas as pd
import rflaf, rflaf.io, rflaf.onnx, rflaf.paper.runs
from rflaf.cli import load_app
from rflaf.report import write_report
from typer.testing import CliRunner
frame = pd.read_csv("t.csv")
X, y = frame[["x", "noise"]].fillna(0.0), frame["y"]
def fit():
    return rflaf.RFLAFRegressor(10, random_state=0).fit(X, y)
def outputs(model, folder):
    return {
        "new.skops": lambda: rflaf.save(model, folder + "new.skops"),
        "model.skops": lambda: rflaf.save(model, folder + "model.skops"),
        "new.html": lambda: write_report(model, folder + "new.html", X, y),
        "new.onnx": lambda: rflaf.onnx.export(model, folder + "new.onnx"),
    }
os.mkdir("warm"); os.chmod("warm", 0o777)
for write in outputs(fit(), "warm/").values():
    write()
invoke = lambda words: CliRunner().invoke(load_app(), words.split())
assert invoke("inspect model.skops --png warm/a.png").exit_code == 0
os.chmod(".", 0o555)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
said = {}
model = fit()
for name, write in outputs(model, "").items():
    try:
        write()
    except PermissionError as error:
        said[name] = str(error)
for words in sys.argv[1:]:
    result = invoke(words)
    said[words] = [result.exit_code, result.stderr]
print(json.dumps(said), model.predict(X).shape)
"""


@posix
def test_an_unwritable_folder_is_named(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("torch")
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False)
    spec = Spec.of("protein", "rfmlp-relu", "published", 402025)
    record = {"key": spec.key, "spec": spec.to_dict(), "status": "finished", "seconds": 3.0}
    Store(tmp_path / "results").append({**record, "kind": "training", "test_loss": 0.24})
    model = rflaf.tabular.fit_table(frame, "y", n_components=10, random_state=0)
    rflaf.save(model, tmp_path / "model.skops")
    old = (tmp_path / "model.skops").read_bytes()
    early = "'{}' cannot be written to '.': no permission."  # before the work
    expected = {
        "fit t.csv -t y": early.format("model.skops"),
        "fit t.csv -t y --out warm/m.skops --report p.html": early.format("p.html"),
        "predict model.skops t.csv": early.format("predictions.csv"),
        "inspect model.skops --png a.png": early.format("a.png"),
        "compare t.csv -t y --out scores.csv": early.format("scores.csv"),
        "tables results --out a.txt": "'a.txt': Permission denied.",
        "report results --out a.html": "'a.html': Permission denied.",
        "reproduce table2 --quick --out new": "'new': Permission denied.",
        "demo": "'demo-output': Permission denied.",
    }
    os.chmod(tmp_path, 0o755)
    before = {*os.listdir(tmp_path), "warm"}
    status, out, err = python(UNWRITABLE, tmp_path, *expected)
    os.chmod(tmp_path, 0o755)
    assert status == 0, err
    said, shape = json.JSONDecoder().raw_decode(out)
    assert out[shape:].strip() == f"({len(frame)},)"
    for name in ("new.skops", "model.skops", "new.html", "new.onnx"):
        assert said.pop(name) == f"[Errno 13] Permission denied: '{name}'"
    for words, message in expected.items():
        assert said[words] == [1, f"Error: {message}\n"], words
    assert set(os.listdir(tmp_path)) == before
    assert (tmp_path / "model.skops").read_bytes() == old
