"""Adam for a few unknowns, and the gradient of the penalties on an activation."""

from __future__ import annotations

from typing import Any

import numpy as np

from rflaf.arrays import Float64


class Adam:
    """One array or number to move, at a rate of its own."""

    def __init__(self, rate: float) -> None:
        self.rate, self.mean, self.square, self.count = rate, 0.0, 0.0, 0

    def step(self, x: Any, gradient: Any, fade: float) -> Any:
        self.count += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.99 * self.square + 0.01 * gradient**2
        mean = self.mean / (1 - 0.9**self.count)
        spread = np.sqrt(self.square / (1 - 0.99**self.count))
        return x - self.rate * fade * mean / (spread + 1e-30)


def penalty_gradient(a: Float64, l1: float, smoothness: float) -> Float64:
    """Of l1 mean|a| + smoothness mean(a'')², for a scaled to unit mean square."""
    gradient = np.zeros_like(a)
    height = np.sqrt(np.mean(a**2)) + 1e-30
    if l1:
        gradient += l1 * np.sign(a) / (a.size * height)
    if smoothness and a.size > 2:
        bends = np.diff(a, 2) / height**2
        for k, factor in enumerate((1, -2, 1)):
            gradient[k : k + bends.size] += 2 * smoothness * factor * bends / bends.size
    return gradient
