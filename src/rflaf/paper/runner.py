"""Many runs: those that are missing, one after the other or several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean
from typing import Any

from rflaf.paper.curves import sort_out
from rflaf.paper.records import Record, Store
from rflaf.paper.specs import Spec, parse_model

Run = Callable[[Spec], Record]


@dataclass(frozen=True)
class Event:
    """Something to report while runs continue.

    Attributes
    ----------
    kind : {"start", "done", "elsewhere", "skipped"}
        "elsewhere": another process does it, or has done it meanwhile. "skipped": its data is not
        available; `message` explains why.
    spec : Spec
    done, total : int
        Of the runs that were missing at the start.
    seconds_left : float or None
        As the runs so far make it likely.
    """

    kind: str
    spec: Spec
    done: int
    total: int
    seconds_left: float | None = None
    message: str = ""


@dataclass
class _Clock:
    """How long runs take, by data set and model, from those that are done."""

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        spec = record["spec"]
        self.seconds.setdefault(_kind(spec["dataset"], spec["model"]), []).append(record["seconds"])

    def left(self, specs: Sequence[Spec], jobs: int) -> float | None:
        every = list(chain(*self.seconds.values()))
        if not every:
            return None
        times = (self.seconds.get(_kind(spec.dataset, spec.model), every) for spec in specs)
        return sum(map(fmean, times)) / jobs


def _kind(dataset: str, model: str) -> tuple[str, str]:
    return dataset, parse_model(model).family


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

    Parameters
    ----------
    specs : sequence of Spec
    store : Store
        Runs whose record is in it are not run again. Other processes may work on the same folder.
    jobs : int
        Processes. Each takes its share of the cores.
    work : callable, optional
        From a spec to a record; by default `rflaf.paper.runs.run`.
    report : callable
        Called with an Event before and after each run.

    Returns
    -------
    list of Event
        Those of kind "skipped": the runs whose data is not available.
    """
    todo = missing(specs, store)
    clock = _Clock()
    # small runs and timings do not predict full ones, nor full ones small ones
    small = {spec.rows is not None for spec in todo}
    for record in sort_out(store.read())[0]:
        right = record["kind"] != "timing" and (record["spec"]["rows"] is not None) in small
        if right and record["seconds"] is not None:
            clock.add(record)
    skipped: list[Event] = []
    left = list(todo)
    for kind, spec, payload in _outcomes(todo, store, jobs, work):
        if kind != "start":
            left.remove(spec)
        if kind == "done":
            clock.add(payload)
        done, message = len(todo) - len(left), payload if kind == "skipped" else ""
        event = Event(kind, spec, done, len(todo), clock.left(left, jobs), message)
        if kind == "skipped":
            skipped.append(event)
        report(event)
    return skipped


def _outcomes(
    todo: Sequence[Spec], store: Store, jobs: int, work: Run | None
) -> Iterator[tuple[str, Spec, Any]]:
    if jobs == 1:
        for spec in todo:
            yield "start", spec, None
            yield _one(spec, store.folder, work)
        return
    from joblib import Parallel, delayed

    # joblib gives each process its share of the cores
    parallel = Parallel(jobs, return_as="generator_unordered")
    yield from parallel(delayed(_one)(spec, store.folder, work) for spec in todo)


def _one(spec: Spec, folder: Any, work: Run | None) -> tuple[str, Spec, Any]:
    from rflaf.datasets import DataNotAvailable

    store = Store(folder)
    with store.claim(spec.key) as mine:
        if not mine:
            return "elsewhere", spec, None
        if work is None:
            from rflaf.paper.runs import run

            work = run
        try:
            start = time.perf_counter()
            record = work(spec)
            record.setdefault("seconds", time.perf_counter() - start)
        except DataNotAvailable as error:
            return "skipped", spec, str(error)
        store.append(record)
        return "done", spec, record
