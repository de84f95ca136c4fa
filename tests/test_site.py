"""The tools that build and check the documents: what they must not let pass."""

import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture
def check_site(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("check_site")


@pytest.fixture
def docs_reference(monkeypatch):
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("docs_reference")


def write(folder, **pages):
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<html><body>{body}</body></html>")


def test_whole_links_pass(check_site, tmp_path):
    write(tmp_path, a='<a href="b.html#there">b</a> <a href="https://x.org">x</a>',
          b='<h2 id="there">b</h2> <a href="#there">up</a>')  # fmt: skip
    assert check_site.check(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">x</a>', "gone.html leads nowhere"),
        ('<a href="#gone">x</a>', "#gone: the page has no such heading"),
        ('<img src="gone.png">', "gone.png leads nowhere"),
        ('<script src="https://cdn.org/x.js"></script>', "loads https://cdn.org/x.js"),
        ('<link rel="stylesheet" href="//fonts.org/x.css">', "loads //fonts.org/x.css"),
    ],
)
def test_what_is_found(body, problem, check_site, tmp_path):
    write(tmp_path, a=body)
    (found,) = check_site.check(tmp_path)
    assert problem in found


def test_styles_that_load_fonts_are_found(check_site, tmp_path):
    (tmp_path / "x.css").write_text("@font-face { src: url(https://fonts.org/x.woff) }")
    assert check_site.check(tmp_path) == ["x.css loads something from the network"]


def test_every_public_name_is_explained(docs_reference):
    assert docs_reference.undocumented(docs_reference.load_package()) == []


def test_names_that_are_not_explained_are_found(docs_reference, tmp_path, monkeypatch):
    griffe = pytest.importorskip("griffe")
    part = tmp_path / "rflaf" / "part"
    part.mkdir(parents=True)
    (tmp_path / "rflaf" / "__init__.py").write_text("")
    (part / "__init__.py").write_text(
        '__all__ = ["Kind", "bare", "partly"]\n'
        "def bare(): pass\n"
        'def partly(told, untold):\n    """Uses `told`."""\n'
        'class Kind:\n    """A kind."""\n    def method(self): pass\n    def _own(self): pass\n'
    )
    monkeypatch.setattr(docs_reference, "MODULES", {"part": "Part"})
    package = griffe.load("rflaf", search_paths=[tmp_path], docstring_parser="numpy")
    assert docs_reference.undocumented(package) == [
        "rflaf.part.Kind.method has no docstring",
        "rflaf.part.bare has no docstring",
        "rflaf.part.partly does not explain untold",
    ]


def test_tables_say_when_the_measured_code_has_changed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    tables = importlib.import_module("docs_tables")
    measured = importlib.import_module("measured")
    source = tmp_path / "src"
    (source / "theory").mkdir(parents=True)
    for path in ("bases.py", "kernels.py", "theory/a.py"):
        (source / path).write_text("def f(x):\n    return x\n")
    monkeypatch.setattr(measured, "SOURCE", source)
    monkeypatch.setitem(measured.PARTS, "theory", ("bases.py", "kernels.py", "theory"))
    machine = {"cores": 2, "processor": "P", "rflaf": "1.0", "date": "2026-01-01"}
    row = {"commit": "abc1234", "code": measured.code("theory")}
    monkeypatch.setattr(tables, "load", lambda name: {"machine": machine, "rows": [row]})
    note = "Measured 2026-01-01 with rflaf 1.0 (commit abc1234) on 2 cores of P."
    for body, changed in (
        ('def f(x):\n    """The same."""\n    return x  # as before\n', False),
        ("def f(x):\n    return x + 1\n", True),
    ):
        (source / "theory" / "a.py").write_text(body)
        measured._part.cache_clear()
        said = tables.measured_on("theory")
        assert said == note + " The code that it measures has changed since." * changed
    measured._part.cache_clear()


def test_rows_that_are_kept_keep_their_version(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    measured = importlib.import_module("measured")
    last = {"cores": 2, "processor": "P", "rflaf": "1.1", "date": "2026-01-03"}
    old = {"date": "2026-01-01", "rflaf": "1.0", "processor": "P", "cores": 2}
    unknown, new = {"date": "2026-01-02"}, {"commit": "abc1234"}

    def said(*rows):
        return measured.when_and_where(measured.stamped({"machine": last, "rows": rows}))

    now = "2026-01-03 with rflaf 1.1 (commit abc1234) on 2 cores of P"
    assert said(new, old) == f"2026-01-01 with rflaf 1.0 and {now}"
    assert said(new, unknown) == f"2026-01-02; {now}"
    assert said(new, {**old, "cores": 4}) == f"2026-01-01 with rflaf 1.0 on 4 cores of P; {now}"


def test_relative_losses_have_no_floor(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    tables = importlib.import_module("standings")
    losses = {"rflaf": (3e-6, 0.2), "lightgbm": (1e-6, 0.4)}
    rows = {
        (f"clf/{name}", model): {"model": model, "loss": loss, "seconds": 1.0, "rows": 100}
        for model, each in losses.items()
        for name, loss in zip("ab", each)
    }
    monkeypatch.setattr(tables, "measured", lambda: rows)
    found = {each.model: each.over_best for each in tables.standings(classes=True)}
    assert found == pytest.approx({"rflaf": 3**0.5, "lightgbm": 2**0.5})
    assert [each.over_best for each in tables.standings(classes=True, without="clf/a")] == [1, 2]
    assert [line[-1] for line in tables.by_table()[1]] == ["0.50", "3.00"]
