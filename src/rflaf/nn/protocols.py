"""How a run is trained and judged, and what it leaves behind."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from rflaf.published import EPOCHS, SEEDS

PUBLISHED_SEEDS, PUBLISHED_EPOCHS = SEEDS, EPOCHS


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
        The rate rises linearly from `warmup_start` times `learning_rate` in so many steps.
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
CORRECTED = Protocol("corrected")
PROTOCOLS = {protocol.name: protocol for protocol in (PUBLISHED, CORRECTED)}


@dataclass(frozen=True)
class Data:
    """Training rows, and test rows where there are some; arrays or tensors.

    Whole numbers as targets are classes 0, ..., C - 1, and anything else is a regression.
    """

    X_train: Tensor | ArrayLike
    y_train: Tensor | ArrayLike
    X_test: Tensor | ArrayLike | None = None
    y_test: Tensor | ArrayLike | None = None

    def tensors(self, device: torch.device, dtype: torch.dtype) -> Data:
        """The same as tensors, checked against one another."""

        def convert(name: str) -> Tensor | None:
            given = getattr(self, name)
            if given is None:
                return None
            tensor = torch.as_tensor(given)
            if name.startswith("X") or tensor.is_floating_point():
                return tensor.to(device, dtype)
            return tensor.to(device, torch.int64)

        made = {name: convert(name) for name in ("X_train", "y_train", "X_test", "y_test")}
        if (made["X_test"] is None) != (made["y_test"] is None):
            raise ValueError("'X_test' and 'y_test' must be given together. Got one of them.")
        for part in ("train", "test"):
            X, y = made[f"X_{part}"], made[f"y_{part}"]
            if X is not None and y is not None and X.shape[0] != y.shape[0]:
                raise ValueError(
                    f"'X_{part}' and 'y_{part}' must have as many rows. "
                    f"Got {X.shape[0]} and {y.shape[0]}."
                )
        return Data(**made)  # type: ignore[arg-type]


@dataclass(frozen=True)
class EpochRecord:
    """Losses, accuracies (shares, for classes) and seconds of one epoch, counted from 1."""

    epoch: int
    train_loss: float
    validation_loss: float | None
    validation_accuracy: float | None
    test_loss: float | None
    test_accuracy: float | None
    train_seconds: float
    test_seconds: float


@dataclass(frozen=True)
class TrainingResult:
    """What a run gave.

    Attributes
    ----------
    status : {"finished", "diverged"}
        Diverged: a loss became NaN or infinite, or stayed beyond `Protocol.divergence`.
    protocol : Protocol
        How it was trained.
    seed : int
        Of the shuffles and the validation part.
    history : tuple of EpochRecord
        The epochs up to the end, or to the one that diverged.
    diverged_epoch : int, optional
        Where it diverged.
    """

    status: Literal["finished", "diverged"]
    protocol: Protocol
    seed: int
    history: tuple[EpochRecord, ...] = field(repr=False)
    diverged_epoch: int | None = None

    @property
    def best_epoch(self) -> int | None:
        """The epoch with the lowest loss where `protocol.selected_on` says; None if diverged."""
        if self.status == "diverged":
            return None
        return best_record(self.history, self.protocol).epoch

    @property
    def test_loss(self) -> float | None:
        """The test loss of `best_epoch`. Published protocol: the minimum over epochs."""
        best = self.best_epoch
        return None if best is None else self.history[best - 1].test_loss

    @property
    def test_accuracy(self) -> float | None:
        """The accuracy of `best_epoch`. Published protocol: the maximum over epochs."""
        best = self.best_epoch
        if best is None or self.history[0].test_accuracy is None:
            return None
        if self.protocol.selected_on == "test":
            return max(r.test_accuracy for r in self.history if r.test_accuracy is not None)
        return self.history[best - 1].test_accuracy

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for a file."""
        chosen = {
            "best_epoch": self.best_epoch,
            "test_loss": self.test_loss,
            "test_accuracy": self.test_accuracy,
        }
        return {**asdict(self), "history": [asdict(r) for r in self.history], **chosen}


def selection_loss(record: EpochRecord, protocol: Protocol) -> float:
    """The loss that picks the epoch."""
    loss = record.test_loss if protocol.selected_on == "test" else record.validation_loss
    assert loss is not None
    return loss


def best_record(history: tuple[EpochRecord, ...], protocol: Protocol) -> EpochRecord:
    """The first of the epochs with the lowest loss."""
    return min(history, key=lambda record: selection_loss(record, protocol))
