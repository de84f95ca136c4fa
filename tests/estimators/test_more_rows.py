"""partial_fit: rows that come in several calls."""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss

from rflaf import RFLAFClassifier, RFLAFRegressor, fused, load, rules, save
from rflaf.fitting import online
from rflaf.rows import Blocks
from rflaf.rows.sample import fold_keys
from tests.estimators.conftest import classifier, regressor

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")

NAMES = np.array(["high", "low", "mid"])
CHUNK = 300


def rows(n, cuts, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.7 * rng.standard_normal(n)
    return X, NAMES[np.digitize(score, cuts)]


def in_chunks(model, X, y, first=CHUNK, **more):
    for start in range(0, len(y), first):
        at = slice(start, start + first)
        model.partial_fit(X[at], y[at], **{name: value[at] for name, value in more.items()})
    return model


@pytest.fixture(scope="module")
def two():
    return *rows(5 * CHUNK, [0.3], 1), *rows(3000, [0.3], 2)


@pytest.fixture(scope="module")
def begun(two):
    """A model after its first call."""
    X, y, _, _ = two
    return classifier(n_members=2).partial_fit(X[:CHUNK], y[:CHUNK], classes=["low", "high"])


def copy_of(model, tmp_path):
    pytest.importorskip("skops")
    save(model, tmp_path / "model.skops")
    return load(tmp_path / "model.skops")


def features(member, x):
    layer = member.layer
    z = np.asarray(layer.inputs(x) @ layer.components)
    return fused.apply(layer.sigma, z).astype(np.float64)


@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize("form", ["raw", "bins"])
def test_chunks_of_numbers_are_one_fit_of_all_rows(n_members, form):
    """With the layers of the first rows, whatever the chunks: the ridge solution of all rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4 * CHUNK, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(len(X))
    weights = rng.choice([0.0, 1.0, 2.5], len(X))
    options = {"n_members": n_members, "alpha": 1e-3, "input_form": form}
    small, large = (
        regressor(**options).partial_fit(X[:CHUNK], y[:CHUNK], weights[:CHUNK]) for _ in range(2)
    )
    in_chunks(small, X[CHUNK:], y[CHUNK:], 37, sample_weight=weights[CHUNK:])
    large.partial_fit(X[CHUNK:], y[CHUNK:], weights[CHUNK:])
    np.testing.assert_allclose(small.predict(X), large.predict(X), atol=1e-8)
    state = large._partial.fit.online
    fold = state.folds(fold_keys(state.seed, 0, len(X)))
    for member in large.members_:
        seen = np.full(len(X), True) if n_members == 1 else fold != member.layer.fold
        phi = features(member, X)
        penalty = 1e-3 * weights[seen].sum()
        ridge = Ridge(penalty).fit(phi[seen], y[seen], sample_weight=weights[seen])
        np.testing.assert_allclose(member.scores(X)[:, 0], ridge.predict(phi), atol=1e-5)


@pytest.mark.parametrize("n_members", [1, 2])
def test_chunks_come_close_to_a_fit_on_all_rows(two, n_members):
    X, y, new_X, new_y = two
    given = {"n_members": n_members, "metric": "diagonal"}  # 300 rows may choose another kind
    whole = classifier(**given).fit(X, y)
    model = classifier(**given).partial_fit(X[:CHUNK], y[:CHUNK])
    first = log_loss(new_y, model.predict_proba(new_X))
    layers = [member.layer.components for member in model.members_]
    in_chunks(model, X[CHUNK:], y[CHUNK:])
    last = log_loss(new_y, model.predict_proba(new_X))
    best = log_loss(new_y, whole.predict_proba(new_X))
    assert last < 1.04 * best
    assert last < first - 0.5 * (first - best)
    for member, layer in zip(model.members_, layers):  # what was learned stays
        np.testing.assert_array_equal(member.layer.components, layer)


@pytest.mark.parametrize("cuts", [[0.3], [-0.8, 0.8]])
def test_the_quadratic_stands_for_the_rows(cuts):
    """With the same features and penalty, chunks give what all rows at once give."""
    X, y = rows(5 * CHUNK, cuts, 3)
    new_X, _ = rows(2000, cuts, 4)
    model = in_chunks(classifier(n_members=1, alpha=0.002), X, y)
    assert model.alpha_ == pytest.approx(0.002)  # a penalty that is given stays that of the mean
    (member,) = model.members_
    exact = LogisticRegression(C=1 / (2 * 0.002 * len(y)), max_iter=2000)
    exact.fit(features(member, X), y)
    scores = model.decision_function(new_X) * model.temperature_
    expected = exact.decision_function(features(member, new_X))
    if scores.ndim == 2:  # any number may be added to the scores of a row
        scores = scores - scores.mean(axis=1, keepdims=True)
        expected = expected - expected.mean(axis=1, keepdims=True)
    assert np.mean((scores - expected) ** 2) < 0.02 * np.var(expected)


def test_three_classes_with_names_and_weights_of_classes():
    X, y = rows(4 * CHUNK, [-0.8, 0.8], 5)
    new_X, new_y = rows(2000, [-0.8, 0.8], 6)
    model = classifier(n_members=1, class_weight="balanced").partial_fit(X[:CHUNK], y[:CHUNK])
    before = model.loss_.weights
    first = log_loss(new_y, model.predict_proba(new_X))
    model.partial_fit(X[CHUNK:], y[CHUNK:], classes=NAMES)
    assert log_loss(new_y, model.predict_proba(new_X)) < first
    assert set(model.predict(new_X)) == set(NAMES)
    np.testing.assert_array_equal(model.loss_.weights, before)


def test_members_do_not_see_their_folds(two, begun, tmp_path):
    X, y, _, _ = two
    model = copy_of(begun, tmp_path)
    before = model._partial.fit.online.sums
    model.partial_fit(X[CHUNK:], y[CHUNK:])
    after = model._partial.fit.online.sums
    more = [now.weight - old.weight for (now, _), (old, _) in zip(after, before, strict=True)]
    assert sum(more) == 4 * CHUNK  # with two members each row is seen by one
    assert min(more) > CHUNK
    assert model.n_samples_fit_ == 5 * CHUNK


def test_weights_stand_for_repeated_rows(two, tmp_path):
    X, y, new_X, _ = two
    alone = classifier(n_members=1).partial_fit(X[:CHUNK], y[:CHUNK])
    weighted, repeated = copy_of(alone, tmp_path), copy_of(alone, tmp_path)
    at = slice(CHUNK, CHUNK + 200)
    weight = np.arange(200) % 3
    weighted.partial_fit(X[at], y[at], sample_weight=weight)
    repeated.partial_fit(np.repeat(X[at], weight, axis=0), np.repeat(y[at], weight))
    np.testing.assert_allclose(
        weighted.predict_proba(new_X), repeated.predict_proba(new_X), atol=1e-5
    )


def test_a_saved_model_goes_on_with_the_same_bits(two, begun, tmp_path):
    X, y, new_X, _ = two
    one, other = copy_of(begun, tmp_path), copy_of(begun, tmp_path)
    for model in (one, other):
        model.partial_fit(X[CHUNK:500], y[CHUNK:500])
    assert one.predict_proba(new_X).tobytes() == other.predict_proba(new_X).tobytes()
    again = copy_of(one, tmp_path)
    assert again.predict_proba(new_X).tobytes() == one.predict_proba(new_X).tobytes()
    assert one.oof_score_ == begun.oof_score_  # that of the first call


@pytest.mark.parametrize("count", [1, 7])
def test_few_rows_at_a_time(two, begun, tmp_path, count):
    X, y, new_X, new_y = two
    model = copy_of(begun, tmp_path)
    for start in range(CHUNK, CHUNK + 10 * count, count):
        model.partial_fit(X[start : start + count], y[start : start + count])
    loss = log_loss(new_y, model.predict_proba(new_X))
    assert loss < 1.02 * log_loss(new_y, begun.predict_proba(new_X))
    assert model.n_samples_fit_ == CHUNK + 10 * count


@pytest.mark.filterwarnings("ignore:partial_fit started with:UserWarning")
def test_a_first_call_with_few_rows_sparse_ones_and_no_intercept(two):
    X, y, new_X, new_y = two
    model = classifier(fit_intercept=False).partial_fit(sparse.csr_array(X[:60]), y[:60])
    first = log_loss(new_y, model.predict_proba(new_X))
    model.partial_fit(sparse.csr_array(X[60:]), y[60:])
    assert log_loss(new_y, model.predict_proba(new_X)) < first
    assert model.intercept_ == 0


def test_a_call_that_fails_counts_no_row(two, begun, tmp_path, monkeypatch):
    X, y, new_X, _ = two
    model = copy_of(begun, tmp_path)
    before, state = model.predict_proba(new_X), dict(vars(model))

    def fail(*_):
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(online, "add_sums", fail)
        with pytest.raises(MemoryError, match="no room"):
            model.partial_fit(X[CHUNK:], y[CHUNK:])
    assert vars(model) == state
    assert model.predict_proba(new_X).tobytes() == before.tobytes()


def test_what_cannot_be(two, begun):
    X, y, _, _ = two
    few = slice(0, 150)
    with pytest.raises(ValueError, match=r"'classes' must be .* 'high', 'low'. Got"):
        classifier().partial_fit(X[few], y[few], classes=["high", "low", "mid"])
    with pytest.raises(ValueError, match=r"'classes' must be .* Got 'high'\."):
        begun.partial_fit(X[few], y[few], classes=["high"])
    with pytest.raises(
        ValueError, match=r"'y' may only have classes .* 'high', 'low'. Got 'strange'"
    ):
        begun.partial_fit(X[:2], ["low", "strange"])
    with pytest.raises(ValueError, match=r"'y' may only have classes .* Got 3"):
        begun.partial_fit(X[:2], [3, 4])
    with pytest.raises(ValueError, match=r"X has 2 features"):
        begun.partial_fit(X[few, :2], y[few])
    with pytest.raises(TypeError, match=r"partial_fit takes arrays. Got a source"):
        begun.partial_fit(Blocks([(X, y)]), None)
    wider = classifier(n_components=41)
    vars(wider).update({**vars(begun), "n_components": 41})
    with pytest.raises(ValueError, match=r"'n_components' was 40 in the first call"):
        wider.partial_fit(X[few], y[few])
    assert begun.n_samples_fit_ == CHUNK


def test_a_fit_forgets_and_partial_fit_after_it_warns(two):
    X, y, _, _ = two
    model = classifier(max_iter=2).partial_fit(X[:150], y[:150])
    model.fit(X[:150], y[:150])
    assert "_partial" not in vars(model)
    with pytest.warns(UserWarning, match="partial_fit starts a new model"):
        model.partial_fit(X[:150], y[:150])


@pytest.mark.parametrize("kind", [RFLAFRegressor, RFLAFClassifier])
def test_what_is_kept_stays_with_its_member(monkeypatch, kind):
    """The heavier team comes first among the members, whatever its number."""
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    y = np.floor(3 * X[:, 0]) + np.sin(3 * X[:, 1])  # bins suit the one, a smooth form the other
    y = y > 0 if kind is RFLAFClassifier else y
    monkeypatch.setattr(rules, "MIXED_LOSS", np.inf)
    fits = sys.modules["rflaf.fitting.fit"]  # the package has a function of this name
    monkeypatch.setattr(
        fits, "mix_teams", lambda loss, count: np.array([0.3, 0.7] if count == 2 else [1.0])
    )
    model = kind(40, max_iter=4, random_state=0).partial_fit(X, y)
    assert [member.layer.team for member in model.members_] == 5 * [1] + 5 * [0]
    before = model._scores(X)
    model.partial_fit(X[:1], y[:1], sample_weight=[1e-9])
    assert np.mean((model._scores(X) - before) ** 2) < 1e-4 * np.var(before)


@pytest.mark.parametrize("seed", range(3))
def test_a_row_without_weight_changes_no_classes(seed):
    """Classes that are all but certain, where the loss is nearly flat and its model a poor one."""
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    y = np.floor(3 * X[:, 0]) + np.sin(3 * X[:, 1]) > 0
    model = RFLAFClassifier(40, max_iter=4, random_state=seed).partial_fit(X, y)
    before, alpha = model.predict_proba(X), model.alpha_
    model.partial_fit(X[:1], y[:1], sample_weight=[1e-9])
    assert model.alpha_ == pytest.approx(alpha)
    np.testing.assert_allclose(model.predict_proba(X), before, atol=0.02)  # by processor


def test_the_penalty_of_the_sum_stays(two, begun, tmp_path):
    """Relative to the mean of the losses it falls as rows come; a given one stays that."""
    X, y, _, _ = two
    model = copy_of(begun, tmp_path)
    model.partial_fit(X[CHUNK:], y[CHUNK:])
    assert model.alpha_ == pytest.approx(begun.alpha_ / 5, rel=0.1)
    given = in_chunks(classifier(alpha=0.003), X, y)
    assert given.alpha_ == 0.003
