"""Model files written with bad intent: refused with little work and little memory."""

import io
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import rflaf
from rflaf import RandomFeatures, RFLAFRegressor
from rflaf import archive as archive_checks
from rflaf import io as model_io
from rflaf.archive import check_archive, stored
from rflaf.io import load, save

skops_io = pytest.importorskip("skops.io")

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "model.skops"
    x = np.random.default_rng(5).standard_normal((20, 4))
    save(RandomFeatures(5, random_state=0).fit(x), path)
    return path.read_bytes()


def zipped(entries, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:
        for name, content in entries.items():
            new.writestr(name, content, method)
    return buffer.getvalue()


def entries_of(archive):
    with zipfile.ZipFile(io.BytesIO(archive)) as old:
        return {name: old.read(name) for name in old.namelist()}


def signed(entries, method=zipfile.ZIP_STORED):
    return model_io._signed(zipped(entries, method))


def node(loader, content, number=None, kind="builtins.list", **more):
    module, _, name = kind.rpartition(".")
    found = {"__class__": name, "__module__": module, "__loader__": loader, "content": content}
    return {**found, **({} if number is None else {"__id__": number}), **more}


def described(schema, entries=(), method=zipfile.ZIP_STORED):
    schema = {**schema, "protocol": skops_io._protocol.PROTOCOL, "_skops_version": "0.13"}
    return signed({**dict(entries), "schema.json": json.dumps(schema)}, method)


class TooMuchWork(BaseException):
    pass


def refused(content, tmp_path, message, most_bytes=50 * MEGABYTE):
    """Refused with a message, with work and memory in proportion to the file."""
    path = tmp_path / "bad.skops"
    path.write_bytes(content)
    calls, most_calls = 0, 10_000 + len(content)  # of functions: what takes for ever makes more

    def count(_frame, _event, _argument):
        nonlocal calls
        calls += 1
        if calls > 2 * most_calls:  # a call and a return each
            raise TooMuchWork

    before = sys.getprofile()
    tracemalloc.start()
    sys.setprofile(count)
    try:
        with pytest.raises(ValueError, match=r"bad\.skops") as caught:
            load(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        sys.setprofile(before)
        tracemalloc.stop()
    assert message in str(caught.value)
    assert most < most_bytes + 3 * len(content)


def number_node(number):
    return node("JsonNode", "1", number, kind="builtins.str")


@pytest.mark.parametrize("whole", [False, True], ids=["by number alone", "with a type"])
def test_lists_of_one_another(whole, tmp_path):
    """skops' audit visits ten to the twelfth of them, in a file of some kilobytes."""
    inner = number_node(1)
    for depth in range(2, 14):
        same = node("ListNode", [], depth - 1) if whole else {"__id__": depth - 1}
        inner = node("ListNode", [inner, *([same] * 9)], depth)
    content = described(inner)
    assert len(content) < 20_000
    refused(content, tmp_path, "different objects with the number" if whole else "without a type")


def test_an_object_that_contains_itself(tmp_path):
    inside = node("ListNode", [], 7)
    refused(described(node("ListNode", [inside, inside], 7)), tmp_path, "different objects")


def test_a_reference_to_an_object(tmp_path):
    cached = node("CachedNode", [], 7)
    refused(described(node("ListNode", [number_node(7), cached], 8)), tmp_path, "CachedNode")


def test_a_description_that_unpacks_to_gigabytes(archive, tmp_path):
    blanks = {**entries_of(archive), "schema.json": b" " * (64 * MEGABYTE)}
    content = signed(blanks, zipfile.ZIP_DEFLATED)
    assert len(content) < MEGABYTE
    refused(content, tmp_path, "compressed, which 'save' never does", 2 * MEGABYTE)


def test_an_entry_that_is_called_stored_but_is_larger(archive, tmp_path):
    """The sizes in the directory are made a gigabyte, for all entries."""
    data = bytearray(zipped(entries_of(archive)))
    place = data.find(b"PK\1\2")
    while place >= 0:
        struct.pack_into("<II", data, place + 20, 1 << 30, 1 << 30)
        place = data.find(b"PK\1\2", place + 1)
    refused(model_io._signed(bytes(data)), tmp_path, "larger than the file", 2 * MEGABYTE)


def test_an_entry_that_is_called_encrypted(archive, tmp_path):
    """zipfile raises RuntimeError for one, as signal handlers may, whose errors are passed on."""
    data = bytearray(zipped(entries_of(archive)))
    data[data.find(b"PK\1\2") + 8] |= 1
    refused(model_io._signed(bytes(data)), tmp_path, "is encrypted, which 'save' never does")


def test_an_entry_twice(archive, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:
        new.writestr("schema.json", entries_of(archive)["schema.json"])
        with pytest.warns(UserWarning, match="Duplicate"):
            new.writestr("schema.json", b"{}")
    refused(model_io._signed(buffer.getvalue()), tmp_path, "two entries")


def array_file(shape, dtype="<f8", data=b""):
    held = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(held, header)
    return held.getvalue() + data


@pytest.mark.parametrize(
    "content",
    [
        array_file((1 << 40,)),
        array_file((1 << 20, 1 << 20, 1 << 30)),
        array_file((3,), data=b"12345678"),
        array_file((-3,), data=b""),
        array_file((1 << 40,), "|V0"),
        array_file((1,), "|O", b"12345678"),
    ],
    ids=["large", "larger than 64 bits", "short", "negative", "of nothing", "objects"],
)
def test_arrays_that_are_not_what_their_headers_say(content, archive, tmp_path):
    entries = entries_of(archive)
    name = next(name for name in entries if name.endswith(".npy"))
    refused(signed({**entries, name: content}), tmp_path, name, MEGABYTE)


def test_one_array_for_many_objects(archive, tmp_path):
    """Each would hold a copy of its own."""
    big = array_file((MEGABYTE,), "|u1", b"\0" * MEGABYTE)
    arrays = [
        node("NdArrayNode", [], k, kind="numpy.ndarray", type="numpy", file="a.npy")
        for k in range(2, 200)
    ]
    content = described(node("ListNode", arrays, 1), {"a.npy": big})
    refused(content, tmp_path, "the same arrays many times", 8 * MEGABYTE)


def test_too_many_objects(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_checks, "MOST_NODES", 5000)
    many = [{"__class__": "a", "__module__": "b", "__loader__": "ListNode"}] * 5001
    schema = json.dumps({**node("ListNode", many, 1), "protocol": 2})
    refused(signed({"schema.json": schema}), tmp_path, "more than 5000 objects", 15 * MEGABYTE)


def test_objects_in_objects(tmp_path):
    inner = number_node(1)
    for depth in range(2, 200):
        inner = node("ListNode", [inner], depth)
    refused(described(inner), tmp_path, "deep")
    refused(signed({"schema.json": "[" * 100_000}), tmp_path, "cannot be read")


@pytest.mark.parametrize("loader", ["ConstructorFromReduceNode", "NdArrayNode", "ListNode"])
def test_the_constructors_of_parts_are_not_called(loader, tmp_path):
    """RBF(10**10) would have centres of 80 GB."""
    count = node("JsonNode", "10000000000", 2, kind="builtins.str")
    content = node("TupleNode", [count], 3, kind="builtins.tuple")
    content = described(node(loader, content, 1, kind="rflaf.bases.rbf.RBF"))
    refused(content, tmp_path, "constructor")


def test_a_sparse_matrix_is_a_zip_itself_and_is_refused(tmp_path):
    """It might unpack to gigabytes; no model of ours has one."""
    inner = zipped({"data.npy": b"\0" * (64 * MEGABYTE)}, zipfile.ZIP_DEFLATED)
    kind = "scipy.sparse._base.spmatrix"
    matrix = node("SparseMatrixNode", [], 2, kind=kind, type="scipy", file="s.npy")
    content = described(node("ListNode", [matrix], 1), {"s.npy": inner})
    refused(content, tmp_path, "magic string", 2 * MEGABYTE)
    refused(described(node("ListNode", [matrix], 1)), tmp_path, "SparseMatrixNode")


# ---- what is not a model of ours


@pytest.mark.parametrize(
    "thing", [[1, 2], {"a": np.ones(2)}, StandardScaler(), np.ones(3), "text", None], ids=repr
)
def test_anything_but_a_model_is_refused(thing, tmp_path):
    refused(model_io._signed(stored(skops_io.dumps(thing))), tmp_path, "of rflaf")
    with pytest.raises(ValueError, match=r"The 'model' must be an estimator.* instead"):
        save(thing, tmp_path / "m")


def test_a_list_of_models_is_refused(tmp_path):
    content = model_io._signed(stored(skops_io.dumps([RFLAFRegressor()])))
    refused(content, tmp_path, "It has a list instead")
    with pytest.raises(ValueError, match="Got a list instead"):
        save([RFLAFRegressor()], tmp_path / "m")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX pipes")
def test_what_is_not_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a file"):
        load(tmp_path / "pipe")


# ---- mutations


def mutated(archive, rng):
    """The archive with some change, and a digest that fits in half of the cases."""
    kind = rng.integers(6)
    data = bytearray(archive)
    if kind == 0:  # bytes of the whole file
        for place in rng.integers(len(data), size=rng.integers(1, 20)):
            data[place] = rng.integers(256)
    elif kind == 1:  # cut, or a piece twice
        a, b = sorted(rng.integers(len(data), size=2).tolist())
        data = data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:]
    entries = entries_of(archive)
    if kind in (2, 3):  # bytes of the description or of an array, in a whole zip
        names = [n for n in entries if n.endswith(".json" if kind == 2 else ".npy")]
        name = names[rng.integers(len(names))]
        inner = bytearray(entries[name])
        for place in rng.integers(len(inner), size=rng.integers(1, 8)):
            inner[place] = rng.integers(32, 127) if kind == 2 else rng.integers(256)
        entries[name] = bytes(inner)
        return signed(entries)
    if kind >= 4:  # parts of the description in one another's places
        schema = json.loads(entries["schema.json"])
        for _ in range(rng.integers(1, 4)):
            exchange(schema, rng)
        return signed({**entries, "schema.json": json.dumps(schema)})
    return model_io._signed(bytes(data)) if rng.random() < 0.5 else bytes(data)


def exchange(schema, rng):
    """One value of the description gets the value of another, or something odd."""
    places = []

    def walk(value):
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    walk(schema)
    holder, key = places[rng.integers(len(places))]
    odd = [None, True, -1, 10**30, 1e308, "", "\0", [], {}, "numpy.ndarray", {"__id__": 1}]
    other, its_key = places[rng.integers(len(places))]
    value = odd[rng.integers(len(odd))] if rng.random() < 0.3 else other[its_key]
    holder[key] = json.loads(json.dumps(value))


FUZZ = """
import resource, signal, sys, time, warnings
import numpy as np
sys.path.insert(0, sys.argv[1])
from tests.test_archive import mutated
from rflaf import RandomFeatures
from rflaf.io import load
warnings.simplefilter("ignore")
archive, path = open(sys.argv[2], "rb").read(), sys.argv[2] + ".bad"
x = np.random.default_rng(0).standard_normal((3, 4))
load(sys.argv[2]).transform(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts, longest = {"refused": 0, "loaded": 0}, 0.0
for seed in range(int(sys.argv[3]), int(sys.argv[4])):
    with open(path, "wb") as file:
        file.write(mutated(archive, np.random.default_rng(seed)))
    signal.alarm(600)  # ends a process that hangs
    start = time.perf_counter()
    try:
        model = load(path)
    except ValueError:
        counts["refused"] += 1
    else:
        assert isinstance(model, RandomFeatures), (seed, type(model))
        counts["loaded"] += 1
    longest = max(longest, time.perf_counter() - start)
    signal.alarm(0)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(counts["refused"], counts["loaded"], longest, grown // 1024)
"""


def fuzz(archive, tmp_path, first, last):
    """Load mutations in a process of their own, so that a hang or a crash is seen as one."""
    path = tmp_path / "model.skops"
    path.write_bytes(archive)
    source = Path(rflaf.__file__).parent.parent
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            FUZZ,
            str(Path(__file__).parents[1]),
            str(path),
            f"{first}",
            f"{last}",
        ],
        env={**os.environ, "PYTHONPATH": str(source)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    refused_, loaded, _, grown = done.stdout.split()
    assert int(refused_) + int(loaded) == last - first
    assert int(refused_) > 0.3 * (last - first)  # the mutations are not all harmless
    assert int(grown) < 200  # MB
    assert sorted(os.listdir(tmp_path)) == ["model.skops", "model.skops.bad"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX limits")
def test_some_mutations(archive, tmp_path):
    fuzz(archive, tmp_path, 0, 150)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX limits")
def test_two_thousand_mutations(archive, tmp_path):
    fuzz(archive, tmp_path, 0, 2000)


def test_every_archive_of_ours_passes(archive):
    """Without the comment, as `load` looks at it."""
    found = check_archive(model_io._unsigned(Path("m"), archive)[0])
    assert "rflaf.estimators.features.RandomFeatures" in found.types
    assert "rflaf.activation.Activation" in found.called
