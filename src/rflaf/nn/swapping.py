"""Replace fixed activations of an existing network by learnable ones."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

from rflaf.arrays import Float64
from rflaf.bases import Basis, BSpline, get_basis, with_tails
from rflaf.bases.base import checked
from rflaf.nn.initial import fit, watched
from rflaf.nn.learnable import LearnableActivation
from rflaf.runtime.callers import warn

_IMAGE_NDIM = 4  # inputs of so many dimensions or more have their channels in the second
_GRIDS = ((-4.0, 4.0), (-8.0, 8.0), (-16.0, 16.0))  # ReLU6 needs one with its kink at 6
_FAR = 64.0  # inputs up to which the start is compared
_CLOSE = 0.01  # error relative to the function's range; beyond it there is a warning


@checked(per=[StrOptions({"layer", "channel", "model"})])
def swap_activations(
    model: nn.Module,
    kinds: type[nn.Module] | tuple[type[nn.Module], ...] = nn.ReLU,
    *,
    per: str = "layer",
    basis: str | Basis | None = None,
    n_basis: int = 33,
    grid: tuple[float, float] | None = None,
    example: Any = None,
    dim: int | None = None,
    bounds: tuple[float, float] | None = None,
    lr: float | None = None,
) -> list[dict[str, Any]]:
    """Replace activations in `model`, in place, by learnable ones that start as the same function.

    Before training the outputs are unchanged, up to the error of the basis: zero for ReLU and other
    functions with a kink at 0, in linear splines.

    **Functions are not replaced.** A network that calls `torch.nn.functional.relu` or `torch.relu`
    in its `forward` needs an `nn.ReLU` there first.

    Parameters
    ----------
    model : Module
        Any network. A module that is used in several places is replaced by one module.
    kinds : type of Module, or several
        Element-wise modules to replace, such as `nn.ReLU`, `nn.GELU`.
    per : {"layer", "channel", "model"}
        One activation for each module replaced, one for each channel, or one for all.
    basis, n_basis, grid
        As for `LearnableActivation`. By default splines of degree 1 or 3 on [-4, 4], or on a wider
        grid, whichever start closest to the function that is replaced. Tails are linear. A warning
        is given if the start is not close.
    example : tensor or tuple of tensors, optional
        Inputs of `model`, run once to count channels; needed with `per="channel"`.
    dim : int, optional
        The dimension of the channels. By default 1 for four and more dimensions, as after
        `nn.Conv2d`, and else the last.
    bounds : (float, float), optional
        Of the slope, as for `LearnableActivation`.
    lr : float, optional
        Learning rate of the activations. By default that of the optimiser.

    Returns
    -------
    list of dict
        Parameter groups for an optimiser, as by `parameter_groups`: the activations, without
        weight decay, and all other parameters.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from rflaf.nn import swap_activations
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
    >>> x = torch.randn(5, 4)
    >>> before = model(x)
    >>> groups = swap_activations(model, nn.ReLU, lr=1e-2)
    >>> torch.allclose(model(x), before, atol=1e-5)
    True
    >>> optimizer = torch.optim.AdamW(groups, lr=1e-3)
    >>> [len(group["params"]) for group in groups]
    [2, 4]
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"'model' must be a Module. Got {type(model).__name__}.")
    # every place with a module of these kinds: its parent, its name there, and the module
    places = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent._modules.items()
        if isinstance(child, kinds)
    ]
    if not places:
        raise ValueError(
            f"'model' must have modules of the kinds to replace inside it. Got none of {kinds}. "
            "Functions that 'forward' calls cannot be replaced: put modules in their place."
        )
    old = {id(module): module for _, _, module in places}
    names = {id(module): name for name, module in model.named_modules()}
    for parent, _, _ in places:
        if isinstance(parent, nn.TransformerEncoderLayer):
            parent.activation_relu_or_gelu = 0  # else its fast path skips the module
    channels = _channels(model, old, names, example, dim) if per == "channel" else {}
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))

    def make(module: nn.Module) -> LearnableActivation:
        count, at = channels.get(id(module), (None, -1))
        name = names[id(module)]
        function = _function_of(module, name, count)
        chosen = _basis_for(name, function, basis, n_basis, grid)
        return LearnableActivation(
            chosen,
            init=_start(chosen, function, count),
            shared=count is None,
            channels=count,
            dim=at,
            tails="basis",
            bounds=bounds,
            device=like.device,
            dtype=like.dtype,
        )

    new = {key: make(module) for key, module in old.items()}
    if per == "model":
        one = next(iter(new.values()))
        for each in new.values():
            if each.basis != one.basis or not torch.equal(each.coefficients, one.coefficients):
                raise ValueError(
                    "per='model' needs modules that compute one function. Got several: swap them "
                    "one kind at a time."
                )
        new = dict.fromkeys(new, one)
    for parent, name, module in places:
        setattr(parent, name, new[id(module)].train(module.training))
    return parameter_groups(model, lr)


def parameter_groups(model: nn.Module, lr: float | None = None) -> list[dict[str, Any]]:
    """The parameters of `model` for an optimiser, in two groups: activations, and all others.

    Coefficients of activations have no weight decay, which would pull them to zero; `lr` is their
    learning rate.

    Examples
    --------
    >>> from torch import nn
    >>> from rflaf.nn import LearnableActivation, parameter_groups
    >>> model = nn.Sequential(nn.Linear(2, 3), LearnableActivation())
    >>> [sorted(group) for group in parameter_groups(model, lr=0.01)]
    [['lr', 'params', 'weight_decay'], ['params']]
    """
    layers = [each for each in model.modules() if isinstance(each, LearnableActivation)]
    own = {id(layer.coefficients): layer.coefficients for layer in layers}
    first: dict[str, Any] = {"params": list(own.values()), "weight_decay": 0.0}
    if lr is not None:
        first["lr"] = lr
    return [first, {"params": [p for p in model.parameters() if id(p) not in own]}]


def _function_of(
    module: nn.Module, name: str, channels: int | None
) -> Callable[[Float64], Float64]:
    """What the module computes, L × channels for L numbers; the module itself is not touched."""
    copy = deepcopy(module).to("cpu", torch.float64).eval()

    @torch.no_grad()
    def function(z: Float64) -> Float64:
        column = torch.from_numpy(np.ascontiguousarray(z, dtype=np.float64))[:, None]
        return np.asarray(copy(column.repeat(1, channels or 1)))

    z = np.linspace(-1, 1, 8)
    try:
        alone = np.array_equal(function(z)[::2], function(z[::2]))
    except RuntimeError:  # one slope per channel: nn.PReLU(8)
        alone = False
    if not alone:
        raise ValueError(
            f"Module {name!r} must compute one function, element by element. Got {module!r}. "
            "One with parameters per channel needs per='channel'."
        )
    return function


def _basis_for(
    name: str,
    function: Callable[[Float64], Float64],
    basis: str | Basis | None,
    n_basis: int,
    grid: tuple[float, float] | None,
) -> Basis:
    """The given basis, or the closest of a few, with linear tails."""
    grids = _GRIDS if grid is None else (grid,)
    best, least, inside = None, np.inf, np.inf
    for each in grids:  # wider ones have wider cells: taken only if closer, inside too
        if least <= _CLOSE / 4:
            break
        found: list[Basis] = [
            BSpline(n_basis, *each, degree=degree, extrapolate="linear") for degree in (1, 3)
        ]
        if basis is not None:
            found = [with_tails(get_basis(basis, n_basis, each), "linear")]
        for tried in found:
            errors = _start_errors(tried, lambda z: function(z)[:, 0])
            if (max(errors) < least and errors[0] <= max(inside, _CLOSE / 4)) or best is None:
                best, least, inside = tried, max(errors), errors[0]
    assert best is not None
    if least > _CLOSE:
        warn(
            f"Module {name!r} is replaced by a function that differs from it by {inside:.2g} of "
            f"its range on {list(_GRIDS[0])} there, and by {least:.2g} of it for inputs up to "
            f"{_FAR:g}. More 'n_basis' or another 'grid' may help."
        )
    return best


def _start_errors(basis: Basis, function: Callable[[Float64], Float64]) -> tuple[float, float]:
    """The largest errors on the narrowest grid and beyond it, over the function's range there."""
    a = fit(basis, function)
    narrow, wide = np.linspace(*_GRIDS[0], 1001), np.linspace(-_FAR, _FAR, 1001)
    size = max(float(np.ptp(function(narrow))), 1e-30)
    both = (np.abs(basis(z) @ a - function(z)).max() for z in (narrow, wide))
    inside, beyond = (float(error) / size for error in both)
    return inside, beyond


def _start(basis: Basis, function: Callable[[Float64], Float64], channels: int | None) -> Float64:
    """The coefficients of the function, or of one per channel."""
    values = function(np.linspace(*basis.grid, 64))
    same = bool((values == values[:, :1]).all())

    def of_channel(c: int) -> Float64:
        return fit(basis, lambda z: function(z)[:, c])

    return of_channel(0) if same else np.stack([of_channel(c) for c in range(channels or 1)])


def _channels(
    model: nn.Module,
    old: dict[int, nn.Module],
    names: dict[int, str],
    example: Any,
    dim: int | None,
) -> dict[int, tuple[int, int]]:
    """The number of channels that each module is called with, and their dimension."""
    if example is None:
        raise ValueError("per='channel' needs an 'example' of the model's inputs.")
    seen: dict[int, set[tuple[int, int]]] = {key: set() for key in old}

    def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        at = dim if dim is not None else 1 if inputs[0].ndim >= _IMAGE_NDIM else -1
        seen[id(module)].add((inputs[0].shape[at], at))

    with watched(old.values(), model, note):
        model(*example) if isinstance(example, tuple | list) else model(example)
    for key, found in seen.items():
        if len(found) != 1:
            counts = sorted(count for count, _ in found)
            raise ValueError(
                f"Module {names[key]!r} must be called with one number of channels. "
                f"Got {counts}: use per='layer', or a module for each call."
            )
    return {key: found.pop() for key, found in seen.items()}
