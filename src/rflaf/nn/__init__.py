"""PyTorch: a learnable activation for any network, the paper's networks, and their training."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("rflaf.nn needs PyTorch: pip install 'rflaf[torch]'.") from error

from rflaf.nn.activation import LearnableActivation
from rflaf.nn.fit import AdamFit, fit_adam
from rflaf.nn.kan import KAN
from rflaf.nn.networks import LAN, MLP, RFLAF, RFMLP
from rflaf.nn.protocols import (
    CORRECTED,
    PUBLISHED,
    PUBLISHED_EPOCHS,
    PUBLISHED_SEEDS,
    Data,
    EpochRecord,
    Protocol,
    TrainingResult,
)
from rflaf.nn.published import DefectiveBSpline, published_basis
from rflaf.nn.regularisers import regulariser
from rflaf.nn.training import train

__all__ = [
    "CORRECTED",
    "KAN",
    "LAN",
    "MLP",
    "PUBLISHED",
    "PUBLISHED_EPOCHS",
    "PUBLISHED_SEEDS",
    "RFLAF",
    "RFMLP",
    "AdamFit",
    "Data",
    "DefectiveBSpline",
    "EpochRecord",
    "LearnableActivation",
    "Protocol",
    "TrainingResult",
    "fit_adam",
    "published_basis",
    "regulariser",
    "train",
]
