"""One pass over all rows for all members: the sums of the loss's quadratic model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rflaf import fused
from rflaf.arrays import Array
from rflaf.fitting.folds import Folds
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.members import InputsOnce
from rflaf.fitting.task import means_folds
from rflaf.losses import Loss
from rflaf.rows import Block
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import Workspace, features, project, rotated
from rflaf.solvers.ridge import NormalEquations

Pair = tuple[NormalEquations, NormalEquations]  # sums of rows to fit to, and of those held out


@dataclass(frozen=True)
class SumMembers:
    """For each member the sums over rows that it may see, and over those of its fold."""

    layers: list[FittedLayer]
    loss: Loss
    folds: Folds
    seed: int
    exact: bool
    # of members with fewer rows than features, which are summed in the span of their rows
    rotations: Sequence[Array | None]
    # output weights, M + 1 × C, where a loss that is not quadratic has its quadratic model taken
    at: Sequence[Array] | None = None

    def __call__(self, blocks: Iterable[Block]) -> list[Pair]:
        sums = []
        for layer, rotation in zip(self.layers, self.rotations):
            m = (layer.components if rotation is None else rotation).shape[1]
            sums.append(tuple(NormalEquations.empty(m, self.loss.outputs) for _ in range(2)))
        spaces = [Workspace() for _ in self.layers]
        for block in blocks:
            keys = block.fold_keys(self.seed)
            y, weights = self.loss.encode(block.y, block.weights)
            fold = np.where(weights > 0, self.folds(keys), -2)
            inputs = InputsOnce(block.x)
            of_layers = [
                Block(block.start, inputs.of(each, means_folds(each, self.folds, keys)), y, weights)
                for each in self.layers
            ]

            def task(k: int, fold: Array = fold, of_layers: list[Block] = of_layers) -> None:
                inside = fold == self.layers[k].fold
                for total, at in zip(sums[k], (~inside & (fold >= 0), inside)):
                    if at.any():
                        rows = of_layers[k] if at.all() else of_layers[k].at(at)
                        self._add(k, total, rows, spaces[k])

            parallel(task, len(self.layers))
        return sums  # type: ignore[return-value]

    def _add(self, k: int, sums: NormalEquations, rows: Block, space: Workspace) -> None:
        """Add rows whose inputs are in the layer's form."""
        layer, rotation, w = self.layers[k], self.rotations[k], self.layers[k].components
        shape = rows.x.shape[0], w.shape[1]
        z = project(rows.x, w, space.array("z", shape, w.dtype))
        phi = space.array("phi", (shape[0], shape[1] + 1), w.dtype)
        features(layer.sigma, z, out=phi)
        if self.exact:
            phi = phi.astype(np.float64)
        phi = rotated(phi, rotation)
        plain = bool((rows.weights == 1).all())
        weights = None if plain else rows.weights
        if self.at is None:
            sums.add(phi, rows.y.astype(phi.dtype), weights)
        else:
            model = self.loss.quadratic_model(fused.times(phi, self.at[k]), rows.y)
            sums.add(phi, model.response, weights, model.bend)


def add_sums(one: list[Pair], other: list[Pair]) -> list[Pair]:
    return [(a[0] + b[0], a[1] + b[1]) for a, b in zip(one, other)]
