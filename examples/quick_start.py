"""A table, a split, a model: what it predicts, how sure it is, and what it learned.

python examples/quick_start.py [--picture FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from rflaf import RFLAFRegressor

TABLES = {
    "friedman1 with ten idle columns": make_friedman1(2000, 15, noise=1.0, random_state=0),
    "diabetes": load_diabetes(return_X_y=True),
}


def fit(name):
    """A fitted model, and rows to test it on."""
    X, y = TABLES[name]
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = RFLAFRegressor(n_components=500, random_state=0).fit(X_train, y_train)
    linear = RidgeCV(np.logspace(-3, 3, 13)).fit(X_train, y_train)
    mean, std = model.predict(X_test, return_std=True)
    inside = np.mean(np.abs(mean - y_test) < 1.96 * std)
    print(f"{name}: R² {model.score(X_test, y_test):.3f}, ridge {linear.score(X_test, y_test):.3f}")
    print(f"  {inside:.0%} of the test rows lie within their 95 % interval")
    print(model.summary(), end="\n\n")
    return model, X_test, y_test


def draw(fitted, folder):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(fitted), 2, figsize=(8, 6), layout="constrained")
    for (left, right), (name, (model, X, y)) in zip(axes, fitted.items()):
        model.plot_activation(left)
        mean, std = model.predict(X, return_std=True)
        right.errorbar(mean, y, xerr=std, fmt=".", lw=0.5, ms=3, alpha=0.6)
        right.axline((y.mean(), y.mean()), slope=1, color="0.5", lw=1)
        right.set(xlabel="predicted, with its deviation", ylabel="observed", title=name)
    figure.savefig(folder / "quick_start.png", dpi=80)


def main(folder):
    fitted = {name: fit(name) for name in TABLES}
    if folder:
        draw(fitted, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", type=Path, help="a folder for the picture")
    main(parser.parse_args().picture)
