"""Learned activations in whole networks: python benchmarks/networks.py [--data NAME ...] [--time]

The same network with ReLU, GELU, PReLU and learned activations, started as ReLU and swapped in by
`swap_activations`, and KAN layers beside MLPs; five seeds, which draw split, weights and batches
alike for all. Each is trained for the same number of epochs; with --time also for as many
epochs as take the time of ReLU's, which only means something on a machine that does nothing else.
Nothing is tuned and nothing is chosen by the test rows: the last epoch counts. Besides digits, data
is read from the folders that RFLAF_DATA names.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from _bench import write
from torch import Tensor, nn

from rflaf import datasets
from rflaf.nn import KAN, parameter_groups, swap_activations

EPOCHS, BATCH, RATE, SEEDS = 20, 64, 1e-3, 5
MOST_ROWS, TEST_SHARE = 10_000, 0.2  # of a data set; larger ones are thinned
IMAGES = {64: (1, 8, 8), 784: (1, 28, 28), 3072: (3, 32, 32)}  # by the number of columns
Make = Callable[[int, int], nn.Module]


class Residual(nn.Module):
    """x + Linear(activation(Linear(LayerNorm(x))))"""

    def __init__(self, width: int, activation: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.steps = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, width),
            activation(),
            nn.Linear(width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.steps(x)


def mlp(d: int, c: int, activation: Callable[[], nn.Module]) -> nn.Module:
    first, second = nn.Linear(d, 128), nn.Linear(128, 128)
    return nn.Sequential(first, activation(), second, activation(), nn.Linear(128, c))


def residual_mlp(d: int, c: int, activation: Callable[[], nn.Module]) -> nn.Module:
    blocks = [Residual(64, activation) for _ in range(3)]
    return nn.Sequential(nn.Linear(d, 64), *blocks, nn.Linear(64, c))


def cnn(d: int, c: int, activation: Callable[[], nn.Module]) -> nn.Module:
    channels, height, width = IMAGES[d]
    return nn.Sequential(
        nn.Unflatten(1, (channels, height, width)),
        nn.Conv2d(channels, 16, 3, padding=1),
        activation(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        activation(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (height // 4) * (width // 4), c),
    )


def learned(network: Callable[..., nn.Module], per: str, d: int, c: int) -> nn.Module:
    model = network(d, c, nn.ReLU)
    swap_activations(model, nn.ReLU, per=per, example=torch.zeros(2, d))
    return model


def kan(d: int, c: int) -> nn.Module:
    """Of about as many parameters as the MLP: each edge has 19 splines and two scales."""
    size = sum(p.numel() for p in mlp(d, c, nn.ReLU).parameters())
    return KAN(d, max(2, round(size / (21 * (d + c)))), c)


def networks(d: int) -> dict[tuple[str, str], Make]:
    """The networks for d columns, by their name and that of the activation."""
    shapes = {"CNN": cnn} if d in IMAGES else {"residual MLP": residual_mlp}
    found: dict[tuple[str, str], Make] = {}
    for name, network in {**shapes, "MLP": mlp}.items():
        for kind in (nn.ReLU, nn.GELU, nn.PReLU):
            found[name, kind.__name__] = partial(network, activation=kind)
        for per in ("layer", "channel"):
            found[name, f"learned, per {per}"] = partial(learned, network, per)
    found["MLP", "KAN layers"] = kan
    return found


def rows_of(name: str, seed: int) -> tuple[list[Tensor], int]:
    """Training and test rows with their targets, standardised; the number of classes, or 0."""
    data = datasets.load(name)
    y = np.asarray(data.y)
    classes = np.unique(y) if y.dtype.kind not in "f" else []
    order = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    X, y = np.asarray(data.X)[order].astype(np.float64), y[order]
    cut = round(TEST_SHARE * len(y))
    images = X.shape[1] in IMAGES
    centre, scale = (0.0, X.max()) if images else (X[cut:].mean(0), X[cut:].std(0))
    X = torch.tensor((X - centre) / np.where(scale > 0, scale, 1), dtype=torch.float32)
    if len(classes):
        target = torch.tensor(np.searchsorted(classes, y))
    else:
        target = torch.tensor((y - y[cut:].mean()) / y[cut:].std(), dtype=torch.float32)[:, None]
    return [X[cut:], target[cut:], X[:cut], target[:cut]], len(classes)


def run(make: Make, name: str, seed: int, epochs: int) -> tuple[float, float]:
    """The error on the test rows after the last epoch, and the seconds of the fastest epoch."""
    (X, y, X_test, y_test), classes = rows_of(name, seed)
    torch.manual_seed(seed)
    model = make(X.shape[1], classes or 1)
    loss_of = nn.functional.cross_entropy if classes else nn.functional.mse_loss
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=RATE, fused=True)
    total = epochs * -(-len(X) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    order, seconds = torch.Generator().manual_seed(seed), []
    for _ in range(epochs):
        start = time.perf_counter()
        for rows in torch.randperm(len(X), generator=order).split(BATCH):
            optimizer.zero_grad(set_to_none=True)
            loss_of(model(X[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
        seconds.append(time.perf_counter() - start)
    with torch.no_grad():
        out = model.eval()(X_test)
        if classes:
            return 100 * float((out.argmax(1) != y_test).double().mean()), min(seconds)
        return math.sqrt(float((out - y_test).square().mean())), min(seconds)


def row_of(name: str, of: tuple[str, str], make: Make, epochs: int, budget: str) -> dict[str, Any]:
    runs = [run(make, name, seed, epochs) for seed in range(SEEDS)]
    errors = [error for error, _ in runs]
    (X, _, X_test, _), classes = rows_of(name, 0)
    parameters = sum(p.numel() for p in make(X.shape[1], classes or 1).parameters())
    row = {
        "data": name,
        "network": of[0],
        "activation": of[1],
        "budget": budget,
        "measure": "test error, %" if classes else "test RMSE of the standardised target",
        "error": statistics.fmean(errors),
        "error_std": statistics.stdev(errors),
        "errors": errors,
        "epochs": epochs,
        "epoch_seconds": min(seconds for _, seconds in runs),
        "train_rows": len(X),
        "test_rows": len(X_test),
        "parameters": parameters,
    }
    print({key: value for key, value in row.items() if key != "errors"}, flush=True)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["digits", "protein"])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--time", action="store_true", help="also the same time for all")
    options = parser.parse_args()
    known = datasets.names(available=True)
    for name in options.data:
        if name not in known:
            print(f"skipped: {name} is not in the folders that RFLAF_DATA names")
            continue
        d = rows_of(name, 0)[0][0].shape[1]
        for of, make in networks(d).items():
            row = row_of(name, of, make, options.epochs, f"{options.epochs} epochs")
            rows = [row]
            if of[1] == "ReLU":
                relu = row["epoch_seconds"]
            elif options.time:
                epochs = max(1, round(options.epochs * relu / row["epoch_seconds"]))
                budget = f"time of {options.epochs} epochs with ReLU"
                rows.append(row_of(name, of, make, epochs, budget))
            write("networks", rows, replace=("data", "network", "activation", "budget"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
