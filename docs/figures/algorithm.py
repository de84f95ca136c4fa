"""docs/images/algorithm.png: who sees which rows, a warped column, and a learned activation."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from rflaf import RFLAFRegressor
from rflaf.fitting.members import leading_team
from rflaf.inputs.forms import Binned

OUT = Path(__file__).parent.parent / "images" / "algorithm.png"


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 3))
    y = np.sin(4 * X[:, 0]) + (X[:, 1] > 0.3) + 0.1 * rng.standard_normal(1000)
    model = RFLAFRegressor(random_state=0).fit(X, y)
    figure, (folds, warp, sigma) = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")

    for member in range(5):
        for fold in range(5):
            seen = fold != member
            folds.barh(4 - member, 1, left=fold, color="#4c72b0" if seen else "#dd8452", ec="w")
    folds.set(xticks=np.arange(5) + 0.5, xticklabels=range(1, 6), xlabel="fold of the rows")
    folds.set(yticks=range(5), yticklabels=range(5, 0, -1), ylabel="member")
    folds.set_title("blue: learns from; orange: is judged on")

    layers = [member.layer for member in model.members_]
    for layer in layers:
        if isinstance(layer.form, Binned):
            warp.plot(*layer.form.warp(layer.metric, 1), color="#4c72b0", lw=0.8)
    warp.axvline(0.3, color="0.6", lw=0.8, ls="--")
    warp.set(xlabel="column, with a jump of the target at 0.3", ylabel="sum of the scales")
    warp.set_title("what scales per bin make of a column")

    for member in leading_team(model.members_):
        z = np.linspace(-2, 2, 300)
        values = member.layer.activation(z)
        sigma.plot(z, values / np.abs(values).max(), lw=0.8)
    sigma.set(xlabel="z", ylabel="σ(z), to one height")
    sigma.set_title("activations that the members learned")
    figure.savefig(OUT, dpi=110)


if __name__ == "__main__":
    main()
