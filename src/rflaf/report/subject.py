"""The model that a page is about, and the rows that tell of it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rflaf.arrays import Array
from rflaf.inputs.parts import DatePart
from rflaf.report.given_rows import GivenRows
from rflaf.runtime.threads import use_threads

_SHUFFLED_ROWS = 300


class Subject:
    """A fitted estimator, or a pipeline that ends in one, asked in one way."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.direct = not hasattr(model, "steps")  # whether rows go straight to the estimator
        self.estimator = model if self.direct else model[-1]
        if not hasattr(self.estimator, "feature_importances_"):
            check_is_fitted(self.estimator)
            raise TypeError(
                "The 'model' must be an RFLAFRegressor or RFLAFClassifier, or a pipeline that "
                f"ends in one. Got {type(self.estimator).__name__} instead."
            )

    @property
    def classes(self) -> Array | None:
        """The classes, or None for regression."""
        return getattr(self.estimator, "classes_", None)

    @property
    def dates(self) -> dict[int, DatePart]:
        """How the fit reads its columns of dates, where it gets the rows as they are."""
        encoder = getattr(self.estimator, "encoder_", None) if self.direct else None
        parts = [] if encoder is None else encoder.parts_
        return {part.column: part for part in parts if isinstance(part, DatePart)}

    def names(self, rows: GivenRows | None) -> list[str]:
        """The columns' names: those of the fit, else of the rows, else x0, x1, …"""
        fitted = getattr(self.model, "feature_names_in_", None)
        if fitted is not None:
            return [str(name) for name in fitted]
        if rows is not None:
            return rows.names or [f"x{j}" for j in range(rows.width)]
        width = getattr(self.model, "n_features_in_", len(self.estimator.feature_importances_))
        return [f"x{j}" for j in range(width)]

    @property
    def has_intervals(self) -> bool:
        """Whether the model has a distribution for each row."""
        return getattr(self.estimator, "spread_", None) is not None

    def quantiles(self, X: Any) -> dict[float, Array]:
        """Predictions of several quantiles by their levels, n each; none for other models."""
        levels = self._levels
        return dict(zip(levels, self.model.predict(X).T)) if levels else {}

    @property
    def _levels(self) -> list[float]:
        """Those of a model of several quantiles; none for other models."""
        loss = getattr(self.estimator, "loss_", None)
        levels: Any = getattr(loss, "quantile", 0.5)
        return list(levels) if np.ndim(levels) else []

    def outputs(self, X: Any) -> Array:
        """Predictions, n × C: numbers, or probabilities of the classes."""
        return self.shown(
            self.model.predict(X) if self.classes is None else self.model.predict_proba(X)
        )

    def member_outputs(self, X: Any) -> list[Array]:
        """The same by each member alone; none for a model of a single member."""
        members, inputs = getattr(self.estimator, "members_", []), self._inputs(X)
        found = []
        for member in members if len(members) > 1 else []:
            alone = copy(self.estimator)
            alone.members_ = [replace(member, weight=1.0)]
            found.append(Subject(alone).outputs(inputs))
        return found

    def effects(
        self, rows: GivenRows, some: Array, donors: dict[int, Array]
    ) -> Iterator[tuple[int, Array, Array]]:
        """For each column its mean predictions where all of `some` rows have that of one donor.

        These are P × C, and members × P × C by each member alone; of a single member there is none.
        Where the columns of a row can be changed one by one, it is not projected again.
        """
        model, changed = self.estimator, None
        if self.direct and hasattr(model, "members_"):
            changed = model._changed_rows(rows.take(some))
        for j, at in donors.items():
            if changed is None or j in changed.tied:
                mixed = rows.mixed(np.tile(some, len(at)), j, np.repeat(at, len(some)))
                found = [self.outputs(mixed), *self.member_outputs(mixed)]
            else:
                with use_threads(model.n_jobs):
                    scores = changed.scores(j, model._dense_inputs(rows.take(at)))
                read = model._predicted if self.classes is None else model.loss_.probabilities
                flat = [each.reshape(-1, each.shape[-1]) for each in scores]
                found = [
                    self.shown(read(each)) for each in flat[: len(flat) if len(flat) > 2 else 1]
                ]
            means = np.array(found).reshape(len(found), len(at), len(some), -1).mean(axis=2)
            yield j, means[0], means[1:]

    def shown(self, predicted: Array) -> Array:
        """Predictions as n × C; of several quantiles the one nearest to the median."""
        found = np.asarray(predicted, np.float64).reshape(len(predicted), -1)
        return found if self.shown_level is None else found[:, [self.shown_level]]

    @property
    def shown_level(self) -> int | None:
        """Of several quantiles the place of the one nearest to the median; None for others."""
        levels = np.array(self._levels)
        return int(np.abs(levels - 0.5).argmin()) if len(levels) else None

    def outside_share(self, X: Any) -> float:
        """The share of rows far outside the range of the training rows."""
        return float(self.estimator.outside_share(self._inputs(X)))

    def interval(self, X: Any, coverage: float) -> tuple[Array, Array]:
        """Ends of intervals, each n × C."""
        low, high = self.estimator.predict_interval(self._inputs(X), coverage)
        return low.reshape(len(low), -1), high.reshape(len(high), -1)

    def distribution(self, X: Any) -> Any:
        """The distribution of each row: see `RFLAFRegressor.predict_dist`."""
        return self.estimator.predict_dist(self._inputs(X))

    def _inputs(self, X: Any) -> Any:
        """What the estimator itself is given."""
        return X if self.direct else self.model[:-1].transform(X)

    def importances(self, rows: GivenRows | None) -> Array | None:
        """Shares of the columns: what the estimator found, or for a pipeline the same by hand.

        That is how far predictions move when a column is shuffled.
        """
        if self.direct:
            return np.asarray(self.estimator.feature_importances_)
        if rows is None:
            return None
        rng = np.random.default_rng(0)
        some = rng.permutation(rows.count)[:_SHUFFLED_ROWS]
        before, other = self.outputs(rows.take(some)), rng.permutation(some)
        moved = np.array(
            [np.mean((self.outputs(rows.mixed(some, j, other)) - before) ** 2)
             for j in range(rows.width)]
        )  # fmt: skip
        return moved / moved.sum() if moved.sum() > 0 else moved
