"""Teams of members with different forms of the inputs, and their weights."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.linear_model import RidgeCV

from rflaf import RFLAFClassifier, RFLAFRegressor, fused, rules
from rflaf.bases import RBF
from rflaf.fitting import FitSettings, Member, fit
from rflaf.fitting.folds import plan_folds, resolve
from rflaf.fitting.members import mix_teams, out_of_fold, weighted
from rflaf.inputs.forms import FORMS, Standardised
from rflaf.losses import Logistic, SquaredError
from rflaf.rows.sample import fold_keys
from tests.fitting.conftest import rows_of, sample_of, task_of

FIT = sys.modules["rflaf.fitting.fit"]  # the name in the package is the function

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")

N = 300
SETTINGS = FitSettings(n_components=30, basis=RBF(12), seed=3, max_iter=5, local_models=False)


def rows(classes=False, n=N, seed=0):
    """A plane, a curve and jumps: there is something in it for every team."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    y = 2 * x[:, 2] + np.sin(2 * x[:, 0]) + np.floor(2 * x[:, 1]) % 2
    y += 0.3 * rng.standard_normal(n)
    return x, (np.digitize(y, [-1, 1]) if classes else y)


def fitted(make, **parameters):
    x, y = rows(make is RFLAFClassifier)
    options = {"n_components": 30, "n_basis": 12, "max_iter": 5, "random_state": 0}
    return make(**options, **parameters).fit(x, y)


def teams(model):
    return list(dict.fromkeys(member.layer.team for member in model.members_))


@pytest.fixture
def two_teams(monkeypatch):
    """Fits with all else "auto" learn both forms, however good they are, and mix them freely."""
    monkeypatch.setattr(rules, "MIXED_LOSS", np.inf)
    monkeypatch.setattr(rules, "LEAST_PART", 0.0)


# ---- weights


@given(st.integers(0, 10**6), st.floats(0, 0.999), st.floats(0.01, 10))
def test_weights_of_teams(seed, alike, size):
    """They sum to one, none is negative, and they are no worse than the best team alone."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((40, 1))
    errors = alike * common + (1 - alike) * rng.standard_normal((40, 3)) * [1, 1.5, size]

    def loss(weights):
        assert weights.sum() == pytest.approx(1)
        return float(np.mean((errors @ weights) ** 2))

    weights = mix_teams(loss, 3)
    assert weights.shape == (3,)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    assert loss(weights) <= min(loss(one) for one in np.eye(3)) + 1e-12
    assert mix_teams(loss, 1).tolist() == [1.0]


def test_the_best_team_may_be_alone():
    assert mix_teams(lambda w: float(1 - w[2]), 3).tolist() == [0, 0, 1]


def test_a_small_part_does_not_pay():
    """Errors whose best mixture has little of the second team."""
    errors = np.array([[1.0, 0.0, 5.0], [0.0, 4.0, 5.0]])
    weights = mix_teams(lambda w: float(np.sum((errors @ w) ** 2)), 3)
    assert weights.tolist() == [1, 0, 0]
    errors[1, 1] = 2  # one part in five
    weights = mix_teams(lambda w: float(np.sum((errors @ w) ** 2)), 3)
    np.testing.assert_allclose(weights, [0.8, 0.2, 0])


def test_teams_without_weight_are_left_out_and_the_heaviest_comes_first():
    layer = fitted(RFLAFRegressor, n_members=1).members_[0].layer
    members = [
        Member(replace(layer, fold=fold, team=team), np.zeros((3, 2)), np.zeros(2), 0.1)
        for team in (0, 1)
        for fold in range(4)
    ]
    found = weighted(members, np.array([0.3, 0.7]))
    assert [member.layer.team for member in found] == [1] * 4 + [0] * 4
    assert [member.weight for member in found] == pytest.approx([0.175] * 4 + [0.075] * 4)
    alone = weighted(members, np.array([1.0, 0.0]))
    assert [(m.layer.team, m.layer.fold, m.weight) for m in alone] == [
        (0, fold, 0.25) for fold in range(4)
    ]


# ---- who is mixed


def resolved(settings, n):
    sample = sample_of(np.arange(float(n))[:, None], np.zeros(n), settings.seed)
    return resolve(settings, sample, SquaredError())


def test_forms_are_mixed_only_where_everything_is_free():
    assert resolved(SETTINGS, 300).mixes
    assert resolved(SETTINGS, 100_000).mixes
    assert not resolved(SETTINGS, rules.FEWEST_FOLDED - 1).mixes
    for change in (
        {"solver": "cg"},
        {"n_members": 1},
        {"n_members": 5},
        {"input_form": Standardised},
        {"max_iter": 0},
    ):
        assert not resolved(replace(SETTINGS, **change), 300).mixes


def test_few_rows_get_few_steps():
    assert [resolved(SETTINGS, n).max_iter for n in (99, 10_000)] == [5, 5]
    free = replace(SETTINGS, max_iter=240)
    few, some, many = (resolved(free, n).max_iter for n in (100, 1000, 30_000))
    assert few < some < many <= 240


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_one_team_where_the_form_or_the_members_are_given(make):
    given_form = fitted(make, input_form="bins")
    assert teams(given_form) == [0]
    assert len(given_form.members_) == 5
    assert {m.layer.form.name for m in given_form.members_} == {"bins"}
    assert [m.weight for m in given_form.members_] == [0.2] * 5
    single = fitted(make, n_members=1)
    assert teams(single) == [0]
    assert [m.weight for m in single.members_] == [1.0]


# ---- whole fits


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_weights_that_rows_choose(make):
    model = fitted(make)
    weights = np.array([m.weight for m in model.members_])
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_the_prediction_is_the_weighted_sum(make, two_teams):
    """The heaviest team comes first, and gives the attributes."""
    model = fitted(make)
    assert sorted(teams(model)) == [0, 1]
    first, second = model.members_[:5], model.members_[5:]
    assert len({(m.layer.team, m.layer.form.name, m.weight) for m in first}) == 1
    assert len({(m.layer.team, m.layer.form.name, m.weight) for m in second}) == 1
    assert first[0].weight >= second[0].weight > 0
    assert {m.layer.form.smooth for m in model.members_} == {True, False}
    assert model.input_form_ == first[0].layer.form.name
    x, _ = rows()
    low, high = model.outside_.ends
    x = x[((low <= x) & (x <= high)).all(axis=1)]
    expected = sum(m.weight * m.scores(x) for m in model.members_)
    got = model.predict(x) if make is RFLAFRegressor else model.decision_function(x)
    np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=1e-10)


@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=["numbers", "classes"])
def test_out_of_fold_scores_are_the_mixture_of_the_teams(loss, two_teams, monkeypatch):
    """The mixture is no worse than any of the teams, for each row by members that are honest."""
    judges = []
    monkeypatch.setattr(
        FIT, "out_of_fold", lambda given, task: judges.append(given) or out_of_fold(given, task)
    )
    x, y = rows(isinstance(loss, Logistic))
    fit_of = fit(rows_of(x, y), loss, SETTINGS)
    task = task_of(rows_of(x, y), SETTINGS, loss)
    by_team = out_of_fold(judges[0], task)
    assert len(by_team) == 2
    parts = np.zeros(2)
    for member in fit_of.members:
        parts[member.layer.team] += member.weight
    mixture = np.tensordot(parts, by_team, axes=1)
    expected = task.loss.in_units(np.zeros(1), mixture / fit_of.temperature)[1]
    np.testing.assert_allclose(fit_of.oof_scores, expected, rtol=1e-9, atol=1e-9)
    own, *alone = (
        task.loss.value(scores, task.sample.y, np.ones(N)) for scores in (mixture, *by_team)
    )
    assert own <= min(alone) * (1 + 1e-9)


def test_the_noise_is_the_error_of_the_mixture(two_teams):
    x, y = rows()
    fit_of = fit(rows_of(x, y), SquaredError(), SETTINGS)
    error = fit_of.oof_scores[:, 0] - y
    assert fit_of.noise[0] == pytest.approx(np.sqrt(np.mean(error**2)))


def test_the_mixture_of_classes_is_no_worse_than_one_form(two_teams):
    x, y = rows(classes=True)
    mixed = fit(rows_of(x, y), Logistic(), SETTINGS)
    loss, ones = mixed.loss, np.ones(N)
    own = loss.value(mixed.oof_scores, y, ones)
    for form in {m.layer.form.name for m in mixed.members}:
        kinds = {m.layer.kind for m in mixed.members if m.layer.form.name == form}
        settings = replace(SETTINGS, input_form=FORMS[form], metric=kinds.pop())
        alone = fit(rows_of(x, y), Logistic(), settings)
        assert own <= 1.05 * loss.value(alone.oof_scores, y, ones)


def test_a_linear_target_with_noise_is_seen_to_be_linear():
    x, y = make_regression(2300, 10, noise=100, random_state=4)
    line = RidgeCV(np.logspace(-4, 4, 17)).fit(x[:300], y[:300])
    model = RFLAFRegressor(random_state=0).fit(x[:300], y[:300])
    mine, its = (np.mean((m.predict(x[300:]) - y[300:]) ** 2) for m in (model, line))
    assert mine < 1.03 * its


def test_sparse_inputs_have_no_bins(rng):
    x = sparse.random_array((200, 6), density=0.4, rng=rng, format="csr")
    y = np.asarray(x.sum(axis=1)) ** 2
    model = RFLAFRegressor(30, max_iter=5, random_state=0).fit(x, y)
    assert {m.layer.form.name for m in model.members_} == {"raw"}
    np.testing.assert_allclose(model.predict(x), model.predict(x.toarray()), rtol=1e-4, atol=1e-4)


# ---- more rows, and starts from earlier fits


def test_more_rows_keep_the_weights_and_go_to_their_own_teams(two_teams):
    """As many teams; each member solves for the rows of its own form, whichever is heavier."""
    x, y = rows(n=600)
    model = RFLAFRegressor(30, max_iter=5, random_state=0).partial_fit(x[:300], y[:300])
    assert sorted(teams(model)) == [0, 1]
    before = model.members_
    model.partial_fit(x[300:], y[300:])
    assert [m.weight for m in model.members_] == [m.weight for m in before]
    assert [m.layer for m in model.members_] == [m.layer for m in before]
    online = model._partial.fit.online
    fold = online.folds(fold_keys(online.seed, 0, 600))
    for member in model.members_:
        seen = fold != member.layer.fold
        z = np.asarray(member.layer.inputs(x[seen]) @ member.layer.components)
        phi = fused.apply(member.layer.sigma, z).astype(np.float64)
        # the ridge solution of all rows outside the fold, by its normal equations
        centre, target = phi - phi.mean(axis=0), y[seen] - y[seen].mean()
        gram = centre.T @ centre / seen.sum() + member.alpha * np.eye(30)
        expected = np.linalg.solve(gram, centre.T @ target / seen.sum())
        np.testing.assert_allclose(member.coef[:, 0], expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_a_warm_start_keeps_the_teams(make, two_teams):
    x, y = rows(make is RFLAFClassifier)
    model = make(30, max_iter=5, random_state=0, warm_start=True).fit(x, y)
    first = [m.layer for m in model.members_]
    model.set_params(max_iter=1).fit(x, y)
    assert model.form_path_ == []  # nothing is tried again
    again = [m.layer for m in model.members_]
    assert len(again) == len(first) == 10
    for form in {layer.form.name for layer in first}:  # each goes on from its own
        old, new = ([s for s in part if s.form.name == form] for part in (first, again))
        for k, layer in enumerate(new):
            assert layer.kind == old[k].kind
            away = [np.linalg.norm(layer.metric - other.metric) for other in old]
            assert np.argmin(away) == k
    model.set_params(n_members=1).fit(x, y)
    assert len(model.members_) == 1  # one team now: the form is chosen anew
    assert model.form_path_


def test_folds_of_teams_are_the_same(two_teams):
    x, y = rows()
    sample = sample_of(x, y, SETTINGS.seed)
    folds = plan_folds(sample, resolve(SETTINGS, sample, SquaredError()), SquaredError())
    found = fit(rows_of(x, y), SquaredError(), SETTINGS)
    for team in (0, 1):
        assert [m.layer.fold for m in found.members if m.layer.team == team] == folds.of_member
