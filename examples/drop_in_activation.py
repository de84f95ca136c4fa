"""A learnable activation in the place of nn.ReLU.

    python examples/drop_in_activation.py [--picture FOLDER]

The target wiggles more than a small ReLU network can follow. The same network, with one activation
for its layer that is learned along with the weights, follows it.
"""

import argparse
from pathlib import Path

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


def draw(models: dict[str, nn.Module], folder: Path) -> None:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    X = torch.zeros(400, 2)
    X[:, 0] = torch.linspace(-2, 2, 400)
    left.plot(X[:, 0], torch.sin(5 * X[:, 0]), color="0.7", lw=3, label="target")
    for name, model in models.items():
        left.plot(X[:, 0], model(X)[:, 0].detach(), label=name)
    left.set(xlabel="first input, the second at 0", title="what the networks learned")
    left.legend(frameon=False)
    models["LearnableActivation"][1].to_activation().plot(right, color="C1")
    right.set_title("the learned activation")
    figure.savefig(folder / "drop_in_activation.png", dpi=80)


def main(folder: Path | None) -> None:
    generator = torch.Generator().manual_seed(0)
    X = 4 * torch.rand(1000, 2, generator=generator) - 2
    y = torch.sin(5 * X[:, 0]) * torch.cos(2 * X[:, 1])

    relu, relu_loss = fit(nn.ReLU(), X, y)
    # splines that go on as straight lines: inputs outside the grid keep a gradient
    basis = BSpline(33, -4, 4, degree=3, extrapolate="linear")
    model, loss = fit(LearnableActivation(basis, init="relu"), X, y)
    print(f"mean squared error with nn.ReLU: {relu_loss:.4f}")
    print(f"with LearnableActivation, which starts as ReLU: {loss:.4f}")

    sigma = model[1].to_activation()
    print("what it learned:", [f"sigma({z:+d}) = {sigma(float(z)):+.2f}" for z in range(-3, 4)])
    if folder:
        draw({"nn.ReLU": relu, "LearnableActivation": model}, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", type=Path, help="a folder for the picture")
    main(parser.parse_args().picture)
