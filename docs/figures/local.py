"""docs/images/local.png: a partition of two columns, and a fit with and without local models."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from rflaf import RFLAFRegressor
from rflaf.fitting.local import shares
from rflaf.solvers.features import project

OUT = Path(__file__).parent.parent / "images" / "local.png"


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 2))
    y = np.sign(np.sin(8 * X[:, 0]) * np.sin(8 * X[:, 1])) + 0.1 * rng.standard_normal(len(X))
    fixed = {"n_components": 100, "input_form": "raw", "n_members": 3, "random_state": 0}
    models = [RFLAFRegressor(local_models=each, **fixed).fit(X, y) for each in (False, True)]
    side = np.linspace(-1, 1, 201)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    member = models[1].members_[0]
    local = member.local[0]
    directions = np.hstack([member.layer.components, member.layer.axes])[:, local.columns[0]]
    z = project(member.layer.inputs(grid), np.ascontiguousarray(directions))
    at = shares(local.cuts[0], local.widths[0], z)
    share = np.zeros((len(grid), local.coef.shape[1]))
    share[at.rows, at.parts] = at.share
    colours = plt.get_cmap("tab20")(np.arange(share.shape[1]) % 20)[:, :3]
    pictures = [(share @ colours).reshape(201, 201, 3)]
    pictures += [model.predict(grid).reshape(201, 201) for model in models]
    titles = [
        f"one partition into {share.shape[1]} parts, blended at the cuts",
        f"without local models (out-of-fold R² {models[0].oof_score_:.2f})",
        f"with local models (out-of-fold R² {models[1].oof_score_:.2f})",
    ]
    for axis, picture, title in zip(axes, pictures, titles):
        axis.imshow(picture, extent=(-1, 1, -1, 1), origin="lower", vmin=-1.2, vmax=1.2)
        axis.set(xticks=[], yticks=[], xlabel="first column", ylabel="second column")
        axis.set_title(title, fontsize=10)
    figure.savefig(OUT, dpi=110)


if __name__ == "__main__":
    main()
