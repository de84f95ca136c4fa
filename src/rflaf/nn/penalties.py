"""Penalties on the shape of learned activations, to be added to a loss.

Each takes a `module`, a LearnableActivation or any network, and adds up over all activations and
channels in it. They are differentiable in the coefficients, and exact for the tables that are
evaluated.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from rflaf.nn.learnable import LearnableActivation
from rflaf.nn.pieces import mean_square, pieces


def second_variation(module: nn.Module) -> Tensor:
    """The total variation of sigma': the integral of |sigma''| and all jumps of the slope.

    Those of all activations in `module` are added up. For linear splines it is the sum of the
    slope's changes at the knots. As a penalty it favours few straight pieces. Changes of slope
    between the grid and the tails count. Powers count on their grid alone. Tables of Gaussians have
    small jumps of their own, some 0.3 % of the whole.

    Examples
    --------
    >>> from rflaf.bases import BSpline
    >>> from rflaf.nn import LearnableActivation, second_variation
    >>> layer = LearnableActivation(BSpline(17, degree=1), init="relu")
    >>> round(second_variation(layer).item(), 6)
    1.0
    """

    def of(layer: LearnableActivation) -> Tensor:
        shape = pieces(layer.coefficients, layer.basis_name)
        left, right = shape.bends()
        # the mean of |sigma''| over a cell, in which it is linear and may change its sign
        crosses = left * right < 0
        apart = torch.where(crosses, (left - right).abs(), torch.ones_like(left))
        means = torch.where(
            crosses, (left**2 + right**2) / (2 * apart), (left.abs() + right.abs()) / 2
        )
        return means.sum() * shape.cell + shape.jumps().abs().sum()

    return _total(module, of)


def smoothness(module: nn.Module) -> Tensor:
    """The integral of sigma''², which is large where sigma bends sharply; summed over `module`.

    A jump of the slope counts as if the bend were spread over one spacing of the basis, so that
    linear splines have a penalty too: their second differences, squared.

    Examples
    --------
    >>> from rflaf.nn import LearnableActivation, smoothness
    >>> straight = LearnableActivation("bspline", init="identity")
    >>> smoothness(straight).item() < 1e-6 < smoothness(LearnableActivation()).item()
    True
    """

    def of(layer: LearnableActivation) -> Tensor:
        shape = pieces(layer.coefficients, layer.basis_name)
        left, right = shape.bends()
        inside = (left**2 + left * right + right**2).sum() * shape.cell / 3
        return inside + (shape.jumps() ** 2).sum() / layer.basis.spacing

    return _total(module, of)


def distance_from_start(module: nn.Module) -> Tensor:
    """The mean over the grid of (sigma - start)², where `start` is the initial sigma.

    Those of all activations in `module` are added up. Gaussians and splines that fade to zero count
    over the whole of their reach.

    Examples
    --------
    >>> from rflaf.nn import LearnableActivation, distance_from_start
    >>> layer = LearnableActivation(init="silu")
    >>> distance_from_start(layer).item()
    0.0
    """

    def of(layer: LearnableActivation) -> Tensor:
        return mean_square(layer.coefficients - layer.start, layer.basis_name).sum()

    return _total(module, of)


def _total(module: nn.Module, of: Callable[[LearnableActivation], Tensor]) -> Tensor:
    found = [each for each in module.modules() if isinstance(each, LearnableActivation)]
    if not found:
        raise ValueError("'module' must contain a LearnableActivation. Got none.")
    return torch.stack([of(each).to(each.coefficients.dtype) for each in found]).sum()
