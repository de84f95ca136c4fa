"""reproduce, tables and report, on records that are there."""

import pytest

from rflaf.paper import Spec, Store
from tests.cli.test_commands import run


@pytest.fixture
def results(tmp_path):
    store = Store(tmp_path / "results")
    for protocol in ("published", "corrected"):
        spec = Spec.of("protein", "rfmlp-relu", protocol, 402025)
        record = {"key": spec.key, "spec": spec.to_dict(), "status": "finished", "seconds": 3.0}
        store.append({**record, "kind": "training", "test_loss": 0.24})
    store.append({"key": "of another form"})
    return store.folder


@pytest.mark.parametrize("style", ["text", "markdown", "latex", "csv"])
def test_tables_of_a_folder_with_a_record_of_another_form(results, style):
    found = run("tables", results, "--format", style, "--tables", "1,table8")
    assert "rfmlp-relu" in found.output


def test_reproduce_shows_what_was_asked_for(results):
    found = run(
        "reproduce", "table1", "--datasets", "protein", "--models", "rfmlp-relu", "--seeds", "1",
        "--out", results,
    )  # fmt: skip
    assert "0.2400" in found.output
    assert "mnist" not in found.output  # of which nothing was asked
    assert "rflaf-rbf-16" not in found.output


def test_report(results, tmp_path):
    run("report", results, "-o", tmp_path / "page.html")
    assert "of another form" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("reproduce", "table11"), "There is no 'table11'"),
        (("reproduce", "table1", "--datasets", "protien"), "protien"),
        (("reproduce", "table1", "--models", "rflaf-rbf"), "rflaf-rbf"),
        (("tables", "nowhere"), "There are no records of `rflaf reproduce` in 'nowhere'"),
        (("report", "nowhere"), "There are no records of `rflaf reproduce` in 'nowhere'"),
    ],
)
def test_errors_have_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(*words, code=1)
    assert message in found.stderr
    assert found.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_quick_runs_print_their_table_marked_as_quick(tmp_path):
    store = Store(tmp_path / "results")
    spec = Spec.of("protein", "rfmlp-relu", "published", 402025).quick()
    record = {"key": spec.key, "spec": spec.to_dict(), "status": "finished", "seconds": 3.0}
    store.append({**record, "kind": "training", "test_loss": 0.75})
    found = run(
        "reproduce", "table1", "--datasets", "protein", "--models", "rfmlp-relu", "--quick",
        "--protocol", "published", "--out", store.folder,
    )  # fmt: skip
    assert "QUICK RUN, figures mean nothing" in found.stdout
    assert "0.7500" in found.stdout
    found = run("tables", store.folder, "--tables", "table1")
    assert "0.7500" not in found.stdout
    assert "1 records of --quick runs" in " ".join(found.stderr.split())


def test_missing_data_is_an_error_that_says_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("RFLAF_DATA", str(tmp_path / "data"))

    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    words = ("--models", "rfmlp-relu", "--quick", "--out", tmp_path / "results")
    found = run("reproduce", "table1", "--datasets", "protein", *words, code=1)
    assert "Data not available" in found.stderr
    assert str(tmp_path / "data") in found.stderr
