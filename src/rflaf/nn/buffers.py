"""Memory that is used again once nobody looks at it.

The C library gives large arrays back to the system when they are freed, and the next step of
training pays for every page of them anew. Arrays that were made here are kept instead. A tensor
made of one holds a reference to it as long as its memory is in use, by whatever view, so the count
of references says when an array may be handed out again.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from typing import Any

import torch
from torch import Tensor

_SMALLEST = 1 << 16  # bytes; the C library keeps what is smaller itself
_MOST = 1 << 28  # bytes that are kept
_KEPT_ALONE = 2  # references to a free array: the list's, and getrefcount's argument

_lock = threading.Lock()
_kept: list[Any] = []  # arrays of bytes, the most recently used last


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """As `torch.empty` on the CPU, in memory that may have served before."""
    size = math.prod(shape) * dtype.itemsize
    if not _SMALLEST <= size <= _MOST:
        return torch.empty(shape, dtype=dtype, device="cpu")
    with _lock:
        memory = torch.from_numpy(_free_array(size))
    return memory.view(dtype).view(shape)


def _free_array(size: int) -> Any:
    for k in range(len(_kept)):
        if len(_kept[k]) == size and sys.getrefcount(_kept[k]) == _KEPT_ALONE:
            _kept.append(_kept.pop(k))
            return _kept[-1]
    _kept.append(torch.empty(size, dtype=torch.uint8, device="cpu").numpy())
    while sum(map(len, _kept)) > _MOST:  # the least recently used; tensors in use keep it
        del _kept[0]
    return _kept[-1]


def _forget_lock() -> None:
    """A thread of the parent may have held it as the process forked."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
