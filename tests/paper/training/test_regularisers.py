"""The paper's penalties, and their gradient without autograd."""

import torch

from rflaf.nn import KAN, LAN, MLP, RFLAF
from rflaf.paper.training.regularisers import add_regulariser_gradient, regulariser


def test_regulariser_is_the_published_one():
    model = RFLAF(4, 100, 3, n_basis=9, seed=0)
    a, v = model.activation.coefficients, model.V
    gap = a.square().sum() / 9**0.5 - v.square().sum() / 100**0.5
    expected = 2 * gap**2 + 0.3 * a.abs().sum() / 9
    torch.testing.assert_close(regulariser(model, 2.0, 0.3), expected)
    assert regulariser(MLP(4, 10)) is None
    assert regulariser(KAN(4, 10)) is None


def test_regulariser_gradient_is_that_of_autograd():
    model = LAN(4, 100, 3, n_basis=9, seed=0, dtype=torch.float64)
    regulariser(model, 2.0, 0.3).backward()
    expected = [model.activation.coefficients.grad.clone(), model.V.grad.clone()]
    for parameter in (model.activation.coefficients, model.V):
        parameter.grad = torch.ones_like(parameter)
    add_regulariser_gradient(model, 2.0, 0.3)
    torch.testing.assert_close(model.activation.coefficients.grad - 1, expected[0])
    torch.testing.assert_close(model.V.grad - 1, expected[1])
