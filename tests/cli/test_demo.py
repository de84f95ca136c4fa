"""The demo, and drawings in the terminal."""

import re

import numpy as np

from rflaf.cli import demo as demo_command
from rflaf.cli.inspect import braille
from tests.cli.conftest import run


def small_demo(monkeypatch, name="tiny"):
    X, y = np.random.default_rng(0).normal(size=(2, 60, 3))[0], np.arange(60.0)
    data = demo_command.DataSet(name, "a <script>set</script>", "regression", X, y)
    monkeypatch.setattr(demo_command, "data_sets", lambda: [data])


def test_demo(here, monkeypatch):
    small_demo(monkeypatch, "a set")
    said = run("demo", "--out", "made/here").output
    assert "RBFSampler" in said
    (path,) = (here / "made" / "here").iterdir()
    assert str(path.relative_to(here)) in said
    page = path.read_text(encoding="utf-8")
    assert page.count("<script") == 1, "the page's own"
    assert "The data: a &lt;script&gt;set&lt;/script&gt;." in page
    for part in ("HistGradientBoosting", "Effect of the main columns", "Learned activation"):
        assert part in page
    assert not re.search(r'(?:src|href)="(?!#|data:,")|url\(|@import', page)  # self-contained


def test_the_demo_sets_are_what_they_say():
    airfoil, deliveries, digits = demo_command.data_sets()
    assert airfoil.X.shape == (1503, 5)
    assert airfoil.X.columns[0] == "frequency_hz"
    assert set(airfoil.X["chord_length_m"]) == {0.0254, 0.0508, 0.1016, 0.1524, 0.2286, 0.3048}
    assert round(float(airfoil.y.mean()), 3) == 124.836
    kinds = deliveries.X.dtypes.astype(str).to_list()
    assert kinds[0].startswith("datetime64")
    assert kinds[1:3] == ["category", "category"]
    assert 0.02 < deliveries.X["weight_kg"].isna().mean() < 0.2
    assert digits.X.shape == (1000, 64)


def test_all_models_take_the_frame():
    deliveries = demo_command.data_sets()[1]
    X, y = deliveries.X[:120], deliveries.y[:120]
    for name, make in demo_command.models_for(deliveries, 0).items():
        if name != demo_command.OURS:
            assert make().fit(X, y).score(X, y) > 0.5, name


def test_braille_draws_what_it_is_given():
    flat = braille([0.0, 1.0], [2.0, 2.0], width=4, height=3)
    assert flat.count("⠉⠉⠉⠉") == 1
    rising = braille([0.0, 1.0], [0.0, 1.0], width=2, height=2).splitlines()
    assert rising[0][-2] == "⠀" != rising[0][-1]
    assert rising[1][-2] != "⠀"
    assert "1 ┤" in rising[0]
