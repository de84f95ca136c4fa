"""A learnable activation function as a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from rflaf.activation import Activation
from rflaf.bases import FIXED_ACTIVATIONS, Basis, get_basis
from rflaf.nn import ops
from rflaf.nn.layouts import basis_name

Init = str | Activation | Callable[[Any], ArrayLike] | ArrayLike


class LearnableActivation(nn.Module):
    """An activation that is learned with the rest of a network; it goes where `nn.ReLU` goes.

    It is sigma(z) = sum_i a_i B_i(z), element by element, for inputs of any shape. On the CPU in
    float32 and float64 it runs through compiled kernels whose cost does not depend on the number
    of basis functions. Autograd keeps z and a, and nothing N times as large.

    Parameters
    ----------
    basis : str or Basis
        As for `rflaf.bases.get_basis`: "rbf", "bspline", "chebyshev", "polynomial", or a Basis.
    n_basis : int
        Number of basis functions; not used where `basis` is a Basis.
    grid : (float, float)
        The interval on which sigma is resolved; not used where `basis` is a Basis. Gaussians and
        splines vanish outside: `BSpline(..., extrapolate="linear")` goes on as a straight line.
    init : str, Activation, callable or array
        What sigma is at the start. "random" draws a from N(0, 1)/sqrt(N), as in the paper. The
        name of a fixed activation, "identity", an `rflaf.Activation` or a function of an array are
        fitted by least squares on the grid. An array has the coefficients themselves.
    shared : bool
        One activation for all channels, or one for each.
    channels : int, optional
        Number of channels; needed where `shared` is False.
    dim : int
        The dimension of the channels: -1 after a linear layer, 1 after a convolution.
    generator : torch.Generator, optional
        For `init="random"`.
    device, dtype : optional
        Of the parameter.

    Attributes
    ----------
    coefficients : Parameter
        a, of N numbers, or channels × N.
    basis : Basis
        The basis.

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
    RBF(17 on [-2, 2])
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
        *,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.basis = get_basis(basis, n_basis, grid)
        if not self.basis.learnable:
            raise ValueError(
                f"The 'basis' parameter of LearnableActivation must have something to learn. Got "
                f"{basis!r}: to start from that function, give it as 'init'."
            )
        if shared == (channels is not None):
            raise ValueError(
                "The 'channels' parameter of LearnableActivation must be given where 'shared' is "
                f"False, and only there. Got shared={shared!r}, channels={channels!r}."
            )
        self.channels, self.dim = channels, dim
        self.basis_name = basis_name(self.basis)  # as the operators know it
        shape = (self.basis.n,) if channels is None else (channels, self.basis.n)
        if isinstance(init, str) and init == "random":
            values = torch.randn(shape, generator=generator, dtype=dtype) / self.basis.n**0.5
        else:
            start = torch.from_numpy(initial_coefficients(self.basis, init, shape))
            values = start.to(dtype or torch.get_default_dtype())
        self.coefficients = nn.Parameter(values.to(device))

    def forward(self, z: Tensor) -> Tensor:
        """sigma(z), of z's shape and dtype."""
        if not z.is_floating_point():
            raise TypeError(f"'z' must be a tensor of floating-point numbers. Got {z.dtype}.")
        if self.channels is None:
            return ops.evaluate(z, self.coefficients, self.basis_name, 0)
        if not -z.ndim <= self.dim < z.ndim or z.shape[self.dim] != self.channels:
            raise ValueError(
                f"'z' must have {self.channels} channels in dimension {self.dim}. "
                f"Got shape {tuple(z.shape)}."
            )
        first = z.movedim(self.dim, 0)
        rows = first.reshape(self.channels, -1)
        values = ops.evaluate(rows, self.coefficients, self.basis_name, 0)
        return values.reshape(first.shape).movedim(0, self.dim)

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

    @classmethod
    def from_activation(cls, activation: Activation, **options: Any) -> LearnableActivation:
        """A module that starts as `activation`, in its basis; options as for the class."""
        return cls(activation.basis, init=activation.coefficients, **options)

    def extra_repr(self) -> str:
        """For `repr`."""
        channels = "" if self.channels is None else f", channels={self.channels}, dim={self.dim}"
        return f"{self.basis!r}{channels}"


class FixedActivation(nn.Module):
    """A fixed activation by its name in `rflaf.bases`, in PyTorch's own functions.

    >>> import torch
    >>> FixedActivation("relu")(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {  # noqa: RUF012 (a constant)
        "relu": torch.relu,
        "cos": torch.cos,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "silu": nn.functional.silu,
        "gelu": nn.functional.gelu,
        "softplus": nn.functional.softplus,
        "elu": nn.functional.elu,
        "gaussian": lambda z: torch.exp(-0.5 * z * z),
    }

    def __init__(self, name: str) -> None:
        super().__init__()
        if name not in self.FUNCTIONS:
            raise ValueError(
                f"Unknown activation {name!r}. Expected one of: {', '.join(self.FUNCTIONS)}."
            )
        self.name = name

    def forward(self, z: Tensor) -> Tensor:
        """The function, element by element."""
        return self.FUNCTIONS[self.name](z)

    def extra_repr(self) -> str:
        """For `repr`."""
        return self.name


def initial_coefficients(basis: Basis, init: Init, shape: tuple[int, ...]) -> Any:
    """The coefficients with which sigma is `init`, for each channel where there are some."""
    if isinstance(init, str):
        if init != "identity" and init not in FIXED_ACTIVATIONS:
            known = ", ".join(["random", "identity", *FIXED_ACTIVATIONS])
            raise ValueError(
                f"The 'init' parameter of LearnableActivation must be a function, coefficients or "
                f"one of: {known}. Got {init!r}."
            )
        start = basis.fit((lambda z: z) if init == "identity" else FIXED_ACTIVATIONS[init][0])
    elif callable(init):
        start = basis.fit(init)
    else:
        start = np.array(init, dtype=np.float64)
        if start.shape not in ((basis.n,), shape):
            raise ValueError(
                f"The 'init' parameter of LearnableActivation must have {basis.n} coefficients, or "
                f"be of shape {shape}. Got shape {start.shape}."
            )
    return np.array(np.broadcast_to(start, shape))
