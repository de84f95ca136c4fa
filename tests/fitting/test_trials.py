"""Which form of the inputs and which kind of metric rows choose."""

from dataclasses import replace

import numpy as np
import pytest

from rflaf import rules
from rflaf.bases import RBF
from rflaf.fitting import FitSettings, fit
from rflaf.fitting.trials import Trials, choose_forms
from rflaf.inputs.forms import Binned, Ranks, Standardised, WithRanks
from rflaf.inputs.target_means import Coded
from rflaf.losses import Logistic, SquaredError
from rflaf.runtime.threads import use_threads
from tests.fitting.conftest import rows_of, task_of

SETTINGS = FitSettings(n_components=20, basis=RBF(8), seed=3, max_iter=3, n_members=3)
N = 512


def options(x, **changes):
    """What may be taken for some rows, as pairs."""
    task = task_of(rows_of(x, x[:, 0]), replace(SETTINGS, **changes))
    return [(c.form, c.kind) for c in Trials(task, 0).options()]


def test_what_may_be_taken(rng):
    x = rng.standard_normal((N, 3))
    kinds = ("none", "diagonal", "full")
    smooth = [(form, kind) for kind in kinds for form in (Standardised, WithRanks)]
    assert options(x) == [*smooth, (Binned, "diagonal")]
    # a scale for each of 72 bins takes more rows
    assert options(x[:143])[-1] == (Binned, "none")
    assert {form for form, _ in options(x, metric="full")} == {Standardised, WithRanks}
    assert options(x, metric="none", input_form=Binned) == [(Binned, "none")]
    assert options(x, metric="full", input_form=Ranks) == [(Ranks, "full")]
    assert {form for form, _ in options(np.sign(x))} == {Standardised}


def test_kinds_of_metric_that_so_many_rows_can_tell(rng):
    def kinds(n, d, **changes):
        x = np.sign(rng.standard_normal((n, d)))
        return [kind for _, kind in options(x, input_form=Standardised, **changes)]

    assert kinds(24, 10, metric="diagonal") == ["diagonal"]
    assert kinds(49, 10) == ["none"]
    assert kinds(50, 10) == ["none", "diagonal"]
    assert kinds(100, 10) == ["none", "diagonal", "full"]
    most = rules.METRIC_ROWS["full"]
    assert kinds((most + 1) ** 2, most + 1) == ["none", "diagonal"]
    most = rules.METRIC_ROWS["diagonal"]
    assert kinds(5 * (most + 1), most + 1) == ["none"]


def chosen(x, y, loss=None, **changes):
    """The choices of rows, and what they tried."""
    settings = replace(SETTINGS, n_components=200, basis=RBF(32), metric="diagonal", max_iter=10)
    mixes = changes.pop("mixes", False)
    task = task_of(rows_of(x, y), replace(settings, **changes), loss)
    with use_threads(None):  # BLAS has one thread, as in a fit
        return choose_forms(replace(task, settings=replace(task.settings, mixes=mixes)))


def test_heavy_tails_are_for_ranks():
    """A target of the ranks of heavy-tailed columns; a row far out may mislead any one trial."""
    losses = []
    for seed in range(3):
        z = np.random.default_rng(seed).standard_normal((900, 2))
        _, path = chosen(np.exp(3 * z), np.sin(2 * z[:, 0]))
        assert [record["form"] for record in path] == ["raw", "both", "bins"]
        losses.append([record["loss"] for record in path])
    raw, both, _ = np.median(losses, axis=0)
    assert both < 0.2 * raw


def test_a_sum_of_columns_is_for_columns_as_they_are(rng):
    z, noise = rng.standard_normal((900, 5)), 0.3 * rng.standard_normal(900)
    _, path = chosen(z, np.sin(z[:, :3] @ [1, -1, 0.5]) + noise, metric="full")
    assert [record["form"] for record in path] == ["raw", "both"]
    assert path[0]["loss"] < path[1]["loss"]


@pytest.mark.parametrize("loss", [None, Logistic()], ids=["numbers", "classes"])
def test_the_rows_choose_bins_and_what_is_mixed(rng, loss):
    """Jumps are for bins; smooth functions for the other forms; noise tells nothing of either."""

    def target(y):
        return y if loss is None else (y > np.median(y)).astype(int)

    z, noise = rng.standard_normal((900, 2)), rng.standard_normal(900)
    jumps, _ = chosen(z, target(np.floor(5 * z[:, 0]) % 2 + 1e-6 * noise), loss, mixes=True)
    assert Binned in {choice.form for choice in jumps}
    smooth, _ = chosen(z, target(np.sin(z[:, 0] + z[:, 1])), loss, mixes=True)
    assert smooth[0].form is not Binned
    found, path = chosen(z, target(noise), loss, mixes=True)
    assert {choice.form.smooth for choice in found} == {True, False}
    losses = {record["form"]: record["loss"] for record in path}
    assert losses[found[0].form.name] == min(losses.values())
    assert all(choice.start is None for choice in found)  # few rows: each member has its own
    (alone,), _ = chosen(z, target(noise), loss)
    assert alone == found[0]


def test_what_is_much_worse_is_not_mixed(rng, monkeypatch):
    z = rng.standard_normal((900, 2))
    y = np.sin(z[:, 0] + z[:, 1])
    found, path = chosen(z, y, mixes=True)
    smooth, bins = (
        min(record["loss"] for record in path if (record["form"] == "bins") == binned)
        for binned in (False, True)
    )
    assert len(found) == 1
    assert bins > rules.MIXED_LOSS * smooth
    monkeypatch.setattr(rules, "MIXED_LOSS", 1.01 * bins / smooth)
    assert len(chosen(z, y, mixes=True)[0]) == 2


def test_many_rows_always_have_a_learned_metric(rng, monkeypatch):
    z = rng.standard_normal((900, 2))
    few = options(z)
    monkeypatch.setattr(rules, "ALWAYS_METRIC", 899)
    assert {kind for _, kind in few} == {"none", "diagonal", "full"}
    assert options(z) == [(form, kind) for form, kind in few if kind != "none"]


def test_forms_of_means_of_levels_may_differ_in_their_width(rng, monkeypatch):
    """Each fold has means and bins of its own, and what was found on one suits not the others."""
    codes = rng.integers(0, 4, 400)  # so few means that each of them is an edge
    codes[:3] = 4
    x = np.column_stack([rng.standard_normal(400), codes])
    y = np.sin(2 * x[:, 0]) + rng.standard_normal(400)
    coded = Coded(np.array([1]), (7,))
    task = task_of(rows_of(x, y), replace(SETTINGS, coded=coded, n_members=5))
    widths = {len(Trials(task, fold).forms[Binned].origin) for fold in range(5)}
    assert len(widths) > 1
    monkeypatch.setattr(rules, "MIXED_LOSS", np.inf)
    found = fit(rows_of(x, y), SquaredError(), replace(SETTINGS, coded=coded, n_members=None))
    assert {record["form"] for record in found.form_path} == {"raw", "both", "bins"}
    assert all(np.isfinite(record["loss"]) for record in found.form_path)
    assert np.isfinite(found.oof_score)


def test_the_rows_choose_the_kind(rng):
    """One direction across ten inputs needs a full metric, one of the inputs a diagonal one."""
    n, d = 1200, 10
    x = rng.standard_normal((n, d))
    turned, axis = np.sin(2 * x.sum(axis=1) / np.sqrt(d)), np.sin(2 * x[:, 0])
    for target, wanted in ((turned, "full"), (axis, "diagonal")):
        (choice,), path = chosen(
            x, target, metric="auto", input_form=Standardised, n_members=5, basis=RBF(8)
        )
        assert choice.kind == wanted
        assert [record["kind"] for record in path[:3]] == ["none", "diagonal", "full"]
