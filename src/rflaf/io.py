"""Saving and loading models, without pickle.

A model file is a skops archive: a zip of arrays and a description of the objects that hold them.
The zip's comment names this format, the version of rflaf that wrote the file, and the digest of
everything before it. Loading looks at the names of all types first, and builds nothing unless each
of them is on a list: this package's own, those of scikit-learn that skops has vetted, and plain
NumPy and SciPy.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from rflaf._version import __version__
from rflaf.activation import Activation
from rflaf.bases import RBF, BSpline, Chebyshev, Fixed, Polynomial
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.estimators.regressor import PartialState
from rflaf.files import write_whole
from rflaf.fitting.classes import ClassEncoding
from rflaf.fitting.classification import ClassificationFit
from rflaf.fitting.growing import Growth
from rflaf.fitting.inputs import Bins, InputForm
from rflaf.fitting.judged import RegressionFit, TargetScale
from rflaf.fitting.learn import FittedLayer
from rflaf.fitting.members import FoldPlan, Member, Seat
from rflaf.fitting.noise import NoiseModel
from rflaf.solvers import NormalEquations
from rflaf.solvers.laplace import KnownWeights
from rflaf.tabular.model import TableModel

_FORMAT = 1
_MARK = b"rflaf model"
_COMMENT = re.compile(rb"rflaf model format=(\d+) version=(\S+) sha256=([0-9a-f]{64})")

# By name, never by package: a module's name lets in whatever that module happens to import, and
# skops calls what it is told to construct (scikit-learn's test helpers import `check_output`).
_OWN_TYPES = (
    Activation,
    BSpline,
    Chebyshev,
    ClassEncoding,
    ClassificationFit,
    FittedLayer,
    Fixed,
    FoldPlan,
    Growth,
    InputForm,
    KnownWeights,
    Member,
    NoiseModel,
    NormalEquations,
    PartialState,
    Polynomial,
    RBF,
    RFLAFClassifier,
    RFLAFRegressor,
    RandomFeatures,
    RegressionFit,
    Seat,
    Bins,
    TableModel,
    TargetScale,
)
_TRUSTED = {
    *(f"{own.__module__}.{own.__qualname__}" for own in _OWN_TYPES),
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


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model, or a pipeline that contains one, to a file.

    The file appears whole or not at all: it is written under another name in the same folder and
    then renamed.

    Parameters
    ----------
    model : estimator or Activation
        Fitted or not. Everything in it must be of a type that `load` trusts.
    path : str or path
        By custom it ends in ".skops". A file that is there is replaced.

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
    """
    skops = require_skops()
    name = type(model).__name__
    try:
        data = _packed(skops.dumps(model))
        untrusted = skops.get_untrusted_types(data=data)
    except Exception as error:  # skops raises what the object at hand made it raise
        raise ValueError(f"This {name} cannot be saved: {error}") from error
    foreign = _foreign(untrusted)
    if foreign:
        raise ValueError(
            f"This {name} cannot be saved, because 'load' would not trust what it contains: "
            f"{', '.join(foreign)}."
        )
    write_whole(path, _signed(data))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` has written. No code from the file is run.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    ValueError
        If the file is not one of `save`'s, is damaged, was changed since, was written by a later
        version in a format that this one does not know, or contains a type outside this package,
        scikit-learn, NumPy and SciPy.

    Notes
    -----
    The digest in the file finds damage and edits. It is no signature: who writes a file anew can
    write its digest too, and so choose the model's numbers, but not what code runs on loading.
    """
    skops = require_skops()
    path = Path(path)
    data, version = _unsigned(path, path.read_bytes())
    try:
        foreign = _foreign(skops.get_untrusted_types(data=data))
    except Exception as error:  # whatever broken JSON, arrays or nesting lead to
        raise _damaged(path, version, error) from error
    if foreign:
        raise ValueError(
            f"'{path}' contains types that are not trusted, and was not loaded: "
            f"{', '.join(foreign)}."
        )
    try:
        return skops.loads(data, trusted=sorted(_TRUSTED))
    except Exception as error:
        raise _damaged(path, version, error) from error


def require_skops() -> Any:
    """The module that reads and writes the archives, or an error that says what to install."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "Saving and loading models needs skops: pip install 'rflaf[io]'."
        ) from error
    return skops.io


def _foreign(types: list[str]) -> list[str]:
    return sorted(set(types) - _TRUSTED)


def _packed(data: bytes) -> bytes:
    """The zip file with its description, long and much the same all over, compressed."""
    buffer = BytesIO()
    with ZipFile(BytesIO(data)) as given, ZipFile(buffer, "w") as packed:
        for entry in given.infolist():
            method = ZIP_DEFLATED if entry.filename.endswith(".json") else ZIP_STORED
            packed.writestr(entry, given.read(entry), method)
    return buffer.getvalue()


def _signed(data: bytes) -> bytes:
    """The zip file with the comment; a zip ends with its comment's length, and the comment."""
    body = data[:-2]
    digest = hashlib.sha256(body).hexdigest()
    comment = b"%s format=%d version=%s sha256=%s" % (
        _MARK,
        _FORMAT,
        __version__.encode(),
        digest.encode(),
    )
    return body + struct.pack("<H", len(comment)) + comment


def _unsigned(path: Path, signed: bytes) -> tuple[bytes, str]:
    """The zip file without its comment, and the version that wrote it."""
    start = signed.rfind(_MARK, -300)
    found = _COMMENT.fullmatch(signed[start:]) if start >= 2 else None
    if found is None:
        raise ValueError(
            f"'{path}' is not a model file of rflaf, or its end is missing. Expected what "
            "rflaf.save writes."
        )
    version = found[2].decode(errors="replace")
    if int(found[1]) != _FORMAT:
        raise ValueError(
            f"'{path}' was written by rflaf {version} in format {int(found[1])}. This is rflaf "
            f"{__version__}, which reads format {_FORMAT}."
        )
    body = signed[: start - 2]
    if hashlib.sha256(body).hexdigest().encode() != found[3]:
        raise ValueError(
            f"'{path}' is damaged, or was changed after rflaf {version} wrote it: its digest does "
            "not match."
        )
    return body + b"\0\0", version


def _damaged(path: Path, version: str, error: Exception) -> ValueError:
    return ValueError(
        f"'{path}', written by rflaf {version}, cannot be read by rflaf {__version__}: "
        f"{type(error).__name__}: {error}"
    )
