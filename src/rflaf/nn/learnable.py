"""A learnable activation function as a module."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

from rflaf.activation import Activation
from rflaf.bases import Basis, BSpline, get_basis, with_tails
from rflaf.bases.base import check_parameters
from rflaf.nn.eager import activate
from rflaf.nn.initial import Init, grid_of, initial_coefficients, inputs_of, on_grid
from rflaf.nn.layouts import basis_name, named_basis
from rflaf.nn.pieces import pieces

_CONSTRAINTS = {"tails": [StrOptions({"linear", "zero", "constant", "basis"})]}
_MEMORY = 0.1  # the weight of a new batch in the running share of inputs outside the grid
_EVERY = 8  # batches, of which one updates it on the CPU,
_SAMPLE = 2048  # by so many of its elements


class LearnableActivation(nn.Module):
    """A learnable activation, in place of `nn.ReLU` in any network.

    It is sigma(z) = sum_i a_i B_i(z), element by element, for inputs of any shape. On the CPU in
    float32 and float64 it runs through compiled kernels whose cost does not depend on the number
    of basis functions. Autograd keeps z and a only.

    Parameters
    ----------
    basis : str or Basis
        As for `rflaf.bases.get_basis`: "rbf", "bspline", "chebyshev", "polynomial", or a Basis.
    n_basis : int
        Number of basis functions; ignored if `basis` is a Basis.
    grid : (float, float)
        The interval of the basis; ignored if `basis` is a Basis.
    init : str, Activation, callable or array
        Initial sigma. "random" draws a from N(0, 1)/sqrt(N), as in the paper. The name of a fixed
        activation, "identity", an `rflaf.Activation` or a function of an array are fitted by least
        squares on the grid; linear tails have the function's values at the edges, and the slopes of
        its asymptotes. B-splines start closer to the function than Gaussians. An array contains the
        coefficients.
    shared : bool
        One activation for all channels, or one for each.
    channels : int, optional
        Number of channels; required if `shared` is False.
    dim : int
        The dimension of the channels: -1 after a linear layer, 1 after a convolution.
    tails : {"linear", "zero", "constant", "basis"}
        Outside the grid: a straight line with the value and slope at the edge; zero, to which
        Gaussians and splines fade within a few widths; the value at the edge; or the tail of the
        basis. Powers are evaluated everywhere.
    bounds : (float, float), optional
        Smallest and largest slope of sigma, tails included: (0, inf) for a monotone function,
        (-1, 1) for a Lipschitz constant of 1. Needs a B-spline basis. The initial sigma is
        projected; call `project_` after each step of the optimiser.
    generator : torch.Generator, optional
        For `init="random"`.
    device, dtype : optional
        Of the parameter.

    Attributes
    ----------
    coefficients : Parameter
        a, of N numbers, or channels × N.
    basis : Basis
        The basis, with its tails.
    outside_share : Tensor
        Running mean of the share of inputs outside the grid, in training mode; NaN before the first
        batch. On the CPU it uses some 2,000 elements of every eighth batch. Not part of
        `state_dict`.

    Examples
    --------
    >>> import torch
    >>> from rflaf.nn import LearnableActivation
    >>> layer = LearnableActivation("rbf", 17, init="tanh")
    >>> bool((layer(torch.tensor([0.5])) - 0.5).abs() < 0.1)
    True
    >>> layer(torch.randn(4, 3, 8, 8)).sum().backward()
    >>> layer.coefficients.grad.shape
    torch.Size([17])
    >>> layer.to_activation().basis
    Continued(RBF(17 on [-2, 2]), 'linear')
    >>> relu = LearnableActivation(init="relu")
    >>> z = torch.tensor([-50.0, 2.5, 50.0])
    >>> torch.allclose(relu(z), torch.relu(z), atol=1e-3)
    True
    """

    def __init__(
        self,
        basis: str | Basis = "rbf",
        n_basis: int = 17,
        grid: tuple[float, float] = (-2.0, 2.0),
        init: Init = "relu",
        shared: bool = True,
        channels: int | None = None,
        dim: int = -1,
        tails: str = "linear",
        *,
        bounds: tuple[float, float] | None = None,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_parameters("LearnableActivation", _CONSTRAINTS, locals())
        self.basis = get_basis(basis, n_basis, grid)
        if not self.basis.learnable:
            raise ValueError(
                f"The 'basis' parameter of LearnableActivation must be learnable. Got "
                f"{basis!r}: to start from that function, pass it as 'init'."
            )
        if shared == (channels is not None):
            raise ValueError(
                "The 'channels' parameter of LearnableActivation must be given where 'shared' is "
                f"False, and only there. Got shared={shared!r}, channels={channels!r}."
            )
        if tails != "basis":
            self.basis = with_tails(self.basis, tails)
        self.channels, self.dim = channels, dim
        self.basis_name = basis_name(self.basis)  # as the operators know it
        shape = (self.basis.n,) if channels is None else (channels, self.basis.n)
        if isinstance(init, str) and init == "random":
            values = torch.randn(shape, generator=generator, dtype=dtype) / self.basis.n**0.5
        else:
            start = torch.from_numpy(initial_coefficients(self.basis, init, shape))
            values = start.to(dtype or torch.get_default_dtype())
        self.coefficients = nn.Parameter(values.to(device))
        share = torch.full((), float("nan"), device=device)
        self.register_buffer("outside_share", share, persistent=False)
        self.outside_share: Tensor
        self._batches = 0
        self.bounds = bounds
        self.project_()
        self.register_buffer("start", self.coefficients.detach().clone(), persistent=False)
        self.start: Tensor  # for `distance_from_start`

    def forward(self, z: Tensor) -> Tensor:
        """sigma(z), of z's shape and dtype."""
        if not z.is_floating_point():
            raise TypeError(f"'z' must be a tensor of floating-point numbers. Got {z.dtype}.")
        if self.channels is not None and (
            not -z.ndim <= self.dim < z.ndim or z.shape[self.dim] != self.channels
        ):
            raise ValueError(
                f"'z' must have {self.channels} channels in dimension {self.dim}. "
                f"Got shape {tuple(z.shape)}."
            )
        if self.training:
            self._measure(z)
        return activate(z, self.coefficients, self.basis_name, self.dim)

    def _measure(self, z: Tensor) -> None:
        """Bring `outside_share` up to date; on the CPU now and then, by some of the elements."""
        z = z.detach()
        if z.device.type == "cpu" and not torch.compiler.is_compiling():
            vars(self)["_batches"] += 1  # Module.__setattr__ takes as long as a ReLU
            if self._batches % _EVERY != 1:
                return
            step = max(1, z.numel() // _SAMPLE)
            while step > 1 and math.gcd(step, z.shape[-1]) > 1:  # else some columns are never seen
                step += 1
            z = z.reshape(-1)[::step]
        if z.device.type != "meta" and not torch._C._are_functorch_transforms_active():
            self.observe(z)

    @torch.no_grad()
    def observe(self, z: Tensor) -> None:
        """Update `outside_share` with inputs `z`.

        >>> layer = LearnableActivation(grid=(-2.0, 2.0))
        >>> layer.observe(torch.tensor([0.0, 3.0]))
        >>> layer.outside_share
        tensor(0.5000)
        """
        low, high = self.basis.grid
        found = ((z < low) | (z > high)).to(self.outside_share.dtype).mean()
        later = torch.lerp(self.outside_share, found, _MEMORY)
        self.outside_share.copy_(torch.where(self.outside_share.isnan(), found, later))

    @torch.no_grad()
    def fit_grid(
        self, loader: Iterable[Any], model: nn.Module | None = None, *, coverage: float = 0.99
    ) -> LearnableActivation:
        """Set the grid from data, without changing sigma beyond the error of the basis.

        Call it before training: an optimiser's moments of the coefficients would no longer match.

        Parameters
        ----------
        loader : iterable of tensors, or of tuples that begin with one
            Batches of inputs of `model`; if `model` is None, inputs of this activation.
        model : Module, optional
            The network that contains this activation.
        coverage : float
            Share of inputs inside the grid, with equally many below and above it.

        Examples
        --------
        >>> import torch
        >>> from torch import nn
        >>> layer = LearnableActivation(init="silu")
        >>> model = nn.Sequential(nn.Linear(4, 8), layer, nn.Linear(8, 1))
        >>> batches = [(10 * torch.randn(100, 4), torch.zeros(100)) for _ in range(3)]
        >>> layer.fit_grid(batches, model).basis.high > 4
        True
        """
        low, high = grid_of(inputs_of(self, loader, model), coverage)
        basis = on_grid(self.basis, low, high)
        fits = [initial_coefficients(basis, each, (basis.n,)) for each in self._activations()]
        values = torch.stack([torch.from_numpy(a) for a in fits]).reshape(self.coefficients.shape)
        self.coefficients.copy_(values)
        self.basis, self.basis_name = basis, basis_name(basis)
        self.project_()
        self.start.copy_(self.coefficients)
        self.outside_share.fill_(float("nan"))
        self._batches = 0
        return self

    def lipschitz(self) -> Tensor:
        """The largest |sigma'|, tails included; with one activation per channel, of each.

        Exact for the table that is evaluated, and differentiable. Powers beyond the first have
        none: infinity.

        Examples
        --------
        >>> round(LearnableActivation("bspline", init="identity").lipschitz().item(), 3)
        1.0
        """
        a = self.coefficients
        if self.basis.tail == "direct":
            steep = (a[..., 2:] != 0).any(-1)
            slope = a[..., 1] if a.shape[-1] > 1 else torch.zeros_like(a[..., 0])
            return torch.where(steep, torch.full_like(slope, float("inf")), slope.abs())
        low, high = pieces(a, self.basis_name).extremes()
        return torch.maximum(-low, high).reshape(a.shape[:-1]).to(a.dtype)

    @torch.no_grad()
    def project_(self) -> LearnableActivation:
        """Project the slope of sigma to `bounds`, in place; without bounds, do nothing.

        Differences of neighbouring coefficients are clipped, and their mean is kept. The slope of a
        B-spline is a mean of such differences, so that it is within the bounds everywhere.

        Examples
        --------
        >>> import torch
        >>> layer = LearnableActivation("bspline", init="cos", bounds=(0, float("inf")))
        >>> optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        >>> hook = optimizer.register_step_post_hook(lambda *_: layer.project_())
        >>> layer(torch.randn(64)).square().mean().backward()
        >>> optimizer.step()
        >>> z = torch.linspace(-5, 5, 101)
        >>> bool((layer(z).diff() > -1e-6).all())
        True
        """
        if self.bounds is None:
            return self
        low, high = check_bounds(self.bounds, self.basis)
        a = self.coefficients
        steps = a.double().diff(dim=-1).clamp(low * self.basis.spacing, high * self.basis.spacing)
        sums = nn.functional.pad(steps.cumsum(-1), (1, 0))
        a.copy_(sums - sums.mean(-1, keepdim=True) + a.double().mean(-1, keepdim=True))
        return self

    def simplify(self, tol: float) -> LearnableActivation:
        """A new module in linear splines, with the fewest knots that stay within `tol` of sigma.

        As `rflaf.Activation.simplify`; channels share the knots, as many as the worst one needs.

        Examples
        --------
        >>> LearnableActivation("bspline", 33, init="relu").simplify(0.05).basis
        BSpline(3 on [-2, 2], degree=1, extrapolate='linear')
        """
        found = self._activations()
        n = max(sigma.simplify(tol).basis.n for sigma in found)
        simple = [sigma.simplify(tol, n) for sigma in found]
        a = np.stack([sigma.coefficients for sigma in simple])
        return LearnableActivation(
            simple[0].basis,
            init=a[0] if self.channels is None else a,
            shared=self.channels is None,
            channels=self.channels,
            dim=self.dim,
            tails="basis",
            device=self.coefficients.device,
            dtype=self.coefficients.dtype,
        )

    def plot(self, ax: Any = None, channel: int | None = None, **line: Any) -> Any:
        """Draw sigma; with one per channel, that of `channel` or all. Returns the axes.

        `ax` and `line` are those of `rflaf.Activation.plot`.
        """
        if self.channels is None or channel is not None:
            return self.to_activation(channel).plot(ax, **line)
        for each in self._activations():
            ax = each.plot(ax, **{"lw": 0.8, "alpha": 0.6, **line})
        return ax

    def get_extra_state(self) -> Tensor:
        """The basis as bytes, for `state_dict`."""
        return torch.tensor(list(self.basis_name.encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Restore the basis from `state`."""
        self.basis_name = bytes(state.tolist()).decode()
        self.basis = named_basis(self.basis_name)

    def is_plain(self) -> bool:
        """One activation for all, and no hook that waits for a call: the call may be skipped."""
        hooks = (self._forward_hooks, self._forward_pre_hooks)
        backward_hooks = (self._backward_hooks, self._backward_pre_hooks)
        return self.channels is None and not any((*hooks, *backward_hooks))

    def to_activation(self, channel: int | None = None) -> Activation:
        """The function as an `rflaf.Activation`; with one per channel, that of `channel`."""
        a = self.coefficients.detach().double().cpu().numpy()
        if (channel is None) != (self.channels is None):
            raise ValueError(
                "'channel' must be given for one activation per channel, and only then. "
                f"Got channel={channel!r} with channels={self.channels!r}."
            )
        return Activation(self.basis, a if channel is None else a[channel])

    def _activations(self) -> list[Activation]:
        """The activation of each channel, or the shared one."""
        channels = [None] if self.channels is None else range(self.channels)
        return [self.to_activation(c) for c in channels]

    @classmethod
    def from_activation(cls, activation: Activation, **options: Any) -> LearnableActivation:
        """A module that starts as `activation`, in its basis and with its tails.

        `options` are parameters of the class.
        """
        options = {"tails": "basis", **options}
        return cls(activation.basis, init=activation.coefficients, **options)

    def extra_repr(self) -> str:
        """For `repr`."""
        channels = "" if self.channels is None else f", channels={self.channels}, dim={self.dim}"
        return f"{self.basis!r}{channels}"


def check_bounds(bounds: tuple[float, float], basis: Basis) -> tuple[float, float]:
    """The bounds of a slope, where they can be kept in `basis`."""
    low, high = bounds
    if not low < high:
        raise ValueError(
            "The 'bounds' parameter of LearnableActivation must be two numbers, the lower one "
            f"first. Got {bounds!r}."
        )
    if not isinstance(basis, BSpline) or basis.tail == "zero":
        raise ValueError(
            "The 'bounds' parameter of LearnableActivation needs basis='bspline' or a BSpline, "
            f"with tails 'linear' or 'constant'. Got {basis!r}."
        )
    if basis.tail == "constant" and not low <= 0 <= high:
        raise ValueError(
            "The 'bounds' parameter of LearnableActivation must include 0, the slope of constant "
            f"tails. Got {bounds!r}."
        )
    return low, high
