"""numba's compiler and its cache on disk: neither Ctrl-C nor a damaged file does harm."""

from __future__ import annotations

import sys
import threading
import warnings
from concurrent.futures import Future
from functools import lru_cache, wraps
from hashlib import sha256
from pathlib import Path

# numba has no public names for these: nothing else can make its cache forgiving, nor tell whether
# this thread is compiling. The bound on numba's version in pyproject.toml is for them.
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.compiler_lock import global_compiler_lock

_said: set[str] = set()  # folders that a warning has named, and "compiling"


@lru_cache(maxsize=1)
def _sources():
    """A hash of all files with compiled code. Their times would change in an image's layers."""
    files = sorted(Path(__file__).parent.glob("jit*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _say_compiling():
    """One line per process: the wait may be the first thing that a user sees."""
    if "compiling" not in _said:
        _said.add("compiling")
        print("rflaf: compiling kernels, once (some seconds)", file=sys.stderr, flush=True)


def uninterrupted(compile_for):
    """A dispatcher's `compile`, or the loading of what was compiled, away from the main thread.

    Ctrl-C raises an exception wherever the main thread is. The locks of numba and llvmlite are
    Python code: where it comes as one is taken or given back, the lock is never free again, and
    the next thread that wants a kernel waits for ever. What was begun is ended after Ctrl-C, too:
    a process leaves no earlier.
    """

    @wraps(compile_for)
    def compile_apart(signature):
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or global_compiler_lock.is_locked():  # held here: for a kernel that calls it
            return compile_for(signature)
        result = Future()

        def run():
            try:
                result.set_result(compile_for(signature))
            except BaseException as error:  # for the one who waits
                result.set_exception(error)

        threading.Thread(target=run, name="rflaf-compiler").start()
        return result.result()

    return compile_apart


def _readable(locator):
    """A locator that also takes a folder which can only be read, if something was kept there."""

    class Readable(locator):
        def ensure_cache_path(self):
            try:
                super().ensure_cache_path()
            except OSError:
                if not any(Path(self.get_cache_path()).glob("jit*.nbi")):
                    raise

    return Readable


class _Folders(CompileResultCacheImpl):
    """numba's choice of a folder, and those that can only be read, as in a container's image."""

    _locator_classes = [_readable(locator) for locator in CompileResultCacheImpl._locator_classes]  # noqa: RUF012


class NoCache(NullCache):
    """Where no folder can be written: says so once per process."""

    def load_overload(self, sig, target_context):
        """Nothing; numba compiles."""
        _say_compiling()
        _warn(
            "",
            "Compiled kernels cannot be cached, because no cache folder is writable: every process "
            "compiles them again, which takes some seconds. Set NUMBA_CACHE_DIR to a writable "
            "folder, and fill it with `python -m rflaf.fused`.",
        )


class ForgivingCache(FunctionCache):
    """The cache of a function, which goes on without files that cannot be read or written.

    A full disk or a killed process leaves files that end too soon, and numba raises whatever
    unpickling them does (EOFError, mostly) in every process that calls the function.
    """

    _impl_class = _Folders

    def _index_key(self, sig, codegen):
        """numba looks at the file of a function alone; what that calls is compiled into it."""
        return *super()._index_key(sig, codegen), _sources()

    def load_overload(self, sig, target_context):
        """What was compiled before, or None: then numba compiles anew."""
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # pickle raises what the bytes at hand made it raise
            self.disable()
            self._complain("read", error, "until that folder is deleted")
        if found is None:
            _say_compiling()
        return found

    def save_overload(self, sig, data):
        """Keep what was compiled, if that can be done."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # no space left, or an index that cannot be read
            self._complain("written", error, "until that folder can be written")

    def _complain(self, what, error, until):
        _warn(
            self.cache_path,
            f"The cache of compiled code in {self.cache_path!r} cannot be {what} "
            f"({type(error).__name__}: {error}). It is compiled again in every process, which "
            f"takes some seconds, {until}.",
        )


def _warn(folder, text):
    """Once per folder and process."""
    if folder not in _said:
        _said.add(folder)
        warnings.warn(text, RuntimeWarning, stacklevel=3)
