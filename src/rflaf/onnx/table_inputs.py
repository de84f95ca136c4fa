"""The columns of a table as parts of a graph, with one input each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rflaf.arrays import Array
from rflaf.inputs.column import DAY
from rflaf.inputs.encoder import ColumnEncoder
from rflaf.inputs.kinds import SAME, as_levels, as_numbers
from rflaf.inputs.opening import column_names, count_rows, opened
from rflaf.inputs.parts import DIGITS, YEAR, CodePart, DatePart, LevelPart, NumberPart
from rflaf.inputs.text import TextPart
from rflaf.onnx.graph import ML_DOMAIN, Graph


def column_inputs(encoder: ColumnEncoder) -> dict[int, str]:
    """How each column in use is given: as "number", "level" or "date"."""
    found: dict[int, str] = {}
    for part in encoder.parts_:
        if isinstance(part, TextPart):
            raise ValueError(
                f"Column {column_names(encoder)[part.column]!r} is free text, and ONNX has no "
                "operator that hashes its n-grams. Drop the column, or fit the estimator to the "
                "output of ColumnEncoder.transform, and export that."
            )
        if isinstance(part, NumberPart):
            found |= dict.fromkeys(part.at.tolist(), "number")
        else:
            found[part.column] = "date" if isinstance(part, DatePart) else "level"
    return dict(sorted(found.items()))


def column_values(owner: Any, encoder: ColumnEncoder, X: Any, dtype: str) -> dict[str, Array]:
    """The inputs of a graph for rows X, of an estimator and its encoder."""
    columns = opened(owner, X, reset=False, numeric=False)
    names, count = column_names(encoder), count_rows(columns)
    dates = {part.column: part for part in encoder.parts_ if isinstance(part, DatePart)}
    numbers = [part for part in encoder.parts_ if isinstance(part, NumberPart)]
    durations = {k for part in numbers for k in part.durations.tolist()}
    found = {}
    for k, kind in column_inputs(encoder).items():
        values: Array
        if kind == "number":
            values = as_numbers(columns[k], True, k in durations).astype(dtype)
        elif kind == "date":
            values = dates[k].times(columns)
        else:
            codes, levels = as_levels(columns[k])
            values = np.array([*levels, ""], dtype=object)[codes]
        found[names[k]] = values.reshape(count, 1)
    return found


def add_columns(graph: Graph, encoder: ColumnEncoder) -> str:
    """What the encoder makes of the columns, n × d' in float64; each is an input of its own."""
    names, tensors = column_names(encoder), {}
    dtypes: dict[str, Any] = {"number": graph.dtype, "level": np.object_, "date": np.float64}
    for k, kind in column_inputs(encoder).items():
        tensors[k] = graph.input(names[k], dtypes[kind], "n", 1)
    parts = []
    for part in encoder.parts_:
        if isinstance(part, NumberPart):
            given = [tensors[k] for k in part.at.tolist()]
            parts.append(part.export(graph, graph.cast(graph.joined(given), np.float64)))
        elif isinstance(part, LevelPart):
            row = _add_codes(graph, part.levels, tensors[part.column])
            parts.append(graph.rows(part.values, row))
        elif isinstance(part, CodePart):
            row = _add_codes(graph, part.levels, tensors[part.column])
            parts.append(graph.cast(row, np.float64))
        else:
            parts.append(_add_dates(graph, part, tensors))
    x = graph.joined(parts)
    return x if encoder.means_ is None else encoder.means_.export(graph, x)


def _add_codes(graph: Graph, levels: list[str], x: str) -> str:
    """The code of each level, n × 1; an empty string is a missing value."""
    count = len(levels)
    codes = dict(zip((*levels, ""), range(count + 1)))
    codes |= {other: codes[name] for other, name in SAME.items() if name in codes}
    return graph.add(
        "LabelEncoder",
        x,
        domain=ML_DOMAIN,
        keys_strings=tuple(codes),
        values_int64s=tuple(codes.values()),
        default_int64=count + 1,
    )


def _add_dates(graph: Graph, part: DatePart, tensors: dict[int, str]) -> str:
    x = tensors[part.column]
    graph.refuse_infinite(x)
    missing = graph.add("IsNaN", x)
    x = graph.add("Where", missing, np.float64(part.first), x)
    since_first = graph.add("Div", graph.add("Sub", x, np.float64(part.first)), np.float64(DAY))
    found = [graph.add("Where", missing, np.float64(part.median), since_first)]
    days = graph.add("Div", x, np.float64(DAY))
    unit = np.float64(10**DIGITS)
    for circle in part.circles:
        angle = graph.add("Mul", _PHASES[circle](graph, days), np.float64(2 * np.pi))
        for axis in ("Sin", "Cos"):
            point = graph.add("Round", graph.add("Mul", graph.add(axis, angle), unit))
            point = graph.add("Div", point, unit)
            found.append(graph.add("Where", missing, np.float64(0), point))
    if part.since is not None:
        apart = graph.add("Sub", tensors[part.column], tensors[part.since.column])
        apart = graph.add("Div", apart, np.float64(DAY))
        unknown = graph.add("IsNaN", apart)
        found.append(graph.add("Where", unknown, np.float64(part.since_median), apart))
    if part.flagged:
        found.append(graph.cast(missing, np.float64))
    return graph.joined(found)


def _turns(graph: Graph, x: str, period: float) -> str:
    """How far into its period x is, from 0 to 1."""
    turns = graph.add("Div", x, np.float64(period))
    return graph.add("Sub", turns, graph.add("Floor", turns))


_PHASES: dict[str, Callable[[Graph, str], str]] = {
    "year": lambda graph, days: _turns(graph, days, YEAR),
    "week": lambda graph, days: _turns(graph, graph.add("Floor", days), 7.0),
    "day": lambda graph, days: _turns(graph, days, 1.0),
}
