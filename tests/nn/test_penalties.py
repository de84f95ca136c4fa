"""Penalties, Lipschitz constants and bounds, against sums on fine grids and known functions."""

import numpy as np
import pytest
import torch

from rflaf.bases import RBF, BSpline, Polynomial
from rflaf.nn import LearnableActivation, distance_from_start, second_variation, smoothness
from rflaf.paper.training import DefectiveBSpline

SMOOTH = [
    ("rbf", "linear"),
    ("rbf", "zero"),
    ("chebyshev", "constant"),
    (BSpline(9, degree=3), "linear"),
]


def random_layer(basis, tails, generator, **options):
    return LearnableActivation(
        basis, 9, init="random", tails=tails, generator=generator, dtype=torch.float64, **options
    )


def fine(layer, order, channel=None):
    """z, and the derivative of the basis itself by differences of its exact slope."""
    z = np.linspace(-9, 9, 720_001)
    slope = layer.to_activation(channel).derivative(z)
    return z, slope if order == 1 else np.diff(slope) / np.diff(z)


@pytest.mark.parametrize(("basis", "tails"), SMOOTH)
def test_integrals_are_those_of_a_fine_grid(basis, tails, generator):
    layer = random_layer(basis, tails, generator)
    z, slope = fine(layer, 1)
    variation = np.abs(np.diff(slope)).sum()
    assert second_variation(layer).item() == pytest.approx(variation, rel=5e-3)
    if tails != "constant":  # a jump at the edge has no square
        bend = np.sum(fine(layer, 2)[1] ** 2) * (z[1] - z[0])
        assert smoothness(layer).item() == pytest.approx(bend, rel=5e-3)
    assert layer.lipschitz().item() == pytest.approx(np.abs(slope).max(), rel=1e-3)


def test_linear_splines_are_exact(generator):
    layer = random_layer(BSpline(9, degree=1), "linear", generator)
    slopes = np.diff(layer.coefficients.detach().numpy()) / 0.5
    assert second_variation(layer).item() == pytest.approx(np.abs(np.diff(slopes)).sum(), rel=1e-9)
    assert smoothness(layer).item() == pytest.approx((np.diff(slopes) ** 2).sum() / 0.5, rel=1e-9)
    assert layer.lipschitz().item() == pytest.approx(np.abs(slopes).max(), rel=1e-9)
    flat = random_layer(BSpline(9, degree=1), "constant", generator)
    slopes = np.concatenate([[0], np.diff(flat.coefficients.detach().numpy()) / 0.5, [0]])
    assert second_variation(flat).item() == pytest.approx(np.abs(np.diff(slopes)).sum(), rel=1e-9)


def test_powers():
    layer = LearnableActivation(Polynomial(4), init=[0.0, 1.0, 0.5, 1.0], dtype=torch.float64)
    # sigma'' = 1 + 6 z on [-2, 2]
    assert second_variation(layer).item() == pytest.approx((11**2 + 13**2) / 12, rel=1e-6)
    assert smoothness(layer).item() == pytest.approx((13**3 + 11**3) / 18, rel=1e-6)
    assert layer.lipschitz() == float("inf")
    line = LearnableActivation(Polynomial(4), init=[3.0, -2.0, 0.0, 0.0])
    assert line.lipschitz() == 2


def test_a_basis_that_jumps_is_refused():
    with pytest.raises(ValueError, match="jumps"):
        LearnableActivation(DefectiveBSpline(9), tails="basis").lipschitz()


def test_distance_from_start(generator):
    layer = LearnableActivation("rbf", 17, init="tanh", dtype=torch.float64)
    with torch.no_grad():
        layer.coefficients.add_(torch.randn(17, generator=generator, dtype=torch.float64))
    z = torch.linspace(-2, 2, 100_001, dtype=torch.float64)
    start = LearnableActivation("rbf", 17, init="tanh", dtype=torch.float64)
    expected = (layer(z) - start(z)).square().mean().item()
    assert distance_from_start(layer).item() == pytest.approx(expected, rel=1e-4)
    layer.fit_grid([torch.randn(1000, dtype=torch.float64)])
    assert distance_from_start(layer).item() == 0
    assert set(layer.state_dict()) == {"coefficients", "_extra_state"}


@pytest.mark.parametrize("penalty", [second_variation, smoothness, distance_from_start])
@pytest.mark.parametrize("basis", ["rbf", BSpline(9, degree=1), Polynomial(4)])
def test_gradients_and_sums_over_channels(penalty, basis, generator):
    layer = random_layer(basis, "linear", generator, shared=False, channels=2)
    layer.start.zero_()
    assert torch.autograd.gradcheck(lambda a: _with(layer, a, penalty), layer.coefficients)
    made = LearnableActivation.from_activation
    alone = [made(layer.to_activation(c), dtype=torch.float64) for c in (0, 1)]
    for each in alone:
        each.start.zero_()
    model = torch.nn.Sequential(*alone)
    torch.testing.assert_close(penalty(layer), penalty(model))
    with pytest.raises(ValueError, match="must contain a LearnableActivation"):
        penalty(torch.nn.ReLU())


def _with(layer, a, penalty):
    """The penalty as a function of coefficients."""
    twin = LearnableActivation(layer.basis, tails="basis", shared=False, channels=2)
    twin.start = torch.zeros_like(a)
    del twin.coefficients
    twin.coefficients = a
    return penalty(twin)


def test_lipschitz_per_channel_and_in_single_precision():
    layer = LearnableActivation("bspline", shared=False, channels=3, init="identity")
    with torch.no_grad():
        layer.coefficients.mul_(torch.tensor([[1.0], [-2.0], [0.0]]))
    torch.testing.assert_close(layer.lipschitz(), torch.tensor([1.0, 2.0, 0.0]))
    assert layer.lipschitz().dtype == torch.float32


@pytest.mark.parametrize("bounds", [(0.0, float("inf")), (-1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("channels", [None, 3])
def test_bounds_hold_everywhere(bounds, degree, channels, generator):
    many = {"shared": channels is None, "channels": channels}
    layer = random_layer(BSpline(12, degree=degree), "linear", generator, bounds=bounds, **many)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    optimizer.register_step_post_hook(lambda *_: layer.project_())
    for _ in range(3):
        optimizer.zero_grad()
        z = 3 * torch.randn(200, channels or 1, generator=generator, dtype=torch.float64)
        (layer(z) * torch.randn(z.shape, generator=generator, dtype=torch.float64)).sum().backward()
        optimizer.step()
        _check_slopes(layer, *bounds)
    before = layer.coefficients.detach().clone()
    torch.testing.assert_close(layer.project_().coefficients, before)  # once is enough


def _check_slopes(layer, low, high):
    """At the borders of cells and knots, within them, and in the tails."""
    knots = layer.basis.knots
    borders = np.linspace(-2, 2, 6 * 12 * 4 + 1)
    tails = [-50.0, -2 - 1e-9, 2 + 1e-9, 1e6]
    z = np.concatenate([borders, knots, knots + 1e-9, knots - 1e-9, tails])
    for c in [None] if layer.channels is None else range(layer.channels):
        slopes = layer.to_activation(c).derivative(z)
        assert slopes.min() >= low - 1e-9
        assert slopes.max() <= high + 1e-9
    error = 1e-9 if layer.basis.degree <= 3 else 1e-4  # of the table
    assert bool((layer.lipschitz() <= max(abs(low), high) + error).all())


def test_projection_keeps_what_is_within_bounds_and_the_mean(generator):
    inside = LearnableActivation(BSpline(9, degree=1), init="relu", bounds=(0.0, 1.0))
    torch.testing.assert_close(inside(torch.tensor([-3.0, 3.0])), torch.tensor([0.0, 3.0]))
    layer = random_layer(BSpline(9), "linear", generator)
    mean = layer.coefficients.detach().mean()
    layer.bounds = (0.0, 0.1)
    torch.testing.assert_close(layer.project_().coefficients.detach().mean(), mean)
    layer.fit_grid([torch.randn(1000, dtype=torch.float64)])
    _check_slopes(layer, 0.0, 0.1)


def test_bounds_that_cannot_be_kept_are_refused():
    with pytest.raises(ValueError, match="needs basis='bspline'"):
        LearnableActivation("rbf", bounds=(0, 1))
    with pytest.raises(ValueError, match="tails 'linear' or 'constant'"):
        LearnableActivation("bspline", tails="zero", bounds=(0, 1))
    with pytest.raises(ValueError, match="must include 0"):
        LearnableActivation("bspline", tails="constant", bounds=(0.5, 1))
    with pytest.raises(ValueError, match="lower one first"):
        LearnableActivation("bspline", bounds=(1, 0))


def test_simplify_is_within_tol_for_every_channel(generator):
    basis = RBF(9)
    layer = random_layer(basis, "linear", generator, shared=False, channels=3)
    simple = layer.simplify(0.05)
    z = torch.linspace(-6, 6, 5001, dtype=torch.float64).expand(3, -1).T
    assert (simple(z) - layer(z)).abs().max() <= 0.05 + 1e-4
    assert simple.basis.degree == 1
    coarse = layer.simplify(0.5)
    assert coarse.basis.n < simple.basis.n
    again = LearnableActivation(BSpline(17, degree=1), init="relu").simplify(1e-4)
    assert again.basis.n == 3
