"""Error bars that follow the noise: predictions with intervals, checked on new rows.

    python examples/prediction_intervals.py [--picture FOLDER]

The noise of the target grows from left to right. A constant error bar is too wide on one side and
too narrow on the other; the model's own intervals follow the noise.
"""

import argparse
from pathlib import Path

import numpy as np

from rflaf import RFLAFRegressor


def rows(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, n)
    y = np.sin(2 * x) + 0.3 * x + (0.05 + 0.12 * (x + 3)) * rng.standard_normal(n)
    return x[:, None], y


def coverage(low, high, y, where):
    return np.mean((low < y)[where] & (y < high)[where])


def draw(model, X, y, folder):
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
    at = np.linspace(-3, 3, 300)[:, None]
    low, high = model.predict_interval(at, coverage=0.9)
    ax.plot(X[:500, 0], y[:500], ".", color="0.6", ms=3, label="new rows")
    ax.plot(at, model.predict(at), color="C3", label="prediction")
    ax.fill_between(at[:, 0], low, high, color="C3", alpha=0.2, label="90 % interval")
    ax.legend(frameon=False)
    figure.savefig(folder / "prediction_intervals.png", dpi=80)


def main(folder):
    model = RFLAFRegressor(n_components=300, random_state=0).fit(*rows(1500, seed=0))
    X, y = rows(5000, seed=1)
    low, high = model.predict_interval(X, coverage=0.9)
    mean = model.predict(X)
    half = np.quantile(np.abs(model.oof_prediction_ - rows(1500, seed=0)[1]), 0.9)
    print("share of new rows inside their 90 % interval")
    for name, where in {"left half": X[:, 0] < 0, "right half": X[:, 0] >= 0}.items():
        own = coverage(low, high, y, where)
        constant = coverage(mean - half, mean + half, y, where)
        print(f"  {name:11} the model's {own:.0%}, a constant width {constant:.0%}")
    if folder:
        draw(model, X, y, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", type=Path, help="a folder for the picture")
    main(parser.parse_args().picture)
