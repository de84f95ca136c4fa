"""The public functions: names, info, fetch, load."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from rflaf.datasets import cache
from rflaf.datasets.catalogue import ENTRIES, Entry
from rflaf.datasets.download import DownloadFailed, download
from rflaf.datasets.readers import BadFile
from rflaf.datasets.types import DataNotAvailable, Dataset, File, Info

_WHOLE = 0.95  # of the published rows; some sets lose rows with missing values, or doubled ones
_ARRAYS_AS_THEY_ARE = {".bin", ".npy"}  # a copy of these would gain nothing


def names(available: bool | None = None) -> tuple[str, ...]:
    """Names of the data sets.

    Parameters
    ----------
    available : bool, optional
        True for those that can be loaded without a download, False for the others, None for all.

    Examples
    --------
    >>> from rflaf.datasets import names
    >>> names()[:3]
    ('mnist', 'cifar10', 'adult')
    >>> "friedman1" in names(available=True)
    True
    """
    if available is None:
        return tuple(ENTRIES)
    here = {name: all(map(_find, entry.info.files)) for name, entry in ENTRIES.items()}
    return tuple(name for name in ENTRIES if here[name] == available)


def info(name: str) -> Info:
    """What is known about the data set `name` without reading it.

    Examples
    --------
    >>> from rflaf.datasets import info
    >>> info("protein").n_inputs, info("protein").task
    (9, 'regression')
    """
    return _entry(name).info


def fetch(name: str, progress: bool = True) -> list[Path]:
    """Locate the files of a data set, or download them to the cache folder.

    Parameters
    ----------
    name : str
    progress : bool
        Show a bar while downloading (tqdm).

    Returns
    -------
    paths : list of Path
        Empty for sets that are generated or ship with scikit-learn.

    Raises
    ------
    DataNotAvailable
        If a file is missing and cannot be downloaded.

    Examples
    --------
    >>> from rflaf.datasets import fetch
    >>> fetch("iris")
    []
    """
    found = (_have(name, file, progress)[0] for file in _entry(name).info.files)
    return list(dict.fromkeys(found))


def load(name: str, *, progress: bool = False) -> Dataset:
    """Load a data set; `rflaf.paper.load_split` also splits and scales it as the paper does.

    Parameters
    ----------
    name : str
        One of `names()`.
    progress : bool
        Show a bar if files must be downloaded.

    Raises
    ------
    DataNotAvailable
        If a file is missing and cannot be downloaded.
    ValueError
        If a file is damaged or has unexpected contents, or for an unknown name.

    Examples
    --------
    >>> from rflaf.datasets import load
    >>> data = load("iris")
    >>> data.X.shape, data.y.shape, data.feature_names[0]
    ((150, 4), (150,), 'sepal length (cm)')
    """
    entry = _entry(name)
    if not entry.info.files:
        return entry.read(())
    found = [_have(name, file, progress) for file in entry.info.files]
    paths = tuple(path for path, _ in found)

    def build() -> Dataset:
        for path, form in dict(found).items():
            # another size is another edition, which is read for what it is
            known = form.sha256 is not None and path.stat().st_size == form.bytes
            if known and cache.sha256(path) != form.sha256:
                raise BadFile(path, "damaged (its size is right, but its SHA-256 is not).")
        return entry.read(paths)

    state = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    plain = all(path.suffix in _ARRAYS_AS_THEY_ARE for path in paths)
    columns = build() if plain else cache.kept(name, str(state), build)
    rows, published = len(columns.y), entry.info.n_rows
    # a text file that ends early at the end of a line reads like a whole table
    if published is not None and rows < _WHOLE * published:
        warnings.warn(
            f"'{paths[0]}' has {rows:,} rows; the published data set has {published:,}. "
            "If the file is truncated, delete it and load it again.",
            UserWarning,
            stacklevel=2,
        )
    return columns


def _entry(name: str) -> Entry:
    if name not in ENTRIES:
        raise ValueError(
            f"The 'name' of a data set must be one of {', '.join(ENTRIES)}. Got {name!r} instead."
        )
    return ENTRIES[name]


def _have(name: str, file: File, progress: bool) -> tuple[Path, File]:
    found = _find(file)
    if found is not None:
        return found
    form = next((form for form in (file, *file.variants) if form.urls), None)
    if form is None:
        raise _missing(name, file, "it is not offered for download")
    try:
        return download(form, cache.cache_folder() / "files", progress), form
    except DownloadFailed as error:
        raise _missing(name, file, f"no download ({error})") from error


def _candidates(file: File) -> list[tuple[Path, File]]:
    """Each place where a file, or one of its other forms, may be, the best first."""
    named = [part for part in os.environ.get("RFLAF_DATA", "").split(os.pathsep) if part.strip()]
    folders = [*(Path(part).expanduser() for part in named), cache.cache_folder() / "files"]
    return [(folder / form.path, form) for folder in folders for form in (file, *file.variants)]


def _find(file: File) -> tuple[Path, File] | None:
    """The first place where the file is, and in which form."""
    return next(((path, form) for path, form in _candidates(file) if path.is_file()), None)


def _missing(name: str, file: File, reason: str) -> DataNotAvailable:
    places = "".join(f"\n  {path}" for path, _ in _candidates(file))
    offers = "".join(
        f"\nDownload {url} to '{form.path}' in a folder, and set RFLAF_DATA to that folder."
        for form in (file, *file.variants)
        for url in form.urls
    )
    return DataNotAvailable(
        f"The data set '{name}' needs the file '{file.path}': {reason}. It was looked for at"
        f"{places}{offers}\nAbout the data: {ENTRIES[name].info.source}"
    )
