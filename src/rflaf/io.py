"""Saving and loading models, without pickle.

A model file is a skops archive: a zip of arrays and a description of the objects that hold them.
The zip's comment names this format, the version of rflaf that wrote the file, and the digest of
everything before it. Loading looks at the form of the file first (`archive`), then at the names of
all types, and builds nothing unless each of them is on a list: this package's own, those of
scikit-learn that skops has vetted, plain NumPy and SciPy, and what the caller names as trusted.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from pickle import PicklingError
from tokenize import TokenError
from types import ModuleType
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

from sklearn.base import BaseEstimator

from rflaf._version import __version__
from rflaf.activation import Activation
from rflaf.archive import BadArchive, check_archive, stored
from rflaf.bases import LEARNABLE_BASES, Basis, Continued, Fixed
from rflaf.distributions import ErrorShape
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.estimators.partial import PartialState
from rflaf.fitting import Fit, Online
from rflaf.fitting.folds import Folds
from rflaf.fitting.layers import FittedLayer
from rflaf.fitting.local import Local
from rflaf.fitting.members import Member
from rflaf.fitting.monotone import Axis, Monotone
from rflaf.fitting.outside import Outside
from rflaf.fitting.spread import Spread
from rflaf.fused import Bins
from rflaf.inputs.encoder import ColumnEncoder
from rflaf.inputs.forms import FORMS, Form
from rflaf.inputs.forms.ranked import RankCurves
from rflaf.inputs.parts import CodePart, DatePart, LevelPart, NumberPart
from rflaf.inputs.target_means import TargetMeans
from rflaf.inputs.text import TextPart
from rflaf.inputs.text_ridge import TextRidge
from rflaf.losses import LOSSES, Logistic, Loss
from rflaf.runtime.extras import needed
from rflaf.runtime.files import write_whole
from rflaf.solvers import NormalEquations
from rflaf.tabular.model import TableModel

_FORMAT = 7  # raise it when models get other parts, or parts another meaning
_MARK = b"rflaf model"
_COMMENT = re.compile(rb"rflaf model format=(\d+) version=(\S+) sha256=([0-9a-f]{64})")

# A file must contain one of these types, and be of one of these kinds as a whole
_MODEL_TYPES = (Activation, RFLAFClassifier, RFLAFRegressor, RandomFeatures, TableModel)
_KINDS = (Activation, BaseEstimator, TableModel)
# By name, never by package: a module's name lets in whatever that module happens to import, and
# skops calls what it is told to construct (scikit-learn's test helpers import `check_output`).
_OWN_TYPES: tuple[type, ...] = (
    *_MODEL_TYPES,
    *(Fit, Folds, FittedLayer, Member, Local, Outside, Monotone, Axis, Spread, ErrorShape),
    *(Online, PartialState, NormalEquations),
    *(ColumnEncoder, NumberPart, LevelPart, CodePart, DatePart, TextPart, TextRidge),
    TargetMeans,
    *(Bins, RankCurves, *FORMS.values()),
    *(Continued, Fixed),
    *(kind for kind in LEARNABLE_BASES.values() if isinstance(kind, type)),
    Logistic,
    *LOSSES.values(),
)
_OWN_NAMES = {f"{own.__module__}.{own.__qualname__}": own for own in _OWN_TYPES}
# skops fills in the attributes of all others; their constructors may take any amount of memory
_NEVER_CALLED = {name for name, own in _OWN_NAMES.items() if own is not Activation}
# Names that skops is told to trust: all types that files of this package may contain
TRUSTED = {
    *_OWN_NAMES,
    # what fitted pipelines and searches hold besides the estimators, which skops trusts itself
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.utils._bunch.Bunch",
}
_MODELS = {name for name, own in _OWN_NAMES.items() if own in _MODEL_TYPES}
# What skops, NumPy and zipfile raise for what they can neither write nor read. Anything else is not
# about the model or the file, and is passed on: what a signal handler raises, too little memory.
_REFUSALS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError),
    *(NotImplementedError, RecursionError, SyntaxError, TypeError, ValueError),
    *(BadZipFile, PicklingError, TokenError, struct.error, zlib.error),
)
# skops asks scikit-learn for all of its estimators, which imports all of its packages. These have
# none, but import torch and dask where they are installed, which take more memory than a model.
_NOT_NEEDED = [f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch")]
# What users may write themselves, and name in `trusted`
_OPEN_KINDS = (Basis, Form, Loss)


def save(model: Any, path: str | os.PathLike[str], *, trusted: Iterable[type] = ()) -> None:
    """Write a model, or a pipeline that contains one, to a file.

    The file is written under another name in the same folder and then renamed, so that it is never
    incomplete.

    Parameters
    ----------
    model : estimator or Activation
        Fitted or not. Everything in it must be of a type that `load` trusts.
    path : str or path
        Usually ends in ".skops"; overwritten if it exists.
    trusted : list of types
        Your own subclasses of Basis, Form or Loss that the model may contain. Pass them to `load`
        too.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from rflaf import RandomFeatures
    >>> from rflaf.io import load, save
    >>> X = np.arange(12.0).reshape(4, 3)
    >>> model = RandomFeatures(5, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.skops")
    ...     same = load(Path(folder) / "model.skops")
    >>> bool((same.transform(X) == model.transform(X)).all())
    True

    With a basis of your own:

    >>> from rflaf import Activation
    >>> from rflaf.bases import Basis
    >>> class Waves(Basis):
    ...     n, low, high, tail = 2, -2.0, 2.0, "constant"
    ...
    ...     def functions(self, z, order=0):
    ...         yield np.cos(z) if order else np.sin(z)
    ...         yield -np.sin(z) if order else np.cos(z)
    >>> sigma = Activation(Waves(), [1.0, 0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(sigma, Path(folder) / "sigma.skops", trusted=[Waves])
    ...     same = load(Path(folder) / "sigma.skops", trusted=[Waves])
    >>> same == sigma
    True
    """
    skops = require_skops()
    name, given = type(model).__name__, _named(trusted)
    try:
        data = stored(skops.dumps(model))
        found = check_archive(data)
        untrusted = skops.get_untrusted_types(data=data)
    except _REFUSALS as error:
        raise ValueError(f"This {name} cannot be saved: {error}") from error
    foreign = _foreign(untrusted, given)
    if foreign:
        raise ValueError(
            f"This {name} cannot be saved, because 'load' would not trust what it contains: "
            f"{', '.join(foreign)}. {_HINT}"
        )
    own = {each: given[each] for each in given.keys() & found.types}
    if found.called & own.keys():
        raise ValueError(
            f"This {name} cannot be saved, because loading would call the constructor of "
            f"{', '.join(sorted(found.called & own.keys()))}, which has a __reduce__ of its own."
        )
    if own:  # of types that nobody has tried yet
        try:
            _built(skops, data, own)
        except _REFUSALS as error:
            raise ValueError(f"This {name} cannot be saved: {error}") from error
    if not (found.types & _MODELS and isinstance(model, _KINDS)):
        raise ValueError(
            "The 'model' must be an estimator or an Activation of rflaf, or contain one. Got a "
            f"{name} instead."
        )
    write_whole(path, _signed(data))


def load(path: str | os.PathLike[str], *, trusted: Iterable[type] = ()) -> Any:
    """Read a model written by `save`. No code from the file is run.

    Parameters
    ----------
    path : str or path
    trusted : list of types
        Your own subclasses of Basis, Form or Loss that the file may contain (see the example of
        `save`). The file has their full names; the types passed here are built, without a call of
        their constructors.

    Raises
    ------
    ValueError
        If the file was not written by `save`, is damaged or edited, has a format that this version
        cannot read, contains a type outside this package, scikit-learn, NumPy, SciPy and `trusted`,
        or contains no model of this package.

    Notes
    -----
    The contents are checked before anything is built, in time and memory proportional to the size
    of the file: entries are not compressed, arrays have the size they declare, and no object
    contains itself.

    The digest in the file detects damage and accidental edits. It is not a signature: somebody who
    rewrites a file can choose the model's numbers, but not what code runs on loading.
    """
    skops = require_skops()
    path, given = Path(path), _named(trusted)
    if not path.is_file() and path.exists():
        raise ValueError(f"'{path}' is not a file. Expected one written by rflaf.save.")
    data, version = _unsigned(path, path.read_bytes())
    try:
        found = check_archive(data)
        if found.called & (_NEVER_CALLED | given.keys()):
            raise BadArchive("it would call the constructor of a part of the model")
        foreign = _foreign(skops.get_untrusted_types(data=data), given)
    except _REFUSALS as error:
        raise _damaged(path, version, error) from error
    if foreign:
        raise ValueError(
            f"'{path}' contains types that are not trusted, and was not loaded: "
            f"{', '.join(foreign)}. {_HINT}"
        )
    if not found.types & _MODELS:
        raise _no_model(path, "no model")
    try:
        model = _built(skops, data, {each: given[each] for each in given.keys() & found.types})
    except _REFUSALS as error:
        raise _damaged(path, version, error) from error
    if not isinstance(model, _KINDS):
        raise _no_model(path, f"a {type(model).__name__}")
    return model


def require_skops() -> Any:
    """The module that reads and writes the archives, or an error that says what to install."""
    hidden = [name for name in _NOT_NEEDED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        return needed("skops.io", "Saving and loading models needs skops", "'rflaf[io]'")
    finally:
        for name in hidden:
            sys.modules.pop(name, None)


_HINT = "A basis, form or loss of your own is accepted if its class is in 'trusted'."


def _named(trusted: Iterable[type]) -> dict[str, type]:
    """Users' types by their names in files."""
    if not isinstance(trusted, Iterable):
        raise TypeError(f"'trusted' must be a list of types. Got {trusted!r}.")
    named: dict[str, type] = {}
    for each in trusted:
        if not isinstance(each, type) or not issubclass(each, _OPEN_KINDS):
            raise TypeError(
                f"'trusted' must have subclasses of Basis, Form or Loss only. Got {each!r}."
            )
        name = f"{each.__module__}.{each.__name__}"
        if named.setdefault(name, each) is not each:
            raise ValueError(f"'trusted' must have types of different names. Got two {name!r}.")
    return named


def _foreign(types: list[str], given: dict[str, type]) -> list[str]:
    return sorted(set(types) - TRUSTED - given.keys())


def _built(skops: Any, data: bytes, own: dict[str, type]) -> Any:
    """What a checked archive describes.

    skops imports types by name, which for `own` finds whatever now has that name, if anything. So a
    temporary module holds the types themselves.
    """
    if not own:
        return skops.loads(data, trusted=sorted(TRUSTED))
    home = ModuleType(f"rflaf_given_{uuid4().hex}")
    renamed = {}
    for number, (name, each) in enumerate(own.items()):
        renamed[name] = home.__name__, f"Type{number}"
        setattr(home, f"Type{number}", each)
    sys.modules[home.__name__] = home
    try:
        names = {".".join(pair) for pair in renamed.values()}
        return skops.loads(stored(data, renamed), trusted=sorted(TRUSTED | names))
    finally:
        del sys.modules[home.__name__]


def _signed(data: bytes) -> bytes:
    """The zip file with its comment; a zip ends with the comment's length and the comment."""
    body = data[:-2]
    digest = hashlib.sha256(body).hexdigest()
    comment = _MARK + f" format={_FORMAT} version={__version__} sha256={digest}".encode()
    return body + struct.pack("<H", len(comment)) + comment


def _unsigned(path: Path, signed: bytes) -> tuple[bytes, str]:
    """The zip file without its comment, and the version that wrote it."""
    start = signed.rfind(_MARK, -300)
    found = _COMMENT.fullmatch(signed[start:]) if start >= 2 else None
    if found is None:
        raise ValueError(
            f"'{path}' is not an rflaf model file, or it is truncated. Expected a file written by "
            "rflaf.save."
        )
    version = found[2].decode(errors="replace")
    form = int(found[1])
    if form != _FORMAT:
        earlier = form < _FORMAT
        advice = "Fit the model again." if earlier else f"Install rflaf {version} or later."
        raise ValueError(
            f"'{path}' was written by rflaf {version} in format {form}. This is rflaf "
            f"{__version__}, which reads format {_FORMAT}. {advice}"
        )
    body = signed[: start - 2]
    if hashlib.sha256(body).hexdigest().encode() != found[3]:
        raise ValueError(
            f"'{path}' is damaged, or was changed after rflaf {version} wrote it: its digest does "
            "not match."
        )
    return body + b"\0\0", version


def _no_model(path: Path, found: str) -> ValueError:
    return ValueError(
        f"'{path}' must contain an estimator or an Activation of rflaf. It has {found} instead."
    )


def _damaged(path: Path, version: str, error: Exception) -> ValueError:
    kind = "" if isinstance(error, BadArchive) else f"{type(error).__name__}: "
    return ValueError(
        f"'{path}', written by rflaf {version}, cannot be read by rflaf {__version__}: "
        f"{kind}{error}"
    )
