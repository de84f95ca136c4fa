"""Which runs a table or figure of the paper needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rflaf.datasets import info
from rflaf.paper import printed
from rflaf.paper.curves import CELLS, FUNCTIONS
from rflaf.paper.protocols import PROTOCOL_NAMES, SEEDS, ProtocolName
from rflaf.paper.specs import RECOVERY, Spec, matrix, parse_model

BY_N = ("rfmlp-relu", *(f"rflaf-{basis}-{n}" for basis in ("rbf", "bs") for n in CELLS))


class Work(NamedTuple):
    """What is to be done: runs, and models to time by data set."""

    runs: list[Spec]
    timings: dict[str, list[str]]


def work_for(
    targets: Iterable[str],
    *,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    protocols: Sequence[ProtocolName] = PROTOCOL_NAMES,
    n_seeds: int = 10,
    quick: bool = False,
) -> Work:
    """The runs and timings behind some tables and figures, each once.

    `datasets` and `models` restrict them; by default they are all of the paper's, and this
    package's estimators. `quick` runs have one seed, few rows and epochs.

    Examples
    --------
    >>> work = work_for(["table1"], datasets=["protein"], models=["rfmlp-relu"], n_seeds=2)
    >>> len(work.runs), work.runs[0].key
    (4, 'protein/rfmlp-relu/corrected/M3000/E30/s402025')
    """
    for dataset in datasets or ():
        info(dataset)  # an error at once, and not after hours of other runs
    wanted = expand(targets)
    known = dict.fromkeys(name for target in wanted for name in _parts(target)[0])
    strange = [model for model in models or () if model not in known]
    if strange:  # nothing would be run for them
        raise ValueError(
            f"The 'models' parameter has {', '.join(strange)}, which {', '.join(wanted)} does not "
            f"have: {', '.join(known)}."
        )
    seeds = 1 if quick else n_seeds
    runs: list[Spec] = []
    timings: dict[str, list[str]] = {}
    for target in wanted:
        names, sets = _parts(target)
        chosen = [name for name in names if models is None or name in models]
        recovery = target in ("figure2", "figure3")
        if datasets is not None:
            # f1, f2, f3 belong to these figures alone, and other data sets to anything else
            sets = tuple(name for name in datasets if (name in FUNCTIONS) == recovery)
        if not _is_timing(target):
            runs += matrix(sets, chosen, ["corrected"] if recovery else protocols, seeds)
        if _is_timing(target) or target == "figure1":
            trained = [name for name in chosen if parse_model(name).published]
            for dataset in sets:
                timings.setdefault(dataset, []).extend(trained)
    unique = dict.fromkeys(spec.quick() if quick else spec for spec in runs)
    timed = {dataset: list(dict.fromkeys(names)) for dataset, names in timings.items()}
    return Work(sorted(unique, key=_rank), timed)


def expand(targets: Iterable[str]) -> list[str]:
    """Names of tables and figures, each once; "all" stands for all of them."""
    found: list[str] = []
    every = [*printed.TITLES, *printed.FIGURES]
    for target in targets:
        found += every if target == "all" else [printed.check_name(target)]
    return list(dict.fromkeys(found))


def _parts(target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The models and data sets of a table or figure."""
    if target == "figure1":
        return BY_N, ("workloads",)
    if target in printed.FIGURES:
        return RECOVERY, FUNCTIONS if target == "figure3" else FUNCTIONS[:1]
    return tuple(printed.all_models_of(target)), tuple(printed.datasets_of(target))


def _is_timing(target: str) -> bool:
    return target in printed.TITLES and printed.quantities_of(target)[0] in printed.TIMES


def _rank(spec: Spec) -> tuple[int, int, str]:
    """First seeds first, and in each the data sets together, since the last one is kept."""
    order = {name: k for k, name in enumerate((*FUNCTIONS, *printed.DATASETS))}
    return SEEDS.index(spec.seed), order.get(spec.dataset, len(order)), spec.protocol
