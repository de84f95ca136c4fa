"""Records survive crashes, and several writers."""

import json
import multiprocessing
import os
import signal
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.paper.records import Store, compact


def record(key, **more):
    return {"key": key, "spec": {}, **more}


def test_what_is_written_is_read(tmp_path):
    store = Store(tmp_path / "new" / "folder")
    assert store.read() == []
    store.append(record("a", loss=0.25))
    store.append(record("b", loss=None))
    assert [r["key"] for r in store.read()] == ["a", "b"]
    assert store.keys() == {"a", "b"}


def test_of_equal_keys_the_last_counts(tmp_path):
    store = Store(tmp_path)
    store.append(record("a", loss=1.0))
    store.append(record("a", loss=2.0))
    assert [r["loss"] for r in store.read()] == [2.0]


def test_a_cut_last_line_is_dropped_with_a_warning_and_the_rest_stays(tmp_path):
    store = Store(tmp_path)
    store.append(record("a"))
    store.append(record("b"))
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:-5])
    with pytest.warns(UserWarning, match="line 2"):
        assert [r["key"] for r in store.read()] == ["a"]
    with pytest.warns(UserWarning, match="incomplete"):
        store.append(record("c"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [r["key"] for r in store.read()] == ["a", "c"]


def test_a_line_that_lacks_only_its_end_is_kept(tmp_path):
    store = Store(tmp_path)
    store.append(record("a"))
    store.path.write_bytes(store.path.read_bytes()[:-1])
    store.append(record("b"))
    assert [r["key"] for r in store.read()] == ["a", "b"]


@given(st.integers(0, 200), st.binary(max_size=20))
@settings(max_examples=60, deadline=None)
def test_no_cut_and_no_rubbish_loses_whole_lines(tmp_path_factory, cut, rubbish):
    store = Store(tmp_path_factory.mktemp("store"))
    store.append(record("first"))
    first = store.path.read_bytes()
    store.append(record("second", text="x" * 100))
    rest = store.path.read_bytes()[len(first) :]
    store.path.write_bytes(first + rest[:cut] + rubbish)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store.append(record("third"))
        found = [r["key"] for r in store.read()]
    assert found[0] == "first"
    assert found[-1] == "third"


def test_numbers_are_short_and_json_is_strict(tmp_path):
    store = Store(tmp_path)
    store.append(record("a", loss=1 / 3, bad=float("nan"), worse=[float("inf")]))
    line = store.path.read_text(encoding="utf-8")
    assert "0.333333" in line
    assert "0.3333333" not in line
    found = json.loads(line, parse_constant=pytest.fail)
    assert found["bad"] is None
    assert found["worse"] == [None]
    assert compact({"a": (1, True, "x")}) == {"a": [1, True, "x"]}


def write_many(folder, name):
    for k in range(25):
        Store(folder).append(record(f"{name}{k}", text="y" * 3000))


def test_two_processes_share_a_folder(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(tmp_path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert Store(tmp_path).keys() == {f"{name}{k}" for name in "ab" for k in range(25)}


def hold(folder, ready):
    with Store(folder).claim("run") as mine:
        assert mine
        ready.set()
        signal.pause()


def test_a_claim_keeps_others_off_and_ends_with_the_process(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=hold, args=(tmp_path, ready))
    holder.start()
    assert ready.wait(60)
    store = Store(tmp_path)
    with store.claim("run") as mine:
        assert not mine
    with store.claim("other run") as mine:
        assert mine
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with store.claim("run") as mine:
        assert mine


def test_what_is_there_is_not_to_be_claimed(tmp_path):
    store = Store(tmp_path)
    store.append(record("run"))
    with store.claim("run") as mine:
        assert not mine
