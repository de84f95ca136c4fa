"""The rows that a run trains on, picks its epoch on and is judged on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from rflaf.nn.networks import TwoLayerNetwork
from rflaf.paper.protocols import Protocol

BLOCK_ROWS = 1024  # that go through a model at a time, outside of training
_FIRST = 512  # rows that a model sees first; RFLAF may measure the scale of inputs on them


@dataclass(frozen=True)
class Data:
    """Training rows, and optionally test rows.

    Attributes
    ----------
    X_train, X_test : array or tensor
    y_train, y_test : array or tensor
        Whole numbers are classes 0, ..., C - 1; anything else is a regression.
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
            numbers = name.startswith("X") or tensor.is_floating_point()
            return tensor.to(device, dtype if numbers else torch.int64)

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


@dataclass
class Subset:
    """Rows with their targets; x is X, or Z where that was computed once.

    `pairs` is 0, or the size of the batches in which all outputs meet all targets.
    """

    x: Tensor
    y: Tensor
    pairs: int = 0

    @property
    def classes(self) -> bool:
        return not self.y.is_floating_point()

    def loss(self, out: Tensor, y: Tensor) -> Tensor:
        if self.classes:
            return nn.functional.cross_entropy(out, y)
        if self.pairs:
            return (out[:, None] - y).square().mean()
        return nn.functional.mse_loss(out, y)

    def row_losses(self, out: Tensor, y: Tensor) -> Tensor:
        if self.classes:
            return nn.functional.cross_entropy(out, y, reduction="none")
        if self.pairs:
            batches = zip(torch.split(out, self.pairs), torch.split(y, self.pairs))
            return torch.cat([(a[:, None] - b).square().mean(1) for a, b in batches])
        return (out - y).square().flatten(1).mean(1) if y.ndim > 1 else (out - y).square()

    def constant_loss(self) -> float:
        """The loss of the best constant prediction."""
        if not self.classes:
            return float(self.y.var(0, correction=0).mean())
        shares = torch.bincount(self.y) / self.y.shape[0]
        return float(torch.special.entr(shares).sum())


def split_data(data: Data, protocol: Protocol, generator: torch.Generator) -> dict[str, Subset]:
    """The training, validation and test rows, as far as the protocol has them."""
    X, y = data.X_train, data.y_train
    assert isinstance(X, Tensor)
    assert isinstance(y, Tensor)
    pairs = protocol.batch_size if protocol.pairs else 0
    if pairs and (not y.is_floating_point() or y.ndim > 1):
        raise ValueError("'pairs' in a Protocol is for regression with one target.")
    parts = {"train": Subset(X, y, pairs)}
    if isinstance(data.X_test, Tensor) and isinstance(data.y_test, Tensor):
        parts["test"] = Subset(data.X_test, data.y_test, pairs)
    if protocol.selected_on == "test" and "test" not in parts:
        raise ValueError(f"The protocol {protocol.name!r} needs test data. Got none.")
    if protocol.selected_on == "validation":
        order = torch.randperm(X.shape[0], generator=generator).to(X.device)
        held_out = max(1, round(protocol.validation_fraction * X.shape[0]))
        for name, rows in (("train", order[held_out:]), ("validation", order[:held_out])):
            parts[name] = Subset(X[rows], y[rows], pairs)
    return parts


@torch.no_grad()
def check_shapes(model: nn.Module, part: Subset) -> None:
    out = model(part.x[:_FIRST])
    target = part.y[:_FIRST]
    if part.classes:
        right = out.ndim == 2 and int(part.y.min()) >= 0 and int(part.y.max()) < out.shape[1]
        expected = f"n × C, with C more than the largest class, {int(part.y.max())}"
    else:
        right, expected = out.shape == target.shape, f"of the target, n × {list(target.shape[1:])}"
    if not right:
        # broadcasting would compare every row with every other, and the model would learn a mean
        raise ValueError(
            f"The model's output must have the shape {expected}. "
            f"Got n × {list(out.shape[1:])}: see its 'n_outputs'."
        )


@torch.no_grad()
def precompute(
    model: nn.Module, subsets: dict[str, Subset], memory_budget: int
) -> Callable[[Tensor, Tensor | None], Tensor]:
    """Turn X into Z where W never changes and Z fits; the function that predicts from x.

    It takes x, and the numbers of the rows to predict for, or None for all.
    """

    def from_inputs(x: Tensor, rows: Tensor | None) -> Tensor:
        out: Tensor = model(x if rows is None else x.index_select(0, rows))
        return out

    if not isinstance(model, TwoLayerNetwork) or not model.frozen:
        return from_inputs
    rows = sum(part.x.shape[0] for part in subsets.values())
    if rows * model.W.shape[1] * model.W.element_size() > memory_budget:
        return from_inputs
    for part in subsets.values():
        part.x = torch.cat([model.project(x) for x in torch.split(part.x, BLOCK_ROWS)])
    return model.readout
