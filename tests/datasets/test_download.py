"""Downloads from a server on this machine: whole, continued, damaged, changed in between."""

import hashlib
import http.server
import threading
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from rflaf.datasets import DataNotAvailable, fetch, load, loading
from rflaf.datasets.catalogue import ENTRIES
from rflaf.datasets.download import DownloadFailed, download
from rflaf.datasets.types import File
from tests.datasets import conftest as make

pytest.importorskip("pooch")
CONTENT = np.random.default_rng(0).bytes(200_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Site:
    """What the server gives, and what it was asked."""

    content: bytes = CONTENT
    etag: str | None = '"1"'
    cut_after: int | None = None  # bytes after which the connection breaks
    ranges: bool = True
    asked: list = field(default_factory=list)  # the Range of each request
    address: str = ""


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    state = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            start = 0
            if wanted and state.ranges and self.headers.get("If-Range") == state.etag:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start and start >= len(state.content):
                self.send_error(416)
                return
            body = state.content[start:]
            self.send_response(206 if start else 200)
            if start:
                end = len(state.content)
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
            if state.etag:
                self.send_header("ETag", state.etag)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if state.cut_after is None else body[: state.cut_after])

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.address = f"http://127.0.0.1:{server.server_port}/file.bin"
        yield state
        server.shutdown()
        thread.join()


def wanted(site, sha256=DIGEST):
    return File("some/file.bin", (site.address,), sha256)


def left_over(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")


@pytest.mark.parametrize("sha256", [DIGEST, None])
def test_whole(site, tmp_path, sha256):
    path = download(wanted(site, sha256), tmp_path, progress=False)
    assert path == tmp_path / "some" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert left_over(tmp_path) == ["file.bin"]


def test_a_bar_is_shown(site, tmp_path, capsys):
    pytest.importorskip("tqdm")
    download(wanted(site), tmp_path, progress=True)
    assert "file.bin" in capsys.readouterr().err


def test_broken_transfer_is_continued(site, tmp_path):
    site.cut_after = 70_000
    with pytest.raises(DownloadFailed, match=r"70000 of 200000 bytes|IncompleteRead"):
        download(wanted(site), tmp_path, progress=False)
    assert "file.bin" not in left_over(tmp_path)
    site.cut_after = None
    assert download(wanted(site), tmp_path, progress=False).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=70000-"]
    assert left_over(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("how", ["changed", "no ranges", "no etag"])
def test_what_cannot_be_continued_starts_over(site, tmp_path, how):
    site.etag = None if how == "no etag" else site.etag
    site.cut_after = 70_000
    site.content = CONTENT[::-1] if how == "changed" else CONTENT
    with pytest.raises(DownloadFailed):
        download(wanted(site), tmp_path, progress=False)
    site.cut_after, site.content = None, CONTENT
    site.etag = '"2"' if how == "changed" else site.etag
    site.ranges = how != "no ranges"
    assert download(wanted(site), tmp_path, progress=False).read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_dropped(site, tmp_path):
    part = tmp_path / "some" / "file.bin.part"
    part.parent.mkdir()
    part.write_bytes(bytes(300_000))
    part.with_name("file.bin.part.version").write_text(f"{site.address}\n{site.etag}")
    with pytest.raises(DownloadFailed, match="416"):
        download(wanted(site), tmp_path, progress=False)
    assert download(wanted(site), tmp_path, progress=False).read_bytes() == CONTENT


def test_wrong_digest_leaves_nothing(site, tmp_path):
    site.content = CONTENT[:-1] + b"x"
    with pytest.raises(DownloadFailed, match="hash"):
        download(wanted(site), tmp_path, progress=False)
    assert left_over(tmp_path) == []


def test_second_address(site, tmp_path):
    file = replace(wanted(site), urls=("http://127.0.0.1:9/nothing", site.address))
    assert download(file, tmp_path, progress=False).read_bytes() == CONTENT


def test_two_at_once_download_once(site, tmp_path):
    threads = [
        threading.Thread(target=download, args=(wanted(site), tmp_path, False)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "some" / "file.bin").read_bytes() == CONTENT
    assert len(site.asked) == 1


def test_unwritable_folder(site, tmp_path):
    (tmp_path / "some").write_text("a file where a folder should be")
    with pytest.raises(DownloadFailed):
        download(wanted(site), tmp_path, progress=False)


@pytest.fixture
def protein_at(site, monkeypatch):
    """The registry's protein, with its file at this server."""
    site.content = make.tables()["protein/CASP.csv"]
    entry = ENTRIES["protein"]
    files = (replace(entry.info.files[0], urls=(site.address,)),)
    changed = replace(entry, info=replace(entry.info, files=files))
    monkeypatch.setitem(loading.ENTRIES, "protein", changed)
    return site


def test_load_downloads_once_and_outside_the_data_folder(protein_at, data_folder, tmp_path):
    first = load("protein")
    second = load("protein")
    np.testing.assert_array_equal(first.X, second.X)
    assert len(protein_at.asked) == 1
    assert list(data_folder.iterdir()) == []
    assert fetch("protein") == [tmp_path / "cache" / "files" / "protein" / "CASP.csv"]


def test_failed_download_says_all(protein_at, data_folder):
    protein_at.cut_after = 10
    with pytest.raises(DataNotAvailable, match=protein_at.address):
        fetch("protein", progress=False)
