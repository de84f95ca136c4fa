"""The paper's networks, their start, their penalties, and the bases they were run with."""

import numpy as np
import pytest
import torch

from rflaf.bases import BSpline
from rflaf.nn import KAN, LAN, MLP, RFLAF, RFMLP, LearnableActivation
from rflaf.nn.kan import KANLayer, _SplineSums
from rflaf.nn.networks import FixedActivation

NETWORKS = [RFLAF, RFMLP, LAN, MLP]


@pytest.mark.parametrize("network", NETWORKS)
def test_start_is_that_of_the_paper(network):
    model = network(20, 4000, 3, seed=0)
    assert abs(float(model.W.detach().std()) - 1) < 0.02
    assert abs(float(model.V.detach().std()) * 4000**0.5 - 1) < 0.05
    assert model.W.requires_grad == (network in (LAN, MLP))
    assert "W" in model.state_dict()


@pytest.mark.parametrize("network", NETWORKS)
def test_formula_and_shapes(network, generator):
    x = torch.randn(6, 4, generator=generator) / 2
    for outputs, shape in ((None, (6,)), (1, (6, 1)), (3, (6, 3))):
        model = network(4, 50, outputs, seed=1)
        out = model(x)
        assert out.shape == shape
        z = x @ model.W * getattr(model, "input_scale", 1.0)
        if isinstance(model.activation, LearnableActivation):
            phi = torch.from_numpy(model.activation.to_activation()(z.detach().numpy()))
        else:
            phi = torch.relu(z)
        torch.testing.assert_close(out, phi.float() @ model.V, atol=1e-4, rtol=1e-4)


def test_unfrozen_networks_are_the_frozen_ones_with_W_trained(generator):
    x = torch.randn(6, 4, generator=generator)
    for frozen, trained in ((RFLAF, LAN), (RFMLP, MLP)):
        assert torch.equal(frozen(4, 50, seed=3)(x), trained(4, 50, seed=3)(x))


def test_seed_decides_all_draws(generator):
    x = torch.randn(6, 4, generator=generator)
    assert torch.equal(RFLAF(4, 50, seed=3)(x), RFLAF(4, 50, seed=3)(x))
    assert not torch.equal(RFLAF(4, 50, seed=3)(x), RFLAF(4, 50, seed=4)(x))


@pytest.mark.parametrize("name", FixedActivation.FUNCTIONS)
def test_fixed_activations_are_those_of_bases(name):
    from rflaf.bases import Fixed

    z = torch.linspace(-4, 4, 41, dtype=torch.float64)
    expected = Fixed(name)(z.numpy())[:, 0]
    np.testing.assert_allclose(FixedActivation(name)(z), expected, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_kan_layer_uses_the_splines_of_bases(degree, generator):
    basis = BSpline(8 + degree, -2, 2, degree=degree)
    layer = KANLayer(3, 2, basis, generator, torch.float64)
    x = 2 * torch.randn(40, 3, generator=generator, dtype=torch.float64)
    x[0] = torch.tensor([-50.0, 50.0, 2.0])
    np.testing.assert_allclose(layer.basis_values(x), basis(x.numpy()), atol=1e-12)
    expected = torch.nn.functional.silu(x) @ layer.base
    values = torch.from_numpy(basis(x.numpy()))
    expected = expected + torch.einsum("rik,iko,io->ro", values, layer.splines, layer.scales)
    torch.testing.assert_close(layer(x), expected)
    assert torch.autograd.gradcheck(layer, (x[1:4].clone().requires_grad_(),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("degree", [1, 3])
def test_sparse_splines_equal_dense_products(degree, dtype, generator):
    layer = KANLayer(30, 7, BSpline(8 + degree, degree=degree), generator, dtype)
    x = (2 * torch.randn(600, 30, generator=generator, dtype=torch.float64)).to(dtype)
    x[0, :3] = torch.tensor([-50.0, 50.0, float("inf")])
    c = layer.splines.detach().requires_grad_()
    x.requires_grad_()
    h = torch.randn(600, 7, generator=generator, dtype=torch.float64).to(dtype)
    sparse, dense = _SplineSums.apply(x, c, layer), layer.dense_sums(x, c)
    results = [(sparse, dense)]
    results += zip(*(torch.autograd.grad(y, (x, c), h) for y in (sparse, dense)))
    for one, other in results:
        assert one.dtype == dtype
        height = float(other.detach().abs().max())
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(one, other, atol=2000 * eps * height, rtol=1e-4)


def test_second_derivatives_of_a_kan_layer(generator):
    layer = KANLayer(3, 2, BSpline(8, degree=3), generator, torch.float64)
    x = torch.randn(4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(layer, (x,))
    frozen = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    layer(frozen).sum().backward()
    assert layer.splines.grad is not None


def test_nan_goes_through_a_kan_layer(generator):
    layer = KANLayer(2, 3, BSpline(8, degree=3), generator)
    x = torch.tensor([[0.1, 0.2], [float("nan"), 0.3]])
    assert layer(x).isnan().tolist() == [[False] * 3, [True] * 3]


@pytest.mark.parametrize(("outputs", "shape"), [(None, (7,)), (1, (7, 1)), (3, (7, 3))])
def test_kan_output_has_the_shape_of_the_target(outputs, shape):
    assert KAN(5, 11, outputs, seed=0)(torch.randn(7, 5)).shape == shape


@pytest.mark.parametrize("rows", [0, 1, 5, 23])
def test_kan_of_many_rows_goes_in_blocks(rows, generator, monkeypatch):
    model = KAN(4, 10, 3, n_cells=5, seed=0, dtype=torch.float64)
    X = torch.randn(rows, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    whole = model(X)  # by the kernel
    monkeypatch.setattr("rflaf.nn.kan.runs_eagerly", lambda *_: False)
    (slope,) = torch.autograd.grad(whole.square().sum(), X)
    monkeypatch.setattr("rflaf.nn.kan._BLOCK_NUMBERS", 5 * 4 * 8)  # five rows of the first layer
    parts = model(X)
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts.square().sum(), X)[0], slope)


def test_kan_exports_with_any_number_of_rows(generator):
    model = KAN(4, 10, 3, seed=0).eval()
    rows = torch.export.Dim("rows", min=1)
    X = torch.randn(6, 4, generator=generator)
    program = torch.export.export(model, (X,), dynamic_shapes=({0: rows},)).module()
    for n in (1, 6, 50):
        X = torch.randn(n, 4, generator=generator)
        torch.testing.assert_close(program(X), model(X))


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*constant.*:torch.jit.TracerWarning")  # the cubics are
def test_kan_traces_with_any_number_of_rows(generator, monkeypatch):
    monkeypatch.setattr("rflaf.nn.kan._BLOCK_NUMBERS", 5 * 4 * 19)  # five rows
    model = KAN(4, 10, 3, seed=0)
    traced = torch.jit.trace(model, torch.randn(4, 4, generator=generator))
    X = torch.randn(50, 4, generator=generator)
    torch.testing.assert_close(traced(X), model(X))


def test_kan_splines_are_zero_far_out_and_exact_in_any_precision():
    layer = KAN(1, 5, seed=0).hidden
    far = torch.tensor([[3e18], [1e30], [torch.inf], [-torch.inf]])
    assert layer.basis_values(far).abs().max() < 1e-6
    assert layer.basis_values(torch.tensor([[torch.nan]])).isnan().any()
    layer = layer.half().double()  # nothing but parameters takes part in the rounding
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    np.testing.assert_allclose(layer.basis_values(x).sum(-1), 1, rtol=1e-14)


@pytest.mark.slow
def test_kan_learns_where_all_inputs_lie_in_one_cell(generator):
    """The scales of the edges are what lets it: with one factor for all, the loss hardly falls."""
    X = torch.rand(256, 400, generator=generator) / 45
    y = (X @ torch.randn(400, generator=generator)).argsort().argsort() // 128
    after = {}
    for scaled in (True, False):
        model = KAN(400, 20, 2, seed=0)
        for layer in (model.hidden, model.out):
            if not scaled:
                layer.scales = torch.nn.Parameter(torch.ones_like(layer.scales), False)
        optimiser = torch.optim.Adam(model.parameters(), 2e-3)
        for _ in range(200):
            loss = torch.nn.functional.cross_entropy(model(X), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        after[scaled] = float(loss.detach())
    assert after[True] < 0.25 < 0.45 < after[False], after


def test_kan_makes_no_rows_by_outputs_by_inputs_tensor(generator):
    """Nothing that autograd keeps grows with inputs × outputs, beside the parameters."""
    largest = []
    for width in (8, 256):
        layer = KANLayer(16, width, BSpline(11, degree=3), generator)
        sizes = []

        def pack(tensor, sizes=sizes, layer=layer):
            if tensor.shape[0] == 64:  # the rows
                sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            layer(torch.randn(64, 16, generator=generator, requires_grad=True)).sum()
        largest.append(max(sizes))
    assert largest[0] == largest[1]


def test_sizes_are_checked():
    with pytest.raises(ValueError, match=r"'n_components' parameter of LAN.*Got 0"):
        LAN(4, 0)
    with pytest.raises(ValueError, match="'degree' parameter of KAN"):
        KAN(4, 10, degree=4)
    with pytest.raises(ValueError, match="Unknown activation 'sine'"):
        RFMLP(4, 10, activation="sine")
