"""Many runs: those that are missing, one after the other or several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from joblib import Parallel, delayed

from rflaf.datasets import DataNotAvailable
from rflaf.paper.records import Record, Store
from rflaf.paper.runs import run
from rflaf.paper.specs import Spec

Run = Callable[[Spec], Record]
Outcome = tuple[str, Spec, str]


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
