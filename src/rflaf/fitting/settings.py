"""What a fit is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.bases import Basis
from rflaf.solvers.starts import Kind, Learned

Array = NDArray[Any]


@dataclass(frozen=True)
class Choice:
    """The form of the inputs and the kind of metric, and where learning starts from, if known."""

    form: str
    kind: Kind
    start: Learned | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Start:
    """What the members of an earlier fit have learned, to go on from.

    `learned` has a list for each of the choices. The fit had `inputs` columns, and took ranks of
    those in `ranked`.
    """

    basis: Basis
    learned: list[list[Learned]]
    choices: list[Choice]
    inputs: int
    ranked: tuple[int, ...]


@dataclass(frozen=True)
class FitSettings:
    """The parameters of an estimator, resolved.

    Attributes
    ----------
    basis : Basis
    coefficients : array of N, optional
        Those of an activation that is given, and not to be learned.
    alpha : float, optional
        A penalty to keep.
    seed : int
        Everything that is drawn follows from it.
    start : Start, optional
        Where learning starts from, if that is of a kind that is possible now.
    class_weight : dict, "balanced" or None
        For classification.
    n_components, n_members : int, optional
        None: what the number of rows suggests.
    mixes : bool
        Whether members may have different forms of the inputs, and a linear model join them.
    holds_out : bool
        Whether there are rows enough for some to be held out.
    """

    n_components: int | None
    basis: Basis
    seed: int
    coefficients: Array | None = None
    metric: str = "auto"
    alpha: float | None = None
    solver: str = "auto"
    fit_intercept: bool = True
    validation_fraction: float = 0.1
    max_iter: int = 240
    tol: float = 0.02
    l1: float = 0.0
    smoothness: float = 0.0
    projection: str = "gaussian"
    max_bytes: int | None = None
    verbose: int = 0
    start: Start | None = None
    class_weight: Any = None
    n_members: int | None = None
    input_form: str = "auto"
    n_jobs: int | None = None
    mixes: bool = False
    holds_out: bool = True

    @property
    def plain_form(self) -> str:
        """The form of the inputs where nothing can choose it."""
        return "raw" if self.input_form == "auto" else self.input_form

    @property
    def components(self) -> int:
        """The number of features, once it is known."""
        assert self.n_components is not None
        return self.n_components

    def rng(self, *purpose: int) -> np.random.Generator:
        """A generator for one purpose; without any, for W and learning."""
        return np.random.default_rng([self.seed, *purpose] if purpose else self.seed)
