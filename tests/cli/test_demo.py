"""The demo, and drawings in the terminal."""

import re

import numpy as np

from rflaf.cli import demo as demo_command
from rflaf.cli.plot import braille
from tests.cli.conftest import run


def small_demo(monkeypatch, name="tiny"):
    X, y = np.random.default_rng(0).normal(size=(2, 60, 3))[0], np.arange(60.0)
    data = demo_command.DataSet(name, "a <script>set</script>", "regression", X, y)
    monkeypatch.setattr(demo_command, "data_sets", lambda: [data])
    monkeypatch.setattr(demo_command, "COMPONENTS", 20)


def test_demo(here, monkeypatch):
    small_demo(monkeypatch, "<script>alert(1)</script>\"'")
    said = run("demo", "--out", "made/here").output
    assert "RBFSampler" in said
    (path,) = (here / "made" / "here").iterdir()
    assert str(path.relative_to(here)) in said
    page = path.read_text(encoding="utf-8")
    assert page.count("<script") == 1, "the page's own"
    assert "&lt;script&gt;alert(1)" in page
    assert "The data: a &lt;script&gt;set&lt;/script&gt;." in page
    for part in ("fixed tanh", "Effect of the main columns", "Learned activation"):
        assert part in page
    assert not re.search(r'(?:src|href)="(?!#|data:,")|url\(|@import', page)  # self-contained


def test_the_demo_sets_are_what_they_say():
    assert [(d.name, len(d.X), d.task) for d in demo_command.data_sets()] == [
        ("diabetes", 442, "regression"),
        ("digits", 1797, "classification"),
        ("friedman1", 1000, "regression"),
    ]
    names = list(demo_command.data_sets()[0].X)
    assert names[:3] == ["age", "sex", "body mass index"]
    assert all(len(name) > 2 for name in names), "no s1 to s6"


def test_braille_draws_what_it_is_given():
    flat = braille([0.0, 1.0], [2.0, 2.0], width=4, height=3)
    assert flat.count("⠉⠉⠉⠉") == 1
    rising = braille([0.0, 1.0], [0.0, 1.0], width=2, height=2).splitlines()
    assert rising[0][-2] == "⠀" != rising[0][-1]
    assert rising[1][-2] != "⠀"
    assert "1 ┤" in rising[0]
