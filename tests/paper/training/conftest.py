"""Tests of the training need PyTorch; without it they are skipped."""

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20261115)


@pytest.fixture
def regression(generator):
    """A small task: 700 training and 200 test rows of a smooth function of two inputs."""
    X = torch.randn(900, 2, generator=generator) / 2
    y = torch.sin(3 * X[:, 0]) + X[:, 1] ** 2
    return X[:700], y[:700], X[700:], y[700:]
