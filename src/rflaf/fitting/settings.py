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
    """A form of the inputs and a kind of metric, and where an earlier fit ended, if one did."""

    form: type[Form]
    kind: Kind
    trial_loss: float = field(default=np.inf, compare=False)  # held out, if there was a trial
    start: Learned | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Start:
    """What the members of an earlier fit have learned, to go on from."""

    basis: Basis
    learned: list[list[Learned]]  # a list for each of the choices
    choices: list[Choice]


@dataclass(frozen=True)
class FitSettings:
    """The parameters of an estimator, resolved."""

    n_components: int | None  # None: what the number of rows suggests
    basis: Basis
    seed: int  # everything that is drawn follows from it
    coefficients: Array | None = None  # of a given activation, which is not learned
    metric: str = "auto"
    alpha: float | None = None  # a penalty to keep
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
    start: Start | None = None  # where learning starts from, if that is possible now
    n_members: int | None = None  # None: what the number of rows suggests
    input_form: type[Form] | None = None  # None: what held-out rows choose
    n_jobs: int | None = None
    # columns of level codes or text numbers, which become means and predictions of the target
    coded: Coded | None = None
    effort: str = "default"  # a key of `rules.EFFORTS`
    time_limit: float | None = None  # seconds; None: as many as it takes
    started: float = 0.0  # when these began, in `time.monotonic`
    # gives -1, 0 or 1 for each input; called late: columns of blocks are known once some are read
    constraints: Callable[[Any], Array | None] | None = None
    local_models: bool = True  # whether parts of the rows may have output weights of their own
    online: bool = False  # whether more rows will be added later
    # known once rows have been seen (`folds.resolve`):
    mixes: bool = False  # whether members may have different forms of the inputs
    holds_out: bool = True  # whether there are rows enough for some to be held out
    uses_cg: bool = False  # whether output weights come from conjugate gradients

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
