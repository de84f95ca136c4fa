"""Teams of members with different forms of the inputs, and their weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.linear_model import RidgeCV

from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.bases import RBF
from rflaf.fitting import FitSettings, fit_classification, fit_regression
from rflaf.fitting.learn import linear_layer
from rflaf.fitting.members import (
    Member,
    Seat,
    mix_teams,
    out_of_fold,
    plan_folds,
    resolve,
    weighted,
)
from rflaf.inputs.form import measure_inputs
from rflaf.rows import ArrayRows
from rflaf.solvers.softmax import cross_entropy

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")

N = 300
SETTINGS = FitSettings(n_components=30, basis=RBF(12), seed=3, max_iter=5)


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
    return list(dict.fromkeys(member.seat.team for member in model.members_))


# ---- weights


def seats_of(linear):
    """One member in each team; the last is linear, if asked for."""
    layer = linear_layer(measure_inputs(np.eye(3), np.ones(3)), np.float64)
    return [
        Seat(replace(layer, linear=linear and k == 2), fold, k) for k in range(3) for fold in (0, 1)
    ]


@given(st.integers(0, 10**6), st.booleans(), st.floats(0, 0.999), st.floats(0.01, 10))
def test_weights_of_teams(seed, linear, alike, size):
    """They sum to one, none is negative, and they are no worse than the best team alone."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((40, 1))
    errors = alike * common + (1 - alike) * rng.standard_normal((40, 3)) * [1, 1.5, size]

    def loss(weights):
        assert weights.sum() == pytest.approx(1)
        return float(np.mean((errors @ weights) ** 2))

    seats = seats_of(linear)
    weights = mix_teams(loss, seats)
    assert weights.shape == (3,)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    assert loss(weights) <= min(loss(one) for one in np.eye(3)[: 2 if linear else 3]) + 1e-12
    if linear:
        assert weights[:2].sum() > 0
    assert mix_teams(loss, seats[:2]).tolist() == [1.0]


def test_a_linear_team_is_never_alone():
    weights = mix_teams(lambda w: float(1 - w[2]), seats_of(linear=True))
    assert weights[2] == pytest.approx(0.95)
    assert sorted(weights[:2]) == pytest.approx([0, 0.05])
    assert mix_teams(lambda w: float(1 - w[2]), seats_of(linear=False)).tolist() == [0, 0, 1]


def test_a_small_part_does_not_pay():
    """Errors whose best mixture has little of the second team."""
    errors = np.array([[1.0, 0.0, 5.0], [0.0, 4.0, 5.0]])
    weights = mix_teams(lambda w: float(np.sum((errors @ w) ** 2)), seats_of(linear=False))
    assert weights.tolist() == [1, 0, 0]
    errors[1, 1] = 2  # one part in five
    weights = mix_teams(lambda w: float(np.sum((errors @ w) ** 2)), seats_of(linear=False))
    np.testing.assert_allclose(weights, [0.8, 0.2, 0])


def test_the_linear_team_becomes_one_member_that_predicts_the_same(rng):
    x = 5 + rng.standard_normal((50, 3)) * [1, 10, 0.1]
    layer = linear_layer(measure_inputs(x, np.ones(50)), np.float64)
    smooth = replace(layer, linear=False)
    members = [
        Member(
            Seat(smooth if team == 0 else layer, fold, team),
            rng.standard_normal((3, 2)),
            rng.standard_normal(2),
            0.1,
        )
        for team in (0, 1)
        for fold in range(4)
    ]
    found = weighted(members, np.array([0.3, 0.7]))
    assert [member.layer.linear for member in found] == [False] * 4 + [True]
    assert [member.weight for member in found] == pytest.approx([0.075] * 4 + [0.7])
    np.testing.assert_allclose(found[-1].coef, np.mean([m.coef for m in members[4:]], axis=0))
    mean = np.mean([member.scores(x) for member in members[4:]], axis=0)
    np.testing.assert_allclose(found[-1].scores(x), mean, rtol=1e-10)
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    line = standard @ found[-1].coef + found[-1].intercept
    np.testing.assert_allclose(found[-1].scores(x), line, rtol=1e-10)
    # no weight, no member; the heaviest team comes first
    assert weighted(members, np.array([1.0, 0.0])) == [
        replace(member, weight=0.25) for member in members[:4]
    ]
    both = [replace(m, seat=replace(m.seat, layer=smooth)) for m in members]
    assert [m.seat.team for m in weighted(both, np.array([0.4, 0.6]))] == [1] * 4 + [0] * 4


# ---- who is mixed


def test_forms_are_mixed_only_where_everything_is_free():
    free = replace(SETTINGS, n_members=None)
    assert resolve(free, 300, wide=False).mixes
    assert resolve(free, 10**6, wide=False).mixes
    assert not resolve(free, 19, wide=False, few=True).mixes
    assert not resolve(free, 300, wide=True).mixes
    for change in ({"n_members": 1}, {"n_members": 5}, {"input_form": "raw"}, {"max_iter": 0}):
        assert not resolve(replace(free, **change), 300, wide=False).mixes


def test_few_rows_get_few_steps():
    assert [resolve(SETTINGS, n, False).max_iter for n in (99, 10**6)] == [5, 5]
    many = replace(SETTINGS, max_iter=240)
    assert [resolve(many, n, False).max_iter for n in (100, 1000, 10**5)] == [9, 18, 240]


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
    assert not single.members_[0].layer.linear


# ---- whole fits


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_weights_that_rows_choose(make):
    model = fitted(make)
    weights = np.array([m.weight for m in model.members_])
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1)
    assert not model.members_[0].layer.linear
    assert sum(m.layer.linear for m in model.members_) <= 1


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_the_prediction_is_the_weighted_sum(make, mixed):
    """The heaviest team comes first, and gives the attributes; the linear member is the last."""
    model = fitted(make)
    assert teams(model) == [1, 0, 2]
    assert [m.layer.linear for m in model.members_] == [False] * 10 + [True]
    assert [m.weight for m in model.members_] == pytest.approx([0.1] * 5 + [0.06] * 5 + [0.2])
    assert {m.layer.form.name for m in model.members_[:10]} > {"bins"}
    assert model.input_form_ == model.members_[0].layer.form.name
    x, _ = rows()
    expected = sum(m.weight * m.scores(x) for m in model.members_)
    got = model.predict(x) if make is RFLAFRegressor else model.decision_function(x)
    np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=1e-10)


def test_out_of_fold_predictions_are_the_mixture_of_the_teams():
    """Of a regression the members are their own judges. Sums that are kept have no linear ones."""
    x, y = rows()
    fit = fit_regression(ArrayRows(x, y, np.ones(N)), SETTINGS, keep_sums=True)
    sample = ArrayRows(x, y, np.ones(N)).sample(lambda _: 10**6, SETTINGS.seed)
    by_team = out_of_fold(fit.members, sample, fit.plan.folds(sample.keys), 1)
    mixed = np.mean((fit.oof_prediction[:, 0] - y) ** 2)
    assert mixed <= min(np.mean((found[:, 0] - y) ** 2) for found in by_team) * (1 + 1e-9)
    assert fit.noise[0] == pytest.approx(np.sqrt(mixed))
    parts = np.zeros(len(by_team))
    numbers = sorted({member.seat.team for member in fit.members})
    for member in fit.members:
        parts[numbers.index(member.seat.team)] += member.weight
    np.testing.assert_allclose(fit.oof_prediction, np.tensordot(parts, by_team, axes=1), rtol=1e-9)


def test_the_mixture_of_classes_is_no_worse_than_one_form():
    x, y = rows(classes=True)
    mixed = fit_classification(ArrayRows(x, y, np.ones(N)), SETTINGS)
    own = cross_entropy(mixed.oof_scores, y, np.ones(N))[0]
    for form in {m.layer.form.name for m in mixed.members if not m.layer.linear}:
        kinds = {m.layer.kind for m in mixed.members if m.layer.form.name == form}
        settings = replace(SETTINGS, input_form=form, metric=kinds.pop())
        alone = fit_classification(ArrayRows(x, y, np.ones(N)), settings)
        assert own <= 1.05 * cross_entropy(alone.oof_scores, y, np.ones(N))[0]


def test_a_linear_target_with_noise_is_left_to_the_linear_member():
    x, y = make_regression(2300, 10, noise=100, random_state=4)
    line = RidgeCV(np.logspace(-4, 4, 17)).fit(x[:300], y[:300])
    model = RFLAFRegressor(random_state=0).fit(x[:300], y[:300])
    mine, its = (np.mean((m.predict(x[300:]) - y[300:]) ** 2) for m in (model, line))
    assert mine < 1.03 * its
    assert any(member.layer.linear for member in model.members_)


def test_sparse_inputs_have_no_bins(rng):
    x = sparse.random_array((200, 6), density=0.4, rng=rng, format="csr")
    y = np.asarray(x.sum(axis=1)) ** 2
    model = RFLAFRegressor(30, max_iter=5, random_state=0).fit(x, y)
    assert {m.layer.form.name for m in model.members_} == {"raw"}
    assert {m.layer.form.bins for m in model.members_} == {None}
    np.testing.assert_allclose(model.predict(x), model.predict(x.toarray()), rtol=1e-4, atol=1e-4)


# ---- more rows, and starts from earlier fits


def test_more_rows_keep_the_weights_and_go_to_their_own_teams(mixed):
    """As many teams; each member solves for the rows of its own form, whichever is heavier."""
    x, y = rows(n=600)
    model = RFLAFRegressor(30, max_iter=5, random_state=0).partial_fit(x[:300], y[:300])
    assert teams(model) == [1, 0]  # sums of a linear model are not kept
    before = model.members_
    model.partial_fit(x[300:], y[300:])
    assert [m.weight for m in model.members_] == [m.weight for m in before]
    assert [m.seat for m in model.members_] == [m.seat for m in before]
    settings = replace(SETTINGS, seed=model._partial.seed)
    plan = model._partial.fit.plan
    fold = plan.folds(ArrayRows(x, y, np.ones(600)).sample(lambda _: 10**6, settings.seed).keys)
    for member in model.members_:
        seen = fold != member.seat.fold
        phi = member.layer.activation(member.layer.inputs(x[seen]) @ member.layer.components)
        # the ridge solution of all rows outside the fold, by its normal equations
        centre, target = phi - phi.mean(axis=0), y[seen] - y[seen].mean()
        gram = centre.T @ centre / seen.sum() + member.alpha * np.eye(30)
        expected = np.linalg.solve(gram, centre.T @ target / seen.sum())
        np.testing.assert_allclose(member.coef[:, 0], expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_a_warm_start_keeps_the_teams(make, mixed):
    x, y = rows(make is RFLAFClassifier)
    model = make(30, max_iter=5, random_state=0, warm_start=True).fit(x, y)
    first = [m.layer for m in model.members_ if not m.layer.linear]
    model.set_params(max_iter=1).fit(x, y)
    assert model.form_path_ == []  # nothing is tried again
    again = [m.layer for m in model.members_ if not m.layer.linear]
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


def test_folds_of_teams_are_the_same():
    x, y = rows()
    sample = ArrayRows(x, y, np.ones(N)).sample(lambda _: 10**6, 3)
    plan = plan_folds(sample, resolve(SETTINGS, N, wide=False))
    fit = fit_regression(ArrayRows(x, y, np.ones(N)), SETTINGS)
    for team in {m.seat.team for m in fit.members if not m.layer.linear}:
        assert [m.seat.fold for m in fit.members if m.seat.team == team] == plan.held
