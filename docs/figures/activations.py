"""The picture in docs/index.md: python docs/figures/activations.py"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from sklearn.datasets import make_friedman1, make_moons

from rflaf import RFLAFClassifier, RFLAFRegressor

warnings.simplefilter("ignore", UserWarning)
figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2))
models = {
    "friedman1 (regression)": RFLAFRegressor(500, random_state=0).fit(
        *make_friedman1(2000, noise=1.0, random_state=0)
    ),
    "two moons (classes)": RFLAFClassifier(500, random_state=0).fit(
        *make_moons(1000, noise=0.2, random_state=0)
    ),
}
for ax, (name, model) in zip(axes, models.items()):
    model.plot_activation(ax)
    ax.set_title(name)
figure.tight_layout()
path = Path(__file__).parent.parent / "images" / "learned_activations.png"
figure.savefig(path, dpi=80)
print(f"written: {path.name}, {path.stat().st_size // 1024} KB")
