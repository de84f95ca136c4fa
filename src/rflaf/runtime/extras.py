"""Packages that only some parts need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, use: str, install: str) -> Any:
    """An optional module, or an error that says what it is for and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{use}: pip install {install}.") from error
