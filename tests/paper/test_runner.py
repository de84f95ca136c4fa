"""Runs that are missing are run, once; the rest is not."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from rflaf.datasets import DataNotAvailable
from rflaf.paper.protocols import SEEDS
from rflaf.paper.records import Store
from rflaf.paper.runs import run_all
from rflaf.paper.specs import ESTIMATORS, Spec, matrix


def small(dataset, model, protocol="corrected"):
    spec = Spec.of(dataset, model, protocol, SEEDS[0])
    return replace(spec, n_components=40, epochs=min(spec.epochs, 2), rows=300)


def pretend(spec):
    if spec.dataset == "ct":
        raise DataNotAvailable("slice_localization_data.zip is not here")
    return {"key": spec.key, "spec": spec.to_dict(), "kind": "training", "seconds": 2.0}


SPECS = matrix(["adult", "ct"], ["rfmlp-relu", "rfmlp-cos"], n_seeds=2)


def test_a_killed_matrix_goes_on_where_it_was(tmp_path):
    seen = []

    def break_down(spec):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(spec)
        return pretend(spec)

    adult = [spec for spec in SPECS if spec.dataset == "adult"]
    with pytest.raises(KeyboardInterrupt):
        run_all(adult, Store(tmp_path), work=break_down)
    events = []
    run_all(adult, Store(tmp_path), work=pretend, report=events.append)
    done = [event.spec for event in events if event.kind == "done"]
    assert len(seen) == 3
    assert set(seen) | set(done) == set(adult)
    assert not set(seen) & set(done)
    run_all(adult, Store(tmp_path), work=pytest.fail)


def test_progress_counts(tmp_path):
    events = []
    skipped = run_all(SPECS, Store(tmp_path), work=pretend, report=events.append)
    ends = [event for event in events if event.kind != "start"]
    assert [event.done for event in ends] == list(range(1, len(SPECS) + 1))
    assert {event.spec.dataset for event in skipped} == {"ct"}
    assert "slice_localization" in skipped[0].message


def test_what_another_process_is_at_is_left_alone(tmp_path):
    store = Store(tmp_path)
    spec = SPECS[0]
    with store.claim(spec.key):
        events = []
        run_all([spec], Store(tmp_path), work=pytest.fail, report=events.append)
    assert [event.kind for event in events] == ["start", "elsewhere"]


def test_several_jobs(tmp_path):
    specs = [small("diabetes", "estimator"), small("diabetes", "estimator-cos")]
    run_all(specs, Store(tmp_path), jobs=2)
    assert Store(tmp_path).keys() == {spec.key for spec in specs}


@pytest.mark.parametrize("protocol", ["published", "corrected"])
@pytest.mark.parametrize(
    "model",
    ["rflaf-rbf-16", "rflaf-bs-8", "rflaf-pl-4", "rfmlp-tanh", "lan-rbf-16", "mlp-relu", "kan-16"],
)
def test_every_kind_of_model_runs(tmp_path, model, protocol):
    pytest.importorskip("torch")
    specs = [small(dataset, model, protocol) for dataset in ("diabetes", "digits")]
    store = Store(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_all(specs, store)
    regression, classification = store.read()
    assert regression["status"] == "finished"
    assert len(regression["history"]["test_loss"]) == 2
    assert 0 < classification["test_accuracy"] <= 1
    learned = model.startswith(("rflaf", "lan"))
    assert len(regression["sigma"]) == 81 if learned else "sigma" not in regression
    assert ("validation_loss" in regression["history"]) == (protocol == "corrected")


def test_the_published_kan_learns_a_mean_and_the_corrected_one_does_not(tmp_path):
    pytest.importorskip("torch")
    store = Store(tmp_path)
    long = [replace(small("friedman1", "kan-16", p), epochs=40, rows=1000)
            for p in ("published", "corrected")]  # fmt: skip
    run_all(long, store)
    published, corrected = (record["test_loss"] for record in store.read())
    assert corrected < 0.5 * published


@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_estimators_run(tmp_path, model):
    store = Store(tmp_path)
    run_all([small("diabetes", model), small("digits", model)], store)
    regression, classification = store.read()
    assert np.isfinite(regression["test_loss"])
    assert regression["fit_seconds"] > 0
    assert classification["test_accuracy"] > 0.5
    assert regression["kind"] == "estimator"


def test_times_are_multiples_of_relu(tmp_path):
    pytest.importorskip("torch")
    from rflaf.paper.timing import measure_times

    store = Store(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a busy machine is no failure here
        measure_times("digits", ["rfmlp-relu", "rflaf-rbf-8"], store, quick=True)
        assert measure_times("digits", ["rflaf-rbf-8"], store, quick=True) == []
    relu, learned = store.read()
    assert relu["train_time_ratio"] == 1
    assert learned["train_time_ratio"] == pytest.approx(
        learned["train_seconds"] / relu["train_seconds"], rel=1e-4
    )


def test_two_processes_do_not_time_at_once(tmp_path):
    from rflaf.paper.timing import measure_times

    with Store(tmp_path).claim("timing/digits"):
        assert measure_times("digits", ["rfmlp-relu"], Store(tmp_path), quick=True) == []
    assert Store(tmp_path).read() == []


def test_seconds_of_a_recovery_do_not_count_the_data(monkeypatch):
    from rflaf.paper import recovery_runs, runs

    made = {"error": 0.1, "seconds": 42.0}
    monkeypatch.setattr(recovery_runs, "run_recovery", lambda *_, **__: made)
    spec = Spec.of("f1", "recovery-smooth-v", "corrected", SEEDS[0])
    assert runs.run(spec)["seconds"] == 42.0
