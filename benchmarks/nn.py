"""Training with PyTorch: python benchmarks/nn.py [--accuracy [--models NAME ...] [--seeds N]]

Seconds per epoch on the paper's protein task (M = 3000, batch 128, two Adam steps per batch),
against the dense way of the paper's code, with one thread and with two, each in a process of its
own (--threads); with --accuracy the losses of the published protocol. The
data is read from the folder in the environment variable RFLAF_DATA. The drop-in activation against
ReLU needs no data: --drop-in measures it alone, and --device cuda does so on a GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _bench import best_seconds, show, write
from torch import nn

from rflaf import datasets
from rflaf.bases import BSpline
from rflaf.fused import thread_count
from rflaf.nn import KAN, LAN, MLP, RFLAF, RFMLP, LearnableActivation
from rflaf.paper import load_split, protocols
from rflaf.paper.training import PUBLISHED, Data, published_basis, train

D, M = 9, 3000
DENSE_BATCHES = 8
SEEDS = 3
THREADS = 1, 2
WIDTH = 512  # of the networks in which the activation takes the place of ReLU
MANY = 16_384  # rows of a batch whose memory is measured
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "learned": LearnableActivation,
    "ReLU": nn.ReLU,
}


class DenseRBF(nn.Module):
    """The dense way: exp(...) for every centre, stacked to n × M × N, times the coefficients."""

    def __init__(self, coefficients: torch.Tensor) -> None:
        super().__init__()
        n = coefficients.shape[0]
        self.coefficients = nn.Parameter(coefficients.detach().clone())
        self.register_buffer("centers", torch.linspace(-2.0, 2.0, n))
        self.scale = -0.5 / (4.0 / (n - 1)) ** 2

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        columns = [torch.exp((z - c) ** 2 * self.scale) for c in self.centers]
        return torch.stack(columns, dim=-1) @ self.coefficients


def published(name: str) -> Data:
    """A data set as the paper prepares it."""
    data = load_split(name, "published")
    arrays = (data.X_train, data.y_train, data.X_test, data.y_test)
    return Data(*(torch.from_numpy(array) for array in arrays))


def epoch_seconds(models: dict[str, Callable[[], nn.Module]], data: Data, repeats: int) -> dict:
    """The best training epoch of each model; they take turns, so that noise meets all alike."""
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(repeats):
        for name, make in models.items():
            result = train(make(), data, replace(PUBLISHED, epochs=2))
            times[name] += [record.train_seconds for record in result.history]
    return {name: min(taken) for name, taken in times.items()}


def dense_epoch_seconds(cells: int, data: Data) -> float:
    """An epoch with the dense activation, from the best of a few batches of it."""
    model = RFLAF(D, M, n_basis=cells + 1, input_scale=None, seed=0)
    model.activation = DenseRBF(model.activation.coefficients)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    times = []
    for rows in torch.arange(len(data.X_train)).split(128)[:DENSE_BATCHES]:
        start = time.perf_counter()
        out = model(data.X_train[rows])
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(out, data.y_train[rows]).backward()
        optimizer.step()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return min(times) * -(-len(data.X_train) // 128)


def speed(data: Data, repeats: int) -> list[dict[str, Any]]:
    models: dict[str, Callable[[], nn.Module]] = {
        "ReLU RFMLP": lambda: RFMLP(D, M, seed=0),
        "RFLAF RBF-16": lambda: RFLAF(D, M, input_scale=None, seed=0),
        "RFLAF RBF-32": lambda: RFLAF(D, M, n_basis=33, input_scale=None, seed=0),
        "RFLAF RBF-128": lambda: RFLAF(D, M, n_basis=129, input_scale=None, seed=0),
        "RFLAF B-splines, 17": lambda: RFLAF(D, M, basis=BSpline(17), input_scale=None, seed=0),
        "MLP ReLU": lambda: MLP(D, M, seed=0),
        "LAN RBF-16": lambda: LAN(D, M, input_scale=None, seed=0),
        "KAN, 187 hidden": lambda: KAN(D, M // 16, seed=0),
        "MLP of KAN's size": lambda: MLP(D, kan_parameters() // (D + 1), seed=0),
    }
    best = epoch_seconds(models, data, repeats)
    dense = {cells: dense_epoch_seconds(cells, data) for cells in (16, 32, 128)}
    rows: list[dict[str, Any]] = [
        {"what": f"epoch of {name}", "figure": seconds, "unit": "s", "target": "none"}
        for name, seconds in best.items()
    ]
    for cells, target in {16: 8, 32: 35, 128: 150}.items():
        seconds = dense[cells]
        what = f"epoch of dense RBF-{cells} (from {DENSE_BATCHES} batches)"
        rows.append({"what": what, "figure": seconds, "unit": "s", "target": "none"})
        figure = seconds / best[f"RFLAF RBF-{cells}"]
        what = f"dense RBF-{cells} / RFLAF RBF-{cells}"
        rows.append({"what": what, "figure": figure, "unit": "x", "target": f">= {target}"})
    ratios = [
        ("RFLAF RBF-128", "RFLAF RBF-16", 1.1),
        ("RFLAF RBF-16", "ReLU RFMLP", 2.0),
        ("LAN RBF-16", "MLP ReLU", 1.7),
        ("KAN, 187 hidden", "MLP of KAN's size", 5.0),
        ("RFLAF B-splines, 17", "RFLAF RBF-16", 1.1),
    ]
    for top, bottom, most in ratios:
        figure = best[top] / best[bottom]
        what = f"{top} / {bottom}"
        rows.append({"what": what, "figure": figure, "unit": "x", "target": f"<= {most}"})
    rows += pykan_rows(best["KAN, 187 hidden"], data)
    rows += drop_in(torch.device("cpu"), repeats)
    return [{**row, "threads": torch.get_num_threads()} for row in rows]


def kan_parameters() -> int:
    return sum(p.numel() for p in KAN(D, M // 16, seed=0).parameters())


def pykan_rows(ours: float, data: Data) -> list[dict[str, Any]]:
    """An epoch of pykan's network of the same shape, from a few batches, where it is installed."""
    try:
        from kan import KAN as PyKAN
    except ImportError:
        print("pykan is not installed: not compared", flush=True)
        return []
    shape = [D, M // 16, 1]
    model = PyKAN(shape, grid=16, k=3, seed=0, auto_save=False, symbolic_enabled=False)
    batches = -(-len(data.X_train) // 128)
    seconds = min(steps(model, data.X_train[:1024], data.y_train[:1024, None])) * batches
    what = "epoch of pykan, 187 hidden (from 8 batches)"
    return [
        {"what": what, "figure": seconds, "unit": "s", "target": "none"},
        {"what": "pykan / KAN", "figure": seconds / ours, "unit": "x", "target": ">= 3"},
    ]


def steps(model: nn.Module, X: torch.Tensor, y: torch.Tensor) -> list[float]:
    """Seconds of each batch of 128 with two Adam steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    times = []
    for rows in torch.arange(len(X)).split(128):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(X[rows]), y[rows]).backward()
        optimizer.step()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return times


def drop_in(device: torch.device, repeats: int) -> list[dict[str, Any]]:
    """`LearnableActivation` in the place of ReLU: alone, per channel, and in a network."""
    n, width = 256, WIDTH

    def finish() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    def alone(layer: nn.Module) -> Callable[[], None]:
        z = torch.randn(n, width, device=device, requires_grad=True)
        g = torch.randn(n, width, device=device)

        def step() -> None:
            for tensor in (z, *layer.parameters()):
                tensor.grad = None
            layer(z).backward(g)
            finish()

        return step

    def network(layer: Callable[[], nn.Module]) -> Callable[[], None]:
        model = mlp(layer).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        x = torch.randn(n, WIDTH, device=device)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            model(x).square().mean().backward()
            optimizer.step()
            finish()

        return step

    own = LearnableActivation(shared=False, channels=width).to(device)
    relu, shared, channels = best_seconds(
        *map(alone, (nn.ReLU(), LearnableActivation().to(device), own)), repeats=100 * repeats
    )
    plain, learned = best_seconds(
        *map(network, (nn.ReLU, LearnableActivation)), repeats=10 * repeats
    )
    times = {
        "ReLU alone": relu,
        "activation alone": shared,
        "activation per channel alone": channels,
        "Adam step, ReLU": plain,
        "Adam step, activation": learned,
    }
    rows: list[dict[str, Any]] = [
        {"what": f"{name}, {n} × {width}", "figure": 1e3 * t, "unit": "ms", "target": "none"}
        for name, t in times.items()
    ]
    ratios = [
        ("activation / ReLU, forward and backward", shared / relu, 4.0),
        ("activation per channel / shared", channels / shared, 1.8),
        ("Adam step of a 512-wide MLP, activation / ReLU", learned / plain, 1.25),
        (
            "bytes kept for backward, activation / ReLU",
            kept_bytes(LearnableActivation, nn.ReLU),
            1.01,
        ),
    ]
    for what, figure, most in ratios:
        rows.append({"what": what, "figure": figure, "unit": "x", "target": f"<= {most}"})
    kept = kept_bytes(lambda: mlp(LearnableActivation), lambda: mlp(nn.ReLU))
    more = {"bytes kept for backward of a 512-wide MLP, activation / ReLU": kept}
    if device.type == "cpu":
        peaks = [peak_bytes(name) for name in ACTIVATIONS]
        more[f"memory of training a 512-wide MLP, {MANY:,} rows, activation / ReLU"] = (
            peaks[0] / peaks[1]
        )
    rows += [
        {"what": what, "figure": figure, "unit": "x", "target": "none"}
        for what, figure in more.items()
    ]
    return rows


def mlp(layer: Callable[[], nn.Module]) -> nn.Module:
    hidden = [part for _ in range(2) for part in (nn.Linear(WIDTH, WIDTH), layer())]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, 1))


def kept_bytes(ours: Callable[[], nn.Module], theirs: Callable[[], nn.Module]) -> float:
    """What autograd keeps of our forward pass, without parameters, over what it keeps of theirs."""

    def kept(module: nn.Module) -> int:
        found: dict[int, int] = {}
        parameters = {tensor.data_ptr() for tensor in module.parameters()}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.data_ptr() not in parameters:
                found[tensor.data_ptr()] = tensor.nbytes
            return tensor

        z = torch.randn(256, WIDTH, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            module(z)
        return sum(found.values())

    return kept(ours()) / kept(theirs())


def peak_bytes(name: str) -> int:
    """The most memory of a few steps of training in a process of its own, buffers included."""
    command = [sys.executable, __file__, "--memory", name]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory_of_steps(name: str) -> int:
    model = mlp(ACTIVATIONS[name])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step(n: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(n, WIDTH)).square().mean().backward()
        optimizer.step()

    step(8)  # loads the kernels
    before = resident("VmRSS")
    for _ in range(3):
        step(MANY)
    return resident("VmHWM") - before


def resident(name: str) -> int:
    """Bytes that this process holds now (VmRSS), or has held at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def accuracy_runs() -> dict[str, tuple[str, Callable[[int], nn.Module], str]]:
    """Name: data set, model for a seed, and what to compare the loss with."""
    return {
        "protein RFLAF RBF-16": (
            "protein",
            lambda s: RFLAF(D, M, input_scale=None, seed=s),
            "0.204 ± 0.006",
        ),
        "protein RFLAF RBF-64": (
            "protein",
            lambda s: RFLAF(D, M, n_basis=65, input_scale=None, seed=s),
            "0.180 ± 0.006",
        ),
        "protein RFMLP ReLU": ("protein", lambda s: RFMLP(D, M, seed=s), "0.241 ± 3 %"),
        "protein RFLAF BS-16": (
            "protein",
            lambda s: RFLAF(D, M, basis=published_basis("bs", 16), input_scale=None, seed=s),
            "paper 0.194",
        ),
        "protein KAN-16": ("protein", lambda s: KAN(D, M // 16, seed=s), "well below the variance"),
        "mnist RFLAF RBF-16": (
            "mnist",
            lambda s: RFLAF(784, 1000, 10, input_scale=None, seed=s),
            "0.126 ± 0.015, 96.1 ± 0.5 %",
        ),
        "mnist RFMLP ReLU": ("mnist", lambda s: RFMLP(784, 1000, 10, seed=s), "0.159 ± 3 %"),
        "protein RFLAF PL-16": (
            "protein",
            lambda s: RFLAF(D, M, basis=published_basis("pl", 16), input_scale=None, seed=s),
            "paper: diverged",
        ),
    }


def accuracy(names: list[str], n_seeds: int) -> None:
    """Mean and population standard deviation over seeds, as the paper reports them.

    The file is written after every row; rows that are not asked for stay as they are. A trial with
    fewer seeds than the file has is not written.
    """
    loaded: dict[str, Data] = {}
    for name, (source, make, target) in accuracy_runs().items():
        if not any(wanted in name for wanted in names):
            continue
        if source not in loaded:
            loaded[source] = published(source)
        data = loaded[source]
        protocol = replace(PUBLISHED, epochs=protocols.EPOCHS[source])
        results = [
            train(make(seed), data, protocol, seed=seed) for seed in protocols.SEEDS[:n_seeds]
        ]
        row: dict[str, Any] = {"what": name, "target": target, "seeds": n_seeds}
        row["statuses"] = [result.status for result in results]
        row["diverged_epochs"] = [result.diverged_epoch for result in results]
        row["epochs"] = protocol.epochs
        losses = [result.test_loss for result in results if result.test_loss is not None]
        if losses:
            row["test_loss"] = statistics.fmean(losses)
            row["test_loss_std"] = statistics.pstdev(losses)
        accuracies = [100 * r.test_accuracy for r in results if r.test_accuracy is not None]
        if accuracies:
            row["test_accuracy_pct"] = statistics.fmean(accuracies)
            row["test_accuracy_pct_std"] = statistics.pstdev(accuracies)
        if source == "protein":
            row["target_variance"] = float(data.y_test.var(correction=0))
        print(row, flush=True)
        if n_seeds >= SEEDS:
            write("nn_accuracy", [row], replace="what")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accuracy", action="store_true", help="losses instead of seconds")
    parser.add_argument("--models", nargs="+", default=[""], help="parts of names, for --accuracy")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--drop-in", action="store_true", help="the drop-in activation alone")
    parser.add_argument("--device", default="cpu", help="cuda: --drop-in on a GPU")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS, help="of the processor")
    parser.add_argument("--memory", choices=ACTIVATIONS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(memory_of_steps(options.memory))
        return 0
    device = torch.device(options.device)
    if device.type == "cpu" and not options.accuracy:
        first = str(options.threads[0])
        if len(options.threads) > 1 or os.environ.get("OMP_NUM_THREADS") != first:
            return max(apart(threads) for threads in options.threads)
    if not options.accuracy:
        print(f"{torch.get_num_threads()} thread(s), {thread_count()} in the kernels", flush=True)
    if options.drop_in or device.type != "cpu":
        if device.type == "cuda" and not torch.cuda.is_available():
            print("skipped: PyTorch sees no GPU here")
            return 0
        rows = drop_in(device, options.repeats)
        show(rows)
        if device.type != "cpu":
            write(f"nn_{device.type}", rows)
        return 0
    if not {"protein", "mnist"} <= set(datasets.names(available=True)):
        print("skipped: protein and mnist are not in the folders that RFLAF_DATA names")
        return 0
    if options.accuracy:
        accuracy(options.models, options.seeds)
        return 0
    rows = speed(published("protein"), options.repeats)
    show(rows)
    write("nn", rows, replace="threads")
    return 0


def apart(threads: int) -> int:
    """The same command in a process with so many threads; how it ended."""
    command = [sys.executable, *sys.argv, "--threads", str(threads)]
    return subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": str(threads)}).returncode


if __name__ == "__main__":
    sys.exit(main())
