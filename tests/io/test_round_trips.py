"""What comes back from a file is what was saved."""

import copy
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from rflaf import Activation, RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import RBF, BSpline
from rflaf.inputs.forms import FORMS
from rflaf.io import load, save
from rflaf.losses import SquaredError
from tests.conftest import ALL_BASES
from tests.inputs.conftest import mixed_frame, spoilt_rows
from tests.io.conftest import N, assert_identical, classifier, data, labels, regressor


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
    "a loss": lambda: regressor(loss=SquaredError()).fit(*data()),
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
    sums = (each._partial.fit.online.sums for each in (model, other))
    for mine, its in zip(*sums, strict=True):
        for a, b in zip(mine, its, strict=True):
            for name, value in vars(a).items():
                np.testing.assert_array_equal(vars(b)[name], value)
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
            curves = (getattr(each.layer.form.curves, name) for each in (mine, its))
            assert all(np.array_equal(a, b) for a, b in zip(*curves, strict=True))
        np.testing.assert_array_equal(its.layer.components, mine.layer.components)
        np.testing.assert_array_equal(its.coef, mine.coef)
    assert other.summary() == model.summary()
    np.testing.assert_array_equal(other.oof_prediction_, model.oof_prediction_)


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_teams_come_back(make, two_teams, tmp_path):
    X, y = two_teams
    model = make(20, n_basis=9, max_iter=2, random_state=0)
    model.fit(X, y if make is RFLAFRegressor else y > 0.5)
    assert {member.layer.team for member in model.members_} == {0, 1}
    save(model, tmp_path / "m")
    other = load(tmp_path / "m")
    assert_identical(model, other, X)
    assert other.summary() == model.summary()
    for mine, its in zip(model.members_, other.members_, strict=True):
        assert its.weight == mine.weight
        assert (its.layer.team, its.layer.fold) == (mine.layer.team, mine.layer.fold)
        assert type(its.layer.form) is type(mine.layer.form)
        if its.layer.form.name == "bins":
            for name, value in vars(mine.layer.form.bins).items():
                assert vars(its.layer.form.bins)[name].dtype == value.dtype
                np.testing.assert_array_equal(vars(its.layer.form.bins)[name], value)


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_adding_rows_to_teams_goes_on_after_loading(make, two_teams, tmp_path):
    X, y = two_teams
    y = y if make is RFLAFRegressor else y > 0.5
    model = make(20, max_iter=2, random_state=1).partial_fit(X[:160], y[:160])
    assert {member.layer.team for member in model.members_} == {0, 1}
    save(model, tmp_path / "m")
    other = load(tmp_path / "m")
    model.partial_fit(X[160:], y[160:])
    assert not np.array_equal(other.predict(X), model.predict(X))
    assert_identical(model, other.partial_fit(X[160:], y[160:]), X)


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_means_of_many_levels_come_back_and_more_rows_are_added(make, tmp_path):
    """The means of folds stay with a model that goes on, and only with such a one."""
    frame, y = mixed_frame()
    y = y if make is RFLAFRegressor else np.digitize(y, [1.0, 3.0])
    model = make(20, max_iter=2, n_members=2, random_state=0)
    for rows in (slice(0, 200), slice(200, None)):
        model.partial_fit(frame[rows], y[rows])
        assert all(member.layer.means.of_fold for member in model.members_)
        save(model, tmp_path / "m")
        other = load(tmp_path / "m")
        assert_identical(model, other, spoilt_rows(frame))
    model.fit(frame, y)
    assert not any(member.layer.means.of_fold for member in model.members_)
    save(model, tmp_path / "m")
    assert_identical(model, load(tmp_path / "m"), spoilt_rows(frame))


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


def test_loading_imports_no_extra(archive, tmp_path):
    """Those that skops imports where they are installed take more memory than a model."""
    (tmp_path / "m.skops").write_bytes(archive)
    code = """
import sys
import numpy as np
import rflaf
rflaf.load(sys.argv[1]).transform(np.zeros((2, 4)))
print([name for name in ("torch", "dask", "matplotlib", "onnx") if name in sys.modules])
import sklearn.externals.array_api_compat.numpy  # others of its kind can still be imported
assert not [name for name, module in sys.modules.items() if "array_api" in name and module is None]
"""
    command = [sys.executable, "-c", code, str(tmp_path / "m.skops")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
