"""What a run leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rflaf.paper.protocols import Protocol


@dataclass(frozen=True)
class EpochRecord:
    """Losses and times of one epoch.

    Attributes
    ----------
    epoch : int
        Counted from 1.
    train_loss, validation_loss, test_loss : float
        None without such rows.
    validation_accuracy, test_accuracy : float
        Shares of the rows; None in a regression.
    train_seconds, test_seconds : float
    """

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
        """The epoch with the lowest loss on `protocol.selected_on`; None if diverged."""
        best = best_record(self.history, self.protocol)
        return None if self.status == "diverged" else best.epoch

    @property
    def test_loss(self) -> float | None:
        """The test loss of `best_epoch`. Published protocol: the minimum over epochs."""
        return None if self.best_epoch is None else self.history[self.best_epoch - 1].test_loss

    @property
    def test_accuracy(self) -> float | None:
        """The accuracy of `best_epoch`. Published protocol: the maximum over epochs."""
        best = self.best_epoch
        if best is None or self.history[0].test_accuracy is None:
            return None
        if self.protocol.selected_on == "test":
            return max(r.test_accuracy for r in self.history if r.test_accuracy is not None)
        return self.history[best - 1].test_accuracy


def selection_loss(record: EpochRecord, protocol: Protocol) -> float:
    return getattr(record, f"{protocol.selected_on}_loss")


def best_record(history: Sequence[EpochRecord], protocol: Protocol) -> EpochRecord:
    """The first of the epochs with the lowest loss."""
    return min(history, key=lambda record: selection_loss(record, protocol))
