"""A learnable activation in the place of nn.ReLU: python examples/drop_in_activation.py

The target wiggles more than a small ReLU network can follow. The same network, with one activation
for its layer that is learned along with the weights, follows it.
"""

import torch
from torch import nn

from rflaf.bases import BSpline
from rflaf.nn import LearnableActivation


def fit(activation: nn.Module, X: torch.Tensor, y: torch.Tensor) -> tuple[nn.Module, float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), activation, nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(250):
        loss = (model(X)[:, 0] - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, loss.item()


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    X = 4 * torch.rand(1000, 2, generator=generator) - 2
    y = torch.sin(5 * X[:, 0]) * torch.cos(2 * X[:, 1])

    _, relu_loss = fit(nn.ReLU(), X, y)
    # splines that go on as straight lines: inputs outside the grid keep a gradient
    basis = BSpline(33, -4, 4, degree=3, extrapolate="linear")
    model, loss = fit(LearnableActivation(basis, init="relu"), X, y)
    print(f"mean squared error with nn.ReLU: {relu_loss:.4f}")
    print(f"with LearnableActivation, which starts as ReLU: {loss:.4f}")

    sigma = model[1].to_activation()
    print("what it learned:", [f"sigma({z:+d}) = {sigma(float(z)):+.2f}" for z in range(-3, 4)])


if __name__ == "__main__":
    main()
