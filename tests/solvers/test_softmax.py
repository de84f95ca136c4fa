"""Multinomial logistic regression on features, against scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from rflaf import fused
from rflaf.bases import RBF, Fixed
from rflaf.solvers import softmax
from rflaf.solvers.softmax import Rows, cross_entropy, fit_few, fit_softmax

D, M = 3, 20
each_count = pytest.mark.parametrize("n_classes", [2, 4])
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def make(n, n_classes, weighted=False, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    w = np.random.default_rng(99).standard_normal((D, M)).astype(dtype)
    x = rng.standard_normal((n, D)).astype(dtype)
    score = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.4 * rng.standard_normal(n)
    target = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    weights = rng.uniform(0.2, 2, n) if weighted else np.ones(n)
    return Rows(x, w, target, weights)


def some(rows, at):
    return Rows(rows.x[at], rows.w, rows.target[at], rows.weights[at])


def nobody(rows):
    return some(rows, slice(0, 0))


@pytest.fixture
def sigma():
    a = np.random.default_rng(4).standard_normal(9)
    return fused.basis_layout(RBF(9), 16, 1e-10).table(a)


def phi_of(sigma, rows):
    return fused.apply(sigma, np.asarray(rows.x @ rows.w))


def oracle(sigma, rows, alpha, fit_intercept):
    total = rows.weights.sum()
    model = LogisticRegression(
        C=1 / (2 * alpha * total), fit_intercept=fit_intercept, tol=1e-10, max_iter=20000
    )
    return model.fit(phi_of(sigma, rows), rows.target, sample_weight=rows.weights)


def scores_of(sigma, rows, solution):
    return phi_of(sigma, rows) @ solution.coef + solution.intercept


def probabilities(scores):
    full = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    e = np.exp(full - full.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@each_count
@each_intercept
@each_weighting
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_against_scikit_learn(sigma, n_classes, fit_intercept, weighted, alpha):
    rows = make(150, n_classes, weighted)
    solution, same = fit_softmax(
        sigma, rows, rows, nobody(rows), n_classes,
        alpha=alpha, fit_intercept=fit_intercept, max_iter=5000, tol=1e-14,
    )  # fmt: skip
    assert same is sigma
    assert solution.alpha == alpha
    assert solution.coef.shape == (M, 1 if n_classes == 2 else n_classes)
    expected = oracle(sigma, rows, alpha, fit_intercept)
    got = probabilities(scores_of(sigma, rows, solution))
    np.testing.assert_allclose(got, expected.predict_proba(phi_of(sigma, rows)), atol=2e-4)
    np.testing.assert_allclose(solution.coef, expected.coef_.T, atol=2e-3)
    if not fit_intercept:
        np.testing.assert_array_equal(solution.intercept, 0)


@each_count
@each_intercept
@each_weighting
def test_few_rows_solve_the_same_problem(sigma, n_classes, fit_intercept, weighted):
    rows = make(60, n_classes, weighted)
    few = fit_few(phi_of(sigma, rows), rows.target, rows.weights, n_classes, 1e-2, fit_intercept)
    many, _ = fit_softmax(
        sigma, rows, rows, nobody(rows), n_classes,
        alpha=1e-2, fit_intercept=fit_intercept, max_iter=5000, tol=1e-14,
    )  # fmt: skip
    assert few.coef.shape == many.coef.shape
    np.testing.assert_allclose(few.coef, many.coef, atol=1e-4)
    got, expected = (probabilities(scores_of(sigma, rows, s)) for s in (few, many))
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_fewer_rows_than_features(sigma):
    rows = make(8, 2)
    solution = fit_few(phi_of(sigma, rows), rows.target, rows.weights, 2, 1e-3, True)
    expected = oracle(sigma, rows, 1e-3, True)
    np.testing.assert_allclose(solution.coef, expected.coef_.T, atol=1e-4)


@each_count
def test_a_row_twice_is_a_row_of_weight_two(sigma, n_classes):
    rows = make(120, n_classes)
    twice = some(rows, np.r_[0:120, 0:50])
    rows.weights = np.where(np.arange(120) < 50, 2.0, 1.0)
    options = {"alpha": 1e-2, "max_iter": 5000, "tol": 1e-14}
    weighted, _ = fit_softmax(sigma, rows, rows, nobody(rows), n_classes, **options)
    stacked, _ = fit_softmax(sigma, twice, twice, nobody(twice), n_classes, **options)
    np.testing.assert_allclose(weighted.coef, stacked.coef, atol=1e-4)


@each_count
def test_cross_entropy_and_its_gradient(n_classes, rng):
    scores = 3 * rng.standard_normal((7, 1 if n_classes == 2 else n_classes))
    target, weights = rng.integers(0, n_classes, 7), rng.uniform(0.1, 2, 7)
    loss, gradient = cross_entropy(scores, target, weights)
    p = probabilities(scores)[np.arange(7), target]
    assert loss == pytest.approx(-(weights @ np.log(p)) / weights.sum())
    for index in np.ndindex(scores.shape):
        move = np.zeros(scores.shape)
        move[index] = 1e-6
        up, down = (cross_entropy(scores + s * move, target, weights)[0] for s in (1, -1))
        assert gradient[index] == pytest.approx((up - down) / 2e-6, abs=1e-8)


def test_huge_scores_stay_finite():
    scores = np.array([[1e6, -1e6, 0.0], [-1e6, 1e6, 3.0]])
    loss, gradient = cross_entropy(scores, np.array([0, 0]), np.ones(2))
    assert loss == pytest.approx(1e6)
    assert np.isfinite(gradient).all()


@each_count
@each_intercept
def test_gradient_of_the_joint_problem(sigma, n_classes, fit_intercept, rng):
    rows = make(40, n_classes, weighted=True)
    factor = np.tril(rng.uniform(0.5, 1.5, (M + 1, M + 1))) + 3 * np.eye(M + 1)
    problem = softmax._Problem(sigma, rows, 0.05, factor, fit_intercept)
    unknowns = rng.standard_normal((M + 1, 1 if n_classes == 2 else n_classes))
    _, by_unknowns, by_a = problem.evaluate(unknowns, sigma)

    def loss(u=unknowns, a=sigma.coefficients):
        return problem.evaluate(u, sigma.layout.table(a))[0]

    for index in [(0, 0), (5, 0), (M - 1, unknowns.shape[1] - 1)]:
        move = np.zeros(unknowns.shape)
        move[index] = 1e-5
        slope = (loss(u=unknowns + move) - loss(u=unknowns - move)) / 2e-5
        assert by_unknowns[index] == pytest.approx(slope, rel=1e-4, abs=1e-8)
    for k in range(9):
        move = np.eye(9)[k] * 1e-5
        slope = (loss(a=sigma.coefficients + move) - loss(a=sigma.coefficients - move)) / 2e-5
        assert by_a[k] == pytest.approx(slope, rel=1e-4, abs=1e-7)


@each_count
def test_blocks_do_not_matter(sigma, n_classes, monkeypatch):
    """Features kept or computed again, in one block or many."""
    rows = make(150, n_classes, weighted=True)
    options = {"alpha": 1e-2, "max_iter": 5000, "tol": 1e-14}
    whole, _ = fit_softmax(sigma, rows, rows, nobody(rows), n_classes, **options)
    split = make(150, n_classes, weighted=True)
    split.blocks = [slice(0, 7), slice(7, 100), slice(100, 150)]
    split.small = False
    parts, _ = fit_softmax(sigma, split, split, nobody(split), n_classes, **options)
    assert split._z == []
    np.testing.assert_allclose(parts.coef, whole.coef, atol=1e-4)


@each_count
def test_the_penalty_is_the_best_on_held_out_rows(sigma, n_classes):
    rows = make(300, n_classes)
    fit, held = some(rows, slice(0, 200)), some(rows, slice(200, 300))
    solution, _ = fit_softmax(
        sigma, rows, fit, held, n_classes, refine=False, max_iter=2000, tol=1e-12
    )
    losses = {record["alpha"]: record["loss"] for record in solution.path}
    for alpha in (0.1, 0.03, 0.01, 1e-3, 1e-4):  # noisy classes want a large penalty
        p = oracle(sigma, fit, alpha, True).predict_proba(phi_of(sigma, held))
        loss = -np.mean(np.log(p[np.arange(100), held.target]))
        assert min(losses.values()) < loss + 0.01
    assert solution.alpha == min(losses, key=losses.get)
    for alpha, loss in losses.items():
        p = oracle(sigma, fit, alpha, True).predict_proba(phi_of(sigma, held))
        assert loss == pytest.approx(-np.mean(np.log(p[np.arange(100), held.target])), abs=5e-3)
    # and then all rows are fitted to
    expected = oracle(sigma, rows, solution.alpha, True).predict_proba(phi_of(sigma, rows))
    got = probabilities(scores_of(sigma, rows, solution))
    np.testing.assert_allclose(got, expected, atol=0.01)


@each_count
@pytest.mark.parametrize("seed", range(3))
def test_the_refinement_never_worsens_the_held_out_loss(n_classes, seed):
    a = np.random.default_rng(seed).standard_normal(9)
    sigma = fused.basis_layout(RBF(9), 16, 1e-10).table(a)
    rows = make(300, n_classes, seed=seed)
    fit, held = some(rows, slice(0, 200)), some(rows, slice(200, 300))
    plain, _ = fit_softmax(sigma, rows, fit, held, n_classes, refine=False)
    refined, better = fit_softmax(sigma, rows, fit, held, n_classes)
    best = min(record["loss"] for record in plain.path)
    steps = [record["loss"] for record in refined.path if record.get("refined")]
    if steps:
        assert steps[-1] < best
        assert not np.array_equal(better.coefficients, sigma.coefficients)
    else:
        assert better is sigma


def test_what_the_refinement_reports_is_what_it_gives():
    a = np.random.default_rng(1).standard_normal(9)
    sigma = fused.basis_layout(RBF(9), 16, 1e-10).table(a)
    rows = make(300, 2, seed=1)
    fit, held = some(rows, slice(0, 200)), some(rows, slice(200, 300))
    factor = softmax._factor(sigma, fit, True)
    problem = softmax._Problem(sigma, fit, 1e-4, factor, True)
    start, _ = softmax._minimise(problem, np.zeros((M + 1, 1)), 100, 1e-9)

    def held_loss(table, unknowns):
        v = problem.weights(unknowns)
        scores = phi_of(table, held) @ v[:-1] + v[-1]
        return cross_entropy(scores, held.target, held.weights)[0]

    before = held_loss(sigma, start)
    found = softmax._refine(problem, start, held, before, 30)
    assert found is not None
    table, unknowns, loss = found
    assert loss == pytest.approx(held_loss(table, unknowns), rel=1e-6)
    assert loss < before
    assert softmax._refine(problem, start, held, 0.0, 5) is None  # nothing is better than that


def test_a_fixed_activation_is_not_refined():
    rows = make(200, 3)
    sigma = fused.Direct(Fixed("tanh"), np.ones(1))
    fit, held = some(rows, slice(0, 150)), some(rows, slice(150, 200))
    solution, same = fit_softmax(sigma, rows, fit, held, 3)
    assert same is sigma
    assert not any(record.get("refined") for record in solution.path)


def test_sparse_inputs(sigma):
    rows = make(150, 3)
    thin = Rows(sparse.csr_array(rows.x), rows.w, rows.target, rows.weights)
    options = {"alpha": 1e-2, "max_iter": 2000, "tol": 1e-13}
    dense, _ = fit_softmax(sigma, rows, rows, nobody(rows), 3, **options)
    same, _ = fit_softmax(sigma, thin, thin, nobody(thin), 3, **options)
    np.testing.assert_allclose(same.coef, dense.coef, atol=1e-5)


def test_single_precision_is_near(sigma):
    wide, narrow = make(200, 3), make(200, 3, dtype=np.float32)
    options = {"alpha": 1e-3, "max_iter": 500, "tol": 1e-10}
    one, _ = fit_softmax(sigma, wide, wide, nobody(wide), 3, **options)
    other, _ = fit_softmax(sigma, narrow, narrow, nobody(narrow), 3, **options)
    got, expected = (probabilities(scores_of(sigma, wide, s)) for s in (other, one))
    np.testing.assert_allclose(got, expected, atol=5e-3)
