"""Many runs: those that are missing, one after the other or several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rflaf.paper.records import Record, Store
from rflaf.paper.specs import Spec

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
    """

    kind: str
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
    skipped: list[Event] = []
    done = 0
    for kind, spec, message in _outcomes(todo, store, jobs, work):
        done += kind != "start"
        event = Event(kind, spec, done, len(todo), message)
        if kind == "skipped":
            skipped.append(event)
        report(event)
    return skipped


def _outcomes(
    todo: Sequence[Spec], store: Store, jobs: int, work: Run | None
) -> Iterator[tuple[str, Spec, str]]:
    if jobs == 1:
        for spec in todo:
            yield "start", spec, ""
            yield _one(spec, store.folder, work)
        return
    from joblib import Parallel, delayed

    # joblib gives each process its share of the cores
    parallel = Parallel(jobs, return_as="generator_unordered")
    yield from parallel(delayed(_one)(spec, store.folder, work) for spec in todo)


def _one(spec: Spec, folder: Path, work: Run | None) -> tuple[str, Spec, str]:
    from rflaf.datasets import DataNotAvailable

    store = Store(folder)
    with store.claim(spec.key) as mine:
        if not mine:
            return "elsewhere", spec, ""
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
        return "done", spec, ""
