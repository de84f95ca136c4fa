"""Even activations are given a phase where they are asked for by name, everywhere alike."""

import numpy as np
import pytest

from rflaf import Activation, RandomFeatures, RFLAFRegressor, load, save
from rflaf.bases import FIXED_ACTIVATIONS, Fixed, get_basis
from rflaf.bases.fixed import EVEN_PHASES
from rflaf.kernels import ActivationKernel

SMALL = {"n_components": 30, "n_members": 1, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(3).uniform(-1, 1, (150, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("name", FIXED_ACTIVATIONS)
def test_exactly_the_even_ones_have_one(name):
    z = np.linspace(-3, 3, 61)
    sigma = Activation(name)
    even = np.allclose(sigma(z), sigma(-z))
    assert even == (name in EVEN_PHASES)
    basis = Fixed.with_phase(name)
    assert (basis == Fixed(name)) != even
    assert np.abs(Activation(basis)(z) - Activation(basis)(-z)).max() > 0.2
    np.testing.assert_allclose(Activation(basis)(z), sigma(z + basis.phase), rtol=1e-12)
    slope = (Activation(basis)(z + 1e-6) - Activation(basis)(z - 1e-6)) / 2e-6
    smooth = np.abs(z) > 1e-3
    np.testing.assert_allclose(Activation(basis).derivative(z)[smooth], slope[smooth], atol=1e-6)


def test_the_cosine_with_its_phase_has_the_gaussian_kernel(rng):
    x = rng.standard_normal((5, 2))
    kernel = ActivationKernel(Activation(Fixed.with_phase("cos")))(x)
    square = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    scale = kernel[0, 0] / 0.5
    np.testing.assert_allclose(kernel, scale * np.exp(-square / 2) / 2, rtol=1e-6, atol=1e-6)


def test_a_basis_and_an_activation_are_taken_as_they_are(rows):
    X, y = rows
    model = RFLAFRegressor(**SMALL, activation=Fixed("cos")).fit(X, y)
    assert model.activation_.basis.phase == 0
    features = RandomFeatures(10, activation=Activation("cos"), random_state=0).fit(X)
    assert features.activation_.basis.phase == 0
    assert get_basis("cos").phase == 0  # as the paper's modules take it


@pytest.mark.parametrize("phase", [np.inf, np.nan, "a", None])
def test_a_phase_is_a_number(phase):
    with pytest.raises(ValueError, match="'phase' parameter of Fixed"):
        Fixed("cos", phase=phase)


@pytest.mark.parametrize("name", EVEN_PHASES)
def test_saved_models_keep_it(name, rows, tmp_path):
    pytest.importorskip("skops")
    X, y = rows
    features = RandomFeatures(10, activation=name, random_state=0).fit(X)
    for model, predict in (
        (RFLAFRegressor(**SMALL, activation=name).fit(X, y), "predict"),
        (features, "transform"),
    ):
        save(model, tmp_path / "m")
        again = load(tmp_path / "m")
        assert again.activation_ == model.activation_
        assert again.activation_.basis.phase == EVEN_PHASES[name]
        expected = getattr(model, predict)(X)
        np.testing.assert_array_equal(getattr(again, predict)(X), expected)


@pytest.mark.parametrize("name", EVEN_PHASES)
def test_exported_models_keep_it(name, rows, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from rflaf.onnx import export

    X, y = rows
    model = RFLAFRegressor(**SMALL, activation=name).fit(X, y)
    export(model, tmp_path / "m.onnx", check=X)
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
    found = session.run(None, {"X": X.astype(np.float32)})[0]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-3, atol=1e-3)


def test_dask_models_have_it(rows):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    from rflaf.dask import DaskRFLAFRegressor

    X, y = rows
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0"):
        model = DaskRFLAFRegressor(**SMALL, activation="cos").fit(
            da.from_array(X, chunks=(75, 3)), da.from_array(y, chunks=75)
        )
    assert model.to_local().activation_.basis.phase == EVEN_PHASES["cos"]
    assert model.to_local().score(X, y) > 0.9


def test_the_paper_s_module_has_none():
    torch = pytest.importorskip("torch")
    from rflaf.nn import RFMLP

    z = torch.linspace(-2, 2, 9)
    assert torch.equal(RFMLP(3, 20, activation="cos", seed=0).activation(z), torch.cos(z))
