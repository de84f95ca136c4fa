"""A time limit: when learning should end, and when a fit has to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic


class OutOfTime(Exception):
    """The time of a fit is over."""


@dataclass
class Clock:
    """Moments of `time.monotonic`; `cut` says whether learning was ended by the first."""

    learn_until: float
    end: float
    cut: bool = False


_clock: ContextVar[Clock | None] = ContextVar("_clock", default=None)


@contextmanager
def limited(clock: Clock) -> Iterator[None]:
    """Have what runs inside, and the threads that help it, look at a clock."""
    before = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(before)


def check_time() -> None:
    """Raise OutOfTime once the end has passed."""
    clock = _clock.get()
    if clock is not None and monotonic() > clock.end:
        raise OutOfTime


def may_learn(more: float = 0.0) -> bool:
    """Whether there is time for another step of learning, also in part of the time after it."""
    clock = _clock.get()
    if clock is None or monotonic() < clock.learn_until + more * (clock.end - clock.learn_until):
        return True
    clock.cut = True
    return False
