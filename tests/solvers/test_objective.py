"""The loss of output weights, for any loss: against scikit-learn, and what the losses say."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from rflaf import fused
from rflaf.bases import Fixed
from rflaf.rows import ArrayRows, Block
from rflaf.solvers.features import KeptBlocks
from rflaf.solvers.parts import RowPart
from rflaf.solvers.ridge import NormalEquations
from tests.losses.conftest import ALL_LOSSES
from tests.solvers.weighted_features import CASES, D, Data, M, close_scores, least, oracle

every_loss = pytest.mark.parametrize("case", ALL_LOSSES, ids=lambda case: case.name)
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])


@every_loss
@each_intercept
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_against_scikit_learn(case, fit_intercept, alpha):
    data = Data(case, 150, fit_intercept)
    found = least(data.objective(), alpha, data.constant())
    assert found.shape == (M + 1, data.loss.outputs)
    close_scores(data, found, oracle(data, alpha, fit_intercept), atol=2e-3)
    if not fit_intercept:
        np.testing.assert_array_equal(found[-1], 0)


@every_loss
@each_intercept
def test_the_value_its_gradient_and_its_curvature(case, fit_intercept, rng):
    data = Data(case, 40, fit_intercept)
    objective = data.objective(data.part(size=7))
    v = 0.3 * rng.standard_normal((M + 1, data.loss.outputs))
    v[-1] *= fit_intercept
    _, _, target, weights, _ = data.rows
    value, by_v = objective.value(v, 0.05)
    scores = data.phi() @ v
    expected = data.loss.value(scores, target, weights) + 0.05 * np.sum(v[:-1] ** 2)
    assert value == pytest.approx(expected)
    for index in [(0, 0), (5, 0), (M - 1, v.shape[1] - 1), (M, 0)]:
        move = np.zeros(v.shape)
        move[index] = 1e-5
        up, down = (objective.value(v + sign * move, 0.05)[0] for sign in (1, -1))
        assert by_v[index] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-7)
    bend = data.loss.curvature(scores, target).mean(axis=1)
    curvature = data.phi().T @ ((weights / weights.sum() * bend)[:, None] * data.phi())
    if not fit_intercept:
        curvature[-1, -1] = 1
    np.testing.assert_allclose(objective.curvature(v), curvature, atol=1e-12 * bend.max())


@every_loss
def test_a_row_twice_is_a_row_of_weight_two(case):
    data = Data(case, 120)
    objectives = []
    for weights, rows in (
        (np.where(np.arange(120) < 50, 2.0, 1.0), slice(None)),
        (np.ones(120), np.r_[0:120, 0:50]),
    ):
        data.rows = data.rows._replace(weights=weights)
        objectives.append(data.objective(data.part(rows)))
    weighted, repeated = (least(each, 1e-2, data.constant()) for each in objectives)
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)


@every_loss
def test_blocks_do_not_matter(case, rng):
    """Features kept or computed again, all or some, in one block or many."""
    data = Data(case, 150)
    v = 0.3 * rng.standard_normal((M + 1, data.loss.outputs))
    expected = *data.objective().value(v, 0.1), data.objective().curvature(v)
    for size, room in ((1000, 0), (7, 1 << 30), (64, 0), (64, 70 * (M + 4) * 8)):
        objective = data.objective(data.part(size=size, room=room))
        for _ in range(2):  # before features are kept, and with those that are
            found = *objective.value(v, 0.1), objective.curvature(v)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_rows_are_prepared_as_they_come():
    """Inputs in other units, and rows of weight zero, whose targets are none."""
    data = Data(CASES["four classes"], 150)
    expected = least(data.objective(), 1e-2, data.constant())

    def prepare(block):
        used = block.weights > 0
        return Block(block.start, block.x[used] / 4, block.y[used], block.weights[used])

    _, x, y, weights, _ = data.rows
    more = (np.zeros((9, D)), np.full(9, -1), np.zeros(9))
    given = [np.concatenate(pair) for pair in zip((4 * x, y, weights), more)]
    part = RowPart(ArrayRows(*given), 40, KeptBlocks(1 << 20), prepare)
    found = least(data.objective(part), 1e-2, data.constant())
    np.testing.assert_allclose(found, expected, atol=1e-6)


@every_loss
def test_rows_of_two_parts_are_those_of_both(case, rng):
    """As the last fit takes them, with what was kept of each part."""
    data = Data(case, 300)
    parts = [data.part(at, 70) for at in (slice(0, 90), slice(90, 300))]
    both, whole = data.objective(*parts), data.objective()
    v = 0.3 * rng.standard_normal((M + 1, data.loss.outputs))
    data.objective(parts[0]).value(v)  # keeps its features
    for one, other in zip(both.value(v, 0.1), whole.value(v, 0.1), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(both.curvature(v), whole.curvature(v), rtol=1e-8, atol=1e-12)


@every_loss
@each_intercept
def test_sums_of_earlier_rows_are_part_of_the_loss(case, fit_intercept):
    """Of squared error they are its loss; of others they are near it, close to the least.

    Of several classes they are less near: the outputs share a curvature. So are those of losses
    whose curvature is not their second derivative, and of positive targets.
    """
    data = Data(case, 300, fit_intercept)
    first, second = data.part(slice(0, 150)), data.part(slice(150, 300))
    alone = data.objective(first)
    v = least(alone, 1e-2, data.constant())
    _, _, target, weights, _ = data.rows.at(slice(0, 150))
    # sums have a constant, whether the model has one or not
    phi = np.column_stack([data.phi(slice(0, 150))[:, :-1], np.ones(150)])
    model = data.loss.quadratic_model(phi @ v, target)
    known = NormalEquations.empty(M, data.loss.outputs)
    known.add(phi, model.response, weights, model.bend)
    # where the sums were taken they have the gradient of the loss
    both, sums = data.objective(first, second), data.objective(second, known=known)
    size = np.abs(both.value(v)[1]).max()
    np.testing.assert_allclose(sums.value(v)[1], both.value(v)[1], atol=1e-6 * size)
    expected, found = (least(each, 1e-2, data.constant()) for each in (both, sums))
    if not fit_intercept:
        np.testing.assert_array_equal(found[-1], 0)
    losses = [both.value(each, 1e-2)[0] for each in (expected, found, v)]
    smooth = data.loss.name in ("squared_error", "log_loss", "poisson", "tweedie")
    share = (0.02 if data.loss.outputs == 1 else 0.2) if smooth else 0.5
    assert losses[1] - losses[0] <= share * (losses[2] - losses[0]) + 1e-9
    if data.loss.quadratic:
        close_scores(data, found, expected, atol=1e-5)


def test_sparse_inputs():
    data = Data(CASES["four classes"], 150)
    dense = least(data.objective(), 1e-2, data.constant())
    data.rows = data.rows._replace(x=sparse.csr_array(data.rows.x))
    np.testing.assert_allclose(
        least(data.objective(), 1e-2, data.constant()), dense, rtol=1e-6, atol=1e-8
    )


def test_an_activation_without_a_table():
    data = Data(CASES["four classes"], 150)
    tanh = fused.Direct(Fixed("tanh"), np.ones(1))
    data.features = replace(data.features, sigma=tanh)
    found = least(data.objective(), 1e-2, data.constant())
    close_scores(data, found, oracle(data, 1e-2), atol=2e-3)
