"""Downloads: pooch checks and places the file, and what is here continues a broken transfer."""

from __future__ import annotations

import contextlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rflaf.datasets.types import File

_TIMEOUT = 20.0  # seconds without a byte
_BLOCK = 1 << 16


class DownloadFailed(OSError):
    """None of the addresses gave the file; the message has a reason for each."""


def download(file: File, folder: Path, progress: bool) -> Path:
    """Fetch a file from the first of its addresses that gives it, whole and with its digest.

    The transfer goes to a file ending in ".part", which a later call continues where the server can
    do that. One process at a time downloads a file; the others wait, and find it there.
    """
    try:
        import pooch
        from filelock import FileLock
        from tqdm.auto import tqdm
    except ImportError as error:
        raise DownloadFailed("downloading needs pooch: pip install 'rflaf[data]'") from error
    pooch.get_logger().setLevel("WARNING")  # the progress bar shows the same, if it is wanted
    path = folder / file.path
    bar = partial(tqdm, desc=path.name, unit="B", unit_scale=True, disable=not progress)
    reasons = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            for url in file.urls:
                if path.is_file():
                    break
                try:
                    pooch.retrieve(
                        url,
                        known_hash=file.sha256 and f"sha256:{file.sha256}",
                        fname=path.name,
                        path=path.parent,
                        downloader=_Resuming(path.with_name(f"{path.name}.part"), bar),
                    )
                except (OSError, ValueError, http.client.HTTPException) as error:
                    reasons.append(f"{url}: {error}")
    except OSError as error:
        reasons.append(str(error))
    if not path.is_file():
        raise DownloadFailed("; ".join(reasons))
    return path


class _Resuming:
    """A downloader for pooch that continues a .part file.

    Only a server that names its version of the file (ETag, or the time of its last change) is asked
    to continue, and only if that version is still the same: two versions are never joined.
    """

    def __init__(self, part: Path, bar: Callable[..., Any]) -> None:
        self.part, self.bar = part, bar
        self.version = part.with_name(f"{part.name}.version")

    def __call__(self, url: str, output_file: str, _: Any) -> None:
        have = self._have(url)
        headers = {"User-Agent": "rflaf", "Accept-Encoding": "identity"}
        if have:
            version = self.version.read_text().partition("\n")[2]
            headers |= {"Range": f"bytes={have}-", "If-Range": version}
        request = urllib.request.Request(url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
                self._receive(url, response, have if response.status == 206 else 0)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # nothing beyond what is there: start over next time
                self._discard()
            raise
        os.replace(self.part, output_file)
        self._discard()

    def _have(self, url: str) -> int:
        """Bytes of this address that are there from an earlier call."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if self.version.read_text().partition("\n")[0] == url:
                return self.part.stat().st_size
        return 0

    def _receive(self, url: str, response: http.client.HTTPResponse, have: int) -> None:
        if have and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            self._discard()
            raise OSError("the server continued at another place")
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        if not have:
            self._discard()
            version = response.headers.get("ETag") or response.headers.get("Last-Modified")
            if version and not version.startswith("W/"):
                self.version.write_text(f"{url}\n{version}")
        bar = self.bar(initial=have, total=total)
        with open(self.part, "ab" if have else "wb") as file, bar:
            while block := response.read(_BLOCK):
                file.write(block)
                bar.update(len(block))
            size = file.tell()
        if total is not None and size != total:
            raise OSError(f"the connection ended after {size} of {total} bytes")

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.version.unlink(missing_ok=True)
