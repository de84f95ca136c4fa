"""What holds for every loss."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.losses.conftest import ALL_LOSSES

every_loss = pytest.mark.parametrize("case", ALL_LOSSES, ids=lambda case: case.name)
seeds, sizes = st.integers(0, 10_000), st.floats(0, 4)
STEP = 1e-5


def random_scores(case, size, seed, n=30):
    """Scores n × C around the best constant ones, with a loss, targets and weights."""
    loss, target, weights = case.example(n, seed)
    rng = np.random.default_rng(seed)
    scores = size * rng.standard_normal((n, loss.outputs)) + loss.constant(target, weights)
    return loss, scores, target, weights


def along(outputs, c):
    """A step in one of the scores."""
    return STEP * np.eye(outputs)[c]


@every_loss
@given(seed=seeds, size=sizes)
def test_slopes_are_those_of_the_value(case, seed, size):
    loss, scores, target, _ = random_scores(case, size, seed)
    value, slope = loss.slopes(scores, target)
    assert value.shape == (30,)
    assert slope.shape == scores.shape
    for c in range(loss.outputs):
        move = along(loss.outputs, c)
        up, down = (loss.slopes(scores + sign * move, target)[0] for sign in (1, -1))
        atol = 1e-7 * (1 + np.abs(value).max())
        if not case.exact:  # there are corners in the slope
            atol += STEP * loss.curvature(scores, target).max()
        np.testing.assert_allclose((up - down) / (2 * STEP), slope[:, c], atol=atol, rtol=1e-6)


@every_loss
@given(seed=seeds, size=sizes)
def test_the_curvature_is_the_slope_of_the_slopes(case, seed, size):
    loss, scores, target, _ = random_scores(case, size, seed)
    curvature = loss.curvature(scores, target)
    assert curvature.shape == scores.shape
    assert (curvature >= 0).all()
    for c in range(loss.outputs):
        move = along(loss.outputs, c)
        up, down = (loss.slopes(scores + sign * move, target)[1][:, c] for sign in (1, -1))
        found, atol = (up - down) / (2 * STEP), 1e-7 * (1 + curvature.max())
        if case.exact:
            np.testing.assert_allclose(found, curvature[:, c], atol=atol)
        else:
            assert (found >= -atol).all()
            assert (found <= curvature[:, c] * (1 + 1e-4) + atol).all()


@every_loss
@given(seed=seeds, size=sizes)
def test_the_quadratic_model_touches_the_loss(case, seed, size):
    """It has the loss's slope; and its curvature, on average over the outputs."""
    loss, scores, target, _ = random_scores(case, size, seed)
    response, bend = loss.quadratic_model(scores, target)
    assert response.shape == scores.shape
    slope, curvature = loss.slopes(scores, target)[1], loss.curvature(scores, target).mean(axis=1)
    scale = np.abs(slope).max() + 1e-12
    np.testing.assert_allclose(2 * bend[:, None] * (scores - response), slope, atol=1e-6 * scale)
    np.testing.assert_allclose(2 * bend, curvature, rtol=1e-9, atol=1e-9)


@every_loss
@given(seed=seeds, size=sizes)
def test_a_parabola_in_place_of_the_curvature_lies_above_the_loss(case, seed, size):
    loss, scores, target, _ = random_scores(case, size, seed)
    if case.exact:
        return
    value, slope = loss.slopes(scores, target)
    step = np.random.default_rng(seed + 1).standard_normal(scores.shape)
    bound = value + np.sum(slope * step + loss.curvature(scores, target) * step**2 / 2, axis=1)
    assert (loss.slopes(scores + step, target)[0] <= bound + 1e-9 * (1 + np.abs(bound))).all()


@every_loss
def test_no_row_of_a_quadratic_model_is_flatter_than_is_asked_for(case):
    loss, scores, target, _ = random_scores(case, 6.0, seed=3)
    middle = np.median(loss.curvature(scores, target).mean(axis=1))
    response, bend = loss.quadratic_model(scores, target, middle)
    assert (2 * bend >= middle * (1 - 1e-12)).all()
    slope = loss.slopes(scores, target)[1]
    np.testing.assert_allclose(2 * bend[:, None] * (scores - response), slope, atol=1e-12)


@every_loss
@given(seed=seeds)
def test_the_best_constant_has_no_slope(case, seed):
    loss, scores, target, weights = random_scores(case, 0.0, seed)
    constant = loss.constant(target, weights)
    assert constant.shape == (loss.outputs,)
    value, slope = loss.slopes(scores, target)
    np.testing.assert_allclose(weights @ slope, 0, atol=1e-9 * weights.sum())
    other = scores + 0.1 * np.random.default_rng(seed).standard_normal(loss.outputs)
    assert loss.value(other, target, weights) >= np.average(value, weights=weights) - 1e-12


@every_loss
@given(seed=seeds, size=sizes)
def test_a_row_of_weight_two_is_two_rows(case, seed, size):
    loss, scores, target, _ = random_scores(case, size, seed)
    weights = 1.0 + (np.arange(30) < 10)
    twice = np.r_[0:30, 0:10]
    for measure in (loss.value, loss.score):
        weighted = measure(scores, target, weights)
        assert weighted == pytest.approx(measure(scores[twice], target[twice], np.ones(40)))
    one, other = loss.constant(target, weights), loss.constant(target[twice], np.ones(40))
    # where a median lies between two rows, it is as near to zero as may be
    np.testing.assert_allclose(one, other, atol=1e-12 if case.exact else 1e-5)


@every_loss
@given(seed=seeds, unit=st.floats(1e-12, 1e12))
def test_the_unit_of_weights_does_not_matter(case, seed, unit):
    rng = np.random.default_rng(seed)
    y, weights = case.targets(rng.uniform(-1, 1, (40, 2)), rng), rng.uniform(0.1, 3, 40)
    one, other = case.opened(y, weights), case.opened(y, unit * weights)
    target, of_rows = one.encode(y, weights)
    same, scaled = other.encode(y, unit * weights)
    np.testing.assert_allclose(same, target, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scaled, unit * of_rows, rtol=1e-9)
    scores = rng.standard_normal((40, one.outputs))
    assert other.value(scores, same, scaled) == pytest.approx(one.value(scores, target, of_rows))
    assert other.score(scores, same, scaled) == pytest.approx(one.score(scores, target, of_rows))


@every_loss
def test_rows_are_apart_from_each_other(case):
    """In blocks, in another order: what a row has is its own."""
    loss, scores, target, _ = random_scores(case, 2.0, seed=1)
    order = np.random.default_rng(0).permutation(30)
    whole = *loss.slopes(scores, target), loss.curvature(scores, target)
    for rows in (slice(0, 1), slice(5, 17), order):
        some = *loss.slopes(scores[rows], target[rows]), loss.curvature(scores[rows], target[rows])
        for got, expected in zip(some, whole, strict=True):
            np.testing.assert_allclose(got, expected[rows], rtol=1e-12)
    none = loss.slopes(scores[:0], target[:0])
    assert [part.shape for part in none] == [(0,), (0, loss.outputs)]


@every_loss
def test_scores_and_targets_are_left_as_they_are(case):
    loss, scores, target, weights = random_scores(case, 2.0, seed=1)
    before = scores.copy(), target.copy()
    loss.slopes(scores, target)
    loss.curvature(scores, target)
    loss.quadratic_model(scores, target)
    loss.moderate(scores)
    loss.temperature(scores, target, weights)
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(target, before[1])


@every_loss
def test_perfect_scores_predict_the_targets(case):
    """And have the score 1, and no residuals."""
    rng = np.random.default_rng(5)
    y = case.targets(rng.uniform(-1, 1, (50, 2)), rng)
    loss = case.opened(y)
    target, weights = loss.encode(y, np.ones(50))
    scores = case.perfect(target)
    assert loss.score(scores, target, weights) == pytest.approx(1)
    in_units = loss.in_units(np.zeros(1), scores)[1]
    prediction = loss.predict(in_units)
    if not loss.single and y.ndim == 1:  # several quantiles of one target
        np.testing.assert_allclose(prediction, np.tile(y[:, None], loss.outputs), atol=1e-9)
        assert loss.residuals(in_units, y) is None
        return
    assert prediction.shape == y.shape
    assert loss.single == (y.ndim == 1)
    if y.dtype.kind == "f":
        np.testing.assert_allclose(prediction, y, rtol=1e-9, atol=1e-9 * np.abs(y).max())
        np.testing.assert_allclose(loss.residuals(in_units, y), 0, atol=1e-6 * np.abs(y).max())
    else:
        np.testing.assert_array_equal(prediction, y)
        assert loss.residuals(in_units, y) is None
    constant = np.tile(loss.constant(target, weights), (50, 1))
    assert loss.score(constant, target, weights) < 0.9


@every_loss
def test_scores_are_linear_in_the_output_weights_in_units_too(case, rng):
    """What turns weights into those of the model turns scores into those of the model."""
    loss, _, _ = case.example(40)
    phi = rng.standard_normal((9, 6))
    coef, intercept = rng.standard_normal((6, loss.outputs)), rng.standard_normal(loss.outputs)
    given_coef, given_intercept = loss.in_units(coef, intercept)
    assert given_coef.shape == coef.shape
    assert given_intercept.shape == intercept.shape
    expected = loss.in_units(np.zeros(1), phi @ coef + intercept)[1]
    np.testing.assert_allclose(phi @ given_coef + given_intercept, expected, rtol=1e-9)


@every_loss
def test_without_an_intercept_scores_of_zero_stay_zero(case):
    rng = np.random.default_rng(5)
    y = case.targets(rng.uniform(-1, 1, (50, 2)), rng)
    loss = case.opened(y, fit_intercept=False)
    zero = np.zeros(loss.outputs)
    np.testing.assert_array_equal(loss.in_units(np.zeros((6, loss.outputs)), zero)[1], 0)


@every_loss
@given(seed=seeds, size=sizes)
def test_a_temperature_never_makes_scores_worse(case, seed, size):
    loss, scores, target, weights = random_scores(case, size, seed)
    temperature = loss.temperature(scores, target, weights)
    assert temperature > 0
    before = loss.value(scores, target, weights)
    assert loss.value(scores / temperature, target, weights) <= before * (1 + 1e-12)


@every_loss
def test_targets_in_blocks_are_those_of_all(case):
    rng = np.random.default_rng(5)
    y = case.targets(rng.uniform(-1, 1, (50, 2)), rng)
    loss, weights = case.opened(y), rng.uniform(0.5, 2, 50)
    blocks = [loss.encode(y[k : k + 7], weights[k : k + 7]) for k in range(0, 50, 7)]
    for got, expected in zip(zip(*blocks), loss.encode(y, weights), strict=True):
        np.testing.assert_array_equal(np.concatenate(got), expected)


@every_loss
def test_opening_leaves_the_loss_as_it_was(case):
    """It is frozen, and may be opened again, or sent elsewhere."""
    before = repr(case.loss)
    loss, target, weights = case.example(40, seed=1)
    assert repr(case.loss) == before
    another = replace(case, loss=loss).example(40, seed=2)[1]
    np.testing.assert_array_equal(another, case.example(40, seed=2)[1])
    elsewhere = pickle.loads(pickle.dumps(loss))
    scores = np.ones((40, loss.outputs))
    assert elsewhere.value(scores, target, weights) == loss.value(scores, target, weights)
    with pytest.raises(AttributeError):
        loss.anything = 1


@every_loss
def test_a_loss_says_what_it_is(case):
    assert case.loss.name
    assert case.loss.score_name
    loss, _, _ = case.example(40)
    assert loss.outputs >= 1


@pytest.mark.parametrize(
    ("case", "bad", "message"),
    [
        pytest.param(case, bad, message, id=f"{case.name}: {message}")
        for case in ALL_LOSSES
        for bad, message in case.bad
    ],
)
def test_bad_targets_are_named(case, bad, message):
    with pytest.raises(ValueError, match=message):
        case.opened(bad)
