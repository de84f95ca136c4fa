"""numba's compiler and its cache on disk: neither Ctrl-C nor a damaged file does harm."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import Future
from functools import lru_cache, wraps
from pathlib import Path

# numba has no public names for these two: nothing else can make its cache forgiving, nor tell
# whether this thread is compiling. The bound on numba's version in pyproject.toml is for them.
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

_said: set[str] = set()  # folders that a warning has named


@lru_cache(maxsize=1)
def _sources():
    """All files with compiled code, as they are now."""
    files = sorted(Path(__file__).parent.glob("jit*.py"))
    return tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)


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


class ForgivingCache(FunctionCache):
    """The cache of a function, which is given up for the process once it cannot be read or written.

    A full disk or a killed process leaves files that end too soon, and numba raises whatever
    unpickling them does (EOFError, mostly) in every process that calls the function.
    """

    def _index_key(self, sig, codegen):
        """numba looks at the file of a function alone; what that calls is compiled into it."""
        return *super()._index_key(sig, codegen), _sources()

    def load_overload(self, sig, target_context):
        """What was compiled before, or None: then numba compiles anew."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # pickle raises what the bytes at hand made it raise
            self._give_up("read", error)
            return None

    def save_overload(self, sig, data):
        """Keep what was compiled, if that can be done."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # no space left, or an index that cannot be read
            self._give_up("written", error)

    def _give_up(self, what, error):
        self.disable()
        if self.cache_path in _said:
            return
        _said.add(self.cache_path)
        warnings.warn(
            f"The cache of compiled code in {self.cache_path!r} cannot be {what} "
            f"({type(error).__name__}: {error}). The code is compiled anew in every process, which "
            "takes some seconds, until that folder is deleted.",
            RuntimeWarning,
            stacklevel=2,
        )
