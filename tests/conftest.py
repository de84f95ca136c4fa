"""What all tests share: every basis in one place, and deterministic random numbers."""

import os

import numpy as np
import pytest
from hypothesis import settings

from rflaf.bases import (
    FIXED_ACTIVATIONS,
    LEARNABLE_BASES,
    RBF,
    BSpline,
    Continued,
    Fixed,
    get_basis,
)
from rflaf.fitting import choosing, classification, regression
from rflaf.fitting.members import teams_of

os.environ.setdefault("MPLBACKEND", "Agg")
settings.register_profile("rflaf", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("rflaf")

# A basis that is added to the registry is under the contract tests from then on.
ALL_BASES = [
    *(get_basis(name, 9) for name in LEARNABLE_BASES),
    *(Fixed(name) for name in FIXED_ACTIVATIONS),
    RBF(33, -1.0, 3.0),
    RBF(centers=[-2.0, -0.5, 0.1, 0.2, 3.0], width=[1.0, 0.3, 0.1, 0.2, 0.7]),
    *(BSpline(9, -1.5, 2.5, degree, tail) for degree in (1, 3, 5) for tail in
      ("zero", "constant", "linear")),
    Continued(RBF(9)),
    Continued(get_basis("chebyshev", 6)),
]  # fmt: skip
TABLE_BASES = [basis for basis in ALL_BASES if basis.tail != "direct"]
# one of each way a kernel can run
KERNEL_BASES = [
    RBF(17),
    RBF(centers=[-2.0, -0.5, 0.1, 0.2, 3.0], width=[1.0, 0.3, 0.1, 0.2, 0.7]),
    BSpline(12, degree=2),
    BSpline(12, degree=1, extrapolate="constant"),
    BSpline(12, degree=4, extrapolate="linear"),
    get_basis("chebyshev", 8),
    get_basis("polynomial", 5),
    Fixed("relu"),
    Fixed("gelu"),
]


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


@pytest.fixture
def mixed(monkeypatch):
    """Fits with all else "auto" have three teams: a smooth form, bins, and a linear member.

    Both forms are learned, however good they are, and the second gets more weight.
    """
    monkeypatch.setattr(choosing, "_MIXED", np.inf)

    def weights(loss, seats):
        parts = np.array([0.3, 0.5, 0.2])[: len(teams_of(seats))]
        assert np.isfinite(loss(parts / parts.sum()))
        return parts / parts.sum()

    for module in (regression, classification):
        monkeypatch.setattr(module, "mix_teams", weights)
