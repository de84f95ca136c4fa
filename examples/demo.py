"""The library at work, on data that comes with scikit-learn. Run by `make demo`.

Writes two pictures to demo-output/.
"""

import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rflaf import Activation, RFLAFRegressor
from rflaf.bases import RBF, BSpline, Chebyshev, Polynomial

FOLDER = Path("demo-output")
PENALTIES = np.logspace(-4, 4, 17)
warnings.simplefilter("ignore", UserWarning)


def compare_models():
    """R² on test rows: linear, random Fourier features, and learned activations."""
    sets = {
        "friedman1": make_friedman1(2000, noise=1.0, random_state=0),
        "friedman1, 15 idle columns": make_friedman1(2000, 25, noise=1.0, random_state=0),
        "diabetes": load_diabetes(return_X_y=True),
    }
    models = {
        "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(PENALTIES)),
        "RBFSampler": lambda: make_pipeline(
            StandardScaler(),
            RBFSampler(gamma=0.05, n_components=500, random_state=0),
            RidgeCV(PENALTIES),
        ),
        "ReLU features": lambda: RFLAFRegressor(500, activation="relu", random_state=0),
        "learned": lambda: RFLAFRegressor(500, random_state=0),
    }
    print("R² on test rows, 500 random features, nothing tuned by hand\n")
    print(f"{'':28}" + "".join(f"{name:>15}" for name in models))
    figure, axes = pyplot.subplots(1, len(sets), figsize=(12, 3.2))
    for (name, (X, y)), ax in zip(sets.items(), axes):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
        print(f"{name:28}", end="", flush=True)
        for make in models.values():
            model = make().fit(X_train, y_train)
            print(f"{model.score(X_test, y_test):15.3f}", end="", flush=True)
        print()
        model.plot_activation(ax)
        ax.set_title(name)
    figure.tight_layout()
    figure.savefig(FOLDER / "learned.png", dpi=100)


def target(z):
    """Smooth on the left, steep in the middle, wavy on the right."""
    return np.tanh(4 * z) + 0.4 * np.sin(6 * z) * (z > 0)


def nanoseconds(function, z, repeats=7):
    """The best time of one element."""
    function(z)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(z)
        times.append(time.perf_counter() - start)
    return min(times) / z.size * 1e9


def compare_bases():
    """The fit of one activation in every basis, and what evaluating it costs."""
    bases = {
        "17 Gaussians": RBF(17),
        "129 Gaussians": RBF(129),
        "17 B-splines": BSpline(17),
        "129 B-splines": BSpline(129),
        "17 powers": Polynomial(17),
        "17 Chebyshev polynomials": Chebyshev(17),
    }
    at = np.linspace(-2, 2, 4001)
    z = np.random.default_rng(0).standard_normal((128, 3000)).astype(np.float32)
    print("\nLeast-squares fit of an activation, and the cost of sigma(z), in ns an element\n")
    print(f"{'basis':26}{'rms error':>10}{'largest':>10}{'dense':>10}{'table':>10}{'ratio':>8}")
    figure, axes = pyplot.subplots(2, 3, figsize=(10, 5), sharex=True, sharey=True)
    for (name, basis), ax in zip(bases.items(), axes.flat):
        sigma = Activation(basis, basis.fit(target))
        error = sigma(at) - target(at)
        a = sigma.coefficients.astype(np.float32)
        dense = nanoseconds(lambda z, basis=basis, a=a: basis(z) @ a, z, repeats=1)
        fast = nanoseconds(sigma.table(), z)
        print(
            f"{name:26}{np.sqrt(np.mean(error**2)):10.1e}{np.abs(error).max():10.1e}"
            f"{dense:10.1f}{fast:10.2f}{dense / fast:7.0f}×"
        )
        ax.plot(at, target(at), color="0.7", lw=3, label="target")
        sigma.plot(ax, color="C3", lw=1, label="fit")
        ax.set(title=name, ylim=(-1.8, 1.8))
    axes.flat[0].legend()
    figure.tight_layout()
    figure.savefig(FOLDER / "bases.png", dpi=100)


FOLDER.mkdir(exist_ok=True)
compare_models()
compare_bases()
print(f"\nPictures: {FOLDER / 'learned.png'} (what was learned), {FOLDER / 'bases.png'}")
