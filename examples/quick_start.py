"""A table, a split, a model: what it predicts, how sure it is, and what it learned."""

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from rflaf import RFLAFRegressor

for name, (X, y) in {
    "friedman1 with ten idle columns": make_friedman1(2000, 15, noise=1.0, random_state=0),
    "diabetes": load_diabetes(return_X_y=True),
}.items():
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = RFLAFRegressor(n_components=500, random_state=0).fit(X_train, y_train)
    linear = RidgeCV(np.logspace(-3, 3, 13)).fit(X_train, y_train)
    mean, std = model.predict(X_test, return_std=True)
    inside = np.mean(np.abs(mean - y_test) < 1.96 * std)
    print(f"{name}: R² {model.score(X_test, y_test):.3f}, ridge {linear.score(X_test, y_test):.3f}")
    print(f"  {inside:.0%} of the test rows lie within their 95 % interval")
    print(model.summary(), end="\n\n")
