"""PyTorch: a learnable activation for any network, the paper's networks, and their training."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("rflaf.nn needs PyTorch: pip install 'rflaf[torch]'.") from error

from rflaf.nn.activation import LearnableActivation

__all__ = ["LearnableActivation"]
