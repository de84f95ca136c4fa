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
