"""One search for a penalty, or whatever else is chosen along a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Walk(NamedTuple):
    """Where a loss is least along a line of steps.

    `best` is the step, and `losses` has what was looked at.
    """

    best: int
    losses: dict[int, float]

    @property
    def middle(self) -> float:
        """Where a parabola through the best step and its neighbours is least.

        A rounding error in the losses moves it by a rounding error, and not by a whole step.
        """
        left, here, right = (self.losses.get(self.best + k, np.inf) for k in (-1, 0, 1))
        if not np.isfinite([left, here, right]).all() or left + right <= 2 * here:
            return float(self.best)
        shift = 0.5 * (left - right) / (left + right - 2 * here)
        return self.best + float(np.clip(shift, -0.5, 0.5))

    @property
    def least(self) -> float:
        """The loss at the best step."""
        return self.losses[self.best]


def walk(
    losses: Callable[[Sequence[int]], Sequence[float]],
    *,
    low: float = -np.inf,
    high: float = np.inf,
    start: int = 0,
    most: int = 24,
    gain: float = 0.0,
    ahead: int = 1,
    together: bool = True,
) -> Walk:
    """Walk from `start` in whichever direction the loss falls, until it rises.

    Parameters
    ----------
    losses : callable
        The losses of some steps, which are asked for together where more than one is needed.
    low, high : float
        Steps beyond these are not taken.
    most : int
        Steps that are looked at.
    gain : float
        How much less, relatively, the next loss has to be.
    ahead : int
        Steps that are asked for at once, where idle threads compute them at no cost. What is asked
        for ahead and not needed is not looked at.
    together : bool
        Whether both sides of the start are asked for at once; if not, the upper one is only where
        the lower one does not gain.
    """
    known: dict[int, float] = {}
    seen: dict[int, float] = {}

    def look(*steps: int) -> None:
        new = [k for k in steps if k not in known and low <= k <= high]
        known.update(zip(new, losses(new) if new else ()))

    sides = [k for k in (start - 1, start + 1) if low <= k <= high][: most - 1]
    look(start, *(sides if together else ()))
    for k in sides:
        look(k)
        if not together and known[k] < (1 - gain) * known[start]:
            break
    seen.update(known)
    best = start
    direction = -1 if known.get(start - 1, np.inf) < known.get(start + 1, np.inf) else 1
    while True:
        following = best + direction
        if following not in seen:
            if len(seen) >= most or not low <= following <= high:
                break
            if following not in known:
                look(*(following + direction * k for k in range(ahead)))
            seen[following] = known[following]
        if not seen[following] < (1 - gain) * seen[best]:
            break
        best = following
    return Walk(best, seen)
