"""What all tests share: every basis in one place, and deterministic random numbers."""

import errno
import os
import signal

import numpy as np
import pytest
from hypothesis import settings

from rflaf import rules
from rflaf.bases import (
    FIXED_ACTIVATIONS,
    LEARNABLE_BASES,
    RBF,
    BSpline,
    Continued,
    Fixed,
    get_basis,
)
from rflaf.runtime import threads

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
def ctrl_c():
    """SIGINT raises KeyboardInterrupt: background jobs of a shell are started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def full_disk(monkeypatch):
    """No file can be written to its end."""

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)


@pytest.fixture
def two_teams(monkeypatch):
    """Rows and targets of which smooth columns and bins each tell a part, and room for both."""
    monkeypatch.setattr(rules, "MIXED_LOSS", np.inf)
    monkeypatch.setattr(rules, "LEAST_PART", 0.0)
    X = np.random.default_rng(5).uniform(-2, 2, (240, 4))
    steps = np.floor(3 * X[:, 2]) % 2 + np.floor(2 * X[:, 3]) % 2
    return X, np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1] + steps


@pytest.fixture
def processors(monkeypatch):
    """Four of them, and no limit to the threads on them."""
    for name in ("RFLAF_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_available_processors", lambda: 4)
    monkeypatch.setattr(threads, "_pool", None)
