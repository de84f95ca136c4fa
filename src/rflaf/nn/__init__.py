"""PyTorch: a learnable activation for any network, and the paper's networks.

Their training is the paper's, and lives with it: `train` is given from there.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("rflaf.nn needs PyTorch: pip install 'rflaf[torch]'.") from error

from rflaf.nn.kan import KAN
from rflaf.nn.learnable import LearnableActivation
from rflaf.nn.networks import LAN, MLP, RFLAF, RFMLP
from rflaf.nn.penalties import distance_from_start, second_variation, smoothness
from rflaf.nn.swapping import parameter_groups, swap_activations

if TYPE_CHECKING:
    from rflaf.paper.training import train

__all__ = [
    "KAN",
    "LAN",
    "MLP",
    "RFLAF",
    "RFMLP",
    "LearnableActivation",
    "distance_from_start",
    "parameter_groups",
    "second_variation",
    "smoothness",
    "swap_activations",
    "train",
]


def __getattr__(name: str) -> Any:
    # when first asked for: training imports the modules of this folder
    if name == "train":
        return import_module("rflaf.paper.training").train
    raise AttributeError(f"module 'rflaf.nn' has no attribute {name!r}")
