"""What a learnable activation is at its start, and on which grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from torch import Tensor, nn

from rflaf.activation import Activation
from rflaf.arrays import Float64
from rflaf.bases import FIXED_ACTIVATIONS, RBF, Basis, Continued

Init = str | Activation | Callable[[Any], ArrayLike] | ArrayLike
_FAR = 100.0  # lengths of the grid: so far out a function has reached its asymptote
_SAMPLE = 1 << 20  # numbers that a grid is chosen from


def initial_coefficients(basis: Basis, init: Init, shape: tuple[int, ...]) -> Float64:
    """The coefficients with which sigma is `init`, for each channel where there are some."""
    if isinstance(init, str):
        if init != "identity" and init not in FIXED_ACTIVATIONS:
            known = ", ".join(["random", "identity", *FIXED_ACTIVATIONS])
            raise ValueError(
                f"The 'init' parameter of LearnableActivation must be a function, coefficients or "
                f"one of: {known}. Got {init!r}."
            )
        start = fit(basis, (lambda z: z) if init == "identity" else FIXED_ACTIVATIONS[init][0])
    elif callable(init):
        start = fit(basis, init)
    else:
        start = np.array(init, dtype=np.float64)
        if start.shape not in ((basis.n,), shape):
            raise ValueError(
                f"The 'init' parameter of LearnableActivation must have {basis.n} coefficients, or "
                f"be of shape {shape}. Got shape {start.shape}."
            )
    return np.array(np.broadcast_to(start, shape))


def fit(basis: Basis, function: Callable[[Any], ArrayLike]) -> Float64:
    """The least-squares fit on the grid; with linear tails, one that has the right tails.

    A slope at the edge that is a little wrong would be far off at a distance. So the values at both
    edges are those of the function, and the slopes there those of its asymptotes; where it has none
    (a cosine), those of the function itself.
    """
    if basis.tail != "linear":
        return basis.fit(function)
    edges = np.array(basis.grid)
    known = np.concatenate([_values(function, edges), _tail_slopes(function, edges)])
    conditions = np.vstack([basis(edges), basis.derivative(edges)])
    z = np.linspace(edges[0], edges[1], max(512, 16 * basis.n))
    particular = np.linalg.lstsq(conditions, known, rcond=None)[0]
    free = null_space(conditions)
    design = basis(z)
    rest = np.linalg.lstsq(design @ free, _values(function, z) - design @ particular, rcond=None)[0]
    return np.asarray(particular + free @ rest)


def _tail_slopes(function: Callable[[Any], ArrayLike], edges: Float64) -> Float64:
    length = edges[1] - edges[0]
    slopes = []
    for edge, outwards in zip(edges, (-1.0, 1.0)):
        far = edge + outwards * length * _FAR * np.array([1.0, 2.0, 4.0])
        near = edge - outwards * length * np.array([0.0, 1e-5])
        with np.errstate(all="ignore"):  # what overflows has no asymptote
            first, second = np.diff(_values(function, far)) / np.diff(far)
            at_edge = np.diff(_values(function, near)) / np.diff(near)
        straight = np.isfinite(second) and abs(second - first) <= 1e-6 * (1 + abs(second))
        slopes.append(second if straight else at_edge[0])
    return np.array(slopes)


def _values(function: Callable[[Any], ArrayLike], z: Float64) -> Float64:
    return np.asarray(function(z), dtype=np.float64)


def on_grid(basis: Basis, low: float, high: float) -> Basis:
    """As many functions of the same kind on another grid.

    >>> on_grid(RBF(17), -4.0, 4.0)
    RBF(17 on [-4, 4])
    """
    if isinstance(basis, Continued):
        return Continued(on_grid(basis.basis, low, high), basis.tail)
    parameters = basis.parameters()
    stretch = (high - low) / (basis.high - basis.low)
    if isinstance(basis, RBF):
        parameters["width"] = basis.width * stretch
        if "centers" in parameters:
            parameters["centers"] = low + (basis.centers - basis.low) * stretch
            return RBF(**parameters)
    if not {"low", "high"} <= set(parameters):
        raise ValueError(f"{basis!r} has no grid that could be set from data.")
    return type(basis)(**{**parameters, "low": low, "high": high})


def grid_of(batches: Iterable[Tensor], coverage: float) -> tuple[float, float]:
    """The interval that has the share `coverage` of all numbers, as many below it as above."""
    if not 0 < coverage <= 1:
        raise ValueError(f"'coverage' must be above 0 and at most 1. Got {coverage!r}.")
    kept: list[Tensor] = []
    step = size = 1
    for z in batches:
        kept.append(z.detach().reshape(-1)[::step].float().cpu())
        size = sum(part.numel() for part in kept)
        while size > _SAMPLE:  # keep every second number, of later batches too
            kept, step = [torch.cat(kept)[::2]], 2 * step
            size = kept[0].numel()
    values = torch.cat(kept).double().numpy() if kept else np.empty(0)
    values = values[np.isfinite(values)]
    if values.size == 0:
        raise ValueError("'loader' must yield finite numbers. Got none.")
    low, high = np.quantile(values, [(1 - coverage) / 2, (1 + coverage) / 2])
    if not low < high:
        raise ValueError(f"'loader' must yield different values. Got only {low!r}.")
    return float(low), float(high)


@contextmanager
def watched(layers: Iterable[nn.Module], model: nn.Module, hook: Any) -> Iterator[None]:
    """`model` without dropout and running means, and a hook before each call of the `layers`."""
    handles = [layer.register_forward_pre_hook(hook) for layer in layers]
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode


def inputs_of(layer: nn.Module, loader: Iterable[Any], model: nn.Module | None) -> Iterable[Tensor]:
    """What reaches `layer` when `model` runs on the batches of `loader`; without one, these."""
    batches = (batch[0] if isinstance(batch, tuple | list) else batch for batch in loader)
    if model is None:
        yield from batches
        return
    seen: list[Tensor] = []
    with watched([layer], model, lambda _, inputs: seen.append(inputs[0])):
        for x in batches:
            model(x)
            if not seen:
                raise ValueError("'model' must call this activation. It did not.")
            yield from seen
            seen.clear()
