"""The integrals behind the recovery of sigma, against quadrature and samples, and the solver."""

import numpy as np
import pytest
from scipy import integrate, stats

from rflaf.bases import RBF, BSpline, Polynomial
from rflaf.paper.bilinear import (
    Design,
    fold_matrices,
    folded_mean,
    recover,
    roughness,
    spread_directions,
)

BASES = [
    RBF(9),
    RBF(8, -1.5, 1.5),
    BSpline(12, degree=3),
    BSpline(9, degree=2),
]


def integrals(design):
    blocks = [(even, odd) for _, even, odd in design.blocks()]
    return tuple(np.concatenate(parts) for parts in zip(*blocks))


@pytest.mark.parametrize(("mean", "spread"), [(0.0, 1.0), (0.7, 0.3), (-2.0, 0.5), (1.5, 0.0)])
def test_folded_mean(mean, spread):
    if spread:
        density = stats.norm(mean, spread).pdf
        expected, _ = integrate.quad(lambda t: abs(t) * density(t), -8, 8, points=[0.0, mean])
    else:
        expected = abs(mean)
    assert folded_mean(np.array(mean), np.array(spread)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("basis", BASES, ids=repr)
@pytest.mark.parametrize("row", [[0.3, -0.1], [1.2, 0.9], [3.0, -2.0]], ids=str)
def test_integrals_are_those_of_adaptive_quadrature(basis, row):
    x, directions = np.array(row), spread_directions(3, 2, None)
    even_fold, odd_fold = fold_matrices(basis)
    rng = np.random.default_rng(1)
    half_even = rng.standard_normal(even_fold.shape[1])
    half_odd = rng.standard_normal(odd_fold.shape[1])
    # a second row, so that the first is not the one that sets the nodes
    even, odd = integrals(Design(np.array([x, [1.0, 0.0]]), basis, directions))
    norm = np.linalg.norm(x)
    z = np.linspace(-9 * norm, 9 * norm, 200_001)
    density = stats.norm(0, norm).pdf(z)

    def mean(values, fold, half):
        return integrate.trapezoid(basis.combine(fold @ half, z) * values * density, z)

    for k, direction in enumerate(directions):
        cosine = x @ direction / norm
        values = folded_mean(z / norm * cosine, np.sqrt(1 - cosine**2))
        expected = mean(values, even_fold, half_even)
        assert even[0, k] @ half_even == pytest.approx(expected, abs=3e-4)
    for j in range(2):
        expected = mean(z / norm * x[j] / norm, odd_fold, half_odd)
        assert odd[0, j] @ half_odd == pytest.approx(expected, abs=3e-4)


def test_integrals_are_means_over_w_in_three_dimensions(rng):
    basis, directions = RBF(7), spread_directions(5, 3, rng)
    x, w = rng.standard_normal((3, 3)), rng.standard_normal((400_000, 3))
    even, odd = integrals(Design(x, basis, directions))
    even_fold, odd_fold = fold_matrices(basis)
    for i, row in enumerate(x):
        values = basis(w @ row) / len(w)
        np.testing.assert_allclose(
            even[i], np.abs(w @ directions.T).T @ values @ even_fold, atol=0.01
        )
        np.testing.assert_allclose(odd[i], w.T @ values @ odd_fold, atol=0.01)


def test_rows_of_length_zero_and_nearly_zero():
    basis = RBF(9)
    x = np.array([[0.0, 0.0], [1e-9, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    even, odd = integrals(Design(x, basis, spread_directions(2, 2, None)))
    at_zero = basis(0.0) @ fold_matrices(basis)[0] * np.sqrt(2 / np.pi)
    np.testing.assert_allclose(even[0], [at_zero, at_zero], atol=1e-3)
    assert np.abs(odd[0]).max() == 0
    assert np.isfinite(even).all()
    assert np.isfinite(odd).all()


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_folds_give_even_and_odd_functions(basis, rng):
    z = np.linspace(-2.5, 2.5, 101)
    for fold, sign in zip(fold_matrices(basis), (1, -1)):
        values = basis.combine(fold @ rng.standard_normal(fold.shape[1]), z)
        np.testing.assert_allclose(values, sign * values[::-1], atol=1e-9)
    assert np.linalg.matrix_rank(np.hstack(fold_matrices(basis))) == basis.n


def test_a_basis_without_mirror_image_is_refused():
    for basis in (RBF(9, -1.0, 2.0), Polynomial(5), RBF(2), BSpline(9, extrapolate="linear")):
        with pytest.raises(ValueError, match="mirror image"):
            fold_matrices(basis)


def test_roughness_is_the_integral_of_the_squared_second_derivative():
    basis = RBF(21)
    a = basis.fit(lambda z: np.exp(-2 * z**2))
    z = np.linspace(-3, 3, 6001)
    second = np.gradient(basis.combine(a, z, 1), z)
    expected = integrate.trapezoid(second**2, z)
    assert a @ roughness(basis) @ a == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_directions_are_unit_vectors_and_apart(d, rng):
    directions = spread_directions(8, d, rng)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    cosines = np.abs(directions @ directions.T) - np.eye(len(directions))
    assert cosines.max() < 0.95


def test_an_exact_f_with_a_direction_off_the_grid(rng):
    """v and sigma come back, each part up to its factor, and the fit is close."""
    basis, directions = RBF(21), spread_directions(8, 2, rng)
    even_fold, odd_fold = fold_matrices(basis)
    a = basis.fit(lambda z: np.exp(-3 * (z - 0.5) ** 2))
    even, odd = (a + a[::-1]) / 2, (a - a[::-1]) / 2
    x = rng.standard_normal((1200, 2))
    truth = Design(x, basis, np.array([[np.cos(1.0), np.sin(1.0)]]))
    by_even, by_odd = integrals(truth)
    y = by_even[:, 0] @ even[: even_fold.shape[1]]
    y = y + by_odd @ odd[: odd_fold.shape[1]] @ [0.5, -1.0]
    found = recover(x, y, basis, directions, rng=rng)
    z = np.linspace(-2, 2, 201)
    values, expected = found.activation(z), basis.combine(a, z)
    for sign in (1, -1):
        part, wanted = (f + sign * f[::-1] for f in (values, expected))
        cosine = part @ wanted / np.linalg.norm(part) / np.linalg.norm(wanted)
        assert abs(cosine) > 0.99
    slope = found.odd_weights / np.linalg.norm(found.odd_weights)
    np.testing.assert_allclose(np.abs(slope), np.array([0.5, 1.0]) / np.sqrt(1.25), atol=0.01)
    assert sum(found.shares) == pytest.approx(1, abs=0.35)  # the parts are not orthogonal
    assert min(record["loss"] for record in found.history) < 1e-3
