"""The cache of parsed arrays: used, renewed, shared, and never in the way."""

import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

from rflaf.datasets import cache, load, loading
from rflaf.datasets.catalogue import ENTRIES
from tests.datasets import conftest as make


@pytest.fixture
def protein(data_folder, monkeypatch):
    """The file of a small protein set, and how often it was parsed."""
    make.write(data_folder, make.tables())
    entry, parsed = ENTRIES["protein"], []

    def read(files):
        parsed.append(files)
        return entry.read(files)

    monkeypatch.setitem(loading.ENTRIES, "protein", replace(entry, read=read))
    return data_folder / "protein" / "CASP.csv", parsed


def same(a, b):
    return np.array_equal(a.X, b.X) and np.array_equal(a.y, b.y)


def arrays(tmp_path):
    return sorted((tmp_path / "cache" / "parsed" / "protein").glob("*/X.npy"))


def test_second_load_parses_nothing(protein, tmp_path):
    _, parsed = protein
    first = load("protein")
    assert same(first, load("protein"))
    assert len(parsed) == 1
    assert len(arrays(tmp_path)) == 1


def test_nothing_is_written_beside_the_data(protein, data_folder):
    before = {p: p.stat().st_mtime_ns for p in data_folder.rglob("*")}
    load("protein")
    assert {p: p.stat().st_mtime_ns for p in data_folder.rglob("*")} == before


def test_changed_source_is_parsed_again(protein):
    path, parsed = protein
    first = load("protein")
    path.write_bytes(make.tables(30)["protein/CASP.csv"])
    second = load("protein")
    assert len(second.X) == 30 != len(first.X)
    assert len(parsed) == 2


@pytest.mark.parametrize("damage", ["cut", "text", "gone", "optional gone", "contents"])
def test_damaged_cache_is_renewed(protein, tmp_path, damage):
    _, parsed = protein
    first = load("protein")
    (path,) = arrays(tmp_path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "text":
        path.write_text("not an array")
    elif damage == "gone":
        path.unlink()
    elif damage == "optional gone":
        path.with_name("is_number.npy").unlink()
    else:
        path.with_name("contents.json").write_text("{")
    again = load("protein")
    assert same(first, again)
    assert np.array_equal(first.is_number, again.is_number)
    assert len(parsed) == 2
    assert same(first, load("protein"))
    assert len(parsed) == 2


def test_unwritable_cache_is_no_error(protein, tmp_path, monkeypatch):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("RFLAF_CACHE", str(tmp_path / "a file" / "below"))
    _, parsed = protein
    assert same(load("protein"), load("protein"))
    assert len(parsed) == 2


def test_many_at_once(protein, tmp_path):
    results = []
    threads = [threading.Thread(target=lambda: results.append(load("protein"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(same(results[0], other) for other in results)
    assert len(arrays(tmp_path)) == 1
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_reading_leaves_the_filters_of_warnings_alone(protein, monkeypatch):
    """They are of the whole process: threads that change them together make warnings errors."""
    loadtxt, before, seen = np.loadtxt, list(warnings.filters), []

    def watched(*given, **named):
        seen.append(warnings.filters == before)
        return loadtxt(*given, **named)

    monkeypatch.setattr(np, "loadtxt", watched)
    load("protein")
    assert seen == [True]


def test_late_reader_does_not_delete_what_another_has_written(protein, tmp_path, monkeypatch):
    """The folder appears after one has looked for it, and before it is done with not finding it."""
    read_text = cache.Path.read_text

    def after_another(path, *given, **named):
        if path.name != "contents.json" or path.exists():
            return read_text(path, *given, **named)
        monkeypatch.setattr(cache.Path, "read_text", read_text)
        load("protein")
        raise FileNotFoundError

    monkeypatch.setattr(cache.Path, "read_text", after_another)
    load("protein")
    assert len(arrays(tmp_path)) == 1
    assert len(protein[1]) == 2
    load("protein")
    assert len(protein[1]) == 2


def test_arrays_are_not_kept_twice(data_folder, tmp_path):
    make.write(data_folder, {f"cifar10/{k}": v for k, v in make.cifar_batches().items()})
    load("cifar10")
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_cache_folder_is_where_pooch_has_it(monkeypatch):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("RFLAF_CACHE", raising=False)
    assert str(cache.cache_folder()) == str(pooch.os_cache("rflaf"))
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
        assert str(cache.cache_folder()) == "/somewhere/rflaf"
