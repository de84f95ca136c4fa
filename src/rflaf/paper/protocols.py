"""How the published experiments were run, and how they should have been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ProtocolName = Literal["published", "corrected"]
PROTOCOL_NAMES: tuple[ProtocolName, ...] = ("published", "corrected")

SEEDS = (402025, 102025, 202025, 302025, 3070, 4080, 5090, 20250101, 72, 46852)
EPOCHS = {
    "mnist": 10,
    "cifar10": 20,
    "adult": 15,
    "protein": 30,
    "ct": 30,
    "workloads": 30,
    "millionsongs": 10,
    "covtype": 10,
    "f1": 45,
    "f2": 45,
    "f3": 45,
}
N_COMPONENTS = {"mnist": 1000, "covtype": 1000}  # 3000 for all others


@dataclass(frozen=True)
class Protocol:
    """Adam on mini-batches, as the paper trains, with what it got wrong as a setting.

    `PUBLISHED` and `CORRECTED` are the two that have names. The published one takes two steps with
    the gradient of each batch, and reports the lowest loss that any epoch has on the test set. The
    corrected one takes one step, and a validation part of the training data picks the epoch.

    Attributes
    ----------
    name : str
        For records and tables, so that no column mixes two protocols.
    epochs, batch_size, learning_rate
        The usual.
    warmup_steps : int
        The rate rises linearly from `warmup_start` times `learning_rate` within this many steps.
    steps_per_batch : int
        Adam steps with the same gradient. The first `warmup_steps` batches of every epoch get one.
    weight_decay : float, optional
        Adam's, that is, L2. Default: 1e-4 where the first layer is trained, 0 where it is frozen.
    balance, sparsity : float
        Factors of the two terms of `regulariser`.
    selected_on : {"validation", "test"}
        Where the loss is taken that picks the epoch.
    validation_fraction : float
        Share of the training rows that is held out, where `selected_on` is "validation".
    pairs : bool
        Take squared errors between all outputs and all targets of a batch, as the published KAN
        did in regression, where it compared n × 1 outputs with n targets. It can learn the mean
        alone.
    average : {"rows", "batches"}
        Losses as means over rows, or over the means of batches of `batch_size`.
    divergence : float
        A finished run whose best loss is more than this many times that of a constant prediction
        counts as diverged. Powers reach 1e20 without a single infinity.

    Examples
    --------
    >>> from dataclasses import replace
    >>> replace(PUBLISHED, epochs=10).steps_per_batch
    2
    """

    name: str
    epochs: int = 30
    batch_size: int = 128
    learning_rate: float = 1e-3
    warmup_steps: int = 8
    warmup_start: float = 0.1
    steps_per_batch: int = 1
    weight_decay: float | None = None
    balance: float = 1.0
    sparsity: float = 0.1
    selected_on: Literal["validation", "test"] = "validation"
    validation_fraction: float = 0.1
    pairs: bool = False
    average: Literal["rows", "batches"] = "rows"
    divergence: float = 1000.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "steps_per_batch"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"The {name!r} parameter of Protocol must be 1 or more. "
                    f"Got {getattr(self, name)!r}."
                )
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                "The 'validation_fraction' parameter of Protocol must be between 0 and 1. "
                f"Got {self.validation_fraction!r}."
            )

    def rate(self, step: int) -> float:
        """The learning rate of step 0, 1, ... of the run."""
        share = min(step / self.warmup_steps, 1.0) if self.warmup_steps else 1.0
        return self.learning_rate * (self.warmup_start + (1 - self.warmup_start) * share)


PUBLISHED = Protocol("published", steps_per_batch=2, selected_on="test", average="batches")
"""How the paper's experiments were run."""
CORRECTED = Protocol("corrected")
"""The same without its defects."""
PROTOCOLS = {protocol.name: protocol for protocol in (PUBLISHED, CORRECTED)}
