"""A property that is computed once per object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class computed_once(Generic[T]):
    """As `functools.cached_property`, without its lock.

    Up to Python 3.11 that has one lock for all objects of a class, held while the value is
    computed: threads wait for each other, and a process that is forked meanwhile waits for ever.
    Here two threads may both compute a value; they are equal, and the last is kept.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> computed_once[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)  # found first from now on
        return value
