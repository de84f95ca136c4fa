"""Tests of rflaf.nn need PyTorch; without it they are skipped."""

import importlib.util

import pytest

from rflaf.bases import RBF, BSpline, Chebyshev, Polynomial

# one of each way the operators can run
OPERATOR_BASES = [
    RBF(9),
    RBF(centers=[-2.0, -0.5, 0.1, 0.2, 3.0], width=[1.0, 0.3, 0.1, 0.2, 0.7]),
    BSpline(9, degree=2),
    BSpline(9, degree=3, extrapolate="constant"),
    BSpline(9, degree=4, extrapolate="linear"),
    Chebyshev(6),
    Polynomial(5),
]

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch

    from rflaf.paper.training import DefectiveBSpline

    OPERATOR_BASES.append(DefectiveBSpline(9))


@pytest.fixture(params=OPERATOR_BASES, ids=lambda basis: repr(basis)[:40])
def basis(request):
    return request.param


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20261115)
