"""numba's cache on disk, where a damaged file is no reason to fail."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path

from numba.core.caching import FunctionCache

_said: set[str] = set()  # folders that a warning has named


@lru_cache(maxsize=1)
def _sources():
    """All files with compiled code, as they are now."""
    files = sorted(Path(__file__).parent.glob("jit*.py"))
    return tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)


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
