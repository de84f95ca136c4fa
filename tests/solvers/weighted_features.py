"""Rows of every loss with features of a random layer, and the weights with the least loss."""

import numpy as np
from scipy import optimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from rflaf import fused
from rflaf.bases import RBF
from rflaf.rows import ArrayRows, Block
from rflaf.solvers.features import KeptBlocks
from rflaf.solvers.newton import NewtonProblem
from rflaf.solvers.objective import FeatureMap, Objective
from rflaf.solvers.parts import RowPart
from tests.losses.conftest import ALL_LOSSES

D, M = 2, 20
SOLVER = "newton-cholesky"  # of scikit-learn: the features are strongly correlated
CASES = {case.name: case for case in ALL_LOSSES}


class Data:
    """Rows with targets as a loss takes them, and their features."""

    def __init__(self, case, n, fit_intercept=True, seed=0, dtype=np.float64):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, (n, D))
        y, weights = case.targets(x, rng), rng.uniform(0.2, 2, n)
        self.loss = case.opened(y, weights, fit_intercept)
        target, weights = self.loss.encode(y, weights)
        self.rows = Block(0, x.astype(dtype), target, weights)
        sigma = fused.basis_layout(RBF(9), 16, 1e-10).table(
            np.random.default_rng(4).standard_normal(9)
        )
        w = np.random.default_rng(99).standard_normal((D, M)).astype(dtype)
        self.features = FeatureMap(sigma, w, float(fit_intercept))

    def part(self, rows=slice(None), size=1000, room=1 << 30, prepare=None):
        _, x, y, weights, _ = self.rows.at(rows)
        return RowPart(ArrayRows(x, y, weights), size, KeptBlocks(room), prepare)

    def objective(self, *parts, known=None):
        return Objective(self.features, list(parts or [self.part()]), self.loss, known)

    def constant(self, rows=slice(None)):
        return self.loss.constant(self.rows.y[rows], self.rows.weights[rows])

    def phi(self, rows=slice(None)):
        return self.features(self.rows.x[rows]).astype(np.float64)

    def problem(self, fit=slice(None), held_out=None, every=None):
        held_out = None if held_out is None else self.part(held_out)
        constant = self.constant(fit)
        return NewtonProblem(self.features, self.part(fit), held_out, every, constant)


def least(objective, alpha, constant):
    """The weights with the least loss, as far as rounding goes."""
    v = objective.start(constant)
    for tol in (1e-6, 1e-12):
        v = objective.solve(objective.curvature(v), alpha, v, tol)
    return v


def stacked(solution):
    return np.vstack([solution.coef, solution.intercept])


def oracle(data, alpha, fit_intercept=True, rows=slice(None)):
    """Scikit-learn's output weights for the same problem, or SciPy's where it has no such loss."""
    phi, y, weights = data.phi(rows)[:, :-1], data.rows.y[rows], data.rows.weights[rows]
    total = weights.sum()
    if data.loss.name not in ("log_loss", "poisson", "squared_error"):
        return _minimised(data, alpha, fit_intercept, rows)
    if y.dtype.kind == "i":
        model = LogisticRegression(
            C=1 / (2 * alpha * total), fit_intercept=fit_intercept, tol=1e-9, solver=SOLVER
        )
    elif y.ndim == 1:
        model = PoissonRegressor(
            alpha=2 * alpha, fit_intercept=fit_intercept, tol=1e-9, solver=SOLVER
        )
    else:
        model = Ridge(alpha * total, fit_intercept=fit_intercept, solver="cholesky")
    model.fit(phi, y, sample_weight=weights)
    coef = np.atleast_2d(model.coef_).T
    return np.vstack([coef, np.broadcast_to(model.intercept_, coef.shape[1])])


def _minimised(data, alpha, fit_intercept, rows):
    phi, target, weights = data.phi(rows), data.rows.y[rows], data.rows.weights[rows]
    phi[:, -1] *= fit_intercept
    shape, share = (phi.shape[1], data.loss.outputs), (weights / weights.sum())[:, None]
    penalised = np.append(np.full(shape[0] - 1, alpha), 0.0)[:, None]

    def value(flat):
        v = flat.reshape(shape)
        loss, slope = data.loss.slopes(phi @ v, target)
        total = share[:, 0] @ loss + np.sum(penalised * v**2)
        return total, (phi.T @ (share * slope) + 2 * penalised * v).ravel()

    limits = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 50}
    start = np.zeros(shape)
    start[-1] = data.constant(rows) * fit_intercept
    found = optimize.minimize(value, start.ravel(), jac=True, method="L-BFGS-B", options=limits)
    return found.x.reshape(shape)


def close_scores(data, found, expected, atol, rows=slice(None)):
    """Scores are compared: weights along which the features hardly vary are of no account."""
    got, wanted = (data.phi(rows) @ v for v in (found, expected))
    if got.shape[1] > 2:  # of classes only the differences count
        got, wanted = (s - s.mean(axis=1, keepdims=True) for s in (got, wanted))
    np.testing.assert_allclose(got, wanted, atol=atol)


def assert_least(data, v, alpha, rows=slice(None), tol=1e-5):
    objective = data.objective(data.part(rows))
    best = objective.value(least(objective, alpha, data.constant(rows)), alpha)[0]
    assert best * (1 - 1e-9) <= objective.value(v, alpha)[0] <= best * (1 + tol)
