"""Model files: what comes back, and what is refused."""

import copy
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import rflaf
from rflaf import Activation, RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf import io as model_io
from rflaf.bases import RBF, BSpline, get_basis
from rflaf.inputs.form import FORMS
from rflaf.io import load, save
from tests.conftest import ALL_BASES

skops_io = pytest.importorskip("skops.io")

SMALL = {"n_components": 30, "max_iter": 6, "random_state": 0}
N = 160


def data(dtype=np.float64):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, 4)).astype(dtype)
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2


def labels():
    _, y = data()
    return np.array(["low", "mid", "high"])[np.digitize(y, [0.3, 1.0])]


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


def two_targets():
    X, y = data()
    return regressor().fit(X, np.column_stack([y, X[:, 2]]))


def with_weights():
    X, y = data()
    return regressor(metric="diagonal").fit(X, y, sample_weight=np.linspace(0, 2, N))


def partly_fitted(**parameters):
    X, y = data()
    return regressor(**parameters).partial_fit(X[:120], y[:120])


def with_members(form, members, kind=None):
    X, y = data()
    if kind is not None:
        return classifier(input_form=form, n_members=members).fit(X, labels())
    return regressor(input_form=form, n_members=members).fit(X, y)


# each is made when its test runs
MODELS = {
    "one target": lambda: regressor().fit(*data()),
    "float32": lambda: regressor().fit(*data(np.float32)),
    "many targets": two_targets,
    "weights": with_weights,
    "fixed activation": lambda: regressor(activation="tanh").fit(*data()),
    "bspline": lambda: regressor(activation="bspline", n_basis=9).fit(*data()),
    "a basis": lambda: regressor(activation=BSpline(9, degree=2)).fit(*data()),
    "other centres": lambda: regressor(
        activation=RBF(centers=[-2.0, 0.0, 0.5, 2.0], width=[1.0, 0.5, 0.6, 1.0])
    ).fit(*data()),
    "an activation": lambda: regressor(
        activation=Activation(RBF(5), [1.0, 0.0, -1.0, 0.0, 2.0])
    ).fit(*data()),
    "few rows": lambda: regressor().fit(*(part[:20] for part in data())),
    "sparse": lambda: regressor(activation="cos").fit(sparse.csr_array(data()[0]), data()[1]),
    "partial_fit": partly_fitted,
    "partial_fit of members": lambda: partly_fitted(n_members=3, input_form="both"),
    "one member": lambda: with_members("raw", 1),
    "members": lambda: with_members("raw", 3),
    "members, both forms": lambda: with_members("both", 3),
    "members, ranks": lambda: with_members("ranks", 3),
    "members, bins": lambda: with_members("bins", 3),
    "members of classes, both forms": lambda: with_members("both", 3, "classes"),
    "members of classes, ranks": lambda: with_members("ranks", 2, "classes"),
    "RandomState": lambda: regressor(random_state=np.random.RandomState(3)).fit(*data()),
    "two classes": lambda: classifier().fit(data()[0], data()[1] > 0.5),
    "many classes": lambda: classifier(class_weight="balanced").fit(data()[0], labels()),
    "class weights": lambda: classifier(class_weight={0: 1.0, 7: 3.0}).fit(
        data()[0], np.where(data()[1] > 0.5, 7, 0)
    ),
    "features": lambda: RandomFeatures(12, activation="relu", random_state=0).fit(data()[0]),
    "learned features": lambda: RandomFeatures(
        12, activation=Activation(RBF(5), np.ones(5)), random_state=0
    ).fit(data()[0]),
    "pipeline": lambda: make_pipeline(StandardScaler(), classifier()).fit(data()[0], labels()),
    "features in a pipeline": lambda: make_pipeline(
        FunctionTransformer(np.arctan), RandomFeatures(12, random_state=0), regressor()
    ).fit(*data()),
    "columns": lambda: make_pipeline(
        make_column_transformer((StandardScaler(), [0, 2]), remainder="passthrough"), regressor()
    ).fit(*data()),
    "search": lambda: GridSearchCV(regressor(), {"alpha": [1e-3, 1e-1]}, cv=2).fit(*data()),
    "stack": lambda: StackingRegressor([("a", regressor())], cv=2).fit(*data()),
}


def outputs(model, X):
    """Everything a model predicts, as arrays."""
    names = ("predict", "predict_proba", "decision_function", "transform")
    found = {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
    if isinstance(model, RFLAFRegressor):
        found["std"] = model.predict(X, return_std=True)[1]
    assert found
    return found


def assert_identical(one, other, X):
    expected, got = outputs(one, X), outputs(other, X)
    assert expected.keys() == got.keys()
    for name, value in expected.items():
        assert value.dtype == got[name].dtype
        assert value.tobytes() == got[name].tobytes(), name


def parameters(model):
    """Without the addresses of the objects among them."""
    return re.sub(r"0x[0-9a-fA-F]+", "", str(model.get_params()))


@pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_round_trip_is_bit_identical(name, tmp_path):
    model = MODELS[name]()
    path = tmp_path / "model.skops"
    save(model, path)
    X = 1.3 * np.random.default_rng(9).standard_normal((50, 4))
    if name == "float32":
        X = X.astype(np.float32)
    for other in (load(path), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert type(other) is type(model)
        assert_identical(model, other, X)
        assert parameters(other) == parameters(model)
    assert os.listdir(tmp_path) == ["model.skops"]


@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy"])
def test_fitted_attributes_and_private_state_come_back(how, tmp_path):
    model = partly_fitted()
    save(model, tmp_path / "m")
    other = {
        "save": lambda: load(tmp_path / "m"),
        "pickle": lambda: pickle.loads(pickle.dumps(model)),
        "deepcopy": lambda: copy.deepcopy(model),
    }[how]()
    assert other.activation_ == model.activation_
    assert other.history_ == model.history_
    assert other.n_features_in_ == 4
    assert other.get_params() == model.get_params()
    assert other._partial.seed == model._partial.seed
    assert other._partial.fit.rows_seen == model._partial.fit.rows_seen == 120
    for mine, its in zip(model._partial.fit.sums, other._partial.fit.sums, strict=True):
        for a, b in zip(mine, its, strict=True):
            np.testing.assert_array_equal(b.gram, a.gram)
            np.testing.assert_array_equal(b.moment, a.moment)
            assert (b.weight, b.rows, b.single) == (a.weight, a.rows, a.single)
    with pytest.raises(ValueError, match="read-only"):
        other.activation_.coefficients[0] = 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [1, 3])
def test_adding_rows_goes_on_after_loading(form, members, tmp_path):
    X, y = data()
    model = partly_fitted(input_form=form, n_members=members)
    save(model, tmp_path / "m")
    other = load(tmp_path / "m")
    for rows in (slice(120, 150), slice(150, None)):
        before = model.predict(X)
        model.partial_fit(X[rows], y[rows])
        other.partial_fit(X[rows], y[rows])
        assert not np.array_equal(before, model.predict(X))
        assert_identical(model, other, X)
        save(other, tmp_path / "m")
        other = load(tmp_path / "m")


def test_what_members_hold_comes_back(tmp_path):
    model = with_members("both", 3)
    save(model, tmp_path / "m")
    other = load(tmp_path / "m")
    assert len(other.members_) == 3
    for mine, its in zip(model.members_, other.members_, strict=True):
        assert its.layer.activation == mine.layer.activation
        assert (its.alpha, its.layer.kind) == (mine.alpha, mine.layer.kind)
        assert its.layer.form.name == "both"
        for name in ("knots", "levels"):
            pairs = zip(getattr(mine.layer.form, name), getattr(its.layer.form, name), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs)
        np.testing.assert_array_equal(its.layer.components, mine.layer.components)
        np.testing.assert_array_equal(its.coef, mine.coef)
    assert other.summary() == model.summary()
    np.testing.assert_array_equal(other.oof_prediction_, model.oof_prediction_)


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_teams_come_back(make, mixed, tmp_path):
    X, y = data()
    model = make(20, n_basis=9, max_iter=2, random_state=0)
    model.fit(X, y if make is RFLAFRegressor else y > 0.5)
    assert {member.seat.team for member in model.members_} == {0, 1, 2}
    save(model, tmp_path / "m")
    other = load(tmp_path / "m")
    assert_identical(model, other, X)
    assert other.summary() == model.summary()
    for mine, its in zip(model.members_, other.members_, strict=True):
        assert its.weight == mine.weight
        assert (its.seat.team, its.seat.fold) == (mine.seat.team, mine.seat.fold)
        assert its.layer.linear == mine.layer.linear
        for name in ("column", "low", "width", "mean", "scale"):
            a, b = (getattr(member.layer.form.bins, name) for member in (mine, its))
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_adding_rows_to_teams_goes_on_after_loading(mixed, tmp_path):
    X, y = data()
    model = RFLAFRegressor(20, max_iter=2, random_state=0).partial_fit(X[:120], y[:120])
    assert {member.seat.team for member in model.members_} == {0, 1}
    save(model, tmp_path / "m")
    other = load(tmp_path / "m")
    model.partial_fit(X[120:], y[120:])
    assert not np.array_equal(other.predict(X), model.predict(X))
    assert_identical(model, other.partial_fit(X[120:], y[120:]), X)


def test_a_file_is_little_more_than_its_numbers(tmp_path):
    """Each array once, also where several attributes hold it, and a short description."""
    model = with_members("both", 3)
    parts = [member.layer for member in model.members_]
    held = sum(p.components.nbytes + p.z_sample.nbytes + p.metric.nbytes for p in parts)
    save(model, tmp_path / "m")
    assert os.path.getsize(tmp_path / "m") < held + 150_000


@pytest.mark.parametrize("basis", ALL_BASES, ids=repr)
def test_every_basis(basis, tmp_path):
    sigma = Activation(basis, np.linspace(0.5, 1.5, basis.n))
    save(sigma, tmp_path / "sigma")
    other = load(str(tmp_path / "sigma"))
    assert other == sigma
    assert hash(other) == hash(sigma)
    z = np.linspace(-3, 3, 40)
    assert other(z).tobytes() == sigma(z).tobytes()


def test_feature_names_and_output_settings(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, _ = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    model = RandomFeatures(3, random_state=0).set_output(transform="pandas").fit(frame)
    save(model, tmp_path / "m")
    other = load(tmp_path / "m")
    assert list(other.feature_names_in_) == ["a", "b", "c", "d"]
    pandas.testing.assert_frame_equal(other.transform(frame), model.transform(frame))


def test_an_unfitted_model(tmp_path):
    save(regressor(alpha=0.25), tmp_path / "m")
    assert load(tmp_path / "m").fit(*data()).alpha_ == 0.25


# ---- damaged and foreign files


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "model.skops"
    save(RandomFeatures(5, random_state=0).fit(data()[0]), path)
    return path.read_bytes()


def refused(path, content, *messages):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.skops") as caught:
        load(path)
    for message in messages:
        assert message in str(caught.value)


def test_truncated_anywhere(archive, tmp_path):
    for length in (0, 1, 2, 30, len(archive) // 2, len(archive) - 60, len(archive) - 1):
        refused(tmp_path / "bad.skops", archive[:length], "not a model file")


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
    refused(tmp_path / "bad.skops", content, "not a model file of rflaf")


def test_a_skops_file_of_somebody_else(tmp_path):
    skops_io.dump(StandardScaler(), tmp_path / "bad.skops")
    refused(tmp_path / "bad.skops", (tmp_path / "bad.skops").read_bytes(), "not a model file")


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_a_later_format_says_which_version_wrote_it(archive, tmp_path):
    version = rflaf.__version__.encode()
    assert b" format=1 version=" + version in archive
    later = archive.replace(b" format=1 version=" + version, b" format=2 version=9.8.7")
    refused(tmp_path / "bad.skops", later, "written by rflaf 9.8.7 in format 2")


def rewritten(archive, change):
    """The archive with another description of its objects, and a digest that fits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            new.writestr(name, content)
    return model_io._signed(buffer.getvalue())


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


def call(module, function, *arguments):
    """What skops would construct by calling `function`."""
    strings = [
        {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": text}
        for text in map(json.dumps, arguments)
    ]
    content = {
        "__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode",
        "content": strings,
    }  # fmt: skip
    return {
        "__class__": function, "__module__": module, "__loader__": "ConstructorFromReduceNode",
        "content": content,
    }  # fmt: skip


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


# ---- what cannot be saved, and saving that fails


class Mine(StandardScaler):
    """A type from outside."""


def test_saving_names_a_type_that_could_not_be_loaded(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be saved.*tests\.test_io\.Mine"):
        save(make_pipeline(Mine(), regressor()), tmp_path / "m")
    with pytest.raises(ValueError, match=r"cannot be saved.*system"):
        save(make_pipeline(FunctionTransformer(os.system), regressor()), tmp_path / "m")
    with pytest.raises(ValueError, match="cannot be saved"):
        save((k for k in ()), tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_keeps_the_old_file(archive, tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    path.write_bytes(archive)

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(regressor(), path)
    assert path.read_bytes() == archive
    assert os.listdir(tmp_path) == ["model.skops"]
    monkeypatch.undo()
    save(regressor(), path)
    assert isinstance(load(path), RFLAFRegressor)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_killed_halfway_leaves_no_broken_file(archive, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(archive)
    code = """
import os, signal, sys
from rflaf import RFLAFRegressor
from rflaf.io import save
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
save(RFLAFRegressor(), sys.argv[1])
"""
    source = str(Path(rflaf.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "PYTHONPATH": source},
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == archive
    assert isinstance(load(path), RandomFeatures)


def test_the_file_has_the_usual_permissions(tmp_path):
    save(regressor(), tmp_path / "m")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_without_skops_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for attempt in (lambda: save(get_basis("rbf"), tmp_path / "m"), lambda: load(tmp_path / "m")):
        with pytest.raises(ImportError, match=r"pip install 'rflaf\[io\]'"):
            attempt()
