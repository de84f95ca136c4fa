"""Scores of unseen rows are honest: nothing of a row's target is in what judges it."""

from dataclasses import replace

import numpy as np
import pytest

from rflaf import RFLAFClassifier, RFLAFRegressor, rules
from rflaf.bases import RBF
from rflaf.fitting import Choice, FitSettings, fit
from rflaf.fitting.layers import learn_layers
from rflaf.fitting.solving import solve_members
from rflaf.inputs.forms import Binned, WithRanks
from rflaf.inputs.target_means import Coded
from rflaf.losses import Logistic, Poisson, SquaredError
from rflaf.rows.sample import fold_keys
from rflaf.runtime.threads import use_threads
from tests.fitting.conftest import rows_of, same_layer, task_of

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")

SETTINGS = FitSettings(
    n_components=20,
    basis=RBF(8),
    seed=3,
    metric="diagonal",
    input_form=WithRanks,
    max_iter=4,
    n_members=3,
)
N, LEVELS = 512, 40  # means of 512 numbers with few digits are exact


@pytest.fixture(autouse=True)
def no_restarts(monkeypatch):
    """A layer is learned again if it is behind those of other folds, which know its own fold."""
    monkeypatch.setattr(rules, "RESTARTS", 0)


@pytest.fixture(autouse=True)
def folds_by_keys_alone(monkeypatch):
    """Rows of rare classes are dealt out to the folds, so that these depend on the classes."""
    monkeypatch.setattr(rules, "DEALT_ROWS", 0)


@pytest.fixture
def rows(rng):
    """Two columns of numbers, and one of codes."""
    codes = rng.integers(0, LEVELS, N)
    x = np.column_stack([rng.standard_normal((N, 2)), codes])
    y = np.round(4 * (np.sin(2 * x[:, 0]) + x[:, 1] + 0.1 * codes)) / 4
    return x, y


CASES = {
    "numbers": (SquaredError(), {}),
    "two classes": (Logistic(), {}),
    "three classes": (Logistic(), {}),
    "numbers, means of levels": (SquaredError(), {"coded": True}),
    "three classes, means of levels": (Logistic(), {"coded": True}),
    "numbers in bins, means of levels": (SquaredError(), {"coded": True, "form": Binned}),
    "groups, means of levels": (SquaredError(), {"coded": True, "groups": True}),
    "classes of groups, means of levels": (Logistic(), {"coded": True, "groups": True}),
    "numbers, text": (SquaredError(), {"text": True}),
    "three classes, means of levels and text": (Logistic(), {"coded": True, "text": True}),
    "groups, text": (SquaredError(), {"text": True, "groups": True}),
}
each_case = pytest.mark.parametrize("case", CASES)
# layers of classes are learned once or, where rows are many, again at honest scores
WAYS = [(case, way) for case in CASES for way in ("once", "twice")[: 1 + ("class" in case)]]


class Case:
    """Fits of one kind, whose targets may be spoilt."""

    def __init__(self, name, rows, members=3):
        self.name, (self.x, y) = name, rows
        self.loss, options = CASES[name]
        self.y = y
        if isinstance(self.loss, Logistic):
            middle = np.median(y)
            self.y = np.digitize(y, [middle] if "two" in name else [middle - 1, middle + 1])
        coded = Coded(np.array([2]), (LEVELS + 2,)) if options.get("coded") else None
        if options.get("text"):  # the numbers of a text that names the level
            names = np.random.default_rng(1).standard_normal((LEVELS, 6))
            self.x = np.hstack([self.x, names[self.x[:, 2].astype(int)]])
            coded = replace(coded or Coded(np.zeros(0, int), ()), texts=(np.arange(3, 9),))
        form = options.get("form", WithRanks)
        self.settings = replace(SETTINGS, coded=coded, input_form=form, n_members=members)
        self.choice = Choice(form, "diagonal")
        self.keys = None
        if options.get("groups"):  # four levels are a group
            self.keys = fold_keys(3, 0, LEVELS)[self.x[:, 2].astype(int) // 4]
        self.task = self.task_of(self.y)

    def task_of(self, y, like=None):
        """In the units of the targets as they were."""
        return task_of(rows_of(self.x, y, keys=self.keys), self.settings, self.loss, like)

    def spoilt(self, fold):
        """Targets of a fold in another order, all of one class, or far away."""
        inside = self.task.fold == fold
        mixed, replaced = self.y.copy(), self.y.copy()
        mixed[inside] = np.random.default_rng(0).permutation(self.y[inside])
        replaced[inside] = 1 if isinstance(self.loss, Logistic) else 1e3 * self.y[inside] - 7
        return mixed, replaced

    def solved(self, y):
        """Layers and solutions of all members, with a penalty that no row has chosen."""
        task = self.task_of(y, like=self.task.loss)
        np.testing.assert_array_equal(task.fold, self.task.fold)
        given = replace(task, settings=replace(task.settings, alpha=1e-2))
        with use_threads(None):
            layers = learn_layers(task, [self.choice])
            found = solve_members(rows_of(self.x, y, keys=self.keys), given, layers)
        assert [layer.fold for layer in found.layers] == self.task.folds.of_member
        return layers, found.solutions


@pytest.mark.parametrize(("case", "way"), WAYS)
def test_a_member_has_not_seen_its_fold(case, way, rows, monkeypatch):
    """Whatever the targets of fold k are, layer k and the weights that judge it stay to the bit.

    Weights of numbers are these; those of classes are fitted to all rows at the end.
    """
    monkeypatch.setattr(rules, "WORKING_ROWS", 100 if way == "twice" else 10**9)
    given = Case(case, rows)
    layers, solutions = given.solved(given.y)
    for k in range(3):
        for y in given.spoilt(k):
            other_layers, others = given.solved(y)
            same_layer(layers[k], other_layers[k])
            assert solutions[k].honest.tobytes() == others[k].honest.tobytes()
            same = solutions[k].coef.tobytes() == others[k].coef.tobytes()
            assert same == given.loss.quadratic
            for other in {0, 1, 2} - {k}:  # these have seen it
                assert not np.array_equal(layers[other].components, other_layers[other].components)
                assert not np.array_equal(solutions[other].coef, others[other].coef)


@each_case
def test_what_judges_a_single_member_has_not_seen_its_fold(case, rows, monkeypatch):
    monkeypatch.setattr(rules, "WORKING_ROWS", 100)
    given = Case(case, rows, members=1)
    (layer,), (solution,) = given.solved(given.y)
    for y in given.spoilt(1):
        (other_layer,), (other,) = given.solved(y)
        same_layer(layer, other_layer)
        assert solution.honest.tobytes() == other.honest.tobytes()
        assert not np.array_equal(solution.coef, other.coef)  # the last fit is to all rows


def test_layers_of_classes_are_learned_again_at_honest_scores(rows, monkeypatch):
    """The tests above see both ways of learning."""
    given = Case("two classes", rows)
    monkeypatch.setattr(rules, "WORKING_ROWS", 10**9)
    once = given.solved(given.y)[0][0]
    monkeypatch.setattr(rules, "WORKING_ROWS", 100)
    twice = given.solved(given.y)[0][0]
    assert not np.array_equal(once.components, twice.components)
    assert len(twice.history) == 2 * len(once.history) == 8


@each_case
def test_a_member_of_a_fit_has_not_seen_its_fold(case, rows, monkeypatch):
    """The targets of a fold in another order: their mean and spread stay, to the bit."""
    monkeypatch.setattr(rules, "WORKING_ROWS", 100)
    given = Case(case, rows)
    settings = replace(given.settings, alpha=1e-2)
    k = 1
    one, other = (
        fit(rows_of(given.x, y, keys=given.keys), given.loss, settings)
        for y in (given.y, given.spoilt(k)[0])
    )
    same_layer(one.members[k].layer, other.members[k].layer)
    if given.loss.quadratic:  # others are fitted to all rows at the end
        np.testing.assert_array_equal(one.members[k].coef, other.members[k].coef)
    at = given.task.fold == k  # up to the temperature, which all folds choose
    mine, its = (each.oof_scores[at] * each.temperature for each in (one, other))
    np.testing.assert_allclose(mine, its, rtol=1e-12)
    assert not np.array_equal(one.members[k - 1].coef, other.members[k - 1].coef)


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


def noisy_frame(rng, levels):
    """A column of many levels and two of numbers, which tell nothing."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "level": [f"level {k}" for k in levels],
            "a": rng.standard_normal(len(levels)),
            "b": rng.standard_normal(len(levels)),
        }
    )


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize("seed", range(3))
def test_many_levels_of_noise(seed, grouped):
    """300 levels of 600 rows: out of fold as on new rows, of known levels and of unknown ones."""
    rng = np.random.default_rng(seed)
    X = noisy_frame(rng, rng.permutation(600) % 300)
    news = [noisy_frame(rng, rng.integers(low, low + 300, 1000)) for low in (0, 300)]
    groups = X["level"] if grouped else None
    y = rng.standard_normal(600)
    model = RFLAFRegressor(100, max_iter=20, random_state=seed).fit(X, y, groups=groups)
    assert model.encoder_.coded is not None
    for score in (model.oof_score_, *(model.score(new, rng.standard_normal(1000)) for new in news)):
        assert -0.1 < score < 0.1
    labels = rng.integers(0, 2, 600)
    classes = RFLAFClassifier(100, max_iter=20, random_state=seed).fit(X, labels, groups=groups)
    for new in news:
        fresh = classes.score(new, rng.integers(0, 2, 1000))
        assert classes.oof_score_ == pytest.approx(fresh, abs=0.15)
        assert fresh == pytest.approx(0.5, abs=0.08)


# ---- a column that names the group

PATIENTS, VISITS = 60, 10


def visits(own, patients, rng):
    """Rows of some patients: a name, a number that tells something, the patient's own part."""
    pandas = pytest.importorskip("pandas")
    group = np.repeat(patients, VISITS)
    x = rng.standard_normal(len(group))
    X = pandas.DataFrame({"patient": [f"patient {k}" for k in group], "x": x})
    y = own[group] + np.sin(2 * x) + 0.2 * rng.standard_normal(len(group))
    return X, y, group


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [RFLAFRegressor, RFLAFClassifier])
def test_the_score_is_that_of_new_patients(make, seed):
    rng = np.random.default_rng(seed)
    own = rng.standard_normal(3 * PATIENTS)
    X, y, group = visits(own, np.arange(PATIENTS), rng)
    new_X, new_y, _ = visits(own, np.arange(PATIENTS, 3 * PATIENTS), rng)
    known_X, known_y, _ = visits(own, np.arange(PATIENTS), rng)
    if make is RFLAFClassifier:
        y, new_y, known_y = y > 0, new_y > 0, known_y > 0
    model = make(100, max_iter=20, random_state=seed)
    honest = model.fit(X, y, groups=group)
    new = honest.score(new_X, new_y)
    assert honest.oof_score_ == pytest.approx(new, abs=0.15 if make is RFLAFRegressor else 0.08)
    # a name that was nothing to learn from does no harm where it is known
    assert honest.score(known_X, known_y) == pytest.approx(new, abs=0.15)
    # without groups the name tells nearly all, and the score is that of known patients
    score = model.fit(X, y).oof_score_
    assert score == pytest.approx(model.score(known_X, known_y), abs=0.06)
    assert score > model.score(new_X, new_y) + 0.08


def test_folds_of_rare_events_are_as_honest(rows, monkeypatch):
    """Targets of a fold are doubled, so that the same ones are events."""
    monkeypatch.setattr(rules, "DEALT_ROWS", 20)
    x, y = rows
    y = np.where(y > np.quantile(y, 0.97), np.round(y), 0.0)
    task = task_of(rows_of(x, y), SETTINGS, Poisson())
    assert task.folds.dealt is not None
    spoilt = np.where(task.fold == 0, 2 * y, y)
    other = task_of(rows_of(x, spoilt), SETTINGS, Poisson(), like=task.loss)
    np.testing.assert_array_equal(task.fold, other.fold)
    choices = [Choice(WithRanks, "diagonal")]
    with use_threads(1):
        one, two = learn_layers(task, choices), learn_layers(other, choices)
    same_layer(one[0], two[0])
    assert one[1].activation.coefficients.tobytes() != two[1].activation.coefficients.tobytes()
