"""Categories of which a call has no level that the fit knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rflaf.inputs.column import Column
from rflaf.inputs.kinds import as_levels
from rflaf.inputs.parts import CodePart, LevelPart, Part
from rflaf.runtime.callers import warn


class UnknownLevels:
    """Looks at the blocks of a call, and warns once of columns whose values are all unknown."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = [part for part in parts if isinstance(part, LevelPart | CodePart)]
        self._examples: dict[str, str] = {}

    def look(self, columns: Sequence[Column]) -> None:
        for part in list(self._parts):
            codes, levels = as_levels(columns[part.column])
            given = {levels[k] for k in np.unique(codes[codes >= 0]).tolist()}
            name = columns[part.column].name
            if not given.isdisjoint(part.known):
                self._parts.remove(part)
                self._examples.pop(name, None)
            elif given:
                self._examples.setdefault(name, min(given))

    def warn(self) -> None:
        if self._examples:
            found = ", ".join(f"{name!r} (such as {k!r})" for name, k in self._examples.items())
            warn(
                f"All values are unknown to the fit in column {found}. Are they written as in the "
                "fit?"
            )
