"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write all of the data under this name, or leave what was there before.

    The data goes to another name in the same folder first, which is then renamed. A symbolic link
    stays one: the file that it points to is replaced. Devices and pipes are written to as they are.
    Every OSError has the path, a full disk's too.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rflaf.runtime.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "note.txt", b"done")
    ...     (Path(folder) / "note.txt").read_text()
    'done'
    """
    path = Path(path)
    if not path.name:
        raise ValueError(f"'path' must name a file. Got {str(path)!r}.")
    target = link_target(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        if target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if path.exists() and not path.is_file():  # renaming would put a file in place of /dev/null
            path.write_bytes(data)
            return
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        end = None if target is path else str(target)
        raise OSError(error.errno, error.strerror, str(path), None, end) from error


def link_target(path: Path) -> Path:
    """The file that a symbolic link points to, whether it is there or not; other paths as given."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path
