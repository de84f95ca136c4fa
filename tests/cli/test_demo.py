"""The demo, and drawings in the terminal."""

import re

import numpy as np
import pandas as pd

from rflaf.cli import demo as demo_command
from rflaf.cli.plot import braille
from tests.cli.conftest import run


def small_demo(monkeypatch, name="tiny"):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    frame["target"] = np.arange(60.0)
    data = demo_command.DataSet(name, "a <script>set</script>", "regression", frame, "target")
    monkeypatch.setattr(demo_command, "data_sets", lambda: [data])


def test_demo(here, monkeypatch):
    small_demo(monkeypatch, "a set")
    said = run("demo", "--out", "made/here").output
    assert "random features, tanh" in said
    (path,) = (here / "made" / "here").iterdir()
    assert str(path.relative_to(here)) in said
    page = path.read_text(encoding="utf-8")
    assert page.count("<script") == 1, "the page's own"
    assert "The data: a &lt;script&gt;set&lt;/script&gt;." in page
    for part in ("gradient boosting", "Effect of the main columns", "Learned activation"):
        assert part in page
    assert not re.search(r'(?:src|href)="(?!#|data:,")|url\(|@import', page)  # self-contained


def test_the_demo_sets_are_what_they_say():
    airfoil, deliveries, digits = demo_command.data_sets()
    assert airfoil.table.shape == (1503, 6)
    assert airfoil.table.columns[0] == "frequency_hz"
    assert set(airfoil.table["chord_length_m"]) == {0.0254, 0.0508, 0.1016, 0.1524, 0.2286, 0.3048}
    assert round(float(airfoil.table[airfoil.target].mean()), 3) == 124.836
    kinds = deliveries.table.dtypes.astype(str).to_list()
    assert kinds[0].startswith("datetime64")
    assert kinds[1:3] == ["category", "category"]
    assert 0.02 < deliveries.table["weight_kg"].isna().mean() < 0.2
    assert digits.table.shape == (1797, 65)


def test_braille_draws_what_it_is_given():
    flat = braille([0.0, 1.0], [2.0, 2.0], width=4, height=3)
    assert flat.count("⠉⠉⠉⠉") == 1
    rising = braille([0.0, 1.0], [0.0, 1.0], width=2, height=2).splitlines()
    assert rising[0][-2] == "⠀" != rising[0][-1]
    assert rising[1][-2] != "⠀"
    assert "1 ┤" in rising[0]
