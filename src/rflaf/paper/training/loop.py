"""Training by the paper's method: `train(model, data, protocol)`."""

from __future__ import annotations

import io
import math
import os
import time
import zlib
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

from rflaf.bases.base import checked
from rflaf.paper.protocols import PROTOCOLS, Protocol
from rflaf.paper.training.history import EpochRecord, TrainingResult, best_record, selection_loss
from rflaf.paper.training.regularisers import add_regulariser_gradient
from rflaf.paper.training.subsets import BLOCK_ROWS, Data, check_shapes, precompute, split_data
from rflaf.runtime.files import write_whole
from rflaf.runtime.progress import Progress


@checked(protocol=[Protocol, StrOptions(set(PROTOCOLS))])
def train(
    model: nn.Module,
    data: Data | tuple[Any, ...],
    protocol: Protocol | str = "corrected",
    *,
    epochs: int | None = None,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    memory_budget: int = 2 << 30,
    progress: bool = False,
) -> TrainingResult:
    """Train `model` in place.

    After the corrected protocol the model has the parameters of the epoch that the validation part
    picked; after the published one, those of the last epoch, because the test set must pick no
    model.

    Parameters
    ----------
    model : Module
        One of this package's networks, or any module whose output has the target's shape (n × C
        for classes).
    data : Data, or tuple (X_train, y_train[, X_test, y_test])
        Whole numbers as targets are classes, for which the loss is the cross-entropy; else it is
        the mean squared error.
    protocol : {"corrected", "published"} or Protocol
        How to train and to judge.
    epochs : int, optional
        In place of the protocol's.
    seed : int
        For the shuffles and the validation part.
    checkpoint : path, optional
        A file that is replaced after every epoch. If it exists, the run resumes from it, and
        ends with the same bits as a run that was never interrupted.
    memory_budget : int
        Bytes that Z = X W of a frozen model may take. If it fits it is computed once, and else
        again in every batch.
    progress : bool
        Show a bar (with tqdm), or lines without it, with the time left.

    Examples
    --------
    >>> import torch
    >>> from rflaf.nn import RFLAF, train
    >>> X = torch.randn(600, 2, generator=torch.Generator().manual_seed(0))
    >>> y = torch.sin(3 * X[:, 0])
    >>> result = train(RFLAF(2, 200, seed=0), (X[:500], y[:500], X[500:], y[500:]), epochs=3)
    >>> result.status, len(result.history)
    ('finished', 3)
    """
    protocol = PROTOCOLS[protocol] if isinstance(protocol, str) else protocol
    protocol = protocol if epochs is None else replace(protocol, epochs=epochs)
    run = _Run(model, data, protocol, seed, memory_budget)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        run.restore(_load_checkpoint(path, run.identity))
    with Progress("epochs", protocol.epochs, progress, len(run.history)) as bar:
        while not run.done:
            run.one_epoch()
            if path is not None:
                buffer = io.BytesIO()
                torch.save(run.state(), buffer)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, buffer.getvalue())
            bar.step(asdict(run.history[-1]))
    return run.result()


class _Run:
    """A training run between two epochs; `state` has all of it that changes."""

    def __init__(
        self,
        model: nn.Module,
        data: Data | tuple[Any, ...],
        protocol: Protocol,
        seed: int,
        memory_budget: int,
    ) -> None:
        self.model, self.protocol, self.seed = model, protocol, seed
        first = next(p for p in model.parameters() if p.requires_grad)
        given = data if isinstance(data, Data) else Data(*data)
        tensors = given.tensors(first.device, first.dtype)
        self.generator = torch.Generator().manual_seed(seed)
        self.subsets = split_data(tensors, protocol, self.generator)
        check_shapes(model, self.subsets["train"])
        self.predict = precompute(model, self.subsets, memory_budget)
        frozen = getattr(model, "frozen", False)
        decay = protocol.weight_decay
        self.optimizer = torch.optim.Adam(
            [p for p in model.parameters() if p.requires_grad],
            lr=protocol.learning_rate,
            weight_decay=(0.0 if frozen else 1e-4) if decay is None else decay,
            fused=first.device.type in ("cpu", "cuda"),  # one call for all parameters
        )
        self.history: list[EpochRecord] = []
        self.diverged_epoch: int | None = None
        self.best_state: dict[str, Any] | None = None
        self.identity = {
            "protocol": asdict(protocol),
            "seed": seed,
            "model": {name: list(p.shape) for name, p in model.named_parameters()},
            "data": _fingerprint(tensors.y_train, tensors.y_test),  # type: ignore[arg-type]
        }

    @property
    def done(self) -> bool:
        return self.diverged_epoch is not None or len(self.history) == self.protocol.epochs

    def one_epoch(self) -> None:
        start = time.perf_counter()
        train_loss = self._train_epoch()
        middle = time.perf_counter()
        validation, test = self._evaluate("validation"), self._evaluate("test")
        seconds = middle - start, time.perf_counter() - middle
        epoch = len(self.history) + 1
        record = EpochRecord(epoch, train_loss, *validation, *test, *seconds)
        self.history.append(record)
        seen = (train_loss, record.validation_loss, record.test_loss)
        if not all(math.isfinite(loss or 0.0) for loss in seen):
            self.diverged_epoch = record.epoch
            return
        best = best_record(self.history, self.protocol)
        if self.protocol.selected_on == "validation" and best is record:
            self.best_state = deepcopy(self.model.state_dict())

    def _train_epoch(self) -> float:
        """One pass over the training rows; the mean of the batches' losses, without penalty."""
        rows, protocol = self.subsets["train"], self.protocol
        n = rows.y.shape[0]
        order = torch.randperm(n, generator=self.generator).to(rows.y.device)
        batches = torch.split(order, protocol.batch_size)
        done = len(self.history) * len(batches)
        total = rows.x.new_zeros(())
        self.model.train()
        for k, batch in enumerate(batches):
            loss = rows.loss(self.predict(rows.x, batch), rows.y[batch])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            add_regulariser_gradient(self.model, protocol.balance, protocol.sparsity)
            if done + k <= protocol.warmup_steps:
                for group in self.optimizer.param_groups:
                    group["lr"] = protocol.rate(done + k)
            for _ in range(1 if k < protocol.warmup_steps else protocol.steps_per_batch):
                self.optimizer.step()
            total += loss.detach() * (batch.shape[0] / n)
        return float(total)

    @torch.no_grad()
    def _evaluate(self, name: str) -> tuple[float | None, float | None]:
        rows = self.subsets.get(name)
        if rows is None:
            return None, None
        self.model.eval()
        losses, hits = [], []
        for x, y in zip(*(torch.split(t, BLOCK_ROWS) for t in (rows.x, rows.y))):
            out = self.predict(x, None)
            losses.append(rows.row_losses(out, y))
            if rows.classes:
                hits.append(out.argmax(1) == y)
        each = torch.cat(losses)
        if self.protocol.average == "batches":
            batches = torch.split(each, self.protocol.batch_size)
            each = torch.stack([batch.mean() for batch in batches])
        return float(each.mean()), float(torch.cat(hits).double().mean()) if hits else None

    def state(self) -> dict[str, Any]:
        return {
            "run": self.identity,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "history": [asdict(record) for record in self.history],
            "diverged_epoch": self.diverged_epoch,
            "best_state": self.best_state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.history = [EpochRecord(**record) for record in state["history"]]
        self.diverged_epoch = state["diverged_epoch"]
        self.best_state = state["best_state"]

    def result(self) -> TrainingResult:
        history, protocol = tuple(self.history), self.protocol
        if self.diverged_epoch is None:
            bound = protocol.divergence * self.subsets["train"].constant_loss()
            # test rows may be farther out than those that choose the epoch
            losses = ((r, max(selection_loss(r, protocol), r.test_loss or 0.0)) for r in history)
            beyond = [record for record, loss in losses if loss > bound]
            if best_record(history, protocol) in beyond:
                self.diverged_epoch = beyond[0].epoch
        if self.diverged_epoch is not None:
            return TrainingResult("diverged", protocol, self.seed, history, self.diverged_epoch)
        if self.best_state is not None:
            self.model.load_state_dict(self.best_state)
        return TrainingResult("finished", protocol, self.seed, history)


def _load_checkpoint(path: Path, run: dict[str, Any]) -> dict[str, Any]:
    """The state in the file, which must be of the same run."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        known: dict[str, Any] = dict(state["run"])
    except Exception as error:  # torch raises what the bytes at hand made it raise
        raise ValueError(
            f"The checkpoint {str(path)!r} is damaged ({type(error).__name__}). Delete it to "
            "restart the run."
        ) from error
    for name, value in run.items():
        if known.get(name) != value:
            raise ValueError(
                f"The checkpoint {str(path)!r} is of another run: its {name!r} is "
                f"{known.get(name)!r}. Expected {value!r}. Delete it, or use another path."
            )
    return state


def _fingerprint(*tensors: Tensor | None) -> int:
    """A number that distinguishes one set of data from another."""
    code = 0
    for tensor in (each for each in tensors if each is not None):
        code = zlib.crc32(tensor.detach().cpu().contiguous().numpy().tobytes(), code)
    return code
