"""What a benchmark measures, and whether it has changed since a result was written."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src" / "rflaf"
# of the folder `fused`: what trains networks alone, and what computes nothing in a fit
TRAINING = ("fused/channel_tables.py", "fused/jit_splines.py", "fused/spline_sums.py")
NOT_COUNTED = (*TRAINING, "fused/__init__.py", "fused/reference.py")
KERNELS = ("activation.py", "bases", "fused", "projection.py")
FIT = (*KERNELS, "distributions", "estimators", "fitting", "inputs", "losses", "rows", "rules.py",
       "solvers")  # fmt: skip
PLACE = ("rflaf", "processor", "cores")
STAMP = ("date", "commit", "code", *PLACE)
# parts of the package by results file; a file that is not listed measures fits
PARTS = {
    "attacks": ("archive.py", "io.py"),
    "first": (*FIT, "archive.py", "io.py"),
    "fused": KERNELS,
    "networks": (*KERNELS, *TRAINING, "nn"),
    "nn": (*KERNELS, *TRAINING, "nn", "paper/training"),
    "nn_accuracy": (*KERNELS, *TRAINING, "nn", "paper/training"),
    "scale": (*FIT, "dask"),
    "theory": ("bases", "kernels.py", "theory"),
}


def code(name: str) -> str:
    """Digest of the code that results/NAME.json measures, without comments and messages."""
    parts = "".join(_part(part) for part in PARTS.get(name, FIT))
    return hashlib.sha256(parts.encode()).hexdigest()[:12]


def commit() -> str:
    """The commit that is checked out, with a plus if files have changed; empty outside of git."""
    found = []
    for command in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "src")):
        result = subprocess.run(
            ("git", *command), cwd=SOURCE.parent.parent, capture_output=True, text=True
        )
        found.append(result.stdout.strip())
    return found[0] + ("+" if found[0] and found[1] else "")


def stamped(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a result, each with the date, version and processor that it was measured with.

    Rows have their own. One without is of the last run if it has that date; else nothing is known.
    """
    last = result["machine"]
    rows = [{"date": last["date"], **row} for row in result["rows"]]
    for row in rows:
        if row["date"] == last["date"]:
            for name in PLACE:
                row.setdefault(name, last[name])
    return rows


def when_and_where(rows: list[dict[str, Any]]) -> str:
    """Dates, versions, commits and processors of rows, as a part of a sentence."""
    said = []
    for here in _groups(rows, "cores", "processor"):
        versions = []
        for same in _groups(here, "rflaf"):
            text = " to ".join(dict.fromkeys([same[0]["date"], same[-1]["date"]]))
            text += f" with rflaf {same[0]['rflaf']}" if same[0].get("rflaf") else ""
            commits = sorted({row["commit"] for row in same if row.get("commit")})
            versions.append(text + (f" (commit {', '.join(commits)})" if commits else ""))
        place = " on {cores} cores of {processor}" if here[0].get("cores") else ""
        said.append(" and ".join(versions) + place.format(**here[0]))
    return "; ".join(said)


def _groups(rows: list[dict[str, Any]], *names: str) -> list[list[dict[str, Any]]]:
    """Rows with the same values of these names, the earliest first."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=itemgetter("date")):
        groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return list(groups.values())


@cache
def _part(name: str) -> str:
    path = SOURCE / name
    files = [path]
    if path.is_dir():
        files = sorted(set(path.rglob("*.py")) - {SOURCE / each for each in NOT_COUNTED})
    shapes = [repr(_shape(ast.parse(file.read_text(encoding="utf-8")))) for file in files]
    return hashlib.sha256("\n".join(shapes).encode()).hexdigest()


def _shape(node: Any) -> Any:
    """A syntax tree as tuples that are the same in all versions of Python."""
    if isinstance(node, list):
        return [_shape(each) for each in node if not _is_for_people(each)]
    if not isinstance(node, ast.AST):
        return node
    fields = [(name, _shape(value)) for name, value in ast.iter_fields(node)]
    return type(node).__name__, [pair for pair in fields if pair[1] not in (None, [])]


def _is_for_people(node: Any) -> bool:
    """Whether a statement is a docstring, an error or a warning."""
    if not isinstance(node, ast.Expr):
        return isinstance(node, ast.Raise)
    call = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "warnings.warn"
    return call or isinstance(node.value, ast.Constant)
