"""Tables from files and to files, and what is wrong with a table."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rflaf.runtime.extras import needed
from rflaf.runtime.files import link_target, write_whole

TABLES = (".csv", ".csv.gz", ".parquet")
SEPARATORS = (",", ";", "\t", "|")  # that are looked for, in this order
_LINES_LOOKED_AT = 100
# how text begins that spreadsheets run as a formula, unless it is a number with a sign
_FORMULA = re.compile(r"(?![-+][\d.,]+([eE][-+]?\d+)?\Z)[=+\-@\t\r\n]")
Missing = Sequence[str] | Mapping[str, Sequence[str]]


class TableError(ValueError):
    """A table that cannot be used; the `message` explains why.

    Attributes
    ----------
    columns : list of str
        The columns to drop to avoid the error; may be empty.
    """

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    missing: Missing = (),
    strings: Iterable[str] = (),
) -> Any:
    """A table from a file that ends in .csv, .csv.gz or .parquet.

    Parameters
    ----------
    path : str or path
    separator : str, optional
        Field separator of a CSV file. None: detected from the first lines (comma, semicolon, tab or
        bar). With semicolons, decimal commas are read, unless there are numbers with points.
    missing : sequence of str, or a dict of such by column
        Text that marks a missing value in a CSV file, in addition to "", "NA", "null" and the like.
    strings : names
        Columns of a CSV file to read as text, so that "01" stays "01".

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rflaf.tabular import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "some.csv"
    ...     _ = path.write_text("a,b\\n1,x\\n2,?\\n")
    ...     read_table(path, missing=["?"])["b"].isna().tolist()
    [False, True]
    """
    path = Path(path)
    ending = _ending(path, "read")
    if not path.is_file():
        raise TableError(f"There is no file '{path}'.")
    pandas()  # says what to install before anything else goes wrong
    if ending == ".parquet":
        table = _read_parquet(path)
    else:
        separator = None if separator is None else _checked_separator(separator)
        table = _read_csv(path, separator, missing, set(strings))
    if len(table) == 0:
        raise TableError(f"'{path}' has no rows.")
    return table


def write_table(table: Any, path: str | os.PathLike[str], *, raw_text: bool = False) -> None:
    """Write a DataFrame without its index, as CSV or Parquet by the name's ending.

    The file is complete or absent. In CSV files, text and names that begin with =, +, -, @, a tab
    or a line end are escaped with an apostrophe, so that spreadsheets do not run them as formulas;
    `raw_text` leaves them unchanged. Numbers are never changed.
    """
    path = Path(path)
    ending = check_output(path)
    if ending == ".parquet":
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        data = buffer.getvalue()
    else:
        table = table if raw_text else _without_formulas(table)
        data = table.to_csv(index=False, lineterminator="\n").encode()
        data = gzip.compress(data, mtime=0) if ending == ".csv.gz" else data
    write_whole(path, data)


def _without_formulas(table: Any) -> Any:
    def quoted(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value

    is_number = pandas().api.types.is_numeric_dtype
    columns = table.apply(lambda values: values if is_number(values) else values.map(quoted))
    return columns.rename(columns=quoted)


def check_output(
    path: str | os.PathLike[str],
    endings: Sequence[str] = TABLES,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> str:
    """The ending of a file's name, one of `endings`; an error if the file cannot be written.

    It is called before the work, so that no fit is lost to a wrong name. Files that are read for
    it, `inputs`, must not be replaced.
    """
    path = Path(path)
    for given in map(Path, inputs):
        if path.exists() and given.exists() and path.samefile(given):
            raise TableError(f"'{path}' is also the input; choose another output name.")
    ending = _ending(path, "written", endings)
    if path.is_dir():
        raise TableError(f"'{path}' is a folder. Expected the name of a file.")
    folder = link_target(path).parent
    if not folder.is_dir():
        raise TableError(f"There is no folder '{folder}' to write '{path.name}' to.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TableError(f"'{path.name}' cannot be written to '{folder}': no permission.")
    return ending


def _ending(path: Path, what: str, endings: Sequence[str] = TABLES) -> str:
    for ending in endings:
        if path.name.lower().endswith(ending):
            return ending
    raise TableError(
        f"'{path}' cannot be {what}: its name must end in {', '.join(endings[:-1])}"
        f"{' or ' if len(endings) > 1 else ''}{endings[-1]}."
    )


def _checked_separator(separator: str) -> str:
    """One character: pandas takes more for a regular expression, and none for whatever suits."""
    if separator == r"\t":  # as it comes from a shell
        return "\t"
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0':
        raise TableError(
            "The 'separator' (--sep) must be a single ASCII character, such as ',', ';' or a tab, "
            f"and no quote or line end. Got {separator!r} instead."
        )
    return separator


def _read_csv(path: Path, separator: str | None, missing: Missing, strings: set[str]) -> Any:
    pd = pandas()
    try:
        common = {**_dialect(path, separator), "encoding": "utf-8-sig"}
        head = pd.read_csv(
            path, header=None, nrows=1, dtype=str, keep_default_na=False, **common
        ).iloc[0]
        _check_names(path, [name for name in head if name])
        with warnings.catch_warnings():
            # a row that is longer than the header would shift or lose values
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                index_col=False,
                low_memory=False,
                na_values=dict(missing) if isinstance(missing, Mapping) else list(missing),
                dtype=dict.fromkeys(strings & set(head), str),
                **common,
            )
    except pd.errors.EmptyDataError as error:
        raise TableError(f"'{path}' is empty.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        reason = " ".join(str(error).split())
        raise TableError(f"'{path}' is not a regular CSV file: {reason}") from error
    except UnicodeDecodeError as error:
        raise TableError(f"'{path}' is not UTF-8 text: {error}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(f"'{path}' is not a complete gzip file: {error}") from error


def _dialect(path: Path, separator: str | None) -> dict[str, Any]:
    """The separator and the decimal point, by the first lines."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        text = "".join(itertools.islice(file, _LINES_LOOKED_AT))

    def fields(candidate: str) -> list[list[str]]:
        try:
            return [line for line in csv.reader(io.StringIO(text), delimiter=candidate) if line]
        except csv.Error:
            return []

    if separator is None:
        separator = ","
        for candidate in SEPARATORS:
            found = fields(candidate)[: _LINES_LOOKED_AT - 1]  # a last line may be cut off
            if found and {len(line) for line in found} == {len(found[0])} != {1}:
                separator = candidate
                break
    if separator != ";":
        return {"sep": separator, "decimal": "."}
    values = [value.strip() for line in fields(";")[1:] for value in line]
    comma = any(re.fullmatch(r"[-+]?\d+,\d+", value) for value in values)
    point = any(re.fullmatch(r"[-+]?\d+\.\d+", value) for value in values)
    return {"sep": separator, "decimal": "," if comma and not point else "."}


def _read_parquet(path: Path) -> Any:
    pd, pyarrow = pandas(), needed("pyarrow", "Parquet files need pyarrow", "'rflaf[parquet]'")
    try:
        table = pd.read_parquet(path, engine="pyarrow")
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise TableError(f"'{path}' is not a complete Parquet file: {error}") from error
    table.columns = table.columns.map(str)
    _check_names(path, list(table.columns))
    return table.reset_index(drop=True)


def _check_names(path: Path, names: Sequence[str]) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise TableError(f"'{path}' has several columns of the name {twice[0]!r}.")


def pandas() -> Any:
    return needed("pandas", "Tables need pandas", "'rflaf[cli]'")


def listed(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"
