"""`to_torch`: the module gives what the estimator gives, and can be differentiated and trained."""

import copy
import io
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from rflaf import Activation, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import Fixed
from rflaf.inputs.forms import FORMS, Standardised
from rflaf.losses import SquaredError
from rflaf.nn.fitted import MemberNetwork

SMALL = {"n_components": 40, "max_iter": 4, "random_state": 0}


@cache
def data():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((160, 4)) * [1, 1, 0.01, 50] + [0, 3, 1, -200]
    x = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.sin(x[:, 0]) + x[:, 1] * x[:, 2]


@cache
def rows():
    """Rows of the fit, some beyond their range, and some far beyond."""
    X, _ = data()
    away = np.random.default_rng(6).standard_normal(X.shape) * X.std(axis=0)
    return np.concatenate([X, X + 2 * away, X[:9] + 1e4 * away[:9], 1e12 * X[:2]])


@cache
def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters}).fit(*data())


def assert_same(model, X, expected=None):
    predict = getattr(model, "predict_proba", model.predict)
    expected = predict(X) if expected is None else expected
    got = model.to_torch()(torch.as_tensor(np.asarray(X, np.float64))).detach().numpy()
    assert got.shape == expected.shape
    assert (np.abs(got - expected).max(0) <= 1e-5 * np.abs(expected).max(0)).all()


@pytest.mark.filterwarnings("ignore:.*lie more than a standard deviation")
@pytest.mark.parametrize("form", FORMS)
def test_predictions_of_every_form_inside_and_outside(form):
    model = regressor(input_form=form)
    assert len(model.members_) > 1
    assert_same(model, rows())


@pytest.mark.filterwarnings("ignore:.*lie more than a standard deviation")
@pytest.mark.parametrize("targets", ["two numbers", "large", "classes", "three classes"])
def test_predictions_of_every_kind_of_target(targets):
    X, y = data()
    if "classes" in targets:
        edges = [0.0] if targets == "classes" else [-0.5, 0.5]
        model = RFLAFClassifier(**SMALL).fit(X, np.searchsorted(edges, y))
        decision = torch.from_numpy(model.decision_function(rows()).reshape(len(rows()), -1))
        scores = model.to_torch().scores(torch.from_numpy(rows())).detach()
        torch.testing.assert_close(scores, decision, rtol=1e-5, atol=1e-5)
    else:
        y = np.column_stack([y, 1e6 * y**2]) if targets == "two numbers" else 1e9 + 1e7 * y
        model = RFLAFRegressor(**SMALL).fit(X, y)
    assert_same(model, rows())


@pytest.mark.filterwarnings("ignore:.*lie more than a standard deviation")
@pytest.mark.parametrize("loss", ["poisson", "quantile", "huber"])
def test_predictions_of_losses(loss):
    X, y = data()
    parameters = {"quantile": (0.1, 0.5, 0.9)} if loss == "quantile" else {}
    assert_same(RFLAFRegressor(loss=loss, **parameters, **SMALL).fit(X, y - y.min()), rows())


@pytest.mark.parametrize(
    "activation", ["bspline", "chebyshev", "cos", "relu", Activation(Fixed("tanh"), [-3.0])]
)
def test_predictions_of_activations(activation):
    assert_same(RFLAFRegressor(activation=activation, **SMALL).fit(*data()), data()[0])


def test_few_rows_are_fitted_in_double_precision():
    X, y = data()
    model = RFLAFRegressor(**SMALL).fit(X[:15], y[:15])
    assert model.components_.dtype == np.float64
    assert_same(model, X[:15])


def test_missing_values_and_empty_columns():
    X, y = data()
    X = X.copy()
    X[::7, 1] = X[:, 3] = np.nan
    model = RFLAFRegressor(**SMALL).fit(X, y)
    assert_same(model, X)
    X[0, 0] = np.inf
    assert np.isnan(model.to_torch()(torch.from_numpy(X)).detach().numpy()).tolist() == [True] + [
        False
    ] * (len(X) - 1)


def test_categories_are_taken_as_their_encoder_gives_them():
    X, y = data()
    names = np.array([f"town {k % 40}" for k in range(len(X))])  # many levels: means of the target
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(X[:, 2] > 1, "x", "y")})
    frame["town"] = names
    model = RFLAFRegressor(**SMALL, categorical_features=["town", "kind"]).fit(frame, y)
    assert model.members_[0].layer.means is not None
    assert_same(model, model.encoder_.transform(frame), model.predict(frame))


@pytest.mark.parametrize("form", FORMS)
def test_gradients_in_the_inputs(form):
    model = regressor(input_form=form)
    x = torch.tensor(data()[0], requires_grad=True)
    model.to_torch()(x).sum().backward()
    expected = model.gradient(data()[0])
    inside = np.ones(len(expected), bool)
    inside[np.argmin(data()[0], axis=0)] = inside[np.argmax(data()[0], axis=0)] = False
    worst = np.abs(x.grad.numpy() - expected)[inside].max(0)
    assert (worst <= 1e-3 * np.abs(expected).max(0)).all()


def test_training_lowers_the_loss_and_leaves_the_estimator_alone():
    model = regressor(input_form="raw")
    X, y = (torch.tensor(each) for each in data())
    before = model.predict(data()[0])
    module = model.to_torch()
    names = {name for name, p in module.named_parameters() if p.requires_grad}
    assert {name.split(".", 2)[2] for name in names} == {"V", "bias", "activation.coefficients"}
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    losses = []
    for step in range(30):
        if step == 15:
            module.requires_grad_()  # W as well
        optimizer.zero_grad()
        loss = (module(X) - (y + 1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[15] < losses[0]
    assert losses[-1] < losses[15]
    first = next(each for each in module.modules() if isinstance(each, MemberNetwork))
    assert not np.array_equal(first.W.detach().numpy(), model.components_)
    np.testing.assert_array_equal(model.predict(data()[0]), before)


def test_state_dict_copies_and_files():
    X = torch.tensor(data()[0])
    module, other = regressor().to_torch(), regressor().to_torch()
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(1.1)
    assert not torch.equal(module(X), other(X))
    module.load_state_dict(other.state_dict())
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for same in (module, copy.deepcopy(module), torch.load(file, weights_only=False)):
        torch.testing.assert_close(same(X), other(X), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_export_and_compile():
    module, X = regressor(input_form="both").to_torch().eval(), torch.tensor(rows()[:100])
    expected = module(X).detach()
    rows_of_any_number = {"x": {0: torch.export.Dim("n")}}
    program = torch.export.export(module, (X,), dynamic_shapes=rows_of_any_number).module()
    torch.testing.assert_close(program(X[:7]), expected[:7], rtol=0, atol=1e-5)
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), expected, rtol=0, atol=1e-5)


@cache
def local():
    """A model with local models."""
    X = np.random.default_rng(7).uniform(-1, 1, (500, 2))
    y = np.sign(np.sin(9 * X[:, 0]) * np.sin(7 * X[:, 1]))
    model = RFLAFRegressor(**SMALL, n_members=1, input_form="bins").fit(X, y)
    assert model.members_[0].local
    return model, X


@pytest.mark.parametrize(
    ("dtype", "far"), [(torch.float32, 1e-5), (torch.float64, 1e-5), (torch.float16, 0.01)]
)
@pytest.mark.parametrize("made", [lambda: (regressor(input_form="raw"), data()[0]), local])
def test_inputs_and_modules_of_any_precision(made, dtype, far):
    model, X = made()
    X = X.astype(np.float32).astype(np.float64)  # the same numbers in both precisions
    expected = model.predict(X)
    module = model.to_torch()
    assert module.to(dtype) is module
    assert all(p.dtype == dtype for name, p in module.named_parameters() if ".member_" in name)
    for given in (torch.float32, torch.float64):
        found = module(torch.tensor(X, dtype=given))
        assert found.dtype == given
        assert np.abs(found.detach().numpy() - expected).max() < far * np.abs(expected).max()
    found.sum().backward()
    assert module.steps.member_0.V.grad.dtype == dtype


def test_an_operator_that_is_not_known_is_named():
    class Strange(Standardised):
        def export(self, graph, x):
            return graph.add("Hardmax", x), self.origin

    model = copy.copy(regressor(input_form="raw"))
    form = model.members_[0].layer.form
    strange = Strange(form.mean, form.scale)
    model.members_ = [replace(m, layer=replace(m.layer, form=strange)) for m in model.members_]
    with pytest.raises(ValueError, match="operator 'Hardmax'"):
        model.to_torch()


def test_an_estimator_that_is_not_fitted():
    with pytest.raises(NotFittedError):
        RFLAFRegressor().to_torch()


def test_a_loss_without_export_whose_predictions_are_not_scores():
    class Doubled(SquaredError):
        def predict(self, scores):
            return 2 * scores[:, 0]

    model = copy.copy(regressor())
    model.loss_ = Doubled(**vars(model.loss_))
    with pytest.raises(ValueError, match="Doubled must define 'export'"):
        model.to_torch()


def test_constraints():
    """The lattice of a constrained model is part of the module."""
    X, y = data()
    model = RFLAFRegressor(**SMALL, monotonic_cst=[1, 0, -1, 0]).fit(X, y)
    found = model.to_torch()(torch.from_numpy(rows())).detach().numpy()
    expected = model.predict(rows())
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(3, 1), (3, 5), (4,), (1, 3, 4)])
def test_rows_of_another_width_are_refused(shape):
    """One column would be broadcast to all of them."""
    module = regressor(input_form="raw").to_torch()
    for call in (module, module.scores):
        with pytest.raises(ValueError, match="'x' must be n × 4"):
            call(torch.zeros(shape))


def test_the_width_of_an_encoded_frame():
    X, y = data()
    names = [f"level {k % 40}" for k in range(len(y))]
    frame = pd.DataFrame({"a": X[:, 0], "b": names, "c": np.where(y > 0, "x", "y")})
    model = RFLAFRegressor(**SMALL).fit(frame, y)
    encoded = torch.from_numpy(model.encoder_.transform(frame))
    found = model.to_torch()(encoded).detach().numpy()
    np.testing.assert_allclose(found, model.predict(frame), rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match=f"'x' must be n × {encoded.shape[1]}"):
        model.to_torch()(encoded[:, :1])
