"""The paper's networks of two layers: sigma(X W) V, with W drawn once or trained."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from rflaf.bases import Basis
from rflaf.nn.eager import network, readout
from rflaf.nn.initial import Init
from rflaf.nn.learnable import FixedActivation, LearnableActivation


class TwoLayerNetwork(nn.Module):
    """sigma(X W) V without an intercept; the four networks below differ in sigma and W alone.

    Parameters
    ----------
    n_inputs, n_components : int
        d and M.
    n_outputs : int, optional
        C. By default the output is a vector of one number per row, as regression wants it.
    activation : Module
        sigma.
    generator : torch.Generator, optional
        For W and V.
    """

    frozen: ClassVar[bool]
    W: Tensor

    def __init__(
        self,
        n_inputs: int,
        n_components: int,
        n_outputs: int | None,
        activation: nn.Module,
        generator: torch.Generator | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_components": n_components}
        for name, size in {**sizes, "n_outputs": 1 if n_outputs is None else n_outputs}.items():
            if size < 1:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be 1 or more. "
                    f"Got {size!r}."
                )
        shape = (n_components,) if n_outputs is None else (n_components, n_outputs)
        W = torch.randn(n_inputs, n_components, generator=generator, dtype=dtype)
        V = torch.randn(shape, generator=generator, dtype=dtype) / n_components**0.5
        if self.frozen:
            self.register_buffer("W", W)
        else:
            self.W = nn.Parameter(W)
        self.activation = activation
        self.V = nn.Parameter(V)

    def project(self, x: Tensor) -> Tensor:
        """Z = X W."""
        return x @ self.W

    def readout(self, z: Tensor, rows: Tensor | None = None) -> Tensor:
        """sigma(Z) V, if `rows` is given, of those of Z.

        Where W is frozen, training may start here, from Z computed once.
        """
        sigma = self.activation
        if isinstance(sigma, LearnableActivation) and sigma.is_plain():
            return readout(z, sigma.coefficients, self.V, sigma.basis_name, rows)
        phi: Tensor = sigma(z if rows is None else z.index_select(0, rows))
        return phi @ self.V

    def forward(self, x: Tensor) -> Tensor:
        """sigma(X W) V, of shape n, or n × C.

        With a learned activation it is one function, which does not call `project` and `readout`.
        """
        sigma = self.activation
        if isinstance(sigma, LearnableActivation) and sigma.is_plain():
            return network(x, self.W, sigma.coefficients, self.V, sigma.basis_name)
        return self.readout(self.project(x))

    def extra_repr(self) -> str:
        """For `repr`."""
        d, m = self.W.shape
        outputs = self.V.shape[1] if self.V.ndim == 2 else None
        return f"n_inputs={d}, n_components={m}, n_outputs={outputs}, frozen={self.frozen}"


class RFLAF(TwoLayerNetwork):
    """Random features with a learnable activation: W is drawn once, a and V are learned.

    Parameters
    ----------
    n_inputs, n_components : int
        d and M.
    n_outputs : int, optional
        C. By default the output is a vector of one number per row.
    basis, n_basis, grid, init
        As for `LearnableActivation`; the paper's RBF-16 is the default.
    seed : int, optional
        For W, V and a. By default they come from PyTorch's global generator.
    dtype : torch.dtype, optional
        Of all parameters.

    Examples
    --------
    >>> import torch
    >>> from rflaf.nn import RFLAF
    >>> model = RFLAF(9, 100, seed=0)
    >>> model(torch.randn(5, 9)).shape
    torch.Size([5])
    >>> sorted(name for name, _ in model.named_parameters())
    ['V', 'activation.coefficients']
    """

    frozen = True

    def __init__(
        self,
        n_inputs: int,
        n_components: int = 1000,
        n_outputs: int | None = None,
        *,
        basis: str | Basis = "rbf",
        n_basis: int = 17,
        grid: tuple[float, float] = (-2.0, 2.0),
        init: Init = "random",
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        generator = seeded(seed)
        activation = LearnableActivation(
            basis, n_basis, grid, init, tails="basis", generator=generator, dtype=dtype
        )
        super().__init__(n_inputs, n_components, n_outputs, activation, generator, dtype)


class LAN(RFLAF):
    """`RFLAF` with W trained as well: a network with a learnable activation.

    >>> len(list(LAN(9, 100, seed=0).parameters()))
    3
    """

    frozen = False


class RFMLP(TwoLayerNetwork):
    """Random features with a fixed activation: W is drawn once, V is learned.

    Parameters
    ----------
    n_inputs, n_components, n_outputs, seed, dtype
        As for `RFLAF`.
    activation : str
        relu, cos, tanh, sigmoid, or another of `rflaf.bases.FIXED_ACTIVATIONS`.

    Examples
    --------
    >>> import torch
    >>> RFMLP(9, 100, 3, activation="tanh", seed=0)(torch.randn(5, 9)).shape
    torch.Size([5, 3])
    """

    frozen = True

    def __init__(
        self,
        n_inputs: int,
        n_components: int = 1000,
        n_outputs: int | None = None,
        *,
        activation: str = "relu",
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        module = FixedActivation(activation)
        super().__init__(n_inputs, n_components, n_outputs, module, seeded(seed), dtype)


class MLP(RFMLP):
    """`RFMLP` with W trained as well.

    >>> len(list(MLP(9, 100, seed=0).parameters()))
    2
    """

    frozen = False


def seeded(seed: int | None) -> torch.Generator | None:
    """A generator with that seed; None for None, which means PyTorch's own."""
    return None if seed is None else torch.Generator().manual_seed(seed)
