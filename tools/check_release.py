"""Install wheel and sdist in clean environments and run tests there.

    python tools/check_release.py dist tests/bases tests/fused ...

Every Python from 3.10 to 3.13 that can be run is used; it is an error if there is none. The
tests come from the sdist and run in a folder without the sources, so that what they import is what
was installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PYTHONS = ("python3.10", "python3.11", "python3.12", "python3.13")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def works(python: str) -> bool:
    """Whether it can be run: a name on the PATH may belong to a version that is not installed."""
    if not shutil.which(python):
        return False
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"Expected one {pattern} in {folder}. Found {len(found)}.")
    return found[0].resolve()


def unpack_tests(sdist: Path, folder: Path) -> Path:
    """The tests and the settings of pytest, without src, from an sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    root = next(folder.iterdir())
    place = folder / "without-sources"
    place.mkdir()
    shutil.copytree(root / "tests", place / "tests")
    shutil.copy(root / "pyproject.toml", place)
    return place


def check(python: str, package: Path, place: Path, tests: list[str]) -> None:
    print(f"== {package.name} with {python}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        own = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        install = (own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*install, f"rflaf[test] @ {package.as_uri()}")
        run(own, "-c", "import rflaf; print('rflaf', rflaf.__version__)", cwd=place)
        run(own, "-m", "pytest", "-q", "-n", "2", *tests, cwd=place)


def main(dist: Path, tests: list[str]) -> None:
    pythons = [python for python in PYTHONS if works(python)]
    if not pythons:
        raise SystemExit(f"None of {', '.join(PYTHONS)} can be run.")
    wheel, sdist = only(dist, "*.whl"), only(dist, "*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        place = unpack_tests(sdist, Path(folder))
        for python in pythons:
            for package in (wheel, sdist):
                check(python, package, place, tests)
    print(f"installed and tested with {', '.join(pythons)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
