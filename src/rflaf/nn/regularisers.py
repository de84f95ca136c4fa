"""The paper's penalties."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rflaf.nn.activation import LearnableActivation
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
    >>> from rflaf.nn import RFLAF, RFMLP, regulariser
    >>> regulariser(RFLAF(9, 100, seed=0)).ndim
    0
    >>> regulariser(RFMLP(9, 100, seed=0)) is None
    True
    """
    if not isinstance(model, TwoLayerNetwork):
        return None
    if not isinstance(model.activation, LearnableActivation):
        return None
    penalty: Tensor = _Penalty.apply(
        model.activation.coefficients, model.V, float(balance), float(sparsity)
    )
    return penalty


class _Penalty(torch.autograd.Function):
    """Written out with its gradient: as separate steps it would cost a tenth of an RFLAF's step."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, v: Tensor, balance: float, sparsity: float) -> Tensor:
        ctx.save_for_backward(a, v)
        root_n, root_m = a.numel() ** 0.5, v.shape[0] ** 0.5
        flat_a, flat_v = a.reshape(-1), v.reshape(-1)
        gap = torch.dot(flat_a, flat_a) / root_n - torch.dot(flat_v, flat_v) / root_m
        ctx.gap, ctx.factors = gap, (balance, sparsity, root_n, root_m)
        return gap.square().mul_(balance).add_(a.abs().sum(), alpha=sparsity / a.numel())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        a, v = ctx.saved_tensors
        balance, sparsity, root_n, root_m = ctx.factors
        outer = upstream * ctx.gap * (4 * balance)
        da = a * (outer / root_n) + a.sign() * (upstream * (sparsity / a.numel()))
        return da, v * (outer / -root_m), None, None
