"""Bases as the operators see them: a name that travels, and tables that are made once.

An operator of PyTorch takes tensors, numbers and strings. A basis therefore goes to it as a string
from which any process can make the basis again; that is what keeps exported programs portable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rflaf.arrays import Float64
from rflaf.bases import LEARNABLE_BASES, Basis, Continued
from rflaf.fused import DEFAULT_TOL, Direct, Layout, Sigma, Table, basis_layout, table_frame

# Cells per spacing of a basis; the fewest that suffice are taken, six for Gaussians and splines.
# Splines would do with one, but elements of a batch in one cell wait for each other in the adjoint.
_PARTS = (6, 12, 24, 48, 96, 192, 384, 512)
_types: dict[str, type[Basis]] = {
    kind.__name__: kind for kind in (*LEARNABLE_BASES.values(), Continued) if isinstance(kind, type)
}


@dataclass(frozen=True, eq=False)
class CellLayout:
    """A basis that is a cubic of its own in every cell, and may jump from one to the next.

    `pieces`, N × (n_cells + 1) × 4, has the coefficients of 1, t, t², t³. `rflaf.fused.Layout`
    takes one value for the end of a cell and the start of the next, so it has no room for a jump.
    """

    basis: Basis
    low: float
    cell: float
    n_cells: int
    pieces: Float64

    def table(self, coefficients: Float64) -> Table:
        """The cubics of sum_i a_i B_i."""
        cells = np.tensordot(coefficients, self.pieces, 1)
        frame = table_frame(self.low, self.cell, self.n_cells, np.zeros(2))
        return Table(self, coefficients, cells, frame)  # type: ignore[arg-type]


def basis_name(basis: Basis) -> str:
    """The string for `basis`; `named_basis` gives an equal basis back.

    >>> from rflaf.bases import RBF
    >>> named_basis(basis_name(RBF(17))) == RBF(17)
    True
    """
    return json.dumps(basis, default=_as_plain)


@lru_cache(maxsize=256)
def named_basis(name: str) -> Basis:
    return json.loads(name, object_hook=_as_basis)


@lru_cache(maxsize=256)
def layout_of(name: str) -> Layout | CellLayout | None:
    """The layout with the fewest `_PARTS` that reach `DEFAULT_TOL`; None if no table serves."""
    basis = named_basis(name)
    if basis.tail == "direct":
        return None
    if hasattr(basis, "cell_layout"):
        return basis.cell_layout()
    for parts in _PARTS:
        layout = basis_layout(basis, parts)
        if _worst_error(layout, basis) <= DEFAULT_TOL:
            break
    return layout


@lru_cache(maxsize=64)
def sigma_of(name: str, coefficients: bytes) -> Sigma:
    """The compiled activation. Backward asks for what forward has just made, hence the cache."""
    a = np.frombuffer(coefficients, dtype=np.float64)
    layout = layout_of(name)
    return Direct(named_basis(name), a) if layout is None else layout.table(a)


@lru_cache(maxsize=64)
def cubics_of(name: str) -> tuple[Float64, Float64]:
    """The cubics of the single functions, N × (n_cells + 1) × 4, and their edge slopes, N × 2."""
    layout = layout_of(name)
    assert layout is not None, name
    tables = [layout.table(unit) for unit in np.eye(named_basis(name).n)]
    return np.stack([t.cells for t in tables]), np.stack([t.frame[6:8] for t in tables])


def _worst_error(layout: Layout, basis: Basis) -> float:
    places = np.array([0.13, 0.5, 0.87])  # near the worst of a cubic through ends and thirds
    z = (layout.low + layout.cell * (np.arange(layout.n_cells)[:, None] + places)).ravel()
    powers = places[:, None] ** np.arange(4)
    worst = 0.0
    for unit, values in zip(np.eye(basis.n), basis.functions(z)):
        table = (layout.table(unit).cells[:-1] @ powers.T).ravel()
        worst = max(worst, float(np.abs(table - values).max()))
    return worst


def _as_plain(value: Any) -> Any:
    if not isinstance(value, Basis):
        return value.tolist()
    kind = type(value).__name__
    if _types.setdefault(kind, type(value)) is not type(value):
        raise ValueError(
            f"There are two classes of bases called {kind!r}. Expected different names, because "
            "operators and exported programs know a basis by the name of its class."
        )
    return {"type": kind, **value.parameters()}


def _as_basis(parameters: dict[str, Any]) -> Basis:
    kind = parameters.pop("type")
    if kind not in _types:
        raise ValueError(
            f"Unknown class of bases {kind!r}. Expected one of {', '.join(_types)}, or one that "
            "a LearnableActivation of this process has been made with."
        )
    return _types[kind](**parameters)
