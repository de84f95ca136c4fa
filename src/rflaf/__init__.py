"""Random feature models that learn their activation function."""

from rflaf._version import __version__
from rflaf.activation import Activation

__all__ = ["Activation", "__version__"]
