"""sigma(Z) V as one function equals the operator and a product, in every derivative."""

import pytest
import torch

from rflaf.bases import RBF
from rflaf.nn import LAN, RFLAF, ops
from rflaf.nn import eager as module
from rflaf.nn.eager import network, readout
from rflaf.nn.layouts import basis_name
from tests.nn.test_operators import draw, inside_cells

OUTPUTS = [(), (1,), (3,), (17,)]  # the last goes through a matrix product


def inputs(basis, outputs, generator, shape=(5, 7), dtype=torch.float64):
    name = basis_name(basis)
    z = inside_cells(draw(shape, generator), name).to(dtype)
    a = draw(basis.n, generator, dtype, 1.0)
    return [t.requires_grad_() for t in (z, a, draw((shape[1], *outputs), generator, dtype))], name


def plain(z, a, V, name):
    return ops.evaluate(z, a, name, 0) @ V


@pytest.mark.parametrize("outputs", OUTPUTS, ids=str)
@pytest.mark.parametrize("need_z", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_operator_and_product(basis, outputs, need_z, dtype, generator):
    (z, a, V), name = inputs(basis, outputs, generator, (40, 1100), dtype)
    wanted = (z, a, V) if need_z else (a, V)
    z.requires_grad_(need_z)
    out, expected = readout(z, a, V, name), plain(z, a, V, name)
    assert out.shape == expected.shape
    h = draw(out.shape, generator, dtype)
    results = [(out, expected)]
    results += zip(torch.autograd.grad(out, wanted, h), torch.autograd.grad(expected, wanted, h))
    eps = torch.finfo(dtype).eps
    for fast, slow in results:
        assert fast.dtype == dtype
        height = float(slow.detach().abs().max())
        torch.testing.assert_close(fast, slow, atol=500 * eps * height, rtol=500 * eps)


@pytest.mark.parametrize("outputs", [(), (3,)], ids=str)
@pytest.mark.parametrize("need_z", [False, True])
def test_gradcheck_and_double_backward(basis, outputs, need_z, generator):
    (z, a, V), name = inputs(basis, outputs, generator)
    z.requires_grad_(need_z)

    def function(z, a, V):
        return readout(z, a, V, name)

    assert torch.autograd.gradcheck(function, (z, a, V))
    assert torch.autograd.gradgradcheck(function, (z, a, V))


def test_only_what_is_asked_for(generator):
    for wanted in range(3):
        tensors, name = inputs(RBF(9), (2,), generator)
        for k, tensor in enumerate(tensors):
            tensor.requires_grad_(k == wanted)
        readout(*tensors, name).sum().backward()
        assert [t.grad is not None for t in tensors] == [k == wanted for k in range(3)]


def test_rows_and_outputs_in_any_layout(generator):
    (z, a, V), name = inputs(RBF(9), (2,), generator, (60, 80))
    V_columns = V.detach().T.contiguous().T.requires_grad_()
    for view in (z.detach().T.contiguous().T, z.detach()[::2], z.detach()[:1].expand(50, -1)):
        h = torch.ones((), dtype=z.dtype).expand(view.shape[0], 2)
        fast = torch.autograd.grad(readout(view, a, V_columns, name), (a, V_columns), h)
        slow = torch.autograd.grad(plain(view, a, V, name), (a, V), h)
        for one, other in zip(fast, slow):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("need_z", [False, True])
def test_rows_of_a_larger_matrix(basis, need_z, generator):
    (z, a, V), name = inputs(basis, (2,), generator, (30, 40))
    z.requires_grad_(need_z)
    rows = torch.tensor([7, 3, 29, 3, 0])
    wanted = (z, a, V) if need_z else (a, V)
    out, expected = readout(z, a, V, name, rows), plain(z[rows], a, V, name)
    torch.testing.assert_close(out, expected)
    h = draw(out.shape, generator)
    fast, slow = (torch.autograd.grad(y, wanted, h) for y in (out, expected))
    torch.testing.assert_close(fast, slow)
    assert torch.autograd.gradgradcheck(lambda a, V: readout(z, a, V, name, rows), (a, V))
    assert readout(z, a, V, name, rows[:0]).shape == (0, 2)
    with torch.no_grad():
        torch.testing.assert_close(readout(z, a, V, name, rows), expected)
    with pytest.raises(IndexError):
        readout(z, a, V, name, torch.tensor([30]))


@pytest.mark.parametrize("outputs", [(), (3,)], ids=str)
@pytest.mark.parametrize("needs", ["xWaV", "WaV", "aV", "x", "W", "V"])
def test_network_equals_its_parts(basis, outputs, needs, generator):
    name = basis_name(basis)
    shapes = {"x": (6, 4), "W": (4, 9), "a": (basis.n,), "V": (9, *outputs)}
    given = {key: draw(shape, generator, scale=0.5) for key, shape in shapes.items()}
    wanted = [given[key].requires_grad_() for key in needs]
    x, W, a, V = given.values()
    out, expected = network(x, W, a, V, name), plain(x @ W, a, V, name)
    torch.testing.assert_close(out, expected)
    h = draw(out.shape, generator)
    fast, slow = (torch.autograd.grad(y, wanted, h, create_graph=True) for y in (out, expected))
    torch.testing.assert_close(fast, slow)
    if needs != "V":  # in which the output is linear
        sizes = [sum(d.square().sum() for d in first) for first in (fast, slow)]
        for one, other in zip(*(torch.autograd.grad(s, wanted, allow_unused=True) for s in sizes)):
            torch.testing.assert_close(one, other)
    once = torch.autograd.grad(network(x, W, a, V, name), wanted, h)  # by the kernels
    torch.testing.assert_close(once, tuple(d.detach() for d in slow))


def test_change_of_a_before_backward_is_noticed(generator):
    (z, a, V), name = inputs(RBF(9), (), generator)
    out = readout(z.detach(), a, V, name).sum()
    with torch.no_grad():
        a += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pytest.mark.parametrize("network", [RFLAF, LAN])
@pytest.mark.parametrize("outputs", [None, 3])
def test_networks_run_through_it(network, outputs, generator, monkeypatch):
    model, x = network(4, 600, outputs, seed=0), torch.randn(30, 4, generator=generator)

    def gradients():
        model.zero_grad()
        model(x).square().mean().backward()
        return [p.grad.clone() for p in model.parameters()]

    fast = gradients()
    monkeypatch.setattr(module, "runs_here", lambda *_: False)
    for one, other in zip(fast, gradients()):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_hooks_of_the_activation_are_called(generator):
    model, x = RFLAF(4, 50, seed=0), torch.randn(6, 4, generator=generator)
    expected, seen = model(x), []
    handle = model.activation.register_forward_hook(lambda *call: seen.append(call[2]))
    torch.testing.assert_close(model(x), expected)
    handle.remove()
    model(x)
    assert [values.shape for values in seen] == [(6, 50)]


def test_other_inputs_go_the_plain_way(generator):
    model = RFLAF(4, 50, 3, seed=0)
    for shape in ((4,), (2, 6, 4), (0, 4)):
        assert model(torch.randn(shape, generator=generator)).shape == (*shape[:-1], 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(torch.randn(6, 4, generator=generator)).dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model(torch.randn(6, 5, generator=generator))


def test_rows_changed_before_backward_are_noticed(generator):
    """The gradient would be that of other rows."""
    (z, a, V), name = inputs(RBF(9), (2,), generator, (30, 40))
    rows = torch.tensor([7, 3])
    out = readout(z.detach(), a, V, name, rows)
    rows.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_masks_are_no_numbers_of_rows(generator):
    (z, a, V), name = inputs(RBF(9), (2,), generator, (30, 40))
    with pytest.raises((RuntimeError, IndexError)):
        readout(z.detach(), a, V, name, torch.ones(30, dtype=torch.bool))
