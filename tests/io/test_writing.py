"""What cannot be saved, and saving that fails."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import rflaf
from rflaf import RandomFeatures, RFLAFRegressor
from rflaf.bases import get_basis
from rflaf.io import load, save
from tests.io.conftest import regressor


class Mine(StandardScaler):
    """A type from outside."""


def test_saving_names_a_type_that_could_not_be_loaded(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be saved.*tests\.io\.test_writing\.Mine"):
        save(make_pipeline(Mine(), regressor()), tmp_path / "m")
    with pytest.raises(ValueError, match=r"cannot be saved.*system"):
        save(make_pipeline(FunctionTransformer(os.system), regressor()), tmp_path / "m")
    with pytest.raises(ValueError, match="cannot be saved"):
        save((k for k in ()), tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_keeps_the_old_file(archive, tmp_path, monkeypatch, request):
    path = tmp_path / "model.skops"
    path.write_bytes(archive)
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match=r"No space left on device: '.*/model\.skops'$"):
        save(regressor(), path)
    assert path.read_bytes() == archive
    assert os.listdir(tmp_path) == ["model.skops"]
    monkeypatch.undo()
    save(regressor(), path)
    assert isinstance(load(path), RFLAFRegressor)


class Timeout(Exception):
    """What a program's own handler of a signal raises; without a message."""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs POSIX signals")
@pytest.mark.parametrize("error", [Timeout, TimeoutError, RuntimeError, MemoryError])
def test_what_a_signal_handler_raises_is_passed_on(error, archive, tmp_path, monkeypatch):
    """It is not about the model or the file, and 'cannot be saved: ' would hide it."""

    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGALRM)

    def handler(*_):
        raise error

    path = tmp_path / "model.skops"
    path.write_bytes(archive)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        monkeypatch.setattr("skops.io.dumps", interrupted)
        with pytest.raises(error):
            save(regressor(), path)
        monkeypatch.setattr("skops.io.loads", interrupted)
        with pytest.raises(error):
            load(path)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert path.read_bytes() == archive
    assert os.listdir(tmp_path) == ["model.skops"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_killed_halfway_leaves_no_broken_file(archive, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(archive)
    code = """
import os, signal, sys
from rflaf import RFLAFRegressor
from rflaf.io import save
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
save(RFLAFRegressor(), sys.argv[1])
"""
    source = str(Path(rflaf.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "PYTHONPATH": source},
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == archive
    assert isinstance(load(path), RandomFeatures)


def test_the_file_has_the_usual_permissions(tmp_path):
    save(regressor(), tmp_path / "m")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_without_skops_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for attempt in (lambda: save(get_basis("rbf"), tmp_path / "m"), lambda: load(tmp_path / "m")):
        with pytest.raises(ImportError, match=r"pip install 'rflaf\[io\]'"):
            attempt()
