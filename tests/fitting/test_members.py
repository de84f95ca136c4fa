"""Members: what each has not seen, what they say of rows, and the same bits for one seed."""

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from rflaf import RFLAFClassifier, RFLAFRegressor, rules
from rflaf.bases import RBF
from rflaf.fitting import FitSettings, budget, fit, solving
from rflaf.fitting.folds import plan_folds, resolve
from rflaf.fitting.solving import solve_members
from rflaf.inputs.forms import WithRanks
from rflaf.losses import Logistic, Poisson, SquaredError
from rflaf.runtime import threads
from tests.fitting.conftest import bits_of, rows_of, same_layer, sample_of

FIT = sys.modules["rflaf.fitting.fit"]  # the name in the package is the function

SETTINGS = FitSettings(
    n_components=20,
    basis=RBF(8),
    seed=3,
    metric="diagonal",
    input_form=WithRanks,
    max_iter=3,
    n_members=3,
    local_models=False,
)
N = 512


@pytest.fixture
def rows(rng):
    x = rng.standard_normal((N, 3))
    y = np.round(4 * (np.sin(2 * x[:, 0]) + x[:, 1])) / 4
    return x, y


def resolved(settings, n, loss=None):
    sample = sample_of(np.arange(float(n))[:, None], np.zeros(n), settings.seed)
    return resolve(settings, sample, SquaredError() if loss is None else loss)


# ---- folds


def test_more_rows_get_more_features_and_fewer_members():
    free = replace(SETTINGS, n_components=None, n_members=None)
    found = [resolved(free, n) for n in (20, 100, 2000, 2001, 5001, 10_001, 30_001)]
    for few, many in pairwise(found):
        assert few.components <= many.components
        assert few.members >= many.members > 0
    assert found[0].members > 1 == found[-1].members
    assert found[0].components < found[-1].components
    wide = resolved(replace(free, solver="cg"), 1000)
    assert wide.uses_cg
    assert wide.n_members == 1


def test_what_is_given_is_kept():
    assert resolved(SETTINGS, 1000) == SETTINGS
    few = resolved(SETTINGS, rules.FEWEST_FOLDED - 1)
    assert (few.n_members, few.mixes, few.holds_out) == (1, False, False)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_row_is_held_out_by_one_member(rows, count):
    sample = sample_of(*rows, 3)
    folds = plan_folds(sample, replace(SETTINGS, n_members=count), SquaredError())
    assert folds.of_member == list(range(count))
    assert not folds.single
    sizes = np.bincount(folds(sample.keys), minlength=count)
    assert len(sizes) == count
    assert np.ptp(sizes) <= 1


@pytest.mark.parametrize(("n", "share"), [(120, 1 / 3), (500, 0.2), (5000, 0.1)])
def test_one_member_keeps_rows_aside(rng, n, share):
    sample = sample_of(rng.standard_normal((n, 2)), np.zeros(n), 3)
    folds = plan_folds(sample, replace(SETTINGS, n_members=1), SquaredError())
    assert folds.single
    assert folds.of_member == [1]
    assert np.mean(folds(sample.keys) == 1) == pytest.approx(share, abs=1 / n)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("copies", [1, 2])
def test_rare_events_are_in_every_fold_and_outside_of_it(rng, count, copies):
    """Copies of a row have one key: the rarest of them counts."""
    x, y = rng.standard_normal((600, 2)), np.zeros(600)
    y[rng.choice(600, 7, replace=False)] = 2.0
    x, y = np.tile(x, (copies, 1)), np.concatenate([np.zeros(600 * (copies - 1)), y])
    sample = replace(sample_of(x, y, 3), keys=np.tile(sample_of(x[:600], y[:600], 3).keys, copies))
    folds = plan_folds(sample, replace(SETTINGS, n_members=count), Poisson())
    fold = folds(sample.keys)
    for member in folds.of_member:
        assert 2 <= np.count_nonzero(y[fold == member]) <= 3
    assert set(fold) == set(range(max(count, 2)))


def test_an_only_event_is_in_nobodys_fold_and_an_only_class_in_one(rng):
    x, only = rng.standard_normal((300, 2)), np.arange(300) == 5
    for loss, members in ((Poisson(), 0), (Logistic(), 1)):
        sample = replace(sample_of(x, only, 3), y=only.astype(int))
        folds = plan_folds(sample, replace(SETTINGS, n_members=3), loss)
        assert np.isin(folds(sample.keys[only]), folds.of_member).sum() == members


@pytest.mark.parametrize("members", [1, 5])
def test_a_large_group_with_a_rare_class_stays_where_it_is(members, rng):
    """Else a single member learned from less than half of the rows, by chance."""
    group = np.append(np.zeros(600, int), np.arange(1, 701))
    y = (rng.random(1300) < 0.5).astype(int)
    y[[3, 700, 800, 900]] = 2
    for seed in range(8):
        keys = np.random.default_rng(seed).integers(0, 2**63, 701, np.uint64)[group]
        sample = replace(sample_of(rng.standard_normal((1300, 2)), y, seed), keys=keys)
        folds = plan_folds(sample, replace(SETTINGS, n_members=members), Logistic())
        counts = [np.count_nonzero(folds(keys) == each) for each in folds.of_member]
        assert max(counts) <= (600 if members > 1 else 200)
        assert len(set(folds(keys)[[700, 800, 900]])) > 1


def test_zeros_that_are_rare_are_not_dealt_out(rng):
    y = np.append(np.zeros(3), np.ones(297))
    sample = sample_of(rng.standard_normal((300, 2)), y, 3)
    assert plan_folds(sample, replace(SETTINGS, n_members=1), Poisson()).dealt is None


def test_every_class_has_one_row(rng):
    sample = replace(sample_of(rng.standard_normal((30, 2)), np.zeros(30), 3), y=np.arange(30))
    folds = plan_folds(sample, replace(SETTINGS, n_members=3), Logistic())
    assert (np.bincount(folds(sample.keys)) == 10).all()


def test_few_rows_have_one_member_that_sees_them_all(rng):
    x, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    assert resolve(SETTINGS, sample_of(x, y, 3), SquaredError()).holds_out
    sample = sample_of(np.repeat(x[1:], 5, axis=0), np.repeat(y[1:], 5), 3)  # equal ones count once
    few = resolve(SETTINGS, sample, SquaredError())
    assert not few.holds_out
    folds = plan_folds(sample, few, SquaredError())
    assert folds.of_member == [-1]
    assert (folds(sample.keys) != -1).all()


# ---- what members say


def test_out_of_fold_predictions_are_those_of_the_member(rows):
    x, y = rows
    fitted = fit(rows_of(x, y), SquaredError(), SETTINGS)
    sample = sample_of(x, y, SETTINGS.seed)
    fold = plan_folds(sample, SETTINGS, SquaredError())(sample.keys)
    for member in fitted.members:
        at = fold == member.layer.fold
        np.testing.assert_allclose(fitted.oof_scores[at], member.scores(x[at]), atol=1e-12)
    error = fitted.oof_scores[:, 0] - y
    assert fitted.oof_score == pytest.approx(1 - np.mean(error**2) / np.var(y))
    assert fitted.noise[0] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-4)


def test_the_prediction_is_the_mean_of_the_members(rows):
    x, y = rows
    for model in (
        RFLAFRegressor(20, max_iter=2, n_members=3, random_state=0).fit(x, y),
        RFLAFClassifier(20, max_iter=2, n_members=3, random_state=0).fit(x, y > 0),
    ):
        assert len(model.members_) == 3
        low, high = model.outside_.ends
        x = x[((low <= x) & (x <= high)).all(axis=1)]
        mean = np.mean([member.scores(x)[:, 0] for member in model.members_], axis=0)
        got = model.predict(x) if isinstance(model, RFLAFRegressor) else model.decision_function(x)
        np.testing.assert_allclose(got, mean, rtol=1e-12)
        np.testing.assert_array_equal(model.members_[0].layer.components, model.components_)
        np.testing.assert_array_equal(model.members_[0].coef.ravel(), model.output_weights_.ravel())


# ---- threads


@pytest.mark.parametrize("count", [1, 3, "auto"])
@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_one_seed_gives_the_same_bits_whatever_n_jobs(make, count, rows, monkeypatch):
    x, y = rows
    y = y + (np.floor(4 * x[:, 2]) % 2)  # something for bins, too
    y = y if make is RFLAFRegressor else np.digitize(y, [-0.5, 0.5])
    monkeypatch.setattr(rules, "MIXED_LOSS", np.inf)
    monkeypatch.setattr(rules, "LEAST_PART", 0.0)
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
        assert len({m.layer.team for m in model.members_}) == (2 if count == "auto" else 1)
        found.append(bits_of(model.members_))
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
    monkeypatch.setattr(solving, "row_rotation", lambda phi: used.append(len(phi)))
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
    found = Logistic().temperature(hot * scores, target, weights)
    assert found == pytest.approx(hot, rel=0.1)
    before, after = (Logistic().value(hot * scores / t, target, weights) for t in (1, found))
    assert after <= before
    if hot == 1:
        assert found == 1  # it makes no difference


def test_the_temperature_has_bounds(rng, monkeypatch):
    monkeypatch.setattr(rules, "MOST_TEMPERATURE", 5.0)
    scores, target = rng.standard_normal((500, 1)), rng.integers(0, 2, 500)
    ones = np.ones(500)
    assert Logistic().temperature(100 * scores, target, ones) == pytest.approx(5, rel=1e-3)
    sure = (scores[:, 0] > 0).astype(int)
    assert Logistic().temperature(scores, sure, ones) == pytest.approx(1 / 5, rel=1e-3)


def test_weights_have_the_temperature_in_them(rows, monkeypatch):
    solved, settings = [], replace(SETTINGS, local_models=False)
    monkeypatch.setattr(
        FIT, "solve_members", lambda *given: solved.append(solve_members(*given)) or solved[-1]
    )
    x, y = rows
    target = (y > 0).astype(int)
    fitted = fit(rows_of(x, target), Logistic(), settings)
    assert fitted.temperature != 1
    for member, solution in zip(fitted.members, solved[0].solutions):
        np.testing.assert_allclose(member.coef, solution.coef / fitted.temperature)
    again = Logistic().temperature(fitted.oof_scores, target, np.ones(N))
    assert again == pytest.approx(1, abs=0.01)
    assert fitted.oof_score == pytest.approx(np.mean((fitted.oof_scores[:, 0] > 0) == target))


# ---- blocks


def test_blocks_of_the_one_pass_do_not_matter(rows, monkeypatch):
    settings = replace(SETTINGS, alpha=1e-3)  # a small one makes more of the rounding of features
    settings = replace(settings, online=True)
    whole = fit(rows_of(*rows), SquaredError(), settings)
    monkeypatch.setattr(budget, "_BLOCK_NUMBERS", 20 * 37)
    parts = fit(rows_of(*rows), SquaredError(), settings)
    assert parts.online.block_rows == 37
    for one, other in zip(whole.members, parts.members, strict=True):
        same_layer(one.layer, other.layer)
        np.testing.assert_allclose(one.scores(rows[0]), other.scores(rows[0]), atol=1e-5)
