"""Local models: partitions of the rows, and output weights for their parts."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies

from rflaf import RFLAFClassifier, RFLAFRegressor, load, rules, save
from rflaf.fitting import attribution, localise, solving
from rflaf.fitting.directions import draw_candidates, in_cells, most_telling
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.local import by_part, cut_rows, joined, shares


def _rough(n, rng, d=3):
    """A function with more bends than a few features can follow."""
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sign(np.sin(9 * X[:, 0]) * np.sin(7 * X[:, 1])) + 0.05 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def rough():
    X, y = _rough(900, np.random.default_rng(0))
    model = RFLAFRegressor(n_components=40, input_form="raw", random_state=0, n_members=3)
    return X, y, model.fit(X, y)


def _cut(rng, n=600, depth=4):
    z = rng.standard_normal((n, depth)).astype(np.float32)
    return z, *cut_rows(z, np.ones(n), depth)


def test_shares_of_a_row_sum_to_one(rng):
    z, cuts, widths = _cut(rng)
    at = shares(cuts, widths, z)
    assert np.allclose(np.bincount(at.rows, at.share), 1)
    assert (at.share > 0).all()
    assert len(at.rows) > len(z)  # near cuts both sides have a share
    sizes = np.bincount(at.parts, at.share, 16)
    assert sizes.min() > 0.7 * 600 / 16
    assert sizes.max() < 1.3 * 600 / 16


def test_shares_are_smooth(rng):
    z, cuts, widths = _cut(rng)
    line = np.repeat(z[:1], 4001, axis=0).astype(np.float64)
    line[:, 1] = np.linspace(-4, 4, 4001)
    at = shares(cuts, widths, line)
    dense = np.zeros((4001, 16))
    dense[at.rows, at.parts] = at.share
    step = np.abs(np.diff(dense, axis=0)).max()
    assert 0 < step < 1.6 * 0.002 / (2 * widths.min())


@settings(max_examples=30, deadline=None)
@given(values=strategies.lists(strategies.integers(-3, 3), min_size=1, max_size=60))
def test_equal_values_are_not_dealt_out_again_and_again(values):
    z = np.repeat(np.array(values, np.float32)[:, None], 6, axis=1)
    cuts, widths = cut_rows(z, np.ones(len(z)), 6)
    at = shares(cuts, widths, z)
    assert np.allclose(np.bincount(at.rows, at.share), 1)
    assert len(at.rows) <= 2 * len(z)


def test_weight_two_is_the_same_as_two_rows(rng):
    z = rng.standard_normal((200, 3)).astype(np.float32)
    weights = rng.integers(1, 3, 200).astype(float)
    twice = np.repeat(z, weights.astype(int), axis=0)
    one, other = cut_rows(z, weights, 3), cut_rows(twice, np.ones(len(twice)), 3)
    assert np.allclose(one[0], other[0])
    assert np.allclose(one[1], other[1])


def test_rows_by_part_are_all_rows(rng):
    z, cuts, widths = _cut(rng, depth=3)
    at = shares(cuts, widths, z)
    total = np.zeros(len(z))
    weights = rng.uniform(0.5, 2, len(z))
    parts = by_part(at, weights, 8)
    for rows, root in zip(*(np.split(each, parts.ends[:-1]) for each in (parts.rows, parts.root))):
        assert len(set(rows)) == len(rows)
        total[rows] += root**2
    assert len(parts.ends) == 8
    assert np.allclose(total, weights)


def test_a_part_has_the_ridge_solution_of_what_is_left(rough, monkeypatch):
    X, y, model = rough
    member = replace(model.members_[0], local=())
    monkeypatch.setattr(rules, "LOCAL_FEATURES", 40)
    rows = object.__new__(localise._Rows)
    rows.layer, rows.directions = member.layer, member.layer.components
    rows.inputs = member.layer.inputs(X)
    left, ones = (y - member.scores(X)[:, 0])[:, None], np.ones(len(y))
    rows._left = lambda: (left, ones)
    rows.own_weights, rows.intercept = ones, True
    candidates = np.arange(2)[:, None]  # one for each level
    plan = localise.PartitionPlan(200, 2, np.arange(40), candidates)
    (local,) = rows.learn([plan], [0.1])
    z = np.asarray(rows.inputs @ member.layer.components)
    phi = np.hstack([member.layer.activation(z), np.ones((len(z), 1))])
    at = shares(local.cuts[0], local.widths[0], z.astype(np.float32))
    share = np.zeros((len(z), 4))
    share[at.rows, at.parts] = at.share
    unit = np.sqrt((phi[:, :-1] ** 2).sum(axis=1).mean())
    expected = np.zeros(len(z))
    for part in range(4):
        inner = phi / unit
        gram = (inner * share[:, part : part + 1]).T @ inner
        penalty = 0.1 * len(z) / (4 * 200) * np.eye(41)
        v = np.linalg.solve(gram + penalty, (inner * share[:, part : part + 1]).T @ left)
        expected += share[:, part] * (inner @ v)[:, 0]
    found = replace(member, local=(local,)).local_scores(rows.inputs)[:, 0]
    assert np.abs(found - expected).max() < 2e-4 * np.abs(expected).max()


def test_rough_functions_have_them_and_noise_has_none(rough):
    X, y, model = rough
    plain = RFLAFRegressor(**model.get_params()).set_params(local_models=False).fit(X, y)
    assert all(member.local for member in model.members_)
    assert not any(member.local for member in plain.members_)
    assert 1 - model.oof_score_ < 0.95 * (1 - plain.oof_score_)
    new, truth = _rough(2000, np.random.default_rng(1))
    errors = [np.mean((each.predict(new) - truth) ** 2) for each in (model, plain)]
    assert errors[0] < 0.9 * errors[1]
    noise = np.random.default_rng(2).standard_normal(len(y))
    nothing = RFLAFRegressor(**model.get_params()).fit(X, noise)
    assert not any(member.local for member in nothing.members_)


def test_the_rows_of_a_fold_have_no_part_in_what_judges_them(rough, monkeypatch):
    """With penalty and strength given, other targets inside a fold leave its local models alone."""
    X, y, model = rough
    kept = []
    learn = localise.learn_local

    def keep(task, judges, members):
        found = learn(task, judges, members)
        if task.settings.local_models:  # and not the fit of the errors' scale
            kept.append((task, found))
        return found

    monkeypatch.setattr(sys.modules["rflaf.fitting.fit"], "learn_local", keep)
    monkeypatch.setattr(localise, "_choose", lambda *given: localise.RoundChoice(0.5, 0, 0.5))
    monkeypatch.setattr(rules, "LOCAL_ROUNDS", 3)
    monkeypatch.setattr(solving, "choose_alpha", lambda *given: (0.01, []))
    params = {**model.get_params(), "max_iter": 0}
    RFLAFRegressor(**params).fit(X, y)
    task, before = kept[0]
    inside = task.sample.numbers[task.fold == 0]
    other = y.copy()
    other[inside] = np.roll(y[inside], 1)  # the same numbers: units stay
    RFLAFRegressor(**params).fit(X, other)
    after = kept[1][1]
    shapes = [[[each.coef.shape for each in side] for side in own] for own in before]
    assert all(honest == last for honest, last in shapes)
    same = [
        np.allclose(a.honest[0].coef * a.honest[0].unit, b.honest[0].coef * b.honest[0].unit)
        for a, b in zip(before, after)
    ]
    assert same == [True, False, False]


def test_partitions_of_a_member_differ(rough):
    _, _, model = rough
    for local in model.members_[0].local:
        assert len(np.unique(local.coef[:, 0, 0, 0])) == len(local.cuts)
        assert len(np.unique(local.columns, axis=0)) == len(local.cuts)


def test_no_intercept_in_parts_either(rough):
    X, y, model = rough
    plain = RFLAFRegressor(**model.get_params()).set_params(fit_intercept=False).fit(X, y)
    assert all(not local.coef[..., -1].any() for m in plain.members_ for local in m.local)


def test_explanations_follow_local_models(rough):
    """Before what is left is spread over the columns, it is little, and the rest is right."""
    X, _, model = rough
    member = model.members_[0]
    inputs = member.layer.inputs(X[:40])
    background = member.layer.inputs(model.background_)
    scores = member.local_scores(background)[:, 0]
    start = background[np.argmin(np.abs(scores - scores.mean()))]
    out = np.zeros((40, 3, 1))
    attribution._add_local(member, inputs, background, np.arange(3), out)
    truth = np.zeros((40, 3))
    for place in (np.arange(400) + 0.5) / 400:
        for local, project in zip(member.local, member.projectors):
            slopes = local.slopes(member.layer, project, start + place * (inputs - start))[:, 0]
            truth += (inputs - start) * slopes / 400
    found = out[:, :, 0] / member.weight
    wanted = member.local_scores(inputs)[:, 0] - scores.mean()
    size = np.sqrt(np.mean(truth**2))
    assert np.abs(found.sum(axis=1) - wanted).max() < 0.1 * np.abs(wanted).max()
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.03 * size


def test_a_prediction_does_not_depend_on_the_rows_beside_it(rough):
    X, _, model = rough
    expected = model.predict(X)
    for size in (1, 7, 100):
        found = [model.predict(X[at : at + size]) for at in range(0, 200, size)]
        np.testing.assert_array_equal(np.concatenate(found)[:200], expected[:200])


def test_the_same_bits_whatever_the_threads(rough):
    X, y, model = rough
    again = RFLAFRegressor(**model.get_params()).set_params(n_jobs=2).fit(X, y)
    one = RFLAFRegressor(**model.get_params()).set_params(n_jobs=1).fit(X, y)
    assert np.array_equal(again.predict(X), one.predict(X))


def test_files_keep_them(rough, tmp_path):
    X, _, model = rough
    save(model, tmp_path / "model.rflaf")
    assert np.array_equal(load(tmp_path / "model.rflaf").predict(X), model.predict(X))


def test_graphs_and_modules_have_them(rough, tmp_path):
    onnxruntime, torch = pytest.importorskip("onnxruntime"), pytest.importorskip("torch")
    from rflaf.onnx import export

    X, _, model = rough
    export(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})
    assert np.abs(found - model.predict(X.astype(np.float32))).max() < 1e-5
    module = model.to_torch()
    x = torch.tensor(X, requires_grad=True)
    scores = module(x)
    assert np.abs(scores.detach().numpy() - model.predict(X)).max() < 1e-5
    scores.sum().backward()
    slopes = x.grad.numpy()
    apart = np.abs(slopes - model.gradient(X))
    assert np.quantile(apart, 0.99) < 1e-3 * np.abs(slopes).max()  # but for rows at the ends


def test_explanations_and_gradients_have_them(rough):
    X, _, model = rough
    X = X[np.abs(X).max(axis=1) < 0.9][:100]
    why = model.explain(X)
    assert np.abs(why.values.sum(axis=1) + why.base_values - model.predict(X)).max() < 1e-9
    step, gradient = 1e-3, model.gradient(X)
    for j in range(X.shape[1]):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        slope = (model.predict(up) - model.predict(down)) / (2 * step)
        assert np.median(np.abs(slope - gradient[:, j])) < 1e-2 * np.abs(gradient).max()


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_have_them(classes, rng):
    X, y = _rough(1500, rng)
    y = np.digitize(y + 0.3 * X[:, 2], [-0.9, 0.9][: classes - 1])
    few = RFLAFClassifier(n_components=20, metric="none", input_form="raw", random_state=0)
    model = few.fit(X, y)
    assert all(member.local for member in model.members_)
    plain = RFLAFClassifier(**model.get_params()).set_params(local_models=False).fit(X, y)
    assert model.oof_metrics_["log-loss"][0] < 0.99 * plain.oof_metrics_["log-loss"][0]


def test_counts_have_them(rng):
    X, y = _rough(900, rng)
    y = rng.poisson(np.exp(1 + y))
    model = RFLAFRegressor(loss="poisson", n_components=40, input_form="raw", random_state=0)
    assert all(member.local for member in model.fit(X, y).members_)


def test_more_rows_come_without(rough):
    X, y, model = rough
    online = RFLAFRegressor(**model.get_params()).partial_fit(X, y)
    assert not any(member.local for member in online.members_)


def test_few_rows_have_none(rng):
    X, y = _rough(200, rng)
    model = RFLAFRegressor(n_components=40, random_state=0).fit(X, y)
    assert not any(member.local for member in model.members_)


def test_memory_has_a_bound(rough, monkeypatch):
    X, y, model = rough
    whole = sum(local.coef.size for member in model.members_ for local in member.local)
    monkeypatch.setattr(rules, "LOCAL_NUMBERS", whole // 4)
    few = RFLAFRegressor(**model.get_params()).fit(X, y)
    numbers = sum(local.coef.size for member in few.members_ for local in member.local)
    assert 0 < numbers <= whole // 4


def _codes(z):
    return np.stack([in_cells(column) for column in z.T])


def test_cuts_go_along_the_columns_that_tell_most(rng):
    z, ones = rng.standard_normal((2000, 12)), np.ones(2000)
    left = (np.sign(z[:, 2]) + 0.5 * np.sign(z[:, 2] * z[:, 9]))[:, None]
    assert most_telling(_codes(z), left, ones, ones, 2).tolist() == [2, 9]
    weights = np.where(z[:, 2] > 0, 1.0, 1e-9)  # rows that hardly count
    left = np.sign(z[:, [4]]) + 20 * (z[:, [2]] <= 0) * np.sign(z[:, [3]])
    assert most_telling(_codes(z), left, weights, ones, 2)[0] == 4
    z[:, 1] = rng.uniform(size=2000) < 0.03  # no median would part these
    assert most_telling(_codes(z), 50 * z[:, [1]], ones, ones, 1)[0] == 1


@settings(max_examples=20, deadline=None)
@given(seed=strategies.integers(0, 1000), outputs=strategies.integers(1, 3))
def test_gains_are_those_of_the_definition(seed, outputs):
    """Sums of squares between the halves at medians, candidate by candidate and node by node."""
    rng = np.random.default_rng(seed)
    z, left = rng.integers(0, 9, (90, 6)).astype(float), rng.standard_normal((90, outputs))
    weights, own = rng.uniform(0.1, 2, 90), rng.uniform(0.5, 1, 90)
    found = most_telling(_codes(z), left, weights, own, 2)
    node = np.zeros(90, int)
    for level in range(2):
        gains, children = [], []
        for column in z[:, 3 * level : 3 * level + 3].T:
            child = 2 * node
            for part in np.unique(node):
                values = np.unique(column[node == part])
                below = [own[(node == part) & (column <= v)].sum() for v in values]
                middle = values[np.searchsorted(below, below[-1] / 2)]
                middle = min(middle, values[-2]) if len(values) > 1 else middle
                child = child + ((node == part) & (column > middle))
            total = 0.0
            for part in np.unique(child):
                at = child == part
                total += np.sum((weights[at] @ left[at]) ** 2) / weights[at].sum()
            gains.append(total)
            children.append(child)
        assert gains[found[level] - 3 * level] > max(gains) - 1e-9
        node = children[found[level] - 3 * level]


def test_candidates_are_features_and_columns(rng):
    some, scales = np.arange(7, 27), np.array([1.0, 0.0, 2.0, 1.0])
    drawn = draw_candidates(rng, 4, some, 50, scales)
    assert drawn.shape == (4, 16)
    assert (np.sort(drawn)[:, -3:] == [50, 52, 53]).all()
    assert np.isin(drawn[drawn < 50], some).all()
    assert draw_candidates(rng, 4, some[:3], 50, np.zeros(2)).shape == (4, 3)


def test_joined_models_have_the_same_scores(rough):
    X, _, model = rough
    member = model.members_[0]
    parts = [replace(local, unit=(k + 1) * local.unit) for k, local in enumerate(member.local * 2)]
    one = replace(member, local=joined(parts))
    inputs = member.layer.inputs(X)
    expected = replace(member, local=tuple(parts)).local_scores(inputs)
    assert len({local.depth for local in one.local}) == len(one.local)
    np.testing.assert_allclose(one.local_scores(inputs), expected, rtol=1e-5, atol=1e-5)


def test_later_rounds_lower_the_error_further(rough, monkeypatch):
    X, y, model = rough
    monkeypatch.setattr(rules, "LOCAL_ROUNDS", 1)
    one = RFLAFRegressor(**model.get_params()).fit(X, y)
    new, truth = _rough(2000, np.random.default_rng(1))
    errors = [np.mean((each.predict(new) - truth) ** 2) for each in (model, one)]
    assert errors[0] < 0.97 * errors[1]
    assert model.oof_score_ > one.oof_score_


def test_cuts_may_follow_single_columns(rough):
    """Steps of one column are found by directions of that column alone."""
    X, y, _ = rough
    y = np.floor(4 * X[:, 0]) + np.floor(3 * X[:, 1])
    model = RFLAFRegressor(n_components=40, input_form="raw", random_state=0).fit(X, y)
    M = 40
    assert any(np.max(local.columns) >= M for member in model.members_ for local in member.local)
    axes = model.members_[0].directions[:, M:]
    assert (np.count_nonzero(axes, axis=0) == 1).all()


def test_many_columns_have_no_directions_of_their_own(rng, monkeypatch):
    """A matrix of columns × columns would not fit into memory for sparse rows of 20,000."""
    X, y = _rough(900, rng)
    monkeypatch.setattr(rules, "LOCAL_COLUMNS", 2)
    monkeypatch.setattr(FittedLayer, "axes", property(lambda layer: pytest.fail("was made")))
    model = RFLAFRegressor(40, input_form="raw", random_state=0, n_members=3).fit(X, y)
    assert all(member.local for member in model.members_)
    assert all(np.max(local.columns) < 40 for m in model.members_ for local in m.local)
    assert np.isfinite(model.predict(X)).all()


def test_gains_that_chance_explains_are_none(monkeypatch):
    """Rounds choose from many models by the same rows, and rare events make these losses noisy."""
    rng = np.random.default_rng(101)
    X, y = rng.standard_normal((450, 4)), rng.poisson(0.1, 450)
    model = RFLAFRegressor(100, loss="poisson", random_state=1)
    monkeypatch.setattr(rules, "LOCAL_DOUBT", (0.0, 0.0))
    assert any(member.local for member in model.fit(X, y).members_)
    score = model.oof_score_
    monkeypatch.setattr(rules, "LOCAL_DOUBT", (2.0, 2.0))
    assert not any(member.local for member in model.fit(X, y).members_)
    assert model.oof_score_ < score


def test_threads_and_ties_change_no_bit(monkeypatch):
    """Values of 0 and 1 tie nearly everywhere; which directions are known first may not matter."""
    monkeypatch.setattr(rules, "LOCAL_DOUBT", (0.0, 0.0))  # the gains here are small
    rng = np.random.default_rng(15)
    X = rng.integers(0, 2, (1200, 12)).astype(float)
    y = (X[:, 0] != X[:, 1]) * X[:, 2] + X[:, 3] * X[:, 4] * X[:, 5] + 0.1 * rng.normal(size=1200)
    model = RFLAFRegressor(100, n_members=1, input_form="raw", max_iter=5, random_state=15)
    one = model.set_params(n_jobs=1).fit(X, y).predict(X)
    assert model.members_[0].local
    for _ in range(3):
        np.testing.assert_array_equal(model.set_params(n_jobs=2).fit(X, y).predict(X), one)


def test_what_is_known_of_directions_does_not_depend_on_their_order(monkeypatch):
    """Threads share the partitions of a round in any order: here in the opposite one."""
    rng = np.random.default_rng(15)
    X = rng.integers(0, 2, (1200, 12)).astype(float)
    y = (X[:, 0] != X[:, 1]) * X[:, 2] + X[:, 3] * X[:, 4] * X[:, 5] + 0.1 * rng.normal(size=1200)
    options = {"n_members": 1, "input_form": "raw", "max_iter": 5, "n_jobs": 1}
    model = RFLAFRegressor(100, random_state=15, **options)
    before = model.fit(X, y).predict(X)

    def backwards(work, count):
        for k in reversed(range(count)):
            work(k)

    monkeypatch.setattr(localise, "parallel", backwards)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), before)


def test_rounding_parts_no_rows(rng):
    """Rows that are equal have z that differ in their last bits: no cut lies between these."""
    z = rng.choice([-0.3, 0.1, 0.7], 900).repeat(2)[:, None]
    noisy = (z * (1 + 1e-7 * rng.integers(-2, 3, z.shape))).astype(np.float32)
    cuts, widths = cut_rows(noisy, np.ones(len(z)), 1)
    assert np.abs(cuts - z).min() > 0.1
    assert widths.min() > 0.1


def test_a_row_has_one_prediction_whatever_is_beside_it():
    rng = np.random.default_rng(3)
    n = 1500
    first, second = rng.integers(0, 40, n), rng.integers(0, 6, n)
    X = np.hstack([np.eye(40)[first], np.eye(6)[second]])
    y = np.sin(first) * (second > 2) + 0.1 * rng.normal(size=n)
    model = RFLAFRegressor(100, n_members=1, input_form="raw", max_iter=5, random_state=3)
    model.fit(X, y)
    assert model.members_[0].local
    whole = model.predict(X)
    alone = np.concatenate([model.predict(row[None]) for row in X[:60]])
    np.testing.assert_allclose(alone, whole[:60], atol=2e-4)


@pytest.mark.parametrize("parts", [40, 60, 100])
def test_partitions_that_fit_are_learned_although_finer_ones_do_not(parts, monkeypatch, rng):
    monkeypatch.setattr(rules, "LOCAL_NUMBERS", parts * 51)
    monkeypatch.setattr(rules, "LOCAL_PENALTIES", (0.01,))
    X = rng.standard_normal((4000, 2))
    model = RFLAFRegressor(50, n_members=1, input_form="raw", max_iter=3, random_state=0)
    model.fit(X, np.sin(9 * X[:, 0]) * X[:, 1])
    counts = [local.coef.shape[0] * local.coef.shape[1] for local in model.members_[0].local]
    assert 0 < sum(counts) <= parts


def test_a_single_penalty_may_gain_nothing(monkeypatch, rng):
    monkeypatch.setattr(rules, "LOCAL_PENALTIES", (1e-3,))
    X, y = rng.standard_normal((600, 4)), rng.standard_normal(600)
    model = RFLAFRegressor(50, input_form="raw", max_iter=3, random_state=0, n_members=2)
    assert np.isfinite(model.fit(X, y).oof_score_)
