"""Groups of rows: each in one fold, so that what is told of new rows holds for new groups."""

from dataclasses import replace

import numpy as np
import pytest

from rflaf.bases import RBF
from rflaf.fitting import FitSettings
from rflaf.fitting.folds import even_folds, held_out_groups, plan_folds
from rflaf.losses import SquaredError
from rflaf.rows import ArrayRows, Blocks
from tests.estimators.conftest import classifier, regressor

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")

SETTINGS = FitSettings(n_components=20, basis=RBF(8), seed=3, n_members=3)
GROUPS, ROWS = 50, 8


@pytest.fixture(scope="module")
def patients():
    """A number of its own for each group, which a column gives away, and a part to learn."""
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(2 * GROUPS), ROWS)
    own, badge = rng.standard_normal(2 * GROUPS), rng.uniform(-1, 1, (2 * GROUPS, 3))
    x = rng.standard_normal((len(group), 1))
    X = np.column_stack([x, badge[group]])
    y = own[group] + np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(len(group))
    order = rng.permutation(GROUPS * ROWS)  # rows of a group do not lie together
    old = np.flatnonzero(group < GROUPS)[order]
    new = group >= GROUPS
    return X[old], y[old], group[old], X[new], y[new]


def sample_of(sizes, seed=3):
    """Rows of groups of these sizes, with keys as fits have them."""
    keys = np.random.default_rng(seed).integers(2**63, size=len(sizes)).astype(np.uint64)
    group = np.repeat(np.arange(len(sizes)), sizes)
    ones = np.ones(len(group))
    rows = ArrayRows(ones[:, None], ones, ones, keys=keys[group])
    return rows.sample(lambda _: 10**6, 0), group


def judges(model, X):
    """Which member has made the out-of-fold prediction of each row."""
    by_member = np.column_stack([member.scores(X)[:, 0] for member in model.members_])
    found = np.abs(by_member - model.oof_prediction_[:, None]).argmin(axis=1)
    made = by_member[np.arange(len(X)), found]
    np.testing.assert_allclose(made, model.oof_prediction_, rtol=1e-6)
    return found


def test_the_member_that_judges_a_row_has_seen_nothing_of_its_group(patients):
    X, y, group, _, _ = patients
    small = regressor(n_members=3, max_iter=2)
    judge = judges(small.fit(X, y, groups=group), X)
    assert all(len(set(judge[group == one])) == 1 for one in range(GROUPS))
    assert np.ptp(np.bincount(judge, minlength=3)) <= ROWS
    judge = judges(small.fit(X, y), X)  # no such thing without groups
    assert not all(len(set(judge[group == one])) == 1 for one in range(GROUPS))


def test_the_score_is_that_of_new_groups(patients):
    X, y, group, new_X, new_y = patients
    too_good, honest = [], []
    for seed in range(3):  # fifty groups leave much to chance
        model = regressor(n_members=3, n_components=80, max_iter=20, random_state=seed)
        for keys, found in ((None, too_good), (group, honest)):
            model.fit(X, y, groups=keys)
            found.append(model.oof_score_ - model.score(new_X, new_y))
    assert np.mean(too_good) > 0.25
    assert abs(np.mean(honest)) < 0.2


def test_one_member_holds_whole_groups_out(patients):
    X, y, group, _, _ = patients
    model = regressor(n_members=1, max_iter=2).fit(X, y, groups=group)
    held = np.isfinite(model.oof_prediction_)
    assert 100 - ROWS <= held.sum() <= 100 + ROWS
    assert not set(group[held]) & set(group[~held])


def test_classes_of_new_groups(patients):
    X, y, group, new_X, new_y = patients
    labels = np.where(y > 0, "yes", "no")
    model = classifier(n_components=80, max_iter=20)
    known = model.fit(X, labels).oof_score_
    honest = model.fit(X, labels, groups=group)
    new = model.score(new_X, np.where(new_y > 0, "yes", "no"))
    assert honest.oof_score_ < known - 0.03
    assert honest.oof_score_ == pytest.approx(new, abs=0.08)


def test_labels_of_any_type_and_the_same_bits(patients):
    X, y, group, _, _ = patients
    first = regressor(n_components=20, max_iter=2).fit(X, y, groups=group)
    again = regressor(n_components=20, max_iter=2).fit(X, y, groups=list(group))
    assert first.output_weights_.tobytes() == again.output_weights_.tobytes()
    names = np.array([f"{label:03d}" for label in range(GROUPS)])  # in the order of the numbers
    named = regressor(n_components=20, max_iter=2).fit(X, y, groups=names[group])
    assert first.output_weights_.tobytes() == named.output_weights_.tobytes()
    mixed = [("patient", k) if k % 2 else f"{k}" for k in group]  # they have no order
    labels = np.empty(len(mixed), object)
    labels[:] = mixed
    for given in (labels, group.astype("datetime64[D]")):
        model = regressor(n_components=20, max_iter=2).fit(X, y, groups=given)
        assert len(model.members_) == 2


def test_a_group_for_each_row_is_no_group(friedman):
    X, y, new_X, new_y = friedman
    plain = regressor().fit(X, y)
    each = regressor().fit(X, y, groups=np.arange(len(y)))
    assert (
        plain.output_weights_.tobytes() == each.output_weights_.tobytes()
    )  # a key for each row, the same ones
    other = regressor().fit(X, y, groups=np.arange(len(y))[::-1])
    assert other.output_weights_.tobytes() != plain.output_weights_.tobytes()
    good = [regressor(n_components=150).fit(X, y, groups=keys) for keys in (None, np.argsort(y))]
    scores = [model.score(new_X, new_y) for model in good]
    assert min(scores) > 0.9  # the order of the keys is chance, and decides little


def test_rows_of_weight_zero_count_for_nothing(patients):
    X, y, group, _, _ = patients
    weights = np.where(group < 20, 0.0, 1.0 + group % 2)
    model = regressor(n_members=2, max_iter=2).fit(X, y, sample_weight=weights, groups=group)
    held = np.isfinite(model.oof_prediction_)
    np.testing.assert_array_equal(held, weights > 0)
    by_member = np.column_stack([member.scores(X)[:, 0] for member in model.members_])
    judge = np.abs(by_member - model.oof_prediction_[:, None])[held].argmin(axis=1)
    assert np.ptp(np.bincount(judge)) <= ROWS  # folds of the rows that count are even
    with pytest.raises(
        ValueError, match=r"'groups' must have at least 2 groups with positive weight"
    ):
        regressor().fit(X, y, sample_weight=1.0 * (group == 3), groups=group)


def test_fewer_groups_than_members(patients):
    X, y, group, _, _ = patients
    model = regressor(n_members=5, max_iter=2).fit(X, y, groups=group % 3)
    assert len(model.members_) == 3
    assert np.isfinite(model.oof_prediction_).all()


def test_a_class_that_is_in_one_group_only(patients):
    X, y, _, _, _ = patients
    for labels in (np.where(y > 0, "yes", "no"), np.digitize(y, [-1, 1])):
        model = classifier(max_iter=2).fit(
            X, labels, groups=labels
        )  # nobody has seen what it is judged by
        assert model.oof_score_ < 0.5
        assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    "sizes",
    [[300, 20, 20, 20, 20, 20], [100, 100, 100, 1], [5] * 60, list(range(1, 30)), [500, 1, 1]],
)
def test_folds_are_as_even_as_groups_allow(sizes):
    sample, group = sample_of(sizes)
    folds = plan_folds(sample, SETTINGS, SquaredError())
    fold = folds(sample.keys)
    assert all(len(set(fold[group == one])) == 1 for one in range(len(sizes)))
    counts = np.bincount(fold)
    assert folds.of_member == list(range(3))
    assert counts.min() > 0
    # no fold has more than another but for its smallest group: none could be moved with a gain
    largest = counts.argmax()
    assert counts.max() - counts.min() <= min(np.array(sizes)[group][fold == largest])
    one = plan_folds(sample, replace(SETTINGS, n_members=1), SquaredError())
    held = one(sample.keys) == 1
    assert one.of_member == [1]
    assert 0 < held.sum() < len(group)
    assert held.sum() <= max(150, min(sizes))


def test_each_group_has_one_fold_and_one_side():
    assert sorted(even_folds(np.array([4, 4]), 2)) == [0, 1]
    np.testing.assert_array_equal(held_out_groups(np.array([90, 10]), 10.0), [False, True])
    np.testing.assert_array_equal(held_out_groups(np.array([60, 50]), 10.0), [False, True])
    np.testing.assert_array_equal(held_out_groups(np.array([3, 4]), 100.0), [True, False])


def test_groups_outside_of_the_sample_have_one_fold():
    sample, group = sample_of([3] * 200)
    part = sample.where(group < 60)
    fold = plan_folds(part, SETTINGS, SquaredError())(sample.keys)
    assert all(len(set(fold[group == one])) == 1 for one in range(200))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(10), r"'groups' must have a label for each of the 120 rows. Got .* \(10,\)"),
        (np.zeros((120, 2)), r"'groups' must have a label for each .* Got .* \(120, 2\)"),
        (np.zeros(120), r"'groups' must have at least 2 groups .* Got 1"),
        (["a"] * 119 + [None], r"'groups' must have a label for each row. Got None in row 119"),
        ([np.nan] + [1.0] * 119, r"'groups' must have a label for each row. Got .*nan.* in row 0"),
        (np.ma.masked_less(np.arange(120), 5), r"'groups' must have a label .* masked"),
        (
            np.array(["2020", "NaT"] * 60, "datetime64[D]"),
            r"'groups' must have a label for each row. Got .*NaT.* in row 1",
        ),
    ],
)
@pytest.mark.parametrize("make", [regressor, classifier])
def test_labels_that_cannot_be(groups, message, make):
    X = np.random.default_rng(0).standard_normal((120, 2))
    with pytest.raises(ValueError, match=message):
        make().fit(X, (X[:, 0] > 0).astype(int), groups=groups)


def test_missing_labels_of_pandas():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((120, 2))
    labels = pandas.array(["a", pandas.NA, "b"] * 40, dtype="string")
    with pytest.raises(ValueError, match=r"'groups' must have a label .* row 1"):
        regressor().fit(X, X[:, 0], groups=pandas.Series(labels))
    frame = pandas.Series(["a", "b", "c"] * 40, dtype="category")
    model = regressor(n_components=10, max_iter=1, n_members=4).fit(X, X[:, 0], groups=frame)
    assert len(model.members_) == 3


def test_rows_that_are_read_in_blocks_take_no_groups(tmp_path):
    x = np.random.default_rng(0).standard_normal((120, 2))
    source = Blocks([(x, x[:, 0])])
    with pytest.raises(ValueError, match=r"'groups' needs 'X' as an array in memory. Got a Blocks"):
        regressor().fit(source, groups=np.arange(120))
    on_disk = np.memmap(tmp_path / "x", float, "w+", shape=(120, 300_000))  # takes no room
    with pytest.raises(ValueError, match=r"'groups' needs 'X' as an array in memory. Got a memmap"):
        regressor().fit(on_disk, x[:, 0], groups=np.arange(120))


def test_dask_takes_no_groups():
    pytest.importorskip("distributed")
    from rflaf.dask import DaskRFLAFClassifier, DaskRFLAFRegressor

    for kind in (DaskRFLAFClassifier, DaskRFLAFRegressor):
        with pytest.raises(ValueError, match=f"{kind.__name__} takes no 'groups'"):
            kind().fit(np.zeros((5, 1)), np.arange(5), groups=np.arange(5))
