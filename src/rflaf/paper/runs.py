"""Runs: a spec in, a record out; and many of them, one after the other or several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from rflaf.activation import Activation
from rflaf.datasets import DataNotAvailable
from rflaf.paper.environment import stamp
from rflaf.paper.protocols import PROTOCOLS, Protocol, ProtocolName
from rflaf.paper.records import Record, Store
from rflaf.paper.specs import Model, Spec, parse_model
from rflaf.paper.splits import Split, load_split

Run = Callable[[Spec], Record]
Outcome = tuple[str, Spec, str]
_CURVE = np.linspace(-2.0, 2.0, 81)  # where a record has the values of the learned activation


def run(spec: Spec) -> Record:
    """Train and judge the model of a spec.

    The record has a `status` ("finished" or "diverged"), `test_loss`, `test_accuracy` (a share),
    `best_epoch`, `history` (one list per quantity), and `coefficients` and `sigma` of a learned
    activation.
    """
    model = parse_model(spec.model)
    kind = "training" if model.published else model.family
    start = time.perf_counter()
    if kind == "recovery":
        from rflaf.paper.recovery_runs import run_recovery

        found = run_recovery(spec.dataset, model.part, spec.seed, quick=spec.rows is not None)
    else:
        data = part_of(cached_load(spec.dataset, spec.protocol), spec.rows)
        start = time.perf_counter()  # reading the data is not counted
        found = (_train if model.published else _run_estimator)(spec, model, data)
    seconds = time.perf_counter() - start
    known = {"key": spec.key, "spec": spec.to_dict(), "kind": kind, "seconds": seconds}
    return {**known, **found, **stamp()}  # a recovery has its own seconds, without the reading


@lru_cache(maxsize=1)
def cached_load(dataset: str, protocol: ProtocolName) -> Split:
    """The data of the last run, which is that of the next one more often than not."""
    return load_split(dataset, protocol)


def part_of(data: Split, rows: int | None) -> Split:
    """The first rows of the training part, and a quarter as many of the test part."""
    if rows is None:
        return data
    few = max(rows // 4, 1)
    return replace(
        data,
        X_train=data.X_train[:rows],
        y_train=data.y_train[:rows],
        X_test=data.X_test[:few],
        y_test=data.y_test[:few],
    )


def build(spec: Spec, data: Split) -> Any:
    """The PyTorch module of a published model, as the spec's protocol has it."""
    from rflaf import nn
    from rflaf.paper.training import published_basis

    model = parse_model(spec.model)
    d, M, C, seed = data.X_train.shape[1], spec.n_components, data.n_classes, spec.seed
    if model.family == "kan":
        return nn.KAN(d, max(M // 16, 10), C, n_cells=model.cells, seed=seed)
    if model.family in ("rfmlp", "mlp"):
        kind = nn.RFMLP if model.family == "rfmlp" else nn.MLP
        return kind(d, M, C, activation=model.part, seed=seed)
    basis = published_basis(model.part, model.cells, corrected=spec.protocol == "corrected")
    learned = nn.RFLAF if model.family == "rflaf" else nn.LAN
    return learned(d, M, C, basis=basis, input_scale=None, seed=seed)


def protocol_of(spec: Spec, data: Split) -> Protocol:
    protocol = replace(PROTOCOLS[spec.protocol], epochs=spec.epochs)
    pairs = spec.model.startswith("kan") and data.task == "regression"
    return replace(protocol, pairs=pairs and spec.protocol == "published")


def _train(spec: Spec, model: Model, data: Split) -> Record:
    from rflaf.paper.training import Data, train

    network = build(spec, data)
    arrays = Data(data.X_train, data.y_train, data.X_test, data.y_test)
    result = train(network, arrays, protocol_of(spec, data), seed=spec.seed)
    kept = ("status", "diverged_epoch", "best_epoch", "test_loss", "test_accuracy")
    record: Record = {name: getattr(result, name) for name in kept}
    record["history"] = {
        name: [getattr(epoch, name) for epoch in result.history]
        for name, first in asdict(result.history[0]).items()
        if first is not None and name != "epoch"
    }
    if model.family in ("rflaf", "lan") and result.status == "finished":
        record |= _curve(network.activation.to_activation())
    return record


def _run_estimator(spec: Spec, model: Model, data: Split) -> Record:
    from rflaf.bases import Fixed
    from rflaf.estimators import RFLAFClassifier, RFLAFRegressor

    settings: dict[str, dict[str, Any]] = {
        "": {},
        "no-metric": {"metric": "none"},
        "cos": {"activation": Fixed("cos")},  # without a phase, as the published RFMLP
    }
    kind = RFLAFClassifier if data.task == "classification" else RFLAFRegressor
    estimator = kind(spec.n_components, random_state=spec.seed % 2**32, **settings[model.part])
    start = time.perf_counter()
    estimator.fit(data.X_train, data.y_train)
    middle = time.perf_counter()
    record: Record = {"status": "finished", "best_epoch": None, "test_accuracy": None}
    if data.task == "classification":
        shares = estimator.predict_proba(data.X_test).astype(np.float64)
        truth = np.searchsorted(estimator.classes_, data.y_test)
        record["test_loss"] = float(-np.log(shares[np.arange(len(truth)), truth]).mean())
        record["test_accuracy"] = float((shares.argmax(axis=1) == truth).mean())
    else:
        error = estimator.predict(data.X_test).astype(np.float64) - data.y_test
        record["test_loss"] = float(np.mean(error**2))
    record["fit_seconds"] = middle - start
    record["test_seconds"] = time.perf_counter() - middle
    record["alpha"] = float(estimator.alpha_)
    record["history"] = {"held_out_loss": [step["loss"] for step in estimator.history_]}
    return record | _curve(estimator.activation_)


def _curve(activation: Activation) -> Record:
    """What a report shows of a learned activation, without any model code."""
    return {
        "coefficients": [float(a) for a in activation.coefficients],
        "basis": repr(activation.basis),
        "sigma": [float(f"{value:.4g}") for value in activation(_CURVE)],
    }


@dataclass(frozen=True)
class Event:
    """Something to report while runs continue; counts are of those missing at the start.

    "elsewhere": another process does it, or has done it meanwhile. "skipped": its data is not
    available; `message` explains why.
    """

    kind: str  # "start", "done", "elsewhere" or "skipped"
    spec: Spec
    done: int
    total: int
    message: str = ""


def missing(specs: Sequence[Spec], store: Store) -> list[Spec]:
    """The specs without a record, each once."""
    there = store.keys()
    return [spec for spec in dict.fromkeys(specs) if spec.key not in there]


def run_all(
    specs: Sequence[Spec],
    store: Store,
    *,
    jobs: int = 1,
    work: Run | None = None,
    report: Callable[[Event], None] = lambda event: None,
) -> list[Event]:
    """Run what is missing, and append each record as soon as it is there.

    `jobs` processes share the cores; other processes may work on the same folder. `work` makes a
    record of a spec in place of `run`, and `report` is called with an Event before and after each
    run. Returns the events of the runs whose data is not available.
    """
    todo = missing(specs, store)
    skipped: list[Event] = []
    done = 0
    for kind, spec, message in _outcomes(todo, store, jobs, work or run):
        done += kind != "start"
        event = Event(kind, spec, done, len(todo), message)
        if kind == "skipped":
            skipped.append(event)
        report(event)
    return skipped


def _outcomes(todo: Sequence[Spec], store: Store, jobs: int, work: Run) -> Iterator[Outcome]:
    if jobs == 1:
        for spec in todo:
            yield "start", spec, ""
            yield _one(spec, store, work)
        return
    # joblib gives each process its share of the cores
    parallel = Parallel(jobs, return_as="generator_unordered")
    yield from parallel(delayed(_one)(spec, store, work) for spec in todo)


def _one(spec: Spec, store: Store, work: Run) -> Outcome:
    with store.claim(spec.key) as mine:
        if not mine:
            return "elsewhere", spec, ""
        try:
            record = work(spec)
        except DataNotAvailable as error:
            return "skipped", spec, str(error)
        store.append(record)
        return "done", spec, ""
