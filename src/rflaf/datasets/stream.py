"""PyTorch's random numbers on the CPU, computed without PyTorch.

The published splits and synthetic points were drawn with it, so they are part of the protocol.
"""

from __future__ import annotations

import numpy as np

from rflaf.datasets.types import Array


class Stream:
    """The 32-bit outputs of the Mersenne Twister, seeded as `torch.manual_seed` does."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.MT19937()
        # NumPy's old generator is seeded as PyTorch's is, by the lower 32 bits
        self._bits.state = np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=False)  # type: ignore[assignment]

    def words(self, n: int) -> Array:
        return self._bits.random_raw(n).astype(np.int64)

    def permutation(self, n: int) -> Array:
        """`torch.randperm(n)`: Fisher and Yates, from the front."""
        steps = self.words(max(n - 1, 0)) % np.arange(n, 1, -1)
        order = list(range(n))
        for i, step in enumerate(steps.tolist()):
            order[i], order[i + step] = order[i + step], order[i]
        return np.array(order, dtype=np.int64)

    def normal(self, *shape: int) -> Array:
        """`torch.randn(shape)`, float32, for a multiple of 16 numbers.

        Each run of 16 uniform numbers of 24 bits becomes 16 normal ones by Box and Muller: radii
        from the first eight, angles from the others.
        """
        n = int(np.prod(shape))
        if n % 16:
            raise ValueError(f"The number of samples must be a multiple of 16. Got {n} instead.")
        uniform = (self.words(n) & 0xFFFFFF).astype(np.float32) * np.float32(2.0**-24)
        first, second = uniform.reshape(-1, 2, 8).transpose(1, 0, 2)
        radius = np.sqrt(np.float32(-2) * np.log(np.float32(1) - first))
        angle = np.float32(2 * np.pi) * second
        normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return np.ascontiguousarray(normal.reshape(shape))
