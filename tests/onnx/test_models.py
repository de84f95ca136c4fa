"""Exported graphs give what the models give."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rflaf import Activation, RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import FIXED_ACTIVATIONS, RBF, Fixed, Polynomial
from rflaf.inputs.forms import FORMS
from rflaf.onnx import export
from rflaf.onnx.activations import FORMULAS, add_activation
from rflaf.onnx.graph import Graph
from rflaf.solvers.features import as_array
from tests.conftest import ALL_BASES
from tests.onnx.conftest import (
    DTYPES,
    SMALL,
    TOLERANCE,
    assert_close,
    classifier,
    data,
    regressor,
    run,
    session,
    with_activation,
    with_members,
)

# ---- the activation alone -----------------------------------------------------------------------


def evaluate(activation, z):
    """sigma(z) by a graph of nothing else."""
    graph = Graph(z.dtype)
    graph.input("X", z.dtype, "n", 1)
    graph.output("value", add_activation(graph, activation, "X"), z.dtype, "n", 1)
    model = graph.model("test", "0")
    onnx.checker.check_model(model, full_check=True)
    return session(model.SerializeToString()).run(["value"], {"X": z[:, None]})[0][:, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("basis", ALL_BASES, ids=repr)
def test_every_activation_inside_and_outside_its_grid(basis, dtype, rng):
    activation = Activation(basis, rng.standard_normal(basis.n))
    z = np.concatenate([np.linspace(-9, 9, 4001), basis.grid, np.add(basis.grid, 1e-6)])
    z = z.astype(dtype)
    expected = activation.table()(z.astype(np.float64))
    assert_close(evaluate(activation, z), expected)
    if isinstance(basis, Polynomial) or basis == Fixed("cos"):
        return  # the one overflows, the other turns more often than float32 can tell
    far = np.array([-1e15, -1e6, -300, 300, 1e6, 1e15], dtype)
    expected = activation.table()(far.astype(np.float64))
    np.testing.assert_allclose(evaluate(activation, far), expected, rtol=1e-5, atol=1e-6)


def test_many_narrow_functions_far_from_zero(rng):
    """257 of them: positions in the table have few digits left in float32, places in a cell do."""
    activation = Activation(RBF(257, 6.0, 10.0), rng.standard_normal(257))
    z = np.linspace(5.9, 10.1, 20001, dtype=np.float32)
    assert_close(evaluate(activation, z), activation.table()(z.astype(np.float64)))


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=6))
def test_polynomials_of_any_coefficients(coefficients):
    activation = Activation(Polynomial(len(coefficients)), coefficients)
    z = np.linspace(-2, 2, 21)
    assert np.abs(evaluate(activation, z) - activation(z)).max() <= 1e-9


def test_every_fixed_activation_has_a_formula():
    assert set(FORMULAS) == set(FIXED_ACTIVATIONS)


# ---- the forms of the inputs --------------------------------------------------------------------


@cache
def columns():
    """Columns of every kind: many values, ties, few values, one value, long tails."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((400, 8))
    x[:, 1] = np.round(x[:, 1], 1)
    x[:, 2] = rng.integers(0, 3, 400)
    x[:, 3] = 7.0
    x[:, 4] = np.exp(6 * x[:, 4])
    x[:, 5] = np.maximum(x[:, 5], 0)
    x[:, 6] = 1e9 + x[:, 6]
    return x


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *((name, kept) for name in FORMS for kept in ([0, 1, 2, 3, 4, 5, 6, 7], [0, 4])),
        ("raw", [2, 3]),  # others have nothing to offer columns of few values
        ("ranks", [2, 3]),
    ],
)
def test_form_of_the_inputs_is_that_of_the_model(name, kept):
    """To rounding, at the knots and beyond them, too."""
    x = columns()[:, kept]
    form = FORMS[name].learn(x, np.ones(len(x)))
    graph = Graph("float64")
    graph.input("X", "float64", "n", x.shape[1])
    made, order = form.export(graph, "X")
    graph.output("made", made, np.float64, "n", len(order))
    model = graph.model("test", "0")
    onnx.checker.check_model(model, full_check=True)
    far = x[:20] * np.array([[30.0], [-1e8], [1e280], [-1e280]]).repeat(5, axis=0)
    at_knots = np.repeat(x[:1], 65, axis=0)
    for j in range(x.shape[1]):
        knots = _knots(form, j)
        at_knots[: len(knots), j] = knots
    rows = np.concatenate([x, far, at_knots, np.nextafter(at_knots, np.inf)])
    got = session(model.SerializeToString()).run(["made"], {"X": rows})[0]
    expected = as_array(form(rows, np.float64))[:, order]
    np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-14)


def _knots(form, j):
    """Where the results of a column change their slope."""
    if form.name == "bins":
        return form.bins.low[form.bins.column == j]
    curves = getattr(form, "curves", None)
    if curves is None or j not in curves.columns:
        return []
    return curves.knots[curves.columns.tolist().index(j)]


# ---- the estimators -----------------------------------------------------------------------------


def assert_same_classes(path, model, X, dtype):
    outputs = run(path, X, dtype)
    p = model.predict_proba(X)
    assert_close(outputs["probabilities"], p)
    assert p.std(axis=0).max() > 0.01  # a graph that gave the same for all rows would be found
    sure = np.sort(p, axis=1)[:, -1] - np.sort(p, axis=1)[:, -2] > TOLERANCE
    assert sure.any()
    assert (outputs["label"] == model.predict(X))[sure].all()


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "polynomial", *FORMULAS])
def test_regressor_with_every_activation(activation, tmp_path):
    X, _ = data()
    model, path = regressor(activation), tmp_path / "model.onnx"
    for dtype in DTYPES:
        export(model, path, dtype=dtype, check=X)
        for rows in (X, X[:1], X[:7]):
            assert_close(run(path, rows, dtype)["prediction"], model.predict(rows))
        assert run(path, X[:0], dtype)["prediction"].shape == (0,)


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "polynomial", *FORMULAS])
def test_classifier_with_every_activation(activation, tmp_path, rng):
    X, _ = data()
    model, path = with_activation(classifier(), activation, rng), tmp_path / "model.onnx"
    for dtype in DTYPES:
        export(model, path, dtype=dtype, check=X)
        assert_same_classes(path, model, X, dtype)


def test_several_targets_of_different_units(tmp_path):
    X, _ = data()
    model, path = regressor(targets=3), tmp_path / "model.onnx"
    export(model, path, check=X)
    got, expected = run(path, X)["prediction"], model.predict(X)
    for k in range(3):
        assert_close(got[:, k], expected[:, k])
    assert run(path, X[:0])["prediction"].shape == (0, 3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_members_and_forms(form, members, dtype, tmp_path):
    X, _ = data()
    path, chosen = tmp_path / "model.onnx", {"input_form": form, "n_members": members}
    model = regressor(**chosen)
    assert len(model.members_) == members
    assert model.members_[0].layer.form.name == form
    export(model, path, dtype=dtype, check=X)
    assert_close(run(path, X, dtype)["prediction"], model.predict(X))
    about = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert (about["n_members"], about["input_form"]) == (str(members), form)
    for kind in ("integers", "two integers"):
        model = classifier(kind, **chosen)
        export(model, path, dtype=dtype, check=X)
        assert_same_classes(path, model, X, dtype)


def test_columns_of_every_kind(tmp_path):
    X = columns()
    y = np.column_stack([X[:, 0] * X[:, 1], 1e4 * np.log(X[:, 4])])
    for form in ("both", "ranks", "bins"):
        model = RFLAFRegressor(**SMALL, input_form=form, n_members=2).fit(X, y)
        export(model, tmp_path / "model.onnx", dtype="float64", check=X)
        got = run(tmp_path / "model.onnx", X, "float64")["prediction"]
        for k, expected in enumerate(model.predict(X).T):
            assert_close(got[:, k], expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_teams_and_their_weights(dtype, two_teams, tmp_path):
    X, y = two_teams
    X = X.astype(np.float32).astype(np.float64)
    path = tmp_path / "model.onnx"
    model = RFLAFRegressor(**SMALL).fit(X, y)
    assert len({(member.layer.form.smooth, member.weight) for member in model.members_}) == 2
    export(model, path, dtype=dtype, check=X)
    assert_close(run(path, X, dtype)["prediction"], model.predict(X))
    model = RFLAFClassifier(**SMALL).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert {member.layer.form.smooth for member in model.members_} == {True, False}
    export(model, path, dtype=dtype, check=X)
    assert_same_classes(path, model, X, dtype)


def test_members_share_their_inputs(tmp_path):
    """Which are the same for all: there is one bisection, and one table of each kind."""
    counts = []
    for members in (1, 3):
        export(regressor(input_form="both", n_members=members), tmp_path / "model.onnx")
        nodes = onnx.load(tmp_path / "model.onnx").graph.node
        counts.append(sum(node.op_type in ("GreaterOrEqual", "Where") for node in nodes))
    assert counts[0] == counts[1] > 2


def test_activation_that_is_given(tmp_path, rng):
    X, y = data()
    sigma = Activation(RBF(17), rng.standard_normal(17))
    model = RFLAFRegressor(activation=sigma, fit_intercept=False, **SMALL).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X)
    assert_close(run(tmp_path / "model.onnx", X)["prediction"], model.predict(X))


@pytest.mark.parametrize("dtype", DTYPES)
def test_model_of_few_rows_which_is_float64(dtype, tmp_path):
    X, y = data()
    model = RFLAFRegressor(**SMALL).fit(X[:19], y[:19])
    assert model.components_.dtype == np.float64
    export(model, tmp_path / "model.onnx", dtype=dtype, check=X)
    assert_close(run(tmp_path / "model.onnx", X, dtype)["prediction"], model.predict(X))


@pytest.mark.parametrize(
    ("kind", "label_type"),
    [
        ("two integers", np.int64),
        ("unsigned", np.int64),
        ("strings", object),
        ("two objects", object),
        ("booleans", np.bool_),
        ("floats", np.float64),
    ],
)
def test_classes_of_every_kind(kind, label_type, tmp_path):
    X, _ = data()
    model, path = classifier(kind), tmp_path / "model.onnx"
    export(model, path, check=X)
    assert run(path, X)["label"].dtype == label_type
    assert_same_classes(path, model, X, "float32")
    assert run(path, X[:0])["probabilities"].shape == (0, len(model.classes_))


@pytest.mark.parametrize("kind", ["integers", "two integers"])
def test_probabilities_are_never_zero_and_small_ones_are_right(kind, tmp_path):
    X, _ = data()
    model = classifier(kind)
    sharp = with_members(model, lambda member: replace(member, coef=member.coef * 400))
    export(sharp, tmp_path / "model.onnx", dtype="float64")
    p = run(tmp_path / "model.onnx", X, "float64")["probabilities"]
    expected = sharp.predict_log_proba(X)
    assert expected.min() < -100
    np.testing.assert_allclose(np.log(p), expected, rtol=1e-3, atol=0.05)
    sharp = with_members(model, lambda member: replace(member, coef=member.coef * 1e6))
    export(sharp, tmp_path / "model.onnx")
    p = run(tmp_path / "model.onnx", X)["probabilities"]
    assert p.min() == np.finfo(np.float32).tiny


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("standardise", [True, False])
def test_random_features(activation, standardise, tmp_path):
    X, _ = data()
    model = RandomFeatures(30, activation=activation, standardise=standardise, random_state=0)
    model.fit(X)
    export(model, tmp_path / "model.onnx", check=X)
    assert_close(run(tmp_path / "model.onnx", X)["features"], model.transform(X))


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "relu", "gelu", "silu"])
@pytest.mark.parametrize("size", [1e3, 1e8, 1e30, 1e300])
def test_rows_far_from_those_of_the_fit(activation, size, tmp_path):
    """Further out than the standardised inputs are cut off, too."""
    X, _ = data()
    path, rows = tmp_path / "model.onnx", X[:20] * size
    for form in ("raw", "both", "bins"):
        model = regressor(activation, input_form=form)
        export(model, path, dtype="float64")
        assert_close(run(path, rows, "float64")["prediction"], model.predict(rows))


def test_large_offsets(tmp_path):
    """float64 inputs lose nothing; float32 ones cannot hold them, and the check says so."""
    X, y = data()
    X = X + 1e9
    model = RFLAFRegressor(**SMALL).fit(X, y)
    export(model, tmp_path / "model.onnx", dtype="float64", check=X)
    assert_close(run(tmp_path / "model.onnx", X, "float64")["prediction"], model.predict(X))
    with pytest.raises(ValueError, match=r"need dtype='float64'.*Nothing was written"):
        export(model, tmp_path / "other.onnx", check=X)
    assert os.listdir(tmp_path) == ["model.onnx"]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("activation", ["rbf", "polynomial", "relu"])
def test_rows_that_are_not_finite_give_nan_and_leave_others_alone(bad, activation, tmp_path):
    X, _ = data()
    model, path = regressor(activation, input_form="both"), tmp_path / "model.onnx"
    export(model, path)
    rows = X[:5].copy()
    rows[2, 1] = bad
    got = run(path, rows)["prediction"]
    assert np.isnan(got[2])
    good = [0, 1, 3, 4]
    assert_close(got[good], model.predict(X[good]))
    export(classifier("strings"), path)
    assert np.isnan(run(path, rows)["probabilities"]).any(axis=1).tolist() == [0, 0, 1, 0, 0]


def test_nan_is_a_missing_value_or_refused_as_the_model_does(tmp_path):
    X, y = data()
    rows, path = X[:5].copy(), tmp_path / "model.onnx"
    rows[2, 1] = np.nan
    model = regressor()
    export(model, path, check=rows)
    assert_close(run(path, rows)["prediction"], model.predict(rows))
    export(RFLAFRegressor(**SMALL).fit(sparse.csr_array(X), y), path)
    assert np.isnan(run(path, rows)["prediction"]).tolist() == [False, False, True, False, False]


def test_column_that_does_not_vary(tmp_path):
    X, y = data()
    X = np.column_stack([X, np.full(len(X), 3.0)])
    model = RFLAFRegressor(**SMALL).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X)
    X[:, -1] = 1e30
    assert_close(run(tmp_path / "model.onnx", X)["prediction"], model.predict(X))
