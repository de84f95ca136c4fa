"""The paper's networks of two layers: sigma(X W) V, with W drawn once or trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from rflaf.bases import Basis
from rflaf.bases.base import AT_LEAST_ONE, check_parameters
from rflaf.nn.eager import network, readout
from rflaf.nn.initial import Init
from rflaf.nn.learnable import LearnableActivation
from rflaf.runtime.callers import warn

_FILLED = 0.99  # share of the first batch's Z that "auto" brings inside the grid
_MOST_OUTSIDE = 0.2  # of Z; with more, a warning
_EVERY = 64  # batches, of which one is checked
_ROWS, _COLUMNS = 256, 256  # of Z that are checked
# before PyTorch 2.7 an export cannot be told from a compilation
_is_exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)


class FixedActivation(nn.Module):
    """A fixed activation of z + phase, by its name in `rflaf.bases`, in PyTorch's own functions.

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

    def __init__(self, name: str, phase: float = 0.0) -> None:
        super().__init__()
        if name not in self.FUNCTIONS:
            raise ValueError(
                f"Unknown activation {name!r}. Expected one of: {', '.join(self.FUNCTIONS)}."
            )
        self.name, self.phase = name, phase

    def forward(self, z: Tensor) -> Tensor:
        """The function, element by element."""
        return self.FUNCTIONS[self.name](z + self.phase if self.phase else z)

    def extra_repr(self) -> str:
        return self.name


class TwoLayerNetwork(nn.Module):
    """sigma(X W) V without an intercept; the networks below differ only in sigma and frozen W."""

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
        sizes = {name: [AT_LEAST_ONE, None] for name in ("n_inputs", "n_components", "n_outputs")}
        check_parameters(type(self).__name__, sizes, locals())
        shape = (n_components,) if n_outputs is None else (n_components, n_outputs)
        W = torch.randn(n_inputs, n_components, generator=generator, dtype=dtype)
        V = torch.randn(shape, generator=generator, dtype=dtype) / n_components**0.5
        if self.frozen:
            self.register_buffer("W", W)
        else:
            self.W = nn.Parameter(W)
        self.activation = activation
        self.V = nn.Parameter(V)

    def scaled(self, x: Tensor) -> Tensor:
        """What W is applied to: the inputs, times their scale where there is one."""
        return x

    def project(self, x: Tensor) -> Tensor:
        """Z = X W, of the scaled inputs."""
        return self.scaled(x) @ self.W

    def readout(self, z: Tensor, rows: Tensor | None = None) -> Tensor:
        """sigma(Z) V, of `rows` of Z if given; with W frozen, training may start from Z itself."""
        sigma = self.activation
        if isinstance(sigma, LearnableActivation) and sigma.is_plain():
            return readout(z, sigma.coefficients, self.V, sigma.basis_name, rows)
        return sigma(z if rows is None else z.index_select(0, rows)) @ self.V

    def forward(self, x: Tensor) -> Tensor:
        """sigma(X W) V, of shape n, or n × C.

        With a learned activation it is one function, which does not call `project` and `readout`.
        """
        sigma = self.activation
        if isinstance(sigma, LearnableActivation) and sigma.is_plain():
            return network(self.scaled(x), self.W, sigma.coefficients, self.V, sigma.basis_name)
        return self.readout(self.project(x))

    def extra_repr(self) -> str:
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
    input_scale : "auto", float or None
        Factor of the inputs. "auto" measures it on the first batch, so that 99 % of Z lie in the
        grid; it is then part of `state_dict`. None is the paper's network, without scaling.
        Otherwise a warning is given once if a fifth of Z or more lie outside the grid in training.
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
    input_scale: Tensor | None

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
        input_scale: float | str | None = "auto",
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        generator = seeded(seed)
        activation = LearnableActivation(
            basis, n_basis, grid, init, tails="basis", generator=generator, dtype=dtype
        )
        super().__init__(n_inputs, n_components, n_outputs, activation, generator, dtype)
        low, high = activation.basis.grid
        number = isinstance(input_scale, int | float) and 0 < input_scale < math.inf
        if not (number or input_scale is None or (input_scale == "auto" and low < 0 < high)):
            raise ValueError(
                f"The 'input_scale' parameter of {type(self).__name__} must be a positive number, "
                f"None, or 'auto' with 0 inside the grid. Got {input_scale!r}, grid {(low, high)}."
            )
        self._measured, self._batches, self._warned = input_scale != "auto", 0, False
        scale = None
        if input_scale is not None:
            start = float(input_scale) if number else math.nan  # not known before the first batch
            scale = torch.tensor(start, dtype=self.V.dtype)
        self.register_buffer("input_scale", scale)

    def scaled(self, x: Tensor) -> Tensor:
        """The inputs times `input_scale`, which the first batch decides if it is "auto"."""
        if self.input_scale is None:
            return x
        if not self._measured:
            self._measure(x.detach())
        if self.training:
            self._watch(x.detach())
        return x * self.input_scale

    @torch.no_grad()
    def _measure(self, x: Tensor) -> None:
        traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        if traced or _is_exporting():  # the program would measure every batch anew
            raise RuntimeError(
                "input_scale='auto' is measured on the first batch, which must come before a model "
                "is exported: call the model on one, or give a number."
            )
        assert self.input_scale is not None
        low, high = self.activation.basis.grid  # type: ignore[union-attr, misc]
        far = torch.quantile(_some(x, self.W).abs().float(), _FILLED)
        room = far.new_tensor(min(-low, high))
        self.input_scale.copy_(torch.where(far > 0, room / far, torch.ones_like(far)))
        self._measured = True

    @torch.no_grad()
    def _watch(self, x: Tensor) -> None:
        """Bring the activation's `outside_share` up to date, now and then, and warn once."""
        assert self.input_scale is not None
        if torch.compiler.is_compiling():  # a count would make it compile again for each batch
            return
        self._batches += 1
        if self._batches % _EVERY != 1:
            return
        sigma = cast("LearnableActivation", self.activation)
        sigma.observe(_some(x, self.W) * self.input_scale)
        share, (low, high) = sigma.outside_share.item(), sigma.basis.grid
        if share > _MOST_OUTSIDE and not self._warned:
            self._warned = True
            warn(
                f"{share:.0%} of the projected inputs lie outside the grid "
                f"[{low:g}, {high:g}], where the activation is learned. A smaller 'input_scale' "
                "or a wider 'grid' with more 'n_basis' may help."
            )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self.input_scale is not None:  # a model may be saved before its first batch
            self._measured = not bool(self.input_scale.isnan())


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


def _some(x: Tensor, W: Tensor) -> Tensor:
    """Z of a few rows and columns."""
    rows = x.reshape(-1, x.shape[-1])
    return rows[:: max(1, len(rows) // _ROWS)].to(W.dtype) @ W[:, :_COLUMNS]


def seeded(seed: int | None) -> torch.Generator | None:
    """A generator with that seed; None for None, which means PyTorch's own."""
    return None if seed is None else torch.Generator().manual_seed(seed)
