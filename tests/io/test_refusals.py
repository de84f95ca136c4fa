"""Damaged and foreign files are refused, with a message, and run nothing."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from skops import io as skops_io

import rflaf
from rflaf import RandomFeatures
from rflaf import io as model_io
from rflaf.io import load
from tests.io.conftest import call, data, rewritten


def refused(path, content, *messages):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.skops") as caught:
        load(path)
    for message in messages:
        assert message in str(caught.value)


def test_truncated_anywhere(archive, tmp_path):
    for length in (0, 1, 2, 30, len(archive) // 2, len(archive) - 60, len(archive) - 1):
        refused(tmp_path / "bad.skops", archive[:length], "not an rflaf model file")


def test_any_changed_byte_is_found(archive, tmp_path):
    for position in range(0, len(archive), len(archive) // 60):
        changed = bytearray(archive)
        changed[position] ^= 1
        refused(tmp_path / "bad.skops", bytes(changed))


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"rflaf model", pickle.dumps([1, 2]), b"\0" * 1000, b"PK\5\6" + b"\0" * 18],
    ids=repr,
)
def test_foreign_files(content, tmp_path):
    refused(tmp_path / "bad.skops", content, "not an rflaf model file")


def test_a_skops_file_of_somebody_else(tmp_path):
    skops_io.dump(StandardScaler(), tmp_path / "bad.skops")
    refused(
        tmp_path / "bad.skops", (tmp_path / "bad.skops").read_bytes(), "not an rflaf model file"
    )


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("format=1 version=0.1.3", "Fit the model again"),
        ("format=99 version=9.8.7", "Install rflaf 9.8.7 or later"),
    ],
)
def test_another_format_names_both_versions_and_says_what_to_do(header, advice, archive, tmp_path):
    now = f" format={model_io._FORMAT} version={rflaf.__version__} "
    assert now.encode() in archive
    other = archive.replace(now.encode(), f" {header} ".encode())
    number, version = (word.partition("=")[2] for word in header.split())
    wrote = f"written by rflaf {version} in format {number}"
    reads = f"This is rflaf {rflaf.__version__}, which reads format {model_io._FORMAT}"
    refused(tmp_path / "bad.skops", other, wrote, reads, advice)


def test_the_rewriting_of_these_tests_works(archive, tmp_path):
    (tmp_path / "good.skops").write_bytes(rewritten(archive, lambda schema: None))
    assert isinstance(load(tmp_path / "good.skops"), RandomFeatures)


def test_a_zip_that_was_edited(archive, tmp_path):
    """As by a zip program: consistent in itself, but not what was written."""
    buffer = io.BytesIO(archive)
    with zipfile.ZipFile(buffer, "a") as zipped:
        zipped.writestr("more", b"1")
    refused(tmp_path / "bad.skops", buffer.getvalue(), "digest does not match")


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.clear(),
        lambda s: s.update(protocol=10**6),
        lambda s: s.update(content={}),
        lambda s: s.update(__loader__="NoSuchNode"),
        lambda s: s["content"]["content"].pop("mean_"),
        lambda s: s["content"]["content"]["mean_"].update(file="nowhere.npy"),
        lambda s: s["content"]["content"]["activation_"]["content"].update(content=[]),
    ],
    ids=["empty", "protocol", "no content", "loader", "no mean", "no array", "activation"],
)
def test_broken_descriptions(archive, tmp_path, change, request):
    if request.node.callspec.id == "no mean":  # whole, but not usable: it must not predict
        (tmp_path / "m").write_bytes(rewritten(archive, change))
        with pytest.raises((ValueError, AttributeError)):
            load(tmp_path / "m").transform(data()[0])
        return
    refused(
        tmp_path / "bad.skops", rewritten(archive, change), f"written by rflaf {rflaf.__version__}"
    )


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("subprocess", "Popen"),
        ("sklearn.utils._testing", "check_output"),  # the same, by a trusted package's name
        ("rflaf.io", "Path"),
        ("rflaf.io", "load"),
        ("rflaf.runtime.threads", "ThreadPoolExecutor"),
        ("numpy", "fromfile"),
        ("numpy.f2py.diagnose", "run_command"),
        ("scipy.io", "savemat"),
    ],
)
def test_a_foreign_type_is_refused_and_runs_nothing(module, function, archive, tmp_path):
    def change(schema):
        schema["content"]["content"]["mean_"] = call(module, function, f"touch {tmp_path}/ran")

    refused(tmp_path / "bad.skops", rewritten(archive, change), f"{module}.{function}", "trusted")
    assert os.listdir(tmp_path) == ["bad.skops"]


def test_a_method_of_a_trusted_type_is_refused(archive, tmp_path):
    def change(schema):
        inner = json.loads(json.dumps(schema).replace('"__id__": ', '"__id__": 7'))
        content = {"func": "fit", "obj": inner}
        old = dict(schema["content"]["content"])
        schema["content"] = {**schema["content"], "content": old}
        old["mean_"] = {
            "__class__": schema["__class__"], "__module__": schema["__module__"],
            "__loader__": "MethodNode", "content": content,
        }  # fmt: skip

    refused(tmp_path / "bad.skops", rewritten(archive, change), "RandomFeatures.fit")


def test_pickled_objects_inside_are_not_read(archive, tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/ran",)

    held = io.BytesIO()
    np.save(held, np.array([Bomb()], dtype=object), allow_pickle=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(name, held.getvalue() if name.endswith(".npy") else old.read(name))
    refused(tmp_path / "bad.skops", model_io._signed(buffer.getvalue()), "cannot be read")
    assert os.listdir(tmp_path) == ["bad.skops"]
