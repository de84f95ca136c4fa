"""The operators against the dense formula, against each other, and against finite differences."""

import threading

import numpy as np
import pytest
import torch

from rflaf.nn import gather, ops
from rflaf.nn.layouts import basis_name, layout_of, named_basis


def inside_cells(z, name):
    """Move z a little, to where the piecewise cubic has all its derivatives."""
    layout = layout_of(name)
    if layout is None:
        return z
    return layout.low + layout.cell * (((z - layout.low) / layout.cell).floor() + 0.37)


def draw(shape, generator, dtype=torch.float64, scale=1.5):
    return (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


@pytest.mark.parametrize("shape", [(), (7,), (40, 70), (3, 4, 5), (2, 600), (0, 5), (9000,)])
def test_fused_equals_dense_formula(basis, shape, generator):
    name = basis_name(basis)
    z = draw(shape, generator).requires_grad_()
    a = draw(basis.n, generator, scale=1.0).requires_grad_()
    g = draw(shape, generator)
    y = ops.evaluate(z, a, name, 0)
    dz, da = torch.autograd.grad(y, (z, a), g)
    points = z.detach().numpy().reshape(-1)
    values, slopes, weights = basis(points), basis.derivative(points), g.numpy().reshape(-1)
    scale = max(1.0, np.abs(values).max(initial=1.0))
    np.testing.assert_allclose(
        y.detach().numpy().reshape(-1), values @ a.detach().numpy(), atol=1e-5 * scale
    )
    np.testing.assert_allclose(
        dz.numpy().reshape(-1),
        weights * (slopes @ a.detach().numpy()),
        atol=5e-3 * max(1.0, np.abs(slopes).max(initial=1.0)),
    )
    np.testing.assert_allclose(da.numpy(), weights @ values, atol=1e-4 * scale, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_equals_gather(basis, dtype, generator):
    name = basis_name(basis)
    z, g = draw((64, 700), generator), draw((64, 700), generator, dtype)
    z = inside_cells(z, name).to(dtype)  # at a jump the two may round to different sides
    z[0, 0], z[0, 1], z[0, 2] = float("inf"), -float("inf"), 50.0
    if basis.tail in ("direct", "linear"):
        z[0, :2] = 3.0
    a = draw(basis.n, generator, dtype, 1.0)
    pairs = [
        (ops.evaluate(z, a, name, 0), gather.evaluate(z, a, name)),
        (ops.slope(g, z, a, name, 1), g * gather.evaluate(z, a, name, 1)),
        (ops.adjoint(g, z, a, name, 0), gather.adjoint(g, z, a, name)),
    ]
    eps = torch.finfo(dtype).eps
    for fast, plain in pairs:
        height = float(plain[plain.isfinite()].abs().max())
        torch.testing.assert_close(fast, plain, atol=500 * eps * height, rtol=500 * eps)


def test_nan_goes_through(basis, generator):
    name, a = basis_name(basis), draw(basis.n, generator, scale=1.0)
    z = torch.tensor([0.3, float("nan")], dtype=torch.float64)
    for values in (ops.evaluate(z, a, name, 0), gather.evaluate(z, a, name)):
        assert values.isnan().tolist() == [False, True]
    for slopes in (ops.slope(z * 0 + 1, z, a, name, 1), gather.evaluate(z, a, name, 1)):
        assert slopes.isnan().tolist() == [False, True]


def test_gradcheck_and_double_backward(basis, generator):
    name = basis_name(basis)
    z = inside_cells(draw((4, 3), generator), name).requires_grad_()
    a = draw(basis.n, generator, scale=1.0).requires_grad_()

    def function(z, a):
        return ops.evaluate(z, a, name, 0)

    assert torch.autograd.gradcheck(function, (z, a))
    assert torch.autograd.gradgradcheck(function, (z, a))


def test_gradcheck_of_one_activation_a_channel(basis, generator):
    name = basis_name(basis)
    z = inside_cells(draw((3, 4), generator), name).requires_grad_()
    a = draw((3, basis.n), generator, scale=1.0).requires_grad_()

    def function(z, a):
        return ops.evaluate(z, a, name, 0)

    assert torch.autograd.gradcheck(function, (z, a))
    assert torch.autograd.gradgradcheck(function, (z, a))


@pytest.mark.parametrize("length", [100, 5000])
def test_channels_equal_one_after_the_other(basis, length, generator):
    """Short channels run through gathers, long ones through the kernels."""
    name = basis_name(basis)
    z, g = draw((3, length), generator), draw((3, length), generator)
    a = draw((3, basis.n), generator, scale=1.0)
    for c in range(3):
        torch.testing.assert_close(
            ops.evaluate(z, a, name, 0)[c], ops.evaluate(z[c], a[c], name, 0)
        )
        torch.testing.assert_close(
            ops.slope(g, z, a, name, 1)[c], ops.slope(g[c], z[c], a[c], name, 1)
        )
        torch.testing.assert_close(
            ops.adjoint(g, z, a, name, 0)[c], ops.adjoint(g[c], z[c], a[c], name, 0)
        )


@pytest.mark.parametrize("op", ["evaluate", "slope", "adjoint"])
def test_registration(op, generator):
    from rflaf.bases import RBF

    z = draw((4, 3), generator).requires_grad_()
    g = draw((4, 3), generator).requires_grad_()
    a = draw(9, generator).requires_grad_()
    operator = getattr(ops, op)
    inputs = {
        "evaluate": (z, a, basis_name(RBF(9)), 0),
        "slope": (g, z, a, basis_name(RBF(9)), 1),
        "adjoint": (g, z, a, basis_name(RBF(9)), 0),
    }
    torch.library.opcheck(operator, inputs[op])


def test_names_of_bases(basis):
    assert named_basis(basis_name(basis)) == basis


def test_unknown_name():
    with pytest.raises(ValueError, match="Unknown class of bases 'Wavelet'"):
        named_basis('{"type": "Wavelet", "n": 3}')


def test_strided_inputs(basis, generator):
    name = basis_name(basis)
    a = draw(basis.n, generator, scale=1.0)
    z = draw((600, 80), generator)
    for view in (z.T, z[::2], z[:, ::3], z[:1].expand(50, -1)):
        torch.testing.assert_close(
            ops.evaluate(view, a, name, 0), ops.evaluate(view.clone(), a, name, 0)
        )
        g = torch.ones(1, dtype=z.dtype).expand(view.shape)
        torch.testing.assert_close(
            ops.adjoint(g, view, a, name, 0),
            ops.adjoint(g.clone(), view.clone(), a, name, 0),
        )
        torch.testing.assert_close(
            ops.slope(g, view, a, name, 1), ops.slope(g.clone(), view.clone(), a, name, 1)
        )


def test_threads_share_the_operators(generator):
    from rflaf.bases import RBF

    name = basis_name(RBF(9))
    z, a = draw((200, 300), generator), draw((4, 9), generator)
    expected = [ops.evaluate(z, row, name, 0) for row in a]
    wrong = []

    def work(k):
        results = [ops.evaluate(z, a[k], name, 0) for _ in range(20)]
        wrong.extend(k for values in results if not torch.equal(values, expected[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
