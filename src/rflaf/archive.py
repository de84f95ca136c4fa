"""What a model file may be made of, seen before anything is built from it.

A model file is a zip with a description, `schema.json`, and the arrays that it names. Whoever
writes one may lie in it: a few kilobytes that unpack to gigabytes, entries that overlap, arrays of
other sizes than their headers tell, an object that contains itself many times over. All of that is
found here, in time and memory that grow with the file's own size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

DESCRIPTION = "schema.json"
MOST_NODES = 100_000  # objects in one file; building them takes some seconds, and 10 kB each
_MOST_DEEP = 100  # objects in one another; a model has about ten
# skops' own for models; none that unpacks (sparse matrices), or refers to objects by number alone
_LOADERS = {
    *("BytearrayNode", "BytesNode", "ConstructorFromReduceNode", "DTypeNode", "DefaultDictNode"),
    *("DictNode", "FunctionNode", "JsonNode", "ListNode", "LossNode", "MaskedArrayNode"),
    *("MethodNode", "NdArrayNode", "ObjectNode", "PartialNode", "RandomGeneratorNode"),
    *("RandomStateNode", "SetNode", "SliceNode", "TreeNode", "TupleNode"),
    *("TypeNode", "_DictWithDeprecatedKeysNode"),
}


class BadArchive(ValueError):
    """The file is not of the form that `save` writes."""


def stored(data: bytes, renamed: Mapping[str, tuple[str, str]] | None = None) -> bytes:
    """The zip uncompressed, its description without blanks and with types `renamed`."""
    buffer = BytesIO()
    with ZipFile(BytesIO(data)) as given, ZipFile(buffer, "w") as plain:
        for entry in given.infolist():
            content = given.read(entry)
            if entry.filename == DESCRIPTION:
                description = json.loads(content)
                _rename(description, renamed or {})
                content = json.dumps(description, separators=(",", ":")).encode()
            plain.writestr(ZipInfo(entry.filename), content, ZIP_STORED)
    return buffer.getvalue()


def _rename(value: Any, renamed: Mapping[str, tuple[str, str]]) -> None:
    if isinstance(value, dict):
        name = f"{value.get('__module__')}.{value.get('__class__')}"
        if name in renamed:
            value["__module__"], value["__class__"] = renamed[name]
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            _rename(each, renamed)


class Contents(NamedTuple):
    """The names of all types in a description, and of those whose constructor is called."""

    types: set[str]
    called: set[str]


def check_archive(data: bytes) -> Contents:
    """The types in the description; raises if the file is not of the form that `save` writes."""
    sizes = _check_entries(data)
    if DESCRIPTION not in sizes:
        raise BadArchive(f"it has no {DESCRIPTION}")
    with ZipFile(BytesIO(data)) as archive:
        description = json.loads(archive.read(DESCRIPTION))
    if not isinstance(description, dict):
        raise BadArchive("its description is not of an object")
    survey = _Survey(sizes)
    survey.count(description, 0)
    if survey.named > len(data):
        raise BadArchive("its description names the same arrays many times")
    return Contents(survey.types, survey.called)


def _check_entries(data: bytes) -> dict[str, int]:
    """The sizes of the entries, which together are no more than the file."""
    sizes: dict[str, int] = {}
    with ZipFile(BytesIO(data)) as archive:
        for entry in archive.infolist():
            name = entry.filename
            if entry.compress_type != ZIP_STORED or entry.file_size != entry.compress_size:
                raise BadArchive(f"its entry {name!r} is compressed, which 'save' never does")
            if entry.flag_bits & 1:
                raise BadArchive(f"its entry {name!r} is encrypted, which 'save' never does")
            if name in sizes:
                raise BadArchive(f"it has two entries {name!r}")
            sizes[name] = entry.file_size
        if sum(sizes.values()) > len(data):
            raise BadArchive("its entries are larger than the file")
        for name in sizes:
            if name != DESCRIPTION and not name.endswith(".bin"):
                _check_array(name, archive.read(name))
    return sizes


def _check_array(name: str, content: bytes) -> None:
    """An array is as large as its header says, and holds no objects."""
    file = BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise BadArchive(f"its array {name!r} is in version {version} of NumPy's format")
    count = math.prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or count > len(content):
        raise BadArchive(f"its array {name!r} is not one of numbers or strings of its size")
    if count * dtype.itemsize != len(content) - file.tell():
        raise BadArchive(f"its array {name!r} is not as large as its header says")


class _Survey:
    """What a description contains.

    skops builds one object per number (`__id__`), but its audit visits the object wherever the
    number occurs: twenty nested lists, each ten times the one before, would take for ever. `save`
    writes every object out wherever it occurs. Hence this rule: equal numbers have equally many
    objects inside. Then nothing contains itself, and the audit visits no more than is written.
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self.types: set[str] = set()
        self.called: set[str] = set()
        self.named = 0  # bytes of entries, counted each time they are read
        self._sizes = sizes
        self._nodes = 0
        self._inside: dict[int, int] = {}
        self._read: set[tuple[Any, str]] = set()

    def count(self, value: Any, depth: int) -> int:
        """How many objects there are in a part of the description."""
        if isinstance(value, list):
            return sum(self.count(each, depth) for each in value)
        if not isinstance(value, dict):
            return 0
        if "__loader__" not in value and "__id__" not in value:
            return sum(self.count(each, depth) for each in value.values())
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise BadArchive(f"it describes more than {MOST_NODES} objects")
        if depth > _MOST_DEEP:
            raise BadArchive(f"it has objects in objects, more than {_MOST_DEEP} deep")
        self._look_at(value)
        found = 1 + sum(self.count(each, depth + 1) for each in value.values())
        number = value.get("__id__")
        if number is None:
            self.named += self._sizes.get(str(value.get("file")), 0)
            return found
        if type(number) is not int:
            raise BadArchive(f"it gives an object the number {number!r:.50}")
        if self._inside.setdefault(number, found) != found:
            raise BadArchive(f"it has different objects with the number {number}")
        if "file" in value and (number, str(value["file"])) not in self._read:
            self._read.add((number, str(value["file"])))
            self.named += self._sizes.get(str(value["file"]), 0)
        return found

    def _look_at(self, node: dict[str, Any]) -> None:
        loader, module, kind = (node.get(key) for key in ("__loader__", "__module__", "__class__"))
        if not isinstance(module, str) or not isinstance(kind, str):
            raise BadArchive("it has an object without a type")
        if loader not in _LOADERS:
            raise BadArchive(f"it has an object to be made by {loader!r:.50}")
        if (module, kind) == ("numpy", "void"):  # whose argument is a size
            raise BadArchive("it has an object of the type numpy.void")
        self.types.add(f"{module}.{kind}")
        if loader not in ("ObjectNode", "TypeNode", "MethodNode"):
            self.called.add(f"{module}.{kind}")
