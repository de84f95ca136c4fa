"""The functions of BLAS that compiled code calls, and the versions of numba that compile it."""

from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from packaging.requirements import Requirement
from scipy.linalg import cython_blas, cython_lapack

from rflaf import fused
from rflaf.fused.blas import addresses

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


class Capsule:
    """Prints as one of Cython's."""

    def __init__(self, signature):
        self.signature = signature

    def __repr__(self):
        return f'<capsule object "{self.signature}" at 0x7f00>'


def fake(signature):
    return SimpleNamespace(
        __name__="scipy.linalg.cython_blas", __pyx_capi__={"dgemm": Capsule(signature)}
    )


def test_functions_are_found():
    found = [fused.capsule_address(cython_blas, name) for name in ("sgemm", "dgemm", "dsyrk")]
    found += [fused.capsule_address(cython_lapack, name) for name in ("dpotrf", "dtrtrs")]
    assert len(set(found)) == 5
    assert all(address > 0 for address in found)
    for dtype in (np.float32, np.float64):
        assert (addresses(np.dtype(dtype)) > 0).all()


@pytest.mark.parametrize("number", ["double", "float", "__pyx_t_5scipy_6linalg_11cython_blas_d"])
def test_functions_of_c_ints_are_taken(number):
    signature = f"void (char *, int *, {number} *, int *)"
    expected = fused.capsule_address(cython_blas, "dgemm")
    assert fused.capsule_address(fake(signature), "dgemm") == expected


@pytest.mark.parametrize(
    "kind", ["long *", "int64_t *", "__pyx_t_5scipy_6linalg_11cython_blas_blas_int *", "int"]
)
def test_functions_of_other_integers_are_refused(kind):
    """They would read eight bytes where there are four."""
    with pytest.raises(ImportError, match=r"cython_blas.dgemm must take .*LP64"):
        fused.capsule_address(fake(f"void (char *, {kind}, double *)"), "dgemm")


@pytest.mark.parametrize("signature", ["int (int *)", "something else"])
def test_what_is_no_such_function_is_refused(signature):
    with pytest.raises(ImportError, match="needs a scipy"):
        fused.capsule_address(fake(signature), "dgemm")


def test_numba_is_within_its_bounds():
    """The cache and the compiler's lock are private to numba: an untested version may break."""
    lines = [line.strip() for line in PROJECT.read_text(encoding="utf-8").splitlines()]
    bounds = [Requirement(x.split('"')[1]).specifier for x in lines if x.startswith('"numba')]
    assert {part.operator for bound in bounds for part in bound} == {">=", "<"}
    assert all(bound.contains(version("numba")) for bound in bounds)
