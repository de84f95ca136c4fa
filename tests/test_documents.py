"""Code in documents and examples runs, word for word."""

import doctest
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import rflaf
from rflaf.paper import Spec, Store

ROOT = Path(__file__).parent.parent
MODULES = ["rflaf", *(m.name for m in pkgutil.walk_packages(rflaf.__path__, "rflaf."))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    if name == "rflaf.nn.gpu":
        pytest.importorskip("triton", reason="needs Triton: pip install 'rflaf[triton]'")
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_example_runs(path, tmp_path):
    result = subprocess.run(
        [sys.executable, str(path), "--picture", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert (tmp_path / f"{path.stem}.png").stat().st_size > 1000
    assert (ROOT / "docs" / "images" / "examples" / f"{path.stem}.png").exists()


@pytest.mark.parametrize("document", ["README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))])  # fmt: skip  # noqa: E501
def test_python_blocks_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "document"}
    text = (ROOT / document).read_text(encoding="utf-8")
    form = r"(?:<!-- needs: ([\w ]+) -->\n)?```python\n(.*?)```"
    for needed, block in re.findall(form, text, re.DOTALL):
        if any(importlib.util.find_spec(name) is None for name in needed.split()):
            continue
        with warnings.catch_warnings():
            if needed:  # a part for one package, whose own warnings are no matter of ours
                warnings.simplefilter("ignore")
            exec(compile(block, document, "exec"), names)


TEXTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]  # fmt: skip  # noqa: E501
# what a text may name though the repository does not have it: made by a command, or an example
MADE = ("build/", "dist/", "results/records", "demo-output")
FOLDERS = ("src", "tests", "docs", "benchmarks", "tools", "examples", "results", "rflaf")


@pytest.mark.parametrize("document", TEXTS)
def test_paths_that_are_named_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = re.findall(r"`(?:python )?([\w.-]+(?:/[\w.-]+)+/?)[` ]", text)
    known = [
        name
        for name in named
        if not name.startswith(MADE)
        and (name.split("/")[0] in FOLDERS or name.endswith((".py", ".md", ".json")))
    ]
    places = ("", "src", "src/rflaf")
    missing = [name for name in known if not any((ROOT / p / name).exists() for p in places)]
    assert missing == []


@pytest.mark.parametrize("document", [*TEXTS, "benchmarks/README.md"])
def test_commands_have_the_options_that_are_named(document):
    pytest.importorskip("typer")
    from typer.main import get_command

    from rflaf.cli import load_app

    known = get_command(load_app()).commands
    text = (ROOT / document).read_text(encoding="utf-8")
    lines = re.findall(r"^\$ rflaf (.+)$", text, re.MULTILINE)
    lines += re.findall(r"`rflaf ([a-z][^`]*)`", text)
    for line in lines:
        name, *rest = line.split()
        if name.startswith("-"):
            continue
        command = known[name.strip(",.")]
        while rest and getattr(command, "commands", None):
            command = command.commands[rest.pop(0)]
        options = {"--help", *(each for p in command.params for each in p.opts + p.secondary_opts)}
        given = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        assert given <= options, (line, given - options)


def test_the_container_installs_and_runs_what_there_is():
    """As far as that can be tested without Docker."""
    text = (ROOT / "docs" / "tutorial-engineer.md").read_text(encoding="utf-8")
    docker = re.search(r"```dockerfile\n(.*?)```", text, re.DOTALL)[1]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    minor = re.search(r"FROM python:3\.(\d+)", docker)[1]
    assert f"Programming Language :: Python :: 3.{minor}" in project
    for extra in re.findall(r"/src\[(\w+)\]", docker):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)
    (module,) = re.findall(r"python -m (\S+)", docker)
    assert importlib.util.find_spec(f"{module}.__main__")
    # tests/test_warm_up.py has this variable, and a folder that cannot be written later
    assert "NUMBA_CACHE_DIR=" in docker


@pytest.mark.parametrize("document", TEXTS)
def test_names_of_the_package_that_are_named_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"`(rflaf(?:\.\w+)+)", text))):
        pkgutil.resolve_name(name)  # raises if there is no such thing


@pytest.mark.parametrize("document", TEXTS)
def test_nothing_is_said_to_be_where_it_is_not(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert "pip install rflaf" not in text
    assert "pip install 'rflaf" not in text
    assert "github.com/rflaf" not in text


@pytest.mark.parametrize("document", TEXTS)
def test_words_that_make_a_reader_stop(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    odd = (
        r"\bgaps?\b|\btold\b|\bof (?:no )?account\b|for want of|had for nothing|\banew\b|one's own"
    )
    assert re.findall(odd, text) == []


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {rflaf.__version__}\n" in citation
    assert f"\n## {rflaf.__version__} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_tables_for_documents_from_records_as_runs_write_them(tmp_path, monkeypatch):
    # an estimator beside a model that was trained: their records have different parts
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    docs_tables = importlib.import_module("docs_tables")
    monkeypatch.setattr(docs_tables, "ROOT", tmp_path)
    docs_tables.records.cache_clear()
    store = Store(tmp_path / "results")
    for model, more in (("rfmlp-relu", {}), ("estimator", {"fit_seconds": 2.0})):
        spec = Spec.of("protein", model, "corrected", 72)
        record = {"key": spec.key, "spec": spec.to_dict(), "status": "finished", "seconds": 3.0}
        store.append({**record, "test_loss": 0.2, **more})
    store.append({"key": "of another form"})
    try:
        assert "(rfmlp-relu). Estimators: estimator 0.2000 in 2 s." in (
            docs_tables.reproduction_summary()
        )
        assert "| estimator |" in docs_tables.paper_table("table1")
        assert "not run" in docs_tables.recovery()
    finally:
        docs_tables.records.cache_clear()
