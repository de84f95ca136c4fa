"""The sets by name: what is known of each, and how it is read or made.

`sets.csv` has what is known of each set. `files.csv` has the forms of its files, one in a line: the
first of a file is the one that is meant, and the others are accepted in its place.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np

from rflaf.datasets import sets, synthetic
from rflaf.datasets.types import Dataset, File, Info

_MASKED = ("kin40k", "bike")  # whose test rows another file marks


@dataclass(frozen=True)
class Entry:
    """A set: what is known of it, and what reads its files, or makes it if it has none."""

    info: Info
    read: Callable[[tuple[Path, ...]], Dataset]


def _lines(name: str) -> Iterable[dict[str, str]]:
    text = files("rflaf.datasets").joinpath(name).read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())


def _files() -> dict[str, tuple[File, ...]]:
    forms: dict[str, dict[str, list[File]]] = {}
    for line in _lines("files.csv"):
        size = int(line["bytes"]) if line["bytes"] else None
        form = File(line["path"], tuple(line["urls"].split()), line["sha256"] or None, size)
        forms.setdefault(line["name"], {}).setdefault(line["file"], []).append(form)
    return {
        name: tuple(replace(first, variants=tuple(more)) for first, *more in known.values())
        for name, known in forms.items()
    }


def _entry(info: Info) -> Entry:
    if not info.files:
        make = synthetic.make if info.name in synthetic.TARGETS else _make_small
        return Entry(info, lambda _: make(info.name))
    if info.name in _MASKED:
        return Entry(info, partial(sets.masked, columns=info.n_inputs + 1))
    return Entry(info, sets.authors_arrays if info.sigma else getattr(sets, info.name))


def _make_small(name: str) -> Dataset:
    """The rows as scikit-learn, or the file here, has them."""
    if name == "airfoil":
        file = Path(__file__).with_name("airfoil.csv")
        header = file.read_text(encoding="utf-8").partition("\n")[0].split(",")
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
        return sets.numbers(rows[:, :-1], rows[:, -1], tuple(header[:-1]))
    from sklearn import datasets  # takes a while, and most sets do without

    if name == "friedman1":
        inputs, target = datasets.make_friedman1(2000, noise=1.0, random_state=0)
        names = [f"x{k}" for k in range(10)]
    else:
        bunch = getattr(datasets, f"load_{name}")()
        inputs, target, names = bunch.data, bunch.target, bunch.feature_names
    return sets.numbers(inputs, target, tuple(map(str, names)))


def _entries() -> dict[str, Entry]:
    known, found = _files(), {}
    for line in _lines("sets.csv"):
        target = synthetic.TARGETS.get(line["name"].removesuffix("-authors"))
        info = Info(
            name=line["name"],
            task=line["task"],  # type: ignore[arg-type]
            n_inputs=int(line["inputs"]),
            n_outputs=int(line["outputs"]),
            description=line["description"],
            source=line["source"],
            files=known.get(line["name"], ()),
            n_rows=int(line["rows"]),
            sigma=None if target is None else target.sigma,
        )
        found[info.name] = _entry(info)
    return found


ENTRIES = _entries()
