"""Files that are written whole, where they are written, and what is said if they cannot be."""

import errno
import os
import threading

import pytest

from rflaf.runtime.files import write_whole

links = pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and pipes")


def test_a_full_disk_is_named_with_the_path(tmp_path, full_disk):
    """write() and fsync() give an error without one."""
    path = tmp_path / "note.txt"
    path.write_bytes(b"before")
    with pytest.raises(OSError, match=r"No space left on device: '.*/note\.txt'$") as caught:
        write_whole(path, b"after")
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["note.txt"]


def test_errors_name_the_path_and_no_temporary_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "missing" / "x", tmp_path / "file" / "x", tmp_path):
        with pytest.raises(OSError, match=r"\[Errno") as caught:
            write_whole(path, b"data")
        assert caught.value.filename == str(path)
        assert str(caught.value).endswith(f": '{path}'")
    assert os.listdir(tmp_path) == ["file"]


@links
def test_a_symbolic_link_is_written_through(tmp_path, request):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "real").write_bytes(b"before")
    link, second, dangling = (tmp_path / name for name in ("link", "second", "dangling"))
    link.symlink_to("elsewhere/real")
    second.symlink_to(link)
    dangling.symlink_to(folder / "new")
    for path in (link, second, dangling):
        write_whole(path, path.name.encode())
        assert path.is_symlink()
        assert path.read_bytes() == path.name.encode()
    assert sorted(os.listdir(folder)) == ["new", "real"]
    assert not (folder / "real").is_symlink()
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match=r"'.*/link' -> '.*/elsewhere/real'$"):
        write_whole(link, b"after")
    assert link.read_bytes() == b"second"
    assert sorted(os.listdir(folder)) == ["new", "real"]


@links
def test_a_link_that_ends_nowhere_is_refused_and_stays(tmp_path):
    loop, lost = tmp_path / "loop", tmp_path / "lost"
    loop.symlink_to(loop)
    lost.symlink_to(tmp_path / "missing" / "file")
    for link, message in ((loop, "symbolic links"), (lost, "No such file or directory")):
        with pytest.raises(OSError, match=message) as caught:
            write_whole(link, b"data")
        assert caught.value.filename == str(link)
        assert link.is_symlink()


@links
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    """Nor is a device: root would put a file in place of /dev/null."""
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"data")
    reader.join(60)
    assert got == [b"data"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("path", ["", "."])
def test_a_file_must_have_a_name(path):
    with pytest.raises(ValueError, match=r"'path' must name a file\. Got '\.'"):
        write_whole(path, b"data")
