"""Memory that is used again once nobody looks at it.

The C library gives large arrays back to the system when they are freed, and the next step of
training pays for every page of them anew. Arrays that were made here are kept instead. A tensor
made of one holds a reference to it as long as its memory is in use, by whatever view, so the count
of references says when an array may be handed out again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor

_SMALLEST = 1 << 16  # bytes; the C library keeps what is smaller itself
_MOST = 1 << 28  # bytes that are kept
_ALIGNMENT = 64
_KEPT_ALONE = 2  # references to an array that nobody has: the list's, and that of the question

_lock = threading.Lock()
_kept: OrderedDict[int, list[Any]] = OrderedDict()  # arrays by size, the last used size last
_bytes = 0


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """As `torch.empty` on the CPU, in memory that may have served before."""
    count = 1
    for length in shape:
        count *= length
    size = count * dtype.itemsize
    if not _SMALLEST <= size <= _MOST:
        return torch.empty(shape, dtype=dtype)
    with _lock:
        memory = torch.from_numpy(_free_array(size))
    return memory.view(dtype).view(shape)


def _free_array(size: int) -> Any:
    global _bytes
    arrays = _kept.setdefault(size, [])
    _kept.move_to_end(size)
    for k in range(len(arrays)):
        if sys.getrefcount(arrays[k]) == _KEPT_ALONE:
            return arrays[k]
    array = _aligned(size)
    arrays.append(array)
    _bytes += size
    while _bytes > _MOST:  # what has not been asked for longest goes; its tensors keep theirs
        oldest, unused = next(iter(_kept.items()))
        _bytes -= oldest * len(unused)
        del _kept[oldest]
    return array


def _aligned(size: int) -> Any:
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]


def clear() -> None:
    """Forget all arrays; those in use stay with their tensors."""
    global _bytes
    with _lock:
        _kept.clear()
        _bytes = 0


def _forget_lock() -> None:
    """A thread of the parent may have held it as the process forked."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
