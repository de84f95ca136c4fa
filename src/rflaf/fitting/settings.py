"""What a fit is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rflaf import rules
from rflaf.arrays import Array
from rflaf.bases import Basis
from rflaf.inputs.forms import Form
from rflaf.inputs.target_means import Coded
from rflaf.solvers.starts import Kind, Learned


@dataclass(frozen=True)
class Choice:
    """A form of the inputs and a kind of metric, and where an earlier fit ended, if one did.

    `trial_loss` is the held-out loss of a trial, if there was one.
    """

    form: type[Form]
    kind: Kind
    trial_loss: float = field(default=np.inf, compare=False)
    start: Learned | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Start:
    """What the members of an earlier fit have learned, to go on from.

    `learned` has a list for each of the choices.
    """

    basis: Basis
    learned: list[list[Learned]]
    choices: list[Choice]


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
    n_components, n_members : int, optional
        None: what the number of rows suggests.
    input_form : type of Form, optional
        None: what held-out rows choose.
    coded : Coded, optional
        Columns of the inputs that hold codes of levels or numbers of texts, which become means and
        predictions of the target.
    effort : str
        A key of `rules.EFFORTS`.
    time_limit, started : float, float
        Seconds that the fit may take, and when they began; None: as many as it takes.
    constraints : callable, optional
        Gives -1, 0 or 1 for each of the inputs, for the loss of the fit: the columns of blocks are
        not known before some are read.
    local_models : bool
        Whether small parts of the rows may have output weights of their own.
    online : bool
        Whether more rows will be added later.

    These are known once rows have been seen (`folds.resolve`):

    mixes : bool
        Whether members may have different forms of the inputs.
    holds_out : bool
        Whether there are rows enough for some to be held out.
    uses_cg : bool
        Whether output weights come from conjugate gradients.
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
    n_members: int | None = None
    input_form: type[Form] | None = None
    n_jobs: int | None = None
    coded: Coded | None = None
    effort: str = "default"
    time_limit: float | None = None
    started: float = 0.0
    constraints: Callable[[Any], Array | None] | None = None
    local_models: bool = True
    online: bool = False
    mixes: bool = False
    holds_out: bool = True
    uses_cg: bool = False

    @property
    def share(self) -> rules.Effort:
        """How much of the rules' numbers is taken."""
        return rules.EFFORTS[self.effort]

    @property
    def components(self) -> int:
        """The number of features, once it is known."""
        assert self.n_components is not None
        return self.n_components

    @property
    def members(self) -> int:
        """The members of a team, once they are known."""
        assert self.n_members is not None
        return self.n_members

    @property
    def learns_activation(self) -> bool:
        """Whether there are coefficients to learn."""
        return self.basis.learnable and self.coefficients is None

    def rng(self, *purpose: int) -> np.random.Generator:
        """A generator for one purpose; without any, for W and learning."""
        return np.random.default_rng([self.seed, *purpose] if purpose else self.seed)
