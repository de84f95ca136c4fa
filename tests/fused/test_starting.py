"""What starting up costs: imports, compiled code on disk, and the compiler itself."""

import ast
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import rflaf
from rflaf import fused
from rflaf.bases import RBF

SOURCE = Path(rflaf.__file__).parent


def run(code, tmp_path, **environment):
    paths = {"PYTHONPATH": str(SOURCE.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **paths, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_does_not_import_numba_or_extras(tmp_path):
    code = """
import sys, rflaf, rflaf.fused, rflaf.bases
print([m for m in ("numba", "torch", "matplotlib", "dask", "onnx") if m in sys.modules])
"""
    assert run(code, tmp_path) == "[]"


USE = """
import numpy as np
import rflaf
from rflaf import Activation, fused
from rflaf.bases import RBF
sigma = Activation(RBF(5), np.ones(5)).table()
fused.apply(sigma, np.zeros((2, 3), np.float32))
from rflaf.fused import jit
stats = jit.apply_rows.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
print(jit.apply_rows.stats.cache_path, rflaf.__file__)
"""


def test_the_second_process_finds_the_compiled_code(tmp_path):
    assert run(USE, tmp_path).startswith("0 1")
    assert run(USE, tmp_path).startswith("1 0")


def test_a_truncated_cache_is_noticed_and_left_alone(tmp_path):
    """As a full disk or a killed process leaves it: the code is compiled without the cache."""
    used = run(USE, tmp_path).splitlines()[1]
    folder = used.split()[0]
    listen = """
import warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
"""
    indented = "".join(f"    {line}\n" for line in USE.strip().splitlines())
    show = "print([str(w.message) for w in caught if 'cache of compiled' in str(w.message)])"
    for pattern, share in (("*.nbc", 0.5), ("*.nbi", 0)):  # the code, then the index too
        for file in Path(folder).glob(pattern):
            content = file.read_bytes()
            file.write_bytes(content[: int(share * len(content))])
        out = run(listen + indented + show, tmp_path).splitlines()
        assert out[:2] == ["0 1", used]
        messages = ast.literal_eval(out[2])
        assert len(messages) == 1  # though several kernels were to be read
        assert repr(folder) in messages[0]
        assert "until that folder is deleted" in messages[0]


@pytest.fixture
def open_folder():
    """One that other users may enter: pytest closes its own whenever another session begins."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_read_only_install_works(open_folder):
    """Where no folder can be written to, the kernels compile anew and run."""
    site = open_folder / "site"
    shutil.copytree(SOURCE, site / "rflaf", ignore=shutil.ignore_patterns("__pycache__"))
    for folder, _, _ in os.walk(site):
        os.chmod(folder, 0o555)
    # root may write everywhere, so it becomes somebody else, after all imports and a first
    # compilation: the interpreter's own files may be root's alone
    drop = "import os, numpy, scipy.sparse, sklearn.utils, joblib, numba\n"
    drop += "import concurrent.futures.thread\n"
    drop += "numba.njit(lambda z: z + 1)(1.0)\n"
    drop += "if os.getuid() == 0: os.setuid(65534)\n"
    nowhere = str(open_folder / "missing" / "home")
    out = run(
        drop + USE, open_folder, PYTHONPATH=str(site), NUMBA_CACHE_DIR="", HOME=nowhere,
        XDG_CACHE_HOME=nowhere,
    )  # fmt: skip
    assert out == f"0 1\nNone {site / 'rflaf' / '__init__.py'}"


def test_a_readout_works_in_another_process(tmp_path):
    """Addresses of functions are those of one process."""
    rng = np.random.default_rng(0)
    sigma = fused.basis_layout(RBF(9)).table(rng.standard_normal(9))
    w, x = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 20), (5, 3)))
    readout = fused.Readout(sigma, w, np.ones((20, 1), np.float32))
    expected = readout(x)
    (tmp_path / "it").write_bytes(pickle.dumps((readout, x, expected)))
    code = "import pickle, sys, numpy as np; r, x, y = pickle.load(open(sys.argv[1], 'rb'));"
    code += "np.testing.assert_array_equal(r(x), y)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "it")], check=False)
    assert done.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_does_not_leave_the_compiler_locked(ctrl_c, monkeypatch):
    """An interrupt as a lock of numba is given back would keep it: nothing could compile again."""
    from rflaf.fused import jit, jit_cache

    half = jit.compiled(lambda x: x / 2)
    loaded = threading.Event()

    def load(cache, signature, context):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)  # the main thread would be interrupted here, inside the lock
        loaded.set()

    monkeypatch.setattr(jit_cache.ForgivingCache, "load_overload", load)
    with pytest.raises(KeyboardInterrupt):
        half(3.0)
    assert loaded.wait(10)
    monkeypatch.undo()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(half, 3.0).result(60) == 1.5


def test_what_the_compiler_raises_is_raised():
    from numba.core.errors import TypingError

    from rflaf.fused import jit

    with pytest.raises(TypingError):
        jit.compiled(lambda x: x.nothing)(3.0)
