"""What `partial_fit` keeps from one call to the next."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Any

from rflaf.fitting import Fit

# Parameters that later rows cannot change
_KEPT = ("loss", "quantile", "power", "monotonic_cst", "class_weight", "categorical_features")


@dataclass(frozen=True)
class PartialState:
    """What partial_fit goes on from; `kept` has the parameters that later calls cannot change."""

    fit: Fit
    seed: int
    kept: dict[str, str]

    @classmethod
    def of(cls, estimator: Any, fit: Fit, seed: int) -> PartialState:
        return cls(fit, seed, _kept(estimator))

    def check(self, estimator: Any) -> None:
        """Raise if one of the kept parameters has changed."""
        for name, value in _kept(estimator).items():
            if value != self.kept[name]:
                raise ValueError(
                    f"{name!r} was {self.kept[name]} in the first call of partial_fit, and cannot "
                    f"change. Got {value}."
                )


def _kept(estimator: Any) -> dict[str, str]:
    given = vars(estimator)
    return {name: _as_text(given[name]) for name in _KEPT if name in given}


def _as_text(value: Any) -> str:
    """The value of a parameter, equal for lists, tuples and arrays of equal entries."""
    if hasattr(value, "tolist"):  # arrays of some library
        value = value.tolist()
    if isinstance(value, dict):
        entries = sorted(f"{_as_text(key)}: {_as_text(each)}" for key, each in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_as_text, value))}]"
    if isinstance(value, int) and abs(value) < 2**53:
        value = float(value)
    plain = isinstance(value, (str, int, float, type(None))) or is_dataclass(value)
    return repr(value) if plain else type(value).__name__
