"""Folders of their own for every test, and small files in the exact format of each set."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rflaf.datasets import sets


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """RFLAF_DATA, with RFLAF_CACHE beside it; both start empty."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("RFLAF_DATA", str(folder))
    monkeypatch.setenv("RFLAF_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def no_download(monkeypatch):
    """A machine without a network."""

    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", refuse)


def zipped(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return out.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def idx(array) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def rows(table, header=None) -> bytes:
    lines = [] if header is None else [",".join(header)]
    lines += [",".join(repr(float(cell)) for cell in row) for row in table]
    return ("\n".join(lines) + "\n").encode()


def mnist_files(n=20) -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    files = {}
    for part, count in (("train", n), ("t10k", n // 2)):
        images = rng.integers(0, 256, (count, 28, 28))
        files[f"mnist/{part}-images-idx3-ubyte.gz"] = packed(idx(images))
        files[f"mnist/{part}-labels-idx1-ubyte.gz"] = packed(idx(rng.integers(0, 10, count)))
    return files


def cifar_batches(n=3) -> dict[str, bytes]:
    rng = np.random.default_rng(1)
    batches = {}
    for name in sets.CIFAR10:
        table = rng.integers(0, 256, (n, 3073)).astype(np.uint8)
        table[:, 0] %= 10
        batches[name] = table.tobytes()
    return batches


ADULT_LINES = [
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, <=50K",
    "50, Private, 83311, Bachelors, 13, Divorced, ?, Husband, White, Male, 0, 0, 13, ?, >50K",
    "38, Private, 215646, HS-grad, 9, Divorced, Sales, Not-in-family, Black, Female, 0, 0, 40,"
    " Cuba, <=50K",
    "52, ?, 209642, HS-grad, 9, Divorced, Sales, Husband, White, Male, 0, 7, 45, Cuba, >50K",
    "31, Private, 45781, Masters, 14, Divorced, Sales, Husband, White, Female, 9, 0, 50, ?, >50K",
]


def adult_file() -> bytes:
    return ("\n".join(ADULT_LINES) + "\n\n").encode()


def tables(n=25) -> dict[str, bytes]:
    """One file in the form of its public home for each set that is a table."""
    rng = np.random.default_rng(2)
    ct = rng.normal(size=(n, 386))
    ct[:, 7] = 0.25  # such columns are in the real set
    songs = np.hstack([rng.integers(1950, 2011, (n, 1)), rng.normal(size=(n, 90))])
    cover = np.hstack([rng.integers(0, 300, (n, 54)), rng.integers(1, 8, (n, 1))])
    cover_text = "\n".join(",".join(map(str, row)) for row in cover.tolist()) + "\n"
    masks = np.zeros((n, 10), int)
    masks[::5] = 1
    mask_text = "\n".join(",".join(map(str, row)) for row in masks.tolist()) + "\n"
    robot = rng.normal(size=(n, 9))
    bike = rng.normal(size=(n, 18))
    bike[:, 3] = 1.5
    return {
        "protein/CASP.csv": rows(rng.normal(size=(n, 10)), sets.CASP),
        "ct/slice_localization_data.zip": zipped("slice_localization_data.csv", rows(ct, sets.CT)),
        "millionsongs/YearPredictionMSD.txt.zip": zipped("YearPredictionMSD.txt", rows(songs)),
        "covtype/covtype.data.gz": packed(cover_text.encode()),
        "uci/kin40k.csv.gz": packed(rows(robot)),
        "uci/kin40k.mask.csv.gz": packed(mask_text.encode()),
        "uci/bike.csv.gz": packed(rows(bike)),
        "uci/bike.mask.csv.gz": packed(mask_text.encode()),
        "workloads/datasets.zip": zipped(
            "Datasets/Range-Queries-Aggregates.csv", workloads_text(rng.normal(size=(n, 7)))
        ),
        "adult/adult.data": adult_file(),
    }


def workloads_text(table) -> bytes:
    """Two duplicates but for their id, and three rows without a number, as pandas writes them."""
    lines = [",x,y,x_range,y_range,count,sum_,avg"]
    body = [",".join(map(repr, map(float, row))) for row in table]
    body += [body[0], body[3], "1.0,2.0,3.0,4.0,0.0,0.0,", "1.0,2.0,3.0,4.0,0.0,0.0,nan"]
    body += [",2.0,3.0,4.0,0.0,0.0,1.0"]
    lines += [f"{k},{line}" for k, line in enumerate(body)]
    return ("\n".join(lines) + "\n").encode()


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
