"""Tables of the paper and for demonstrations: found or downloaded, checked, and read once."""

from rflaf.datasets.loading import fetch, info, load, names
from rflaf.datasets.types import DataNotAvailable, Dataset, File, Info

__all__ = ["DataNotAvailable", "Dataset", "File", "Info", "fetch", "info", "load", "names"]
