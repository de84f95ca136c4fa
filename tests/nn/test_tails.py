"""Outside the grid: tails, the share of inputs there, grids from data, and pictures."""

import numpy as np
import pytest
import torch
from torch import nn

from rflaf.bases import RBF, BSpline, Chebyshev, Continued, Polynomial, with_tails
from rflaf.nn import RFLAF, LearnableActivation

FAR = torch.tensor([-100.0, -10.0, -3.0, 3.0, 10.0, 100.0], dtype=torch.float64)
# the distance to the asymptote at the default grid's edge, and no more than that
FARTHEST = {"relu": 1e-6, "identity": 1e-6, "gelu": 0.046, "tanh": 0.037, "silu": 0.24}


@pytest.mark.parametrize("basis", ["rbf", "bspline", "chebyshev"])
@pytest.mark.parametrize("init", FARTHEST)
def test_a_known_start_holds_everywhere(basis, init):
    layer = LearnableActivation(basis, 17, init=init, dtype=torch.float64)
    expected = FAR if init == "identity" else getattr(nn.functional, init)(FAR)
    assert (layer(FAR) - expected).abs().max() < FARTHEST[init] + 1e-4
    wide = LearnableActivation(basis, 65, (-8.0, 8.0), init=init, dtype=torch.float64)
    assert (wide(FAR) - expected).abs().max() < 0.02


def test_a_function_without_asymptotes_goes_on_by_its_own_slope():
    layer = LearnableActivation("bspline", 40, (-1.0, 1.0), init=np.sin, dtype=torch.float64)
    z = torch.tensor([3.0], dtype=torch.float64)
    assert layer(z).item() == pytest.approx(np.sin(1) + 2 * np.cos(1), abs=1e-3)


@pytest.mark.parametrize("tails", ["linear", "zero", "constant"])
def test_values_and_gradients_outside(tails, generator):
    layer = LearnableActivation(init="random", tails=tails, generator=generator)
    layer.double()
    z = torch.tensor([-9.0, -4.0, 0.3, 4.0, 9.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda z, a: torch.func.functional_call(layer, {"coefficients": a}, z),
        (z, layer.coefficients),
    )
    y = layer(z).detach()
    rise = (y[0] - y[1]) / -5
    if tails == "linear":
        sigma = layer.to_activation()
        assert float(rise) == pytest.approx(float(sigma.derivative(-2.0)), abs=1e-3)
    else:
        assert float(rise) == 0
        assert (float(y[0]) == 0) == (tails == "zero")


def test_the_tails_learn():
    """Data far outside the grid are fitted by the slopes alone."""
    torch.manual_seed(0)
    layer = LearnableActivation(init="relu")
    z = torch.linspace(5.0, 9.0, 50)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        loss = (layer(z) - (0.5 * z + 1)).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3


def test_with_tails():
    assert with_tails(RBF(9), "zero") == RBF(9)
    assert with_tails(Continued(RBF(9)), "zero") == RBF(9)
    assert with_tails(BSpline(9), "linear") == BSpline(9, extrapolate="linear")
    assert with_tails(Polynomial(4), "linear") == Polynomial(4)
    assert with_tails(Chebyshev(4), "linear").tail == "linear"
    with pytest.raises(ValueError, match="does not end in zero"):
        with_tails(Chebyshev(4), "zero")
    with pytest.raises(ValueError, match=r"'tails' parameter.*'flat'"):
        LearnableActivation(tails="flat")


def test_the_papers_networks_end_in_zero():
    model = RFLAF(3, 20, seed=0)
    assert model.activation.basis == RBF(17)
    assert model.activation(torch.tensor([7.0])).item() == 0


def test_share_outside(generator):
    layer = LearnableActivation()
    assert layer.outside_share.isnan()
    z = torch.randn(64, 512, generator=generator)
    z[:, :128] = 10.0  # a quarter of the columns
    layer(z)
    assert float(layer.outside_share) == pytest.approx(0.25 + 0.75 * 0.0455, abs=0.03)
    layer.eval()(torch.full((10,), 9.0))
    assert float(layer.outside_share) < 0.4
    assert "outside_share" not in layer.state_dict()


@pytest.mark.parametrize("options", [{}, {"shared": False, "channels": 6}])
def test_grid_from_data(options, generator):
    layer = LearnableActivation("bspline", 40, init="silu", dtype=torch.float64, **options)
    model = nn.Sequential(nn.Linear(4, 6, dtype=torch.float64), layer, nn.Dropout(0.5))
    x = 10 * torch.randn(400, 4, generator=generator, dtype=torch.float64)
    batches = [(part, None) for part in x.split(100)]
    with torch.no_grad():
        z = model[0](x)
        before = layer(z)
        assert layer.fit_grid(batches, model, coverage=0.9) is layer
    assert model.training
    assert model[2].training
    low, high = layer.basis.grid
    assert float(((z < low) | (z > high)).double().mean()) == pytest.approx(0.1, abs=0.02)
    assert (layer(z).detach() - before).abs().max() < 0.3
    alone = LearnableActivation().fit_grid([z])
    assert alone.basis.low < low
    assert alone.basis.high > high


def test_grid_travels_with_the_coefficients(generator):
    layer, other = LearnableActivation(init="silu"), LearnableActivation()
    layer.fit_grid([5 * torch.randn(1000, generator=generator)])
    other.load_state_dict(layer.state_dict())
    z = torch.randn(100, generator=generator)
    assert other.basis == layer.basis
    assert torch.equal(other(z), layer(z))


@pytest.mark.parametrize(
    ("loader", "options", "message"),
    [
        ([], {}, "must yield finite numbers"),
        ([torch.full((5,), float("nan"))], {}, "must yield finite numbers"),
        ([torch.ones(5)], {}, "must yield different values"),
        ([torch.randn(5)], {"coverage": 0.0}, "'coverage' must be"),
        ([torch.randn(2, 3)], {"model": nn.Linear(3, 2)}, "'model' must call"),
    ],
)
def test_errors_of_fit_grid(loader, options, message):
    with pytest.raises(ValueError, match=message):
        LearnableActivation().fit_grid(loader, **options)


def test_plot():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib.figure import Figure

    def axes():
        return Figure().subplots()

    assert len(LearnableActivation().plot(axes(), color="C1").lines) == 1
    layer = LearnableActivation(shared=False, channels=3)
    assert len(layer.plot(axes()).lines) == 3
    assert len(layer.plot(axes(), channel=1).lines) == 1
