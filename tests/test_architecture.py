"""Which part may import which."""

import ast
from pathlib import Path

import rflaf

SOURCE = Path(rflaf.__file__).parent
PARTS = {
    "files": set(),
    "bases": set(),
    "published": set(),
    "fused": set(),
    "activation": {"bases", "fused"},
    "theory": {"bases", "activation"},
    "kernels": {"bases", "activation", "theory"},
    "nn": {"activation", "bases", "fused", "published"},
    "projection": set(),
    "solvers": {"fused", "projection"},
    "recovery": {"activation", "bases", "solvers"},
    "data": set(),
    "datasets": {"files"},
    "estimators": {"activation", "bases", "data", "fused", "nn", "projection", "solvers"},
    "experiments": {
        *("activation", "bases", "datasets", "estimators", "nn", "published", "solvers"),
        *("_version", "fused", "recovery"),
    },
    "onnx": {"_version", "activation", "bases", "estimators", "files", "fused"},
    "tabular": {"estimators", "files", "_version"},
    "io": {"activation", "bases", "estimators", "files", "solvers", "tabular", "_version"},
    "report": {"experiments", "files"},  # reads records, and knows no model
    "dask": {"data", "estimators", "fused", "solvers"},
}
EXTRAS = {
    "torch": {"nn"},
    "dask": {"dask"},
    "distributed": {"dask"},
    "onnx": {"onnx"},
    "onnxruntime": {"onnx"},
    "typer": {"cli"},
    "rich": {"cli"},
    "jinja2": {"report"},
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module


def part_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_parts_import_only_what_they_may():
    for path in SOURCE.rglob("*.py"):
        part = part_of(path)
        if part not in PARTS:
            continue
        for name in imports(path):
            top, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if top == "rflaf" and other not in ("", part):
                assert other in PARTS[part], f"{path.name} of {part} imports {name}"


def test_extras_stay_where_they_belong():
    for path in SOURCE.rglob("*.py"):
        for name in imports(path):
            top = name.partition(".")[0]
            assert part_of(path) in EXTRAS.get(top, {part_of(path)}), f"{path} imports {name}"
