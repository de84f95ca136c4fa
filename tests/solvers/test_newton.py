"""Output weights of several models with one penalty, for any loss."""

from dataclasses import replace

import numpy as np
import pytest

from rflaf import fused
from rflaf.bases import Polynomial
from rflaf.losses import Logistic
from rflaf.rows import ArrayRows
from rflaf.solvers.features import KeptBlocks, row_rotation
from rflaf.solvers.lbfgs import minimise
from rflaf.solvers.newton import NewtonSettings, _Stall, solve_newton
from rflaf.solvers.parts import RowPart
from tests.losses.conftest import ALL_LOSSES, labels
from tests.solvers.weighted_features import CASES, Data, M, assert_least, least, stacked

every_loss = pytest.mark.parametrize("case", ALL_LOSSES, ids=lambda case: case.name)
FIT, HELD_OUT = slice(0, 200), slice(200, 300)


def held_out_loss(data, v, rows=HELD_OUT):
    return data.loss.value(data.phi(rows) @ v, data.rows.y[rows], data.rows.weights[rows])


@every_loss
def test_the_tolerance_is_kept_in_few_steps(case):
    """About 1e-6 of the least loss, relatively: the curvature is the mean of the outputs'."""
    data = Data(case, 400)
    found = solve_newton([data.problem()], data.loss, NewtonSettings(1e-4))[0]
    assert found.alpha == 1e-4
    assert found.path == []
    assert found.honest is None
    assert_least(data, stacked(found), 1e-4)
    passes = []
    objective = data.objective(data.part(prepare=lambda block: passes.append(1) or block))
    start = objective.start(data.constant())
    objective.solve(objective.curvature(start), 1e-4, start, 1e-6)
    assert len(passes) < 100


@every_loss
def test_the_penalty_is_the_best_on_held_out_rows(case):
    data = Data(case, 300)
    every = [data.part(FIT), data.part(HELD_OUT)]
    problem = data.problem(FIT, HELD_OUT, every)
    found = solve_newton([problem], data.loss, NewtonSettings(1e-2))[0]

    def loss(alpha):
        v = least(data.objective(data.part(FIT)), alpha, data.constant(FIT))
        return held_out_loss(data, v)

    grid = found.alpha * 4.0 ** np.arange(-3, 4)
    assert loss(found.alpha) <= min(map(loss, grid)) * 1.01 + 1e-6
    alphas = [record["alpha"] for record in found.path]
    assert alphas == sorted(alphas)
    assert alphas[0] / 2 <= found.alpha <= alphas[-1] * 2
    for record in found.path:
        assert record["loss"] == pytest.approx(loss(record["alpha"]), rel=0.01, abs=1e-4)
    # and then all rows are fitted to
    assert_least(data, stacked(found), found.alpha)


def test_a_penalty_that_is_given_is_kept():
    data = Data(CASES["two classes"], 300)
    problem = data.problem(FIT, HELD_OUT)
    found = solve_newton([problem], data.loss, NewtonSettings(0.03, search=False))[0]
    assert found.alpha == 0.03
    assert found.path == []


@every_loss
@pytest.mark.parametrize("search", [True, False])
def test_weights_that_have_not_seen_the_held_out_rows(case, search):
    """Whether the penalty is chosen or given; and whatever the last fit takes."""
    data = Data(case, 300)
    for every in (None, [data.part()], [data.part(FIT), data.part(HELD_OUT)]):
        problem = data.problem(FIT, HELD_OUT, every)
        found = solve_newton([problem], data.loss, NewtonSettings(0.01, search))[0]
        if every is None:
            np.testing.assert_array_equal(stacked(found), found.honest)
        else:
            assert np.abs(stacked(found) - found.honest).max() > 1e-3
        # its last solve is a rough one, more so where there is no second derivative
        assert_least(
            data, found.honest, found.alpha, FIT, 3e-3 if case.name == "quantiles" else 3e-4
        )
        if not search:  # their targets have no part in it
            spoilt = ArrayRows(data.rows.x[HELD_OUT], data.rows.y[FIT][:100], np.ones(100))
            held_out = RowPart(spoilt, 1000, KeptBlocks(0))
            other = replace(data.problem(FIT, HELD_OUT, every), held_out=held_out)
            again = solve_newton([other], data.loss, NewtonSettings(0.01, search))[0]
            np.testing.assert_array_equal(again.honest, found.honest)


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", ["two classes", "four classes", "counts"])
def test_models_share_a_penalty_and_go_their_own_ways(name, one_by_one):
    """The path is that of the mean loss, by the weights of the judges."""
    data, settings = Data(CASES[name], 300), NewtonSettings(1e-3, one_by_one=one_by_one)
    parts = [np.arange(300) % 3 == k for k in range(3)]
    problems = [data.problem(~at, at) for at in parts]
    together = solve_newton(problems, data.loss, settings)
    assert len({solution.alpha for solution in together}) == 1
    alpha = together[0].alpha
    for at, solution in zip(parts, together, strict=True):
        # with the curvature where the walk began, which is more than that of sure scores
        assert_least(data, stacked(solution), alpha, ~at, 1e-4)
    nearest = min(together[0].path, key=lambda record: abs(np.log(record["alpha"] / alpha)))
    losses = [
        held_out_loss(
            data,
            least(data.objective(data.part(~at)), nearest["alpha"], data.constant(~at)),
            at,
        )
        for at in parts
    ]
    expected = np.average(losses, weights=[data.rows.weights[at].sum() for at in parts])
    # the path is walked with less care than the last solve
    assert nearest["loss"] == pytest.approx(expected, rel=0.01)


def counted(data, rows=slice(None)):
    """Rows as a part, and a list with an entry for each pass."""
    passes = []
    return data.part(rows, room=0, prepare=lambda block: passes.append(1) or block), passes


def test_classes_that_are_told_apart_by_far_end_the_search(monkeypatch):
    """A penalty that leaves hardly any loss is not followed by ever lower ones."""
    case = replace(CASES["two classes"], targets=lambda x, rng: (x[:, 0] > 0).astype(int))
    data, every = Data(case, 600), slice(None)
    data.rows = data.rows.at(np.abs(data.rows.x[:, 0]) > 0.3)
    alphas, enough = {}, data.loss.enough
    for least_loss in (enough, -np.inf):
        monkeypatch.setattr(Logistic, "enough", least_loss)
        found = solve_newton([data.problem(every, every)], data.loss, NewtonSettings(1e-2))[0]
        alphas[least_loss] = found.alpha
        assert held_out_loss(data, stacked(found), every) < 2 * enough
        losses = [record["loss"] for record in found.path]
        if least_loss == enough:
            assert losses[0] == losses[1] == enough < min(losses[2:])
    assert alphas[enough] > 4 * alphas[-np.inf]


def test_many_classes_take_few_passes_and_lose_nothing():
    data = Data(replace(CASES["four classes"], targets=labels(*range(12))), 900)
    fit, held_out = slice(0, 600), slice(600, 900)
    part, passes = counted(data, fit)
    problem = replace(data.problem(fit, held_out), fit=part)
    found = solve_newton([problem], data.loss, NewtonSettings(1e-2))[0]
    v = least(data.objective(data.part(fit)), found.alpha, data.constant(fit))
    exact = held_out_loss(data, v, held_out)
    assert held_out_loss(data, stacked(found), held_out) == pytest.approx(exact, rel=0.01)
    assert len(passes) < 25 * (len(found.path) + 1)


def test_rounding_does_not_move_the_penalty_by_a_step():
    data = Data(CASES["two classes"], 300)
    found = []
    for shift in (0.0, 1e-12):
        data.rows = data.rows._replace(x=data.rows.x * (1 + shift))
        problem = data.problem(FIT, HELD_OUT)
        found.append(solve_newton([problem], data.loss, NewtonSettings(1e-2))[0].alpha)
    assert found[0] == pytest.approx(found[1], rel=1e-3)


@every_loss
def test_a_rotation_changes_nothing(case):
    """With fewer rows than features their span is enough."""
    data = Data(case, 15)
    data.features = replace(data.features, rotation=row_rotation(data.phi()[:, :-1]))
    found = solve_newton([data.problem()], data.loss, NewtonSettings(1e-2))[0]
    assert found.coef.shape == (M, data.loss.outputs)
    data.features = replace(data.features, rotation=None)
    assert_least(data, stacked(found), 1e-2)


@every_loss
def test_single_precision_is_near(case):
    wide, narrow = (Data(case, 200, dtype=dtype) for dtype in (np.float64, np.float32))
    settings = NewtonSettings(1e-3)
    one, other = (stacked(solve_newton([d.problem()], d.loss, settings)[0]) for d in (wide, narrow))
    objective = wide.objective()
    losses = [objective.value(v, 1e-3)[0] for v in (one, other)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_features_that_overflow_are_named():
    data = Data(CASES["four classes"], 150)
    powers = fused.Direct(Polynomial(4000), np.ones(4000))
    data.features = replace(data.features, sigma=powers, w=10 * data.features.w)
    with pytest.raises(ValueError, match="overflow"), np.errstate(all="ignore"):
        solve_newton([data.problem()], data.loss, NewtonSettings(1e-2))


@pytest.mark.parametrize("present", [[0, 2], [1, 2], [0, 1, 3]])
def test_classes_without_a_row_have_hardly_a_chance(present):
    """A sample may miss a rare class."""
    data = Data(CASES["four classes"], 60)
    names = np.array(present)[data.rows.y % len(present)]
    data.rows = data.rows._replace(y=names)
    found = solve_newton([data.problem()], data.loss, NewtonSettings(1e-2))[0]
    p = data.loss.probabilities(data.phi() @ stacked(found))
    absent = [k for k in range(4) if k not in present]
    assert p[:, absent].max() < 1e-6
    np.testing.assert_allclose(p[:, present].sum(axis=1), 1)


def test_rows_held_out_end_the_steps_where_their_loss_stalls():
    """With less work than to the end, and weights that are hardly worse for these rows."""
    data = Data(CASES["four classes"], 300)
    passes = {False: 0, True: 0}
    found = {}
    for stalls in passes:

        def counted(block, stalls=stalls):
            passes[stalls] += 1
            return block

        problem = data.problem(FIT, HELD_OUT, [data.part(FIT), data.part(HELD_OUT)])
        problem = replace(problem, fit=data.part(FIT, prepare=counted))
        rule = NewtonSettings(1e-2, stalls=stalls)
        found[stalls] = solve_newton([problem], data.loss, rule)[0]
    assert passes[True] < 0.6 * passes[False]
    losses = {stalls: held_out_loss(data, each.honest) for stalls, each in found.items()}
    assert losses[True] < 1.05 * losses[False]
    # the loss of the path is that of the weights that are kept
    least_loss = min(record["loss"] for record in found[True].path)
    assert losses[True] == pytest.approx(least_loss, rel=1e-3)
    # the rows held out are part of the last fit
    assert held_out_loss(data, stacked(found[True])) < losses[True]


@pytest.mark.parametrize(("fall", "steps"), [(0.0, 4), (1e-5, 4), (5e-4, 50), (0.1, 50)])
def test_steps_go_on_while_their_loss_falls_steadily(fall, steps):
    class Judge:
        """Its loss falls by the same share at every step."""

        loss = 1.0

        def mean_loss(self, v):
            self.loss *= 1 - fall
            return self.loss, 1.0

    stall = _Stall(Judge(), np.zeros(1))
    taken = next((k for k in range(1, 50) if stall(np.full(1, k), 0.5)), 50)
    assert taken == steps
    assert fall == 0 or stall.best[0] == min(steps, 49)


def test_the_last_step_is_seen_by_what_may_stop_it():
    seen = []
    x, _ = minimise(
        lambda x: (float(x @ x) / 2 + 1, x), np.ones(2), 1e-6, 9, stop=lambda *at: seen.append(at)
    )
    np.testing.assert_array_equal(seen[-1][0], x)
