"""The fused kernels against the dense way: python benchmarks/fused.py

The dense way is that of the paper's code: exp(...) for each of N centres, stacked to n × M × N,
times the coefficients, in float32. Batch 128, M = 3000, d = 9, as in its protein task.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _bench import best_seconds, show, write

from rflaf import Activation, fused
from rflaf.bases import RBF

BATCH, WIDTH, INPUTS = 128, 3000, 9
rng = np.random.default_rng(0)
Z = rng.standard_normal((BATCH, WIDTH)).astype(np.float32)
G = rng.standard_normal((BATCH, WIDTH)).astype(np.float32)


def learned(n: int) -> Activation:
    return Activation(RBF(n), rng.standard_normal(n) / np.sqrt(n))


def numpy_dense(sigma: Activation) -> tuple[Any, Any]:
    centers = sigma.basis.centers.astype(np.float32)
    scale = np.float32(-0.5 / sigma.basis.width**2)
    a = sigma.coefficients.astype(np.float32)

    def stacked() -> np.ndarray:
        return np.exp((Z[..., None] - centers) ** 2 * scale)

    def both() -> tuple[np.ndarray, np.ndarray]:
        values = stacked()
        return values @ a, np.tensordot(G, values, axes=2)

    return (lambda: stacked() @ a), both


def torch_dense(sigma: Activation) -> tuple[Any, Any] | None:
    try:
        import torch
    except ImportError:
        return None
    z, g = torch.from_numpy(Z), torch.from_numpy(G)
    centers = torch.from_numpy(sigma.basis.centers.astype(np.float32))
    scale = -0.5 / sigma.basis.width**2
    a = torch.from_numpy(sigma.coefficients.astype(np.float32)).requires_grad_()

    def forward() -> Any:
        columns = [torch.exp((z - c) ** 2 * scale) for c in centers]
        return torch.stack(columns, dim=-1) @ a

    def no_gradient() -> Any:
        with torch.no_grad():
            return forward()

    def both() -> Any:
        return torch.autograd.grad(forward(), a, g)

    return no_gradient, both


def against_dense() -> list[dict[str, Any]]:
    rows = []
    targets = {17: (20, 8), 129: (150, 60)}
    for n, (forward_target, both_target) in targets.items():
        sigma = learned(n)
        table = sigma.table()
        out = np.empty_like(Z)

        def forward(table=table, out=out):
            fused.apply(table, Z, out)

        def both(table=table, out=out):
            fused.apply(table, Z, out)
            fused.adjoint(table, Z, G)

        for library, dense in (("NumPy", numpy_dense(sigma)), ("torch", torch_dense(sigma))):
            if dense is None:
                continue
            for what, ours, theirs, target in (
                ("forward", forward, dense[0], forward_target),
                ("forward + adjoint", both, dense[1], both_target),
            ):
                slow, fast = best_seconds(theirs, ours, repeats=5 if n > 100 else 9)
                rows.append(
                    {
                        "what": f"{what}, N = {n}: speed-up over dense {library}",
                        "figure": slow / fast,
                        "unit": "×",
                        "target": f">= {target}",
                        "ns_per_element": fast / Z.size * 1e9,
                        "dense_ns_per_element": slow / Z.size * 1e9,
                    }
                )
    return rows


def flat_in_n() -> list[dict[str, Any]]:
    few, many = learned(9).table(), learned(257).table()
    rows = []
    for what, kernel, rest in (("forward", fused.apply, ()), ("adjoint", fused.adjoint, (G,))):
        first, second = best_seconds(
            partial(kernel, few, Z, *rest), partial(kernel, many, Z, *rest), repeats=41
        )
        rows.append(
            {
                "what": f"{what}: N = 257 against N = 9",
                "figure": second / first,
                "unit": "×",
                "target": "<= 1.15",
                "ns_per_element": [first / Z.size * 1e9, second / Z.size * 1e9],
            }
        )
    return rows


def against_relu() -> list[dict[str, Any]]:
    x = rng.standard_normal((20_000, INPUTS)).astype(np.float32)
    w = rng.standard_normal((INPUTS, WIDTH)).astype(np.float32) / 3
    v = rng.standard_normal(WIDTH).astype(np.float32)
    table, relu = learned(128).table(), Activation("relu").table()
    ours, theirs = best_seconds(
        lambda: fused.predict_inputs(table, x, w, v),
        lambda: fused.predict_inputs(relu, x, w, v),
    )
    rows = [
        {
            "what": "predict from X, RBF-128 against ReLU in the same call",
            "figure": ours / theirs,
            "unit": "×",
            "target": "<= 2",
            "rows_per_second": 20_000 / ours,
        }
    ]
    try:
        import torch
    except ImportError:
        return rows
    z = torch.from_numpy(Z)
    out, torch_out = np.empty_like(Z), torch.empty_like(z)
    ours, theirs = best_seconds(
        lambda: fused.apply(table, Z, out),
        lambda: torch.clamp(z, min=0, out=torch_out),
        repeats=41,
    )
    rows.append(
        {
            "what": "sigma(Z), RBF-128 against torch's ReLU",
            "figure": ours / theirs,
            "unit": "×",
            "target": "none",
            "ns_per_element": [ours / Z.size * 1e9, theirs / Z.size * 1e9],
        }
    )
    return rows


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_above(function: Any) -> float:
    """The largest growth of this process's memory while `function` runs, in MB."""
    gc.collect()
    start, peak, done = resident_bytes(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], resident_bytes() - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    function()
    done.set()
    watcher.join()
    return peak[0] / 1e6


def memory() -> list[dict[str, Any]]:
    z = np.empty((200_000, WIDTH), np.float32)
    for start in range(0, len(z), 1000):
        z[start : start + 1000] = rng.standard_normal((1000, WIDTH), dtype=np.float32)
    table = learned(128).table()
    left, right = np.ones((len(z), 1), np.float32), rng.standard_normal((WIDTH, 1))
    fused.predict(table, z[:10], right), fused.adjoint(table, z[:10], (left[:10], right))
    return [
        {
            "what": f"peak memory of {what} on 200,000 × 3000 above the inputs",
            "figure": peak_above(run),
            "unit": "MB",
            "target": "< 300",
        }
        for what, run in (
            ("predict", lambda: fused.predict(table, z, right)),
            ("adjoint", lambda: fused.adjoint(table, z, (left, right))),
        )
    ]


START = """
import time
import sklearn.utils, sklearn.linear_model
start = time.perf_counter()
import rflaf
rflaf.RFLAFRegressor  # what the package names is imported when first asked for
print(time.perf_counter() - start)
import numpy as np
from rflaf import fused
table = rflaf.Activation("rbf", np.ones(5)).table()
start = time.perf_counter()
for dtype in (np.float32, np.float64):
    z, v = np.zeros((2, 3), dtype), np.ones(3, dtype)
    fused.apply(table, z), fused.slope(table, z, z), fused.adjoint(table, z, z)
    fused.predict(table, z, v), fused.predict_inputs(table, z, np.ones((3, 3), dtype), v)
print(time.perf_counter() - start)
"""


def start_up() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as cache:
        runs = []
        for _ in range(4):
            out = subprocess.run(
                [sys.executable, "-c", START],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                check=True,
                capture_output=True,
                text=True,
            ).stdout.split()
            runs.append([float(value) for value in out])
    warm = runs[1:]
    figures = (
        ("import rflaf, after scikit-learn", min(r[0] for r in warm), "< 1"),
        ("compile all kernels, both precisions", runs[0][1], "< 10"),
        ("load all kernels from numba's cache", min(r[1] for r in warm), "< 1"),
    )
    return [{"what": w, "figure": f, "unit": "s", "target": t} for w, f, t in figures]


if __name__ == "__main__":
    began = time.perf_counter()
    results: list[dict[str, Any]] = []
    for part in (start_up, against_dense, flat_in_n, against_relu, memory):
        found = part()
        show(found)
        results += found
    write("fused", results)
    print(f"{time.perf_counter() - began:.0f} s in all")
