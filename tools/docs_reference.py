"""A hook of mkdocs: one page per public module, and an error for public names without a docstring.

A module is public if it is listed here; a name is public if it is in its module's `__all__`, or, in
a module without one, if it is a class or function without a leading underscore. Every public name
and each of its methods needs a docstring, and the docstring has to mention every parameter, except
those in the tables of docs/reference.md, which mean the same everywhere.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MODULES = {
    "estimators": "Estimators",
    "distributions": "Distributions",
    "losses": "Losses",
    "inputs": "Columns of frames",
    "tabular": "Tables",
    "report": "Page about a model",
    "io": "Saving and loading",
    "onnx": "ONNX",
    "rows": "Rows",
    "dask": "Dask",
    "activation": "Activations",
    "bases": "Bases",
    "kernels": "Kernels",
    "theory": "Theory",
    "nn": "PyTorch",
    "solvers": "Solvers",
    "fused": "Fused kernels",
    "projection": "Projections",
    "datasets": "Data sets",
    "paper": "Experiments of the paper",
    "paper.training": "Training of the paper",
    "paper.recovery": "Recovery of activations",
    "paper.report": "Report",
}

Documented = tuple[str, Any]


def load_package() -> Any:
    # mkdocstrings reports what griffe warns of
    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    return griffe.load(
        "rflaf", search_paths=[ROOT / "src"], docstring_parser="numpy", resolve_aliases=True
    )


def public_names(module: Any) -> list[str]:
    """What a module offers, in the order of `__all__` or of its source."""
    if module.exports:
        return [str(name) for name in module.exports if not str(name).startswith("_")]
    return [
        name
        for name, member in module.members.items()
        if not name.startswith("_")
        and not member.is_alias
        and (member.is_class or member.is_function)
    ]


def resolved(item: Any) -> Any:
    return item.final_target if item.is_alias else item


def public_objects(package: Any) -> Iterator[Documented]:
    """All public names, and the methods and properties of public classes."""
    for part in MODULES:
        module = package[part]
        for name in public_names(module):
            item = _attribute(package, part, name)
            yield f"rflaf.{part}.{name}", item
            if not item.is_class:
                continue
            for own, member in item.members.items():
                found = resolved(member)
                is_property = found.is_attribute and "property" in found.labels
                if not own.startswith("_") and (found.is_function or is_property):
                    yield f"rflaf.{part}.{name}.{own}", found


def _attribute(package: Any, part: str, name: str) -> Any:
    try:
        return resolved(package[part][name])
    except KeyError:  # given by the module's `__getattr__`, from a part that imports it
        return resolved(package["paper.training"][name])


def docstring(item: Any) -> str:
    """Its own, or that of the method it overrides."""
    if item.docstring:
        return str(item.docstring.value)
    if item.parent and item.parent.is_class:
        for base in item.parent.mro():
            if item.name in base.members and base.members[item.name].docstring:
                return str(base.members[item.name].docstring.value)
    return ""


def explained_everywhere() -> set[str]:
    """Names in the first column of the tables in docs/reference.md."""
    cells = re.findall(
        r"^\| ([^|]*) \|", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def undocumented(package: Any) -> list[str]:
    """One line per name that lacks a docstring, or whose docstring leaves out parameters."""
    common = {*explained_everywhere(), "self", "cls"}
    lines = []
    for label, item in public_objects(package):
        text = docstring(item)
        if not text:
            lines.append(f"{label} has no docstring")
            continue
        if not (item.is_class or item.is_function):
            continue
        if item.is_class:
            members = (m for m in item.members.values() if not m.is_alias and m.docstring)
            text += " ".join(m.docstring.value for m in members)
            # parameters that are those of a base class are explained there
            text += " ".join(docstring(base) for base in item.mro())
        missing = [
            parameter.name
            for parameter in item.parameters
            if parameter.name not in common
            and not re.search(rf"(?<!\w){re.escape(parameter.name)}(?!\w)", text)
        ]
        if missing:
            lines.append(f"{label} does not explain {', '.join(missing)}")
    return lines


def page(package: Any, part: str) -> str:
    """The Markdown of a module's page."""
    module = package[part]
    lines = [f"# {MODULES[part]}", "", f"`rflaf.{part}`", ""]
    if module.docstring:
        lines += [module.docstring.value, ""]
    for name in public_names(module):
        path = _attribute(package, part, name).path
        lines += [f"::: {path}", ""]
    return "\n".join(lines)


def on_config(config: Any) -> Any:
    pages = [{MODULES[part]: f"api/{part}.md"} for part in MODULES]
    for section in config["nav"]:
        if "Reference" in section:
            section["Reference"] = [*section["Reference"], *pages]
    return config


def on_files(files: Any, config: Any) -> Any:
    package = load_package()
    lines = undocumented(package)
    if lines:
        raise PluginError("Public names that are not explained:\n  " + "\n  ".join(lines))
    for part in MODULES:
        files.append(File.generated(config, f"api/{part}.md", content=page(package, part)))
    for path in sorted((ROOT / "results").glob("*.png")):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links out of docs: figures are copied to the site, other files are named as they are."""

    def moved(found: re.Match[str]) -> str:
        text, path = found.groups()
        if path.startswith("results/"):
            return f"[{text}]({path})"
        return f"{text} (`{path}`)" if (ROOT / path).exists() else found[0]

    return re.sub(r"\[([^]]*)\]\(\.\./([^)]+)\)", moved, markdown)
