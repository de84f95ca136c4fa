"""The paper's penalties."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rflaf.nn.learnable import LearnableActivation
from rflaf.nn.networks import TwoLayerNetwork


def regulariser(model: nn.Module, balance: float = 1.0, sparsity: float = 0.1) -> Tensor | None:
    """balance * (|a|²/sqrt(N) - |V|²/sqrt(M))² + sparsity * |a|_1 / N, or None without an a.

    The first term keeps the sizes of a and V together, which only their product fixes; the second
    makes a sparse. The divisors are those of the published experiments; the paper's formula has
    none.

    Parameters
    ----------
    model : Module
        An `RFLAF` or a `LAN`. For every other model there is nothing to penalise.
    balance, sparsity : float
        The paper's lambda1 and lambda2.

    Examples
    --------
    >>> from rflaf.nn import RFLAF, RFMLP
    >>> regulariser(RFLAF(9, 100, seed=0)).ndim
    0
    >>> regulariser(RFMLP(9, 100, seed=0)) is None
    True
    """
    penalised = _penalised(model)
    if penalised is None:
        return None
    a, v = penalised
    return balance * _gap(a, v).square() + sparsity / a.numel() * a.abs().sum()


@torch.no_grad()
def add_regulariser_gradient(model: nn.Module, balance: float, sparsity: float) -> None:
    """Add the gradient of `regulariser` to that in the parameters.

    By autograd it would take a tenth of the time of an RFLAF's step, on some twenty numbers.
    """
    penalised = _penalised(model)
    if penalised is None:
        return
    a, v = penalised
    assert a.grad is not None
    assert v.grad is not None
    gap = _gap(a, v)
    a.grad.addcmul_(a, gap, value=4 * balance / a.numel() ** 0.5)
    a.grad.add_(a.sign(), alpha=sparsity / a.numel())
    v.grad.addcmul_(v, gap, value=-4 * balance / v.shape[0] ** 0.5)


def _penalised(model: nn.Module) -> tuple[Tensor, Tensor] | None:
    """a and V, of a model that has both."""
    if isinstance(model, TwoLayerNetwork) and isinstance(model.activation, LearnableActivation):
        return model.activation.coefficients, model.V
    return None


def _gap(a: Tensor, v: Tensor) -> Tensor:
    """|a|²/sqrt(N) - |V|²/sqrt(M)"""
    flat_a, flat_v = a.reshape(-1), v.reshape(-1)
    size_a, size_v = torch.dot(flat_a, flat_a), torch.dot(flat_v, flat_v)
    return torch.sub(size_a * a.numel() ** -0.5, size_v, alpha=v.shape[0] ** -0.5)
