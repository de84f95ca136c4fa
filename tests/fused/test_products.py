"""Products of features with a few outputs, against their specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rflaf import fused
from rflaf.fused import products, reference
from rflaf.runtime.threads import use_threads

DTYPES = [np.float32, np.float64]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)


def squares(y):
    """Half the squared errors, and their gradient."""

    def loss(scores, rows):
        error = scores - y[rows]
        return 0.5 * float(np.sum(error**2)), error

    return loss


def make(rng, n, m, outputs, dtype):
    phi = rng.standard_normal((n, m)).astype(dtype)
    return phi, rng.standard_normal((m, outputs)), rng.standard_normal((n, outputs))


def close(found, expected, dtype, terms):
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    unit = 3e-6 if dtype == np.float32 else 1e-14
    scale = np.abs(expected).max(initial=1) * (1 + terms**0.5)
    np.testing.assert_allclose(found, expected, atol=unit * scale, rtol=0)


@each_dtype
@given(
    n=st.integers(0, 70),
    m=st.integers(0, 40),
    outputs=st.integers(0, 20),
    seed=st.integers(0, 1000),
)
def test_against_the_specification(dtype, n, m, outputs, seed):
    phi, v, y = make(np.random.default_rng(seed), n, m, outputs, dtype)
    close(fused.times(phi, v), reference.times(phi, v), dtype, m)
    total, by_v = fused.slopes(phi, v, squares(y))
    expected = reference.slopes(phi, v, squares(y))
    assert total == pytest.approx(expected[0], rel=1e-5 if dtype == np.float32 else 1e-12)
    close(by_v, expected[1], dtype, n + m)


@each_dtype
@pytest.mark.parametrize("elements", [1, 5000, 1 << 19])
@pytest.mark.parametrize("outputs", [1, 3, 16, 20])
def test_threads_change_no_bit(outputs, elements, dtype, rng, monkeypatch):
    """Nor do several ranges change the result, whether they have their sums together or not."""
    monkeypatch.setattr(products, "_RANGE", elements)
    phi, v, y = make(rng, 1201, 300, outputs, dtype)
    found = []
    for threads in (1, 2, 4):
        with use_threads(threads):
            found.append((fused.times(phi, v), *fused.slopes(phi, v, squares(y))))
    expected = reference.times(phi, v), *reference.slopes(phi, v, squares(y))
    assert found[0][1] == pytest.approx(expected[1], rel=1e-5)
    for k in (0, 2):
        close(found[0][k], expected[k], dtype, 1201)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_sums_of_many_rows_stay_exact():
    """In float32 alone a sum of this many ones would stop growing."""
    phi = np.ones((3 << 23, 1), np.float32)
    _, by_v = fused.slopes(phi, np.zeros((1, 1)), lambda scores, _: (0.0, scores + 1))
    assert by_v[0, 0] == len(phi)


def test_the_loss_sees_every_row_once(rng, monkeypatch):
    monkeypatch.setattr(products, "_RANGE", 700)
    phi, v, _ = make(rng, 1000, 7, 2, np.float32)
    seen = np.zeros(1000, int)

    def count(scores, rows):
        assert scores.shape == (rows.stop - rows.start, 2)
        seen[rows] += 1
        return 1.0, np.asfortranarray(np.zeros_like(scores))

    total, by_v = fused.slopes(phi, v, count)
    assert total == 10
    assert (seen == 1).all()
    assert not by_v.any()


def test_what_the_loss_raises_is_raised(rng):
    def refuse(scores, rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fused.slopes(np.ones((3, 2)), np.ones((2, 1)), refuse)


def test_wrong_arguments_are_named():
    phi, v = np.ones((4, 6)), np.ones((6, 2))
    bad = [
        (lambda: fused.times(phi, np.ones((5, 2))), r"'v' must be a matrix of 6 rows. Got .*5, 2"),
        (lambda: fused.times(phi, np.ones(6)), "'v' must be a matrix of 6 rows"),
        (lambda: fused.times(phi[0], v), "'phi' must be a contiguous matrix"),
        (lambda: fused.times(phi.astype(int), v), "dtype int64"),
        (lambda: fused.times(np.asfortranarray(phi), v), "'phi' must be a contiguous matrix"),
        (lambda: fused.slopes(phi, v, lambda scores, _: (0.0, scores[:, :1])),
         "'gradient' must be a matrix of 4 rows and 2 columns"),
    ]  # fmt: skip
    for call, message in bad:
        with pytest.raises(ValueError, match=message):
            call()


@each_dtype
@given(
    m=st.integers(1, 5), n=st.integers(1, 70), nodes=st.integers(4, 9), width=st.integers(1, 40),
    outputs=st.integers(1, 4), seed=st.integers(0, 1000),
)  # fmt: skip
def test_interpolation_against_the_specification(dtype, m, n, nodes, width, outputs, seed):
    rng = np.random.default_rng(seed)
    tables = rng.standard_normal((m, nodes, width)).astype(dtype)
    place = rng.uniform(0, nodes - 1, (m, n)).astype(dtype)
    v = rng.standard_normal((m, outputs)).astype(dtype)
    unit = 3e-5 if dtype == np.float32 else 1e-13
    for found, expected in zip(fused.interpolated(tables, place, v),
                               reference.interpolated(tables, place, v)):  # fmt: skip
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=unit)
    _, last = fused.interpolated(tables, np.tile(np.arange(nodes, dtype=dtype), (m, 1)), v)
    np.testing.assert_allclose(last, tables[:, :, -1], rtol=unit)  # the nodes themselves


@each_dtype
@given(m=st.integers(1, 4), n=st.integers(1, 20), count=st.integers(1, 20))
def test_quotients_against_the_specification(dtype, m, n, count):
    rng = np.random.default_rng(n)
    here, there = ([rng.standard_normal((m, k)).astype(dtype) for _ in range(3)]
                   for k in (n, count))  # fmt: skip
    there[0][:, 0] = here[0][:, 0]  # no distance, no quotient
    found, expected = fused.quotients(here, there, 0.01), reference.quotients(here, there, 0.01)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-10)


def test_interpolation_has_the_same_bits_for_any_threads(rng):
    tables, v = rng.standard_normal((9, 20, 72)), rng.standard_normal((9, 2))
    place = rng.uniform(1, 18, (9, 3000))
    found = []
    for count in (1, 2):
        with use_threads(count):
            found.append(fused.interpolated(tables, place, v)[0])
    np.testing.assert_array_equal(*found)
