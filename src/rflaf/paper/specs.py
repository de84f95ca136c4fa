"""What one run is: a data set, a model, a protocol, a seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rflaf.paper.protocols import EPOCHS, N_COMPONENTS, PROTOCOL_NAMES, SEEDS, ProtocolName

ESTIMATORS = ("estimator", "estimator-no-metric", "estimator-cos")
RECOVERY = ("recovery-paper", "recovery-estimator", "recovery-smooth-v")
_NAME = re.compile(  # each way has three groups: family, part and cells, which may be empty
    r"(rflaf|lan)-(rbf|bs|pl)-([1-9]\d*)"
    r"|(rfmlp|mlp)-(relu|cos|tanh|sigmoid)()"
    r"|(kan)()-([1-9]\d*)"
)


@dataclass(frozen=True)
class Model:
    """A model's name, taken apart.

    Families: random features with a learned (rflaf) or a fixed activation (rfmlp), both with W
    trained (lan, mlp), Kolmogorov-Arnold (kan), this package's estimators (estimator), and ways to
    recover sigma from f1, f2 and f3 (recovery).
    """

    family: str
    part: str = ""  # the basis, the fixed activation, the estimator's variant, or the way
    cells: int = 0  # the number in the paper's name

    @property
    def frozen(self) -> bool:
        return self.family in ("rflaf", "rfmlp")

    @property
    def published(self) -> bool:
        """Whether it is one of the paper's, trained by epochs."""
        return self.family not in ("estimator", "recovery")


def parse_model(name: str) -> Model:
    """The parts of a model's name.

    Examples
    --------
    >>> parse_model("rflaf-rbf-16")
    Model(family='rflaf', part='rbf', cells=16)
    """
    if name in ESTIMATORS:
        return Model("estimator", name.removeprefix("estimator").removeprefix("-"))
    if name in RECOVERY:
        return Model("recovery", name.removeprefix("recovery-"))
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(
            f"The 'model' must be one of rflaf-{{rbf,bs,pl}}-N, lan-{{rbf,bs,pl}}-N, "
            f"rfmlp-{{relu,cos,tanh,sigmoid}}, mlp-relu, kan-N, "
            f"{', '.join((*ESTIMATORS, *RECOVERY))}. Got {name!r}."
        )
    family, part, cells = (each for each in found.groups() if each is not None)
    return Model(family, part, int(cells or 0))


@dataclass(frozen=True)
class Spec:
    """One run, completely: two equal specs give the same numbers on the same machine.

    Attributes
    ----------
    dataset, model, protocol, seed
        Names, and the seed of everything random.
    n_components, epochs : int
        M, and passes over the training rows (0 for the estimators, which have none).
    rows : int, optional
        Take only this many training rows, and a quarter as many to test on.

    Examples
    --------
    >>> Spec.of("protein", "rflaf-rbf-16", "published", 72).key
    'protein/rflaf-rbf-16/published/M3000/E30/s72'
    """

    dataset: str
    model: str
    protocol: ProtocolName
    seed: int
    n_components: int
    epochs: int
    rows: int | None = None

    @classmethod
    def of(cls, dataset: str, model: str, protocol: ProtocolName, seed: int) -> Spec:
        """The run of a `dataset`, `model`, `protocol` and seed with the paper's M and epochs."""
        parsed = parse_model(model)
        if protocol not in PROTOCOL_NAMES:
            raise ValueError(
                f"The 'protocol' must be one of {', '.join(PROTOCOL_NAMES)}. Got {protocol!r}."
            )
        epochs = EPOCHS.get(dataset, 30) if parsed.published else 0
        n_components = N_COMPONENTS.get(dataset, 3000)
        if parsed.family == "recovery":  # each method has its own sizes, which its record names
            n_components = 0
        return cls(dataset, model, protocol, seed, n_components, epochs)

    def quick(self) -> Spec:
        """A smoke test of seconds; its results are meaningless."""
        few = min(self.epochs, 3)
        return replace(self, n_components=min(self.n_components, 300), epochs=few, rows=2000)

    @property
    def key(self) -> str:
        """The name of the run in the records."""
        size = f"M{self.n_components}/E{self.epochs}" + (f"/n{self.rows}" if self.rows else "")
        return f"{self.dataset}/{self.model}/{self.protocol}/{size}/s{self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """For a record."""
        return asdict(self)


def seeds_of(model: str, n_seeds: int) -> tuple[int, ...]:
    """The first of the paper's seeds; at most three for the models that train W, as there."""
    parsed = parse_model(model)
    return SEEDS[: n_seeds if parsed.frozen or not parsed.published else min(n_seeds, 3)]


def matrix(
    datasets: Iterable[str],
    models: Sequence[str],
    protocols: Sequence[ProtocolName] = PROTOCOL_NAMES,
    n_seeds: int = 10,
) -> list[Spec]:
    """All runs of some models on some data sets, ordered by seed.

    Models that are not the paper's run with the corrected protocol only.

    Parameters
    ----------
    datasets, models, protocols : sequence of str
        Names.
    n_seeds : int
        How many of the paper's ten seeds.
    """
    specs = [
        Spec.of(dataset, model, protocol, seed)
        for dataset in datasets
        for protocol in protocols
        for model in models
        if protocol == "corrected" or parse_model(model).published
        for seed in seeds_of(model, n_seeds)
    ]
    return sorted(specs, key=lambda spec: SEEDS.index(spec.seed))
