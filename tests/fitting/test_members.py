"""Members: what each has not seen, what they say of rows, and the same bits for one seed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.bases import RBF
from rflaf.fitting import (
    FitSettings,
    budget,
    fit_classification,
    fit_regression,
    members,
)
from rflaf.fitting.classification import best_temperature
from rflaf.fitting.judged import TargetScale
from rflaf.fitting.learn import Examples
from rflaf.fitting.members import FoldPlan, few_rows, learn_members, plan_folds, resolve
from rflaf.fitting.regression import SumMembers
from rflaf.rows import ArrayRows
from rflaf.runtime import threads
from rflaf.solvers.softmax import cross_entropy

SETTINGS = FitSettings(
    n_components=20,
    basis=RBF(8),
    seed=3,
    metric="diagonal",
    input_form="both",
    max_iter=3,
    n_members=3,
)
N = 512  # means of numbers with few digits are exact


@pytest.fixture
def rows(rng):
    x = rng.standard_normal((N, 3))
    y = np.round(4 * (np.sin(2 * x[:, 0]) + x[:, 1])) / 4
    return x, y


def sample_of(x, y, settings=SETTINGS):
    return ArrayRows(x, y, np.ones(len(y))).sample(lambda _: 10**6, settings.seed)


def same_layer(one, other):
    assert one.components.tobytes() == other.components.tobytes()
    assert one.activation.coefficients.tobytes() == other.activation.coefficients.tobytes()
    assert one.alpha == other.alpha
    assert one.history == other.history


# ---- folds


def test_how_many_members_and_features():
    free = replace(SETTINGS, n_components=None, n_members=None)
    for n, m, count in (
        *((20, 500, 5), (100, 500, 5), (2000, 500, 5), (2001, 1000, 5), (5000, 1000, 5)),
        *((5001, 1000, 3), (10_000, 1000, 3), (10_001, 2000, 1), (30_001, 3000, 1)),
    ):
        found = resolve(free, n, wide=False)
        assert (found.n_components, found.n_members) == (m, count)
    assert resolve(free, 1000, wide=True).n_members == 1
    assert resolve(SETTINGS, 1000, wide=False) == SETTINGS
    few = resolve(SETTINGS, 19, wide=False, few=True)
    assert (few.n_members, few.mixes, few.holds_out) == (1, False, False)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_row_is_held_out_by_one_member(rows, count):
    sample = sample_of(*rows)
    plan = plan_folds(sample, replace(SETTINGS, n_members=count))
    fold = plan.folds(sample.keys)
    assert plan.held == list(range(count))
    assert not plan.single
    sizes = np.bincount(fold, minlength=count)
    assert len(sizes) == count
    assert np.ptp(sizes) <= 1


@pytest.mark.parametrize(("n", "share"), [(120, 1 / 3), (500, 0.2), (5000, 0.1)])
def test_one_member_keeps_rows_aside(rng, n, share):
    sample = sample_of(rng.standard_normal((n, 2)), np.zeros(n))
    plan = plan_folds(sample, replace(SETTINGS, n_members=1))
    assert plan.single
    assert plan.held == [1]
    assert np.mean(plan.folds(sample.keys) == 1) == pytest.approx(share, abs=1 / n)
    few = plan_folds(sample, replace(SETTINGS, n_members=1), most_held=10)
    assert np.sum(few.folds(sample.keys) == 1) == 10


def test_few_rows_have_one_member_that_sees_them_all(rng):
    x, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    assert not few_rows(sample_of(x, y))
    sample = sample_of(np.repeat(x[1:], 5, axis=0), np.repeat(y[1:], 5))  # equal ones count once
    assert few_rows(sample)
    plan = plan_folds(sample, resolve(SETTINGS, 95, wide=False, few=True))
    assert plan.held == [-1]
    assert (plan.folds(sample.keys) != -1).all()


@pytest.mark.parametrize("k", range(3))
def test_a_member_has_not_seen_its_fold(rows, k):
    """Whatever the targets of fold k are, layer and weights of member k do not change by a bit."""
    x, y = rows
    target = TargetScale(np.zeros(1), np.ones(1), True)
    sample = sample_of(x, y)
    plan = plan_folds(sample, SETTINGS)
    fold = plan.folds(sample.keys)
    found = []
    for spoilt in (y, np.where(fold == k, 1e3 * y - 7, y)):
        examples = Examples(x, spoilt[:, None], np.ones(N))
        seats, _ = learn_members(examples, fold, plan, SETTINGS)
        assert [(seat.fold, seat.team) for seat in seats] == [(0, 0), (1, 0), (2, 0)]
        task = SumMembers(seats, target, plan, SETTINGS.seed, False, [None] * 3)
        sums = ArrayRows(x, spoilt, np.ones(N)).reduce(task, lambda a, b: a, N)
        found.append(([seat.layer for seat in seats], [fit.solve(1e-3) for fit, _ in sums]))
    (layers, weights), (other_layers, other_weights) = found
    same_layer(layers[k], other_layers[k])
    assert weights[k].tobytes() == other_weights[k].tobytes()
    for other in {0, 1, 2} - {k}:  # these have seen it
        assert not np.array_equal(layers[other].components, other_layers[other].components)
        assert not np.array_equal(weights[other], other_weights[other])


@pytest.mark.parametrize("fit", [fit_regression, fit_classification])
@pytest.mark.parametrize("k", range(3))
def test_a_member_of_a_fit_has_not_seen_its_fold(rows, fit, k):
    """The targets of fold k in another order: their mean and spread stay, to the bit."""
    x, y = rows
    y = y if fit is fit_regression else np.digitize(y, [-0.5, 0.5])
    settings = replace(SETTINGS, alpha=1e-2)
    sample = sample_of(x, y)
    fold = plan_folds(sample, settings).folds(sample.keys)
    mixed = y.copy()
    mixed[fold == k] = np.random.default_rng(0).permutation(y[fold == k])
    one, other = (fit(ArrayRows(x, each, np.ones(N)), settings) for each in (y, mixed))
    same_layer(one.members[k].layer, other.members[k].layer)
    if fit is fit_regression:
        assert one.members[k].coef.tobytes() == other.members[k].coef.tobytes()
        at = fold == k
        np.testing.assert_array_equal(one.oof_prediction[at], other.oof_prediction[at])
    else:  # up to the temperature, which all folds choose
        mine, its = (each.members[k].coef * each.temperature for each in (one, other))
        np.testing.assert_allclose(mine, its, rtol=1e-12)
    assert not np.array_equal(one.members[k - 1].coef, other.members[k - 1].coef)


def test_out_of_fold_predictions_are_those_of_the_member(rows):
    x, y = rows
    fit = fit_regression(ArrayRows(x, y, np.ones(N)), SETTINGS)
    fold = fit.plan.folds(sample_of(x, y).keys)
    for k, member in enumerate(fit.members):
        np.testing.assert_array_equal(fit.oof_prediction[fold == k], member.scores(x[fold == k]))
    error = fit.oof_prediction[:, 0] - y
    assert fit.oof_score == pytest.approx(1 - np.mean(error**2) / np.var(y))
    assert fit.noise[0] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-4)


def test_the_prediction_is_the_mean_of_the_members(rows):
    x, y = rows
    for model in (
        RFLAFRegressor(20, max_iter=2, n_members=3, random_state=0).fit(x, y),
        RFLAFClassifier(20, max_iter=2, n_members=3, random_state=0).fit(x, y > 0),
    ):
        assert len(model.members_) == 3
        mean = np.mean([member.scores(x)[:, 0] for member in model.members_], axis=0)
        got = model.predict(x) if isinstance(model, RFLAFRegressor) else model.decision_function(x)
        np.testing.assert_allclose(got, mean, rtol=1e-12)
        np.testing.assert_array_equal(model.members_[0].layer.components, model.components_)
        np.testing.assert_array_equal(model.members_[0].coef.ravel(), model.coef_.ravel())


# ---- noise


def test_nothing_is_learned_from_pure_noise(rng):
    """Out of fold and on new rows: no better than a constant, and not much worse."""
    x, y = rng.standard_normal((2300, 20)), rng.standard_normal(2300)
    model = RFLAFRegressor(random_state=0).fit(x[:300], y[:300])
    error = 1 / np.sqrt(300)
    assert -0.1 < model.oof_score_ < 2 * error
    assert -0.15 < model.score(x[300:], y[300:]) < 0.02
    assert model.noise_ == pytest.approx(1, abs=0.12)


def test_no_classes_are_learned_from_pure_noise(rng):
    x, y = rng.standard_normal((2300, 20)), rng.integers(0, 2, 2300)
    model = RFLAFClassifier(random_state=0).fit(x[:300], y[:300])
    assert model.oof_score_ == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(300))
    assert model.score(x[300:], y[300:]) == pytest.approx(0.5, abs=0.035)
    p = model.predict_proba(x[300:])[:, 1]
    loss = -np.mean(np.log(np.where(y[300:] == 1, p, 1 - p)))
    assert loss < np.log(2) + 0.05


# ---- threads


@pytest.mark.parametrize("count", [1, 3, "auto"])
@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_one_seed_gives_the_same_bits_whatever_n_jobs(make, count, rows, mixed, monkeypatch):
    x, y = rows
    y = y if make is RFLAFRegressor else np.digitize(y, [-0.5, 0.5])
    for name in ("RFLAF_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_available_processors", lambda: 4)
    monkeypatch.setattr(threads.joblib, "cpu_count", lambda *_, **__: 4)
    monkeypatch.setattr(threads.joblib, "effective_n_jobs", lambda n_jobs: n_jobs)
    monkeypatch.setattr(threads, "_pool", None)  # of four threads, for this test
    found, used = [], set()
    count_threads = threads.thread_count

    def counted():
        used.add(count_threads())
        return count_threads()

    monkeypatch.setattr(threads, "thread_count", counted)
    for n_jobs in (1, 2, 4):
        model = make(200, max_iter=4, n_members=count, n_jobs=n_jobs, random_state=0).fit(x, y)
        assert len({m.seat.team for m in model.members_}) == (3 if count == "auto" else 1)
        found.append(
            b"".join(
                part.tobytes()
                for member in model.members_
                for part in (member.layer.components, member.coef, member.intercept)
            )
        )
        assert n_jobs in used
    assert found[0] == found[1] == found[2]


# ---- rotations


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("n", [100, 150, 200])
@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_fewer_rows_than_features_are_solved_in_their_span(make, n, count, rng, monkeypatch):
    x = rng.standard_normal((n + 100, 3))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.standard_normal(n + 100)
    y = y if make is RFLAFRegressor else y > 0
    options = {"max_iter": 2, "n_members": count, "alpha": 0.1, "random_state": 0}
    turned = make(300, **options).fit(x[:n], y[:n])
    used = []
    monkeypatch.setattr(members, "row_rotation", lambda phi: used.append(len(phi)))
    plain = make(300, **options).fit(x[:n], y[:n])
    assert len(used) == count
    assert max(used) <= n
    tol = 1e-5 if make is RFLAFRegressor else 5e-3  # logistic regression stops near its least
    say = "predict" if make is RFLAFRegressor else "decision_function"
    got, expected = (getattr(model, say)(x) for model in (turned, plain))
    np.testing.assert_allclose(got, expected, atol=tol * max(1, np.abs(expected).max()))


# ---- temperature


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("hot", [0.5, 1.0, 2.0])
def test_the_temperature_that_suits_scores(rng, outputs, hot):
    scores = 2 * rng.standard_normal((20_000, outputs))
    if outputs == 1:
        target = (rng.random(20_000) < expit(scores[:, 0])).astype(int)
    else:
        target = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    weights = rng.uniform(0.5, 1.5, 20_000)
    found = best_temperature(hot * scores, target, weights)
    assert found == pytest.approx(hot, rel=0.1)
    before, after = (cross_entropy(hot * scores / t, target, weights)[0] for t in (1, found))
    assert after <= before
    if hot == 1:
        assert found == 1  # it makes no difference


def test_the_temperature_has_bounds(rng):
    scores, target = rng.standard_normal((500, 1)), rng.integers(0, 2, 500)
    assert best_temperature(100 * scores, target, np.ones(500)) == pytest.approx(3, rel=1e-3)
    sure = (scores[:, 0] > 0).astype(int)
    assert best_temperature(scores, sure, np.ones(500)) == pytest.approx(1 / 3, rel=1e-3)


def test_weights_have_the_temperature_in_them(rows):
    x, y = rows
    target = (y > 0).astype(int)
    fit = fit_classification(ArrayRows(x, target, np.ones(N)), SETTINGS)
    fold = FoldPlan(plan_folds(sample_of(x, target), SETTINGS).cuts, [0, 1, 2]).folds(
        sample_of(x, target).keys
    )
    scores = np.empty((N, 1))
    for k, member in enumerate(fit.members):
        scores[fold == k] = member.scores(x[fold == k])
    # the last fit is finer than the one that was judged
    np.testing.assert_allclose(scores, fit.oof_scores, atol=0.05 * np.abs(scores).max())
    assert best_temperature(scores, target, np.ones(N)) == pytest.approx(1, abs=0.1)
    assert fit.oof_score == pytest.approx(np.mean((fit.oof_scores[:, 0] > 0) == target))


# ---- blocks


def test_blocks_of_the_one_pass_do_not_matter(rows, monkeypatch):
    x, y = rows
    settings = replace(SETTINGS, alpha=1e-3)  # a small one makes more of the rounding of features
    whole = fit_regression(ArrayRows(x, y, np.ones(N)), settings)
    monkeypatch.setattr(budget, "_BLOCK_NUMBERS", 20 * 37)
    parts = fit_regression(ArrayRows(x, y, np.ones(N)), settings)
    assert parts.block_rows == 37
    for one, other in zip(whole.members, parts.members, strict=True):
        same_layer(one.layer, other.layer)
        np.testing.assert_allclose(one.scores(x), other.scores(x), atol=1e-5)
