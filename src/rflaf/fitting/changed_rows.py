"""Scores of rows where one column has other values: what partial dependence is the mean of.

Each input of a layer is a function of one column, so a column has its own part in Z. Another value
replaces this part, by the same one for all rows. So one product for all rows and one for all values
are enough, and none is needed for their pairs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting.members import InputsOnce, Member
from rflaf.fitting.outside import Outside, held_between
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import as_array, project

Array = NDArray[Any]


class ChangedRows:
    """Rows x of a model without constraints, dense.

    `origin` has the column that each input comes from. Columns that are `tied` have inputs in
    common with others: these cannot be changed here.
    """

    def __init__(
        self,
        members: list[Member],
        outside: Outside,
        x: Array,
        origin: NDArray[np.intp],
        tied: Collection[int] = (),
    ) -> None:
        self.tied = tied
        self._members, self._outside, self._x, self._origin = members, outside, x, origin
        self._inner = held_between(x, outside.ends)
        once = InputsOnce(self._inner)
        inputs = [once.of(member.layer) for member in members]
        self._z = [project(rows, m.directions) for rows, m in zip(inputs, members)]
        self._inputs = [as_array(rows) for rows in inputs]

    def scores(self, column: int, donors: Array) -> Array:
        """Scores with each donor's column, 1 + members × P × n × C: the model's come first."""
        near = held_between(donors, self._outside.ends)
        once = InputsOnce(near)
        shape = 1 + len(self._members), len(donors), len(self._x), len(self._outside.usual)
        found = np.zeros(shape)
        for k, member in enumerate(self._members):
            layer = member.layer
            own = np.flatnonzero(self._origin[layer.origin] == column)
            w = member.directions[own]
            rest = self._z[k] - self._inputs[k][:, own] @ w
            given = as_array(once.of(layer))[:, own] @ w

            def task(p: int, out: Any = found[k + 1], of: Any = (member, rest, given)) -> None:
                member, rest, given = of
                out[p] = member.scores_at(rest + given[p])

            parallel(task, len(donors))
            found[0] += member.weight * found[k + 1]
        if self._inner is self._x and near is donors:
            return found
        rows, inner = (
            self._replaced(column, *pair) for pair in ((self._x, donors), (self._inner, near))
        )
        flat = found.reshape(shape[0], -1, shape[-1])
        return self._outside.continued(flat, rows, inner).reshape(shape)

    def _replaced(self, column: int, x: Array, donors: Array) -> Array:
        """All rows with the column of each donor, P n × d."""
        own = np.flatnonzero(self._origin == column)
        rows = np.repeat(x[None], len(donors), axis=0)
        rows[:, :, own] = donors[:, None, own]
        return rows.reshape(-1, x.shape[1])
