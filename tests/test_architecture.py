"""Which part may import which, and names that mean one thing each."""

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rflaf

SOURCE = Path(rflaf.__file__).parent
# Every folder and module at the top, and what it imports: no more, and no less.
PARTS = {
    "__init__": {
        "_version",
        "activation",
        "bases",
        "estimators",
        "fused",
        "io",
        "projection",
        "solvers",
    },
    "__main__": {"cli", "warm_up"},
    "_version": set(),
    "activation": {"bases", "formulas", "fused", "runtime"},
    "archive": set(),
    "arrays": set(),
    "bases": set(),
    "cli": {
        "_version",
        "activation",
        "datasets",
        "estimators",
        "fitting",
        "inputs",
        "io",
        "pages",
        "paper",
        "report",
        "runtime",
        "tabular",
        "theory",
        "warm_up",
    },
    "dask": {"distributions", "estimators", "fitting", "rows", "runtime"},
    "datasets": set(),
    "distributions": {"arrays", "rules"},
    "estimators": {
        "activation",
        "arrays",
        "bases",
        "distributions",
        "fitting",
        "fused",
        "inputs",
        "losses",
        "nn",
        "projection",
        "report",
        "rows",
        "runtime",
        "solvers",
    },
    "fitting": {
        "activation",
        "arrays",
        "bases",
        "distributions",
        "fused",
        "inputs",
        "losses",
        "projection",
        "rows",
        "rules",
        "runtime",
        "solvers",
    },
    "formulas": {"arrays"},
    "fused": {"arrays", "bases", "runtime"},
    "inputs": {"arrays", "fused", "rules", "runtime"},
    "io": {
        "_version",
        "activation",
        "archive",
        "bases",
        "distributions",
        "estimators",
        "fitting",
        "fused",
        "inputs",
        "losses",
        "runtime",
        "solvers",
        "tabular",
    },
    "kernels": {"activation", "bases", "theory"},
    "losses": {"distributions", "rows", "rules"},
    "graphs": {"arrays"},
    "nn": {"activation", "arrays", "bases", "fused", "graphs", "paper", "runtime"},
    "onnx": {
        "_version",
        "activation",
        "arrays",
        "bases",
        "estimators",
        "fitting",
        "fused",
        "graphs",
        "inputs",
        "runtime",
    },
    "pages": {"runtime"},
    "paper": {
        "_version",
        "activation",
        "arrays",
        "bases",
        "datasets",
        "estimators",
        "nn",
        "pages",
        "runtime",
    },
    "projection": set(),
    "report": {
        "_version",
        "activation",
        "arrays",
        "distributions",
        "fitting",
        "inputs",
        "losses",
        "pages",
        "runtime",
    },
    "rows": {"arrays", "runtime"},
    "rules": set(),
    "runtime": set(),
    "solvers": {"arrays", "fused", "losses", "rows", "rules", "runtime"},
    "tabular": {"_version", "bases", "estimators", "inputs", "report", "runtime"},
    "theory": {"activation", "bases"},
    "warm_up": {"activation", "bases", "estimators", "fused"},
}
# Imports against the order of the parts, which must therefore wait until they are asked for.
LATE = {
    ("nn", "paper"),  # `from rflaf.nn import train` is part of the public contract
    ("estimators", "nn"),  # `to_torch`; PyTorch is an extra
}
EXTRAS = {
    "torch": {"nn", "paper.training"},
    "dask": {"dask"},
    "distributed": {"dask"},
    "filelock": {"datasets.download", "paper.records"},
    "jinja2": {"pages"},
    "onnx": {"onnx"},
    "onnxruntime": {"onnx"},
    "pooch": {"datasets.download"},
    "rich": {"cli"},
    "skops": {"io"},
    "triton": {"nn.gpu"},
    "typer": {"cli"},
}
# Modules that may use single modules of `fused`, and why.
AROUND = {
    "nn.jit_team": "machine code around a kernel, which is compiled as those of `fused`",
    "nn.table_kernels": "kernels on threads that are PyTorch's own, without Python in between",
}
# Names of modules that stand for more than one, and why.
SHARED_NAMES = {
    "__main__": "what `python -m` runs",
    "base": "what a family of classes has in common, in its folder",
    "estimators": "scikit-learn's and Dask's",
    "features": "of a layer, and the transformer RandomFeatures",
    "fit": "the fit itself, and the command that asks for one",
    "parts": "of a table's columns, and of the rows of a fit",
    "report": "of the paper's runs, and of a fitted model",
    "warm_up": "the compilation, and the command that asks for it",
}
SHARED_CLASSES = {"Task": "what the steps of a fit share, and what a target calls for"}


def modules():
    """Path and dotted name below the package; the package itself is `__init__`."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] == "__main__":
            parts = parts[-1:]  # nothing imports it, wherever it is
        folder = parts[:-1] if parts[-1] == "__init__" else parts
        yield path, ".".join(folder) or "__init__"


def within(name, places):
    return any(name == place or name.startswith(f"{place}.") for place in places)


def imports(tree):
    """The names that a module imports, in whatever form, and whether at once or when called."""
    at_once = {id(node) for node in _run_on_import(tree)}
    for node in ast.walk(tree):
        early = id(node) in at_once
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            assert "rflaf" not in names, "`import rflaf` does not say which part: name it"
            yield from ((name, early) for name in names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "rflaf":
                yield from ((_home(alias.name), early) for alias in node.names)
            else:
                yield node.module, early
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "needed":
            yield node.args[0].value, early
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # import_module("rflaf.io"), files("rflaf.paper"), and tables of such names
            words = node.value.split(".")
            if words[0] == "rflaf" and len(words) > 1 and all(map(str.isidentifier, words)):
                yield node.value, early
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            start = node.values[0].value
            if start == "rflaf.":  # any part at all: the package's own `__getattr__`
                yield from ((f"rflaf.{part}", early) for part in rflaf._PARTS)
            elif start.startswith("rflaf.") and start.endswith("."):
                yield start[:-1], early


def _run_on_import(node):
    for child in ast.iter_child_nodes(node):
        typing_only = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not typing_only and not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from _run_on_import(child)


def _home(name):
    """Where `from rflaf import name` leads."""
    if name == "__version__":
        return "rflaf._version"
    return rflaf._HOMES.get(name, f"rflaf.{name}")


def imported_parts():
    """Part to the parts that it imports, each with the modules that do, and whether at once."""
    found = {part: {} for part in PARTS}
    for path, name in modules():
        part = name.partition(".")[0]
        for other, early in imports(ast.parse(path.read_text(encoding="utf-8"))):
            top, _, rest = other.partition(".")
            wanted = rest.partition(".")[0]
            if top == "rflaf" and wanted != part:
                found.setdefault(part, {}).setdefault(wanted, []).append((name, early))
    return found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import rflaf.fused.cpu", {("rflaf.fused.cpu", True)}),
        ("from rflaf import fused, load", {("rflaf.fused", True), ("rflaf.io", True)}),
        ("from rflaf.fused import cpu", {("rflaf.fused", True)}),
        ("def f():\n    from rflaf.nn import KAN", {("rflaf.nn", False)}),
        ("if TYPE_CHECKING:\n    from rflaf.nn import KAN", {("rflaf.nn", False)}),
        ("import_module('rflaf.io')", {("rflaf.io", True)}),
        ("def f():\n    needed('skops.io', 'It', 'it')", {("skops.io", False)}),
        ("x = lambda name: import_module(f'rflaf.cli.{name}')", {("rflaf.cli", False)}),
        ('"""See rflaf.io and others."""', set()),
    ],
)
def test_every_form_of_import_is_seen(code, expected):
    assert set(imports(ast.parse(code))) == expected


def test_every_part_is_listed():
    assert {name.partition(".")[0] for _, name in modules()} == set(PARTS)


def test_parts_import_what_is_listed_and_nothing_else():
    for part, found in imported_parts().items():
        for other in set(found) - PARTS[part]:
            raise AssertionError(f"{part} may not import {other}: see {found[other]}")
        assert PARTS[part] <= set(found), f"{part} does not import {PARTS[part] - set(found)}"


def test_parts_have_an_order():
    found = imported_parts()
    for part, other in LATE:
        assert not any(early for _, early in found[part][other]), f"{part} imports {other} at once"
    graph = {part: {o for o in others if (part, o) not in LATE} for part, others in found.items()}
    list(TopologicalSorter(graph).static_order())  # raises where there is a cycle


def fused_modules(tree):
    """The modules of `rflaf.fused` that a tree imports; `from rflaf.fused import cpu` is one."""
    folder = {name.rpartition(".")[2] for _, name in modules() if name.startswith("fused.")}
    for name, _ in imports(tree):
        if name.startswith("rflaf.fused."):
            yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "rflaf.fused":
            yield from (f"rflaf.fused.{each.name}" for each in node.names if each.name in folder)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import rflaf.fused.cpu", ["rflaf.fused.cpu"]),
        ("from rflaf.fused.binned import Bins", ["rflaf.fused.binned"]),
        ("def f():\n    from rflaf.fused import jit, apply", ["rflaf.fused.jit"]),
        ("import_module('rflaf.fused.jit')", ["rflaf.fused.jit"]),
        ("from rflaf import fused\nfrom rflaf.fused import Bins, times", []),
    ],
)
def test_modules_of_fused_are_seen(code, expected):
    assert list(fused_modules(ast.parse(code))) == expected


def test_nobody_reaches_around_fused():
    """What others need is public there, so that its modules may change."""
    for path, name in modules():
        part = name.partition(".")[0]
        if part != "fused" and name not in AROUND:
            assert not list(fused_modules(ast.parse(path.read_text(encoding="utf-8")))), path


def test_public_names_of_fused_are_no_modules():
    folder = {name.rpartition(".")[2] for _, name in modules() if name.startswith("fused.")}
    assert not folder & set(rflaf.fused.__all__)


def test_extras_stay_where_they_belong():
    used = {extra: set() for extra in EXTRAS}
    for path, name in modules():
        for other, _ in imports(ast.parse(path.read_text(encoding="utf-8"))):
            extra = other.partition(".")[0]
            if extra in EXTRAS:
                assert within(name, EXTRAS[extra]), f"{path} imports {other}"
                used[extra] |= {place for place in EXTRAS[extra] if within(name, [place])}
    assert used == EXTRAS


def test_modules_have_names_of_their_own():
    names = Counter(name.rpartition(".")[2] for _, name in modules())
    assert {name for name, count in names.items() if count > 1} == set(SHARED_NAMES)


def test_classes_have_names_of_their_own():
    names = Counter(
        node.name
        for path, _ in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set(SHARED_CLASSES)
