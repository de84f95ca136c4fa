"""Which form of the inputs and which kind of metric rows choose."""

from dataclasses import replace

import numpy as np
import pytest

from rflaf.bases import RBF
from rflaf.fitting import FitSettings, choosing
from rflaf.fitting.choosing import choices, choose_forms
from rflaf.fitting.learn import Examples
from rflaf.inputs.form import measure_inputs

SETTINGS = FitSettings(
    n_components=20, basis=RBF(8), seed=3, metric="diagonal", input_form="both", max_iter=3,
    n_members=3,
)  # fmt: skip
N = 512


def test_what_may_be_taken(rng):
    measured = measure_inputs(rng.standard_normal((N, 3)), np.ones(N))
    free = replace(SETTINGS, metric="auto", input_form="auto")
    found = [(c.form, c.kind) for c in choices(measured, N, free)]
    kinds = ("none", "diagonal", "full")
    smooth = [(form, kind) for kind in kinds for form in ("raw", "both")]
    assert found == [*smooth, ("bins", "diagonal")]
    # a scale for each of 72 bins takes more rows
    few = [(c.form, c.kind) for c in choices(measured, 143, free)]
    assert few[-1] == ("bins", "none")
    full = choices(measured, N, replace(free, metric="full"))
    assert {c.form for c in full} == {"raw", "both"}
    bins = choices(measured, N, replace(free, metric="none", input_form="bins"))
    assert [(c.form, c.kind) for c in bins] == [("bins", "none")]
    only = choices(measured, N, replace(free, metric="full", input_form="ranks"))
    assert [(c.form, c.kind) for c in only] == [("ranks", "full")]
    flat = replace(measured, ranked=np.zeros(0, np.intp), bins=None)
    assert {c.form for c in choices(flat, N, free)} == {"raw"}


def choices_of(x, y, **changes):
    """The forms and kinds that 900 rows choose, and what they tried."""
    y = (y - y.mean()) / y.std()
    examples = Examples(x, y[:, None], np.ones(900))
    settings = replace(SETTINGS, n_components=200, basis=RBF(32), input_form="auto", max_iter=10)
    inputs = measure_inputs(x, np.ones(900))
    fold = np.arange(900) % 3
    return choose_forms(examples, fold, [0, 1, 2], inputs, replace(settings, **changes))


@pytest.mark.parametrize("wanted", ["both", "raw"])
def test_the_rows_choose_the_smooth_form(rng, wanted):
    """A target of the ranks of heavy-tailed columns, and one of a sum of columns as they are."""
    z, noise = rng.standard_normal((900, 5)), 0.3 * rng.standard_normal(900)
    if wanted == "both":
        _, path = choices_of(np.exp(3 * z[:, :2]), np.sin(2 * z[:, 0]))
        assert [record["form"] for record in path] == ["raw", "both", "bins"]
    else:
        _, path = choices_of(z, np.sin(z[:, :3] @ [1, -1, 0.5]) + noise, metric="full")
        assert [record["form"] for record in path] == ["raw", "both"]
    assert min(path[:2], key=lambda record: record["loss"])["form"] == wanted


def test_the_rows_choose_bins_and_what_is_mixed(rng):
    """Jumps are for bins; smooth functions for the other forms; noise tells nothing of either."""
    z, noise = rng.standard_normal((900, 2)), rng.standard_normal(900)
    (jumps,), _ = choices_of(z, np.floor(5 * z[:, 0]) % 2, mixes=True)
    assert jumps.form == "bins"
    (smooth,), _ = choices_of(z, np.sin(z[:, 0] + z[:, 1]), mixes=True)
    assert smooth.form != "bins"
    found, path = choices_of(z, noise, mixes=True)
    assert {choice.form == "bins" for choice in found} == {True, False}
    losses = {record["form"]: record["loss"] for record in path}
    assert losses[found[0].form] == min(losses.values())
    assert all(choice.start is None for choice in found)  # few rows: each member has its own
    (alone,), _ = choices_of(z, noise)
    assert alone == found[0]


def test_what_is_far_behind_is_tried_on_one_fold(rng, monkeypatch):
    """It cannot be chosen then, however much the losses of the others differ between folds."""
    trials = []

    def losses(self, options, held, starts):
        trials.append((held, [(c.form, c.kind) for c in options]))
        on_fold = {
            0: {"none": 2.0, "diagonal": 1.0, "full": 1.1},
            1: {"none": 0.0, "diagonal": 4.0, "full": 3.0},
        }
        return {c: 5.0 if c.form == "bins" else on_fold[held][c.kind] for c in options}

    monkeypatch.setattr(choosing._Trials, "losses", losses)
    x = rng.standard_normal((900, 2))
    given = {"metric": "auto", "mixes": True}
    (found,), path = choices_of(x, np.sin(x[:, 0]), **given)
    smooth = [("raw", "diagonal"), ("both", "diagonal"), ("raw", "full"), ("both", "full")]
    assert [held for held, _ in trials] == [0, 1]
    assert trials[1][1] == smooth
    assert len(trials[0][1]) == len(path) == 7
    assert (found.form, found.kind) == ("raw", "full")  # 2.05 of two folds; "diagonal" has 2.5
    by_choice = {(record["form"], record["kind"]): record["loss"] for record in path}
    assert by_choice["raw", "none"] == pytest.approx(2.0 * 2.5)
    trials.clear()
    monkeypatch.setattr(choosing, "_WELL_TRIED", 899)
    choices_of(x, np.sin(x[:, 0]), **given)
    assert [held for held, _ in trials] == [0]


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ({"raw": 0.0, "both": 0.01}, {"raw": 1.0}, "raw"),  # the other was not tried
        ({"raw": np.inf, "both": np.inf}, {"raw": np.inf, "both": np.inf}, "raw"),
        ({"raw": 1.0, "both": 1.1}, {"raw": np.inf, "both": 1.0}, "both"),
    ],
)
def test_losses_that_no_quotient_compares(first, second, wanted, rng, monkeypatch):
    def losses(self, options, held, starts):
        return {c: (first, second)[held].get(c.form, np.inf) for c in options}

    monkeypatch.setattr(choosing._Trials, "losses", losses)
    x = rng.standard_normal((900, 2))
    found, _ = choices_of(x, x[:, 0], metric="none", mixes=False)
    assert [choice.form for choice in found] == [wanted]


def test_many_rows_always_have_a_learned_metric(rng, monkeypatch):
    z = rng.standard_normal((900, 2))
    inputs, settings = measure_inputs(z, np.ones(900)), replace(SETTINGS, input_form="auto")
    settings = replace(settings, metric="auto")
    few = choosing.choices(inputs, 900, settings)
    many = choosing.choices(inputs, choosing._MANY + 1, settings)
    assert {choice.kind for choice in few} == {"none", "diagonal", "full"}
    assert many == [choice for choice in few if choice.kind != "none"]
    losses = {choice: 1.0 if choice.kind == "full" else 0.98 for choice in many[:-1]}
    kinds = [choosing._mixed(losses, n, settings)[0].kind for n in (900, choosing._MANY + 1)]
    assert kinds == ["diagonal", "full"]


def test_members_of_many_rows_start_where_the_trial_did(rng, monkeypatch):
    z = rng.standard_normal((900, 2))
    monkeypatch.setattr(choosing, "_OWN_STARTS", 899)
    found, _ = choices_of(z, np.floor(5 * z[:, 0]) % 2, mixes=True)
    for choice in found:
        width = len(replace(measure_inputs(z, np.ones(900)), name=choice.form).origin)
        assert choice.start.metric.shape == (width,)


def test_the_rows_choose_the_kind(rng):
    """One direction across ten inputs needs a full metric, one of the inputs a diagonal one."""
    n, d = 1200, 10
    x = rng.standard_normal((n, d))
    turned, axis = np.sin(2 * x.sum(axis=1) / np.sqrt(d)), np.sin(2 * x[:, 0])
    settings = replace(SETTINGS, n_components=200, metric="auto", input_form="raw", max_iter=10)
    for target, wanted in ((turned, "full"), (axis, "diagonal")):
        examples = Examples(x, target[:, None] / target.std(), np.ones(n))
        (choice,), path = choose_forms(
            examples, np.arange(n) % 5, [0, 1, 2, 3, 4], measure_inputs(x, np.ones(n)), settings
        )
        assert choice.kind == wanted
        assert [record["kind"] for record in path[:3]] == ["none", "diagonal", "full"]
