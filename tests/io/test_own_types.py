"""Bases, forms and losses of users' own: saved and loaded where they are named as trusted."""

import os
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rflaf import Activation, RandomFeatures, RFLAFRegressor
from rflaf.bases import RBF, Basis
from rflaf.inputs.forms import Form, Standardised
from rflaf.io import load, save
from rflaf.losses import Loss, SquaredError
from tests.io.conftest import assert_identical, call, classifier, data, labels, regressor, rewritten


class Waves(Basis):
    """sin(k z), for k = 1, 2, ... n."""

    tail = "constant"
    made = 0  # how often the constructor was called

    def __init__(self, n, low=-2.0, high=2.0):
        type(self).made += 1
        self.n, self.low, self.high = n, low, high
        self.frequencies = np.arange(1.0, n + 1)

    def functions(self, z, order=0):
        for k in self.frequencies.astype(z.dtype):
            yield k * np.cos(k * z) if order else np.sin(k * z)

    def parameters(self):
        return {"n": self.n, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Positive(SquaredError):
    """Squared error of predictions that are never negative."""

    name = "positive"

    def predict(self, scores):
        return np.maximum(super().predict(scores), 0.0)


@dataclass(frozen=True)
class Halves(Form):
    """Half of each standardised column."""

    mean: np.ndarray
    scale: np.ndarray

    name, text = "halves", "halves of columns"

    @classmethod
    def learn(cls, x, weights):
        plain = Standardised.learn(x, weights)
        return cls(plain.mean, 2 * plain.scale)

    origin, scales = Standardised.origin, Standardised.scales
    dense, derivative, export = Standardised.dense, Standardised.derivative, Standardised.export


def with_form(model, form):
    """The model with another form of its inputs, as if that had been learned."""
    model.members_ = [
        replace(each, layer=replace(each.layer, form=form)) for each in model.members_
    ]
    return model


def of_own_form():
    X, y = data()
    model = regressor(input_form="raw", n_members=2).fit(X, y)
    return with_form(model, Halves.learn(X, np.ones(len(X))))


MODELS = {
    "regressor": (Waves, lambda: regressor(activation=Waves(4)).fit(*data())),
    "classifier": (Waves, lambda: classifier(activation=Waves(4)).fit(data()[0], labels())),
    "features": (
        Waves,
        lambda: RandomFeatures(9, activation=Activation(Waves(2), [1.0, 2.0])).fit(data()[0]),
    ),
    "pipeline": (
        Waves,
        lambda: make_pipeline(StandardScaler(), regressor(activation=Waves(3))).fit(*data()),
    ),
    "a loss": (Positive, lambda: regressor(loss=Positive()).fit(*data())),
    "more rows": (Positive, lambda: regressor(loss=Positive()).partial_fit(*data())),
    "a form": (Halves, of_own_form),
}


@pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_if_its_type_is_named_both_times(name, tmp_path):
    kind, make = MODELS[name]
    model, path = make(), tmp_path / "m.skops"
    told = rf"tests\.io\.test_own_types\.{kind.__name__}.*'trusted'"
    with pytest.raises(ValueError, match=rf"cannot be saved.*{told}"):
        save(model, path)
    assert os.listdir(tmp_path) == []
    save(model, path, trusted=[kind])
    for others in ([], [Ticks]):
        with pytest.raises(ValueError, match=rf"m\.skops.*was not loaded: {told}"):
            load(path, trusted=others)
    X = 1.3 * np.random.default_rng(9).standard_normal((50, 4))
    modules = set(sys.modules)
    same = load(path, trusted=[Ticks, kind])
    assert_identical(model, same, X)
    assert set(sys.modules) == modules
    if name == "more rows":
        X, y = data()
        assert_identical(model.partial_fit(X, -y), same.partial_fit(X, -y), X)


def test_an_activation_comes_back_without_a_call_of_the_constructor(tmp_path):
    sigma = Activation(Waves(3), [1.0, -2.0, 0.5])
    before = Waves.made
    save(sigma, tmp_path / "m", trusted=(Waves,))
    same = load(tmp_path / "m", trusted=iter([Waves]))
    assert same == sigma
    assert type(same.basis) is Waves
    assert Waves.made == before
    z = np.linspace(-3, 3, 40)
    assert same(z).tobytes() == sigma(z).tobytes()


def test_what_is_built_is_the_type_given_and_not_what_now_has_its_name(tmp_path):
    """As in a notebook, whose types nobody can import."""

    def define():
        class Local(Waves):
            pass

        return Local

    first, second = define(), define()
    sigma = Activation(first(2), [1.0, 2.0])
    save(sigma, tmp_path / "m", trusted=[first])
    assert type(load(tmp_path / "m", trusted=[first]).basis) is first
    assert type(load(tmp_path / "m", trusted=[second]).basis) is second
    with pytest.raises(ValueError, match=r"'trusted' must have types of different names.*Local"):
        load(tmp_path / "m", trusted=[first, second])


@pytest.mark.parametrize(
    "given",
    [[int], [RFLAFRegressor], [os.system], ["Waves"], [Waves(2)], [Activation], [None]],
    ids=repr,
)
def test_only_bases_forms_and_losses_may_be_named(given, archive, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(archive)
    for attempt in (
        lambda: save(regressor(), tmp_path / "other", trusted=given),
        lambda: load(path, trusted=given),
    ):
        with pytest.raises(TypeError, match="'trusted' must have subclasses of Basis, Form or Los"):
            attempt()
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("given", [Waves, 5, None], ids=repr)
def test_types_come_in_a_list(given, tmp_path):
    with pytest.raises(TypeError, match="'trusted' must be a list of types"):
        save(regressor(), tmp_path / "m", trusted=given)


@pytest.mark.parametrize("given", [[Basis], [Form, Loss], [RBF, SquaredError]], ids=repr)
def test_types_that_are_known_already_change_nothing(given, archive, tmp_path):
    (tmp_path / "m").write_bytes(archive)
    assert isinstance(load(tmp_path / "m", trusted=given), RandomFeatures)


def test_a_trusted_type_lets_in_no_other(archive, tmp_path):
    def change(schema):
        schema["content"]["content"]["mean_"] = call("os", "system", f"touch {tmp_path}/ran")

    (tmp_path / "m").write_bytes(rewritten(archive, change))
    with pytest.raises(ValueError, match=r"not trusted.*os\.system"):
        load(tmp_path / "m", trusted=[Waves])
    assert os.listdir(tmp_path) == ["m"]


def test_a_file_that_calls_the_constructor_of_a_trusted_type_is_refused(archive, tmp_path):
    """Whose arguments might take any amount of memory."""

    def change(schema):
        schema["content"]["content"]["mean_"] = call(Waves.__module__, "Waves", "3")

    before = Waves.made
    (tmp_path / "m").write_bytes(rewritten(archive, change))
    with pytest.raises(ValueError, match="would call the constructor"):
        load(tmp_path / "m", trusted=[Waves])
    assert Waves.made == before


class Ticks(Waves):
    """Would be made anew from its parameters."""

    def __reduce__(self):
        return Ticks, (self.n,)


class Slotted(Waves):
    """Has an attribute where skops does not look."""

    __slots__ = ("more",)


def test_types_that_could_not_be_loaded_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"would call the constructor of .*Ticks.*__reduce__"):
        save(Activation(Ticks(2), [1.0, 2.0]), tmp_path / "m", trusted=[Ticks])
    basis = Slotted(2)
    basis.more = 3
    with pytest.raises(ValueError, match="cannot be saved"):
        save(Activation(basis, [1.0, 2.0]), tmp_path / "m", trusted=[Slotted])
    assert os.listdir(tmp_path) == []
