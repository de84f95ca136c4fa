"""The paper's training: its networks by Adam on mini-batches, by either protocol."""

import rflaf.nn  # noqa: F401  # its error explains what to install if PyTorch is missing
from rflaf.paper.protocols import CORRECTED, PUBLISHED, Protocol
from rflaf.paper.training.history import EpochRecord, TrainingResult
from rflaf.paper.training.loop import train
from rflaf.paper.training.regularisers import regulariser
from rflaf.paper.training.splines import DefectiveBSpline, published_basis
from rflaf.paper.training.subsets import Data

__all__ = [
    "CORRECTED",
    "PUBLISHED",
    "Data",
    "DefectiveBSpline",
    "EpochRecord",
    "Protocol",
    "TrainingResult",
    "published_basis",
    "regulariser",
    "train",
]
