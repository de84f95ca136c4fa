"""A bar or lines, on stderr, with the losses and the time left."""

import sys

import pytest

from rflaf.runtime.progress import Progress


def steps(total, **options):
    with Progress("learning", total, **options) as progress:
        for k in range(total - options.get("done", 0)):
            progress.step({"loss": 1 / (k + 1), "test_loss": None, "seconds": 3.0})


def test_silent_unless_asked(capsys):
    steps(3, verbose=0)
    assert capsys.readouterr() == ("", "")


def test_bar(capsys):
    pytest.importorskip("tqdm")
    steps(3, verbose=1)
    shown = capsys.readouterr().err
    assert "learning" in shown
    assert "3/3" in shown
    assert "held_out_loss=0.333" in shown
    assert "seconds" not in shown


def test_lines_without_tqdm(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    steps(105, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 21
    assert lines[0].startswith("learning: 5/105, held out loss 0.2, 0 s so far, about ")
    assert lines[-1].endswith("about 0 s left")


def test_goes_on_from_what_was_done(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    steps(5, verbose=1, done=3)
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith("4/5, held out loss 1, 10 s so far, about 10 s left")
    assert last.startswith("learning: 5/5")
