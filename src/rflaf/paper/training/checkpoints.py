"""The state of a run on disk."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rflaf.runtime.files import write_whole


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write the file whole or not at all, even if the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_whole(path, buffer.getvalue())


def load_checkpoint(path: Path, run: dict[str, Any]) -> dict[str, Any] | None:
    """The state in the file, or None without one; it must be of the same run."""
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        known: dict[str, Any] = dict(state["run"])
    except Exception as error:  # torch raises what the bytes at hand made it raise
        raise ValueError(
            f"The checkpoint {str(path)!r} is damaged ({type(error).__name__}). Remove it to begin "
            "the run anew."
        ) from error
    for name, value in run.items():
        if known.get(name) != value:
            raise ValueError(
                f"The checkpoint {str(path)!r} is of another run: its {name!r} is "
                f"{known.get(name)!r}. Expected {value!r}. Remove it, or give another path."
            )
    return state


def fingerprint(*tensors: Tensor | None) -> int:
    """A number that distinguishes one set of data from another."""
    code = 0
    for tensor in tensors:
        if tensor is not None:
            code = zlib.crc32(tensor.detach().cpu().contiguous().numpy().tobytes(), code)
    return code
