"""The tables of the demo, none of which needs a download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DataSet:
    """A table to learn from, and what it is."""

    name: str
    about: str
    task: str
    X: Any
    y: Any
    target: str = "target"


def data_sets() -> list[DataSet]:
    """A real table of numbers, a made frame of many kinds of columns, and images."""
    return [_airfoil(), _deliveries(), _digits()]


def _airfoil() -> DataSet:
    import pandas as pd

    from rflaf.datasets import load

    data = load("airfoil")
    return DataSet(
        "airfoil",
        "noise of airfoils in a wind tunnel, 1,503 rows (UCI repository, CC BY 4.0)",
        "regression",
        pd.DataFrame(data.X, columns=list(data.feature_names)),
        data.y,
        "scaled_sound_pressure_level_db",
    )


def _deliveries() -> DataSet:
    """Hours that deliveries take: a season, weekends, towns, a curve in the distance, and noise."""
    import numpy as np
    import pandas as pd

    rng, n = np.random.default_rng(0), 1500
    start = np.datetime64("2023-01-01", "s")
    day = pd.DatetimeIndex(start + rng.integers(0, 730, n).astype("timedelta64[D]"))
    town = rng.choice(["Aston", "Briar", "Colne", "Dunmore", "Elsby", "Fenn"], n)
    carrier = rng.choice(["express", "standard", "freight"], n, p=[0.2, 0.6, 0.2])
    distance = rng.gamma(2.0, 120.0, n)
    weight = rng.lognormal(1.0, 0.8, n)
    hours = 4 + 12 * np.sqrt(distance / 100)
    hours *= np.array([{"express": 0.5, "standard": 1.0, "freight": 1.4}[c] for c in carrier])
    hours += np.array([0.0, 2.0, 5.0, -1.0, 3.0, 8.0])[[ord(t[0]) - ord("A") for t in town]]
    hours += 5 * (day.day_of_week >= 5) + 4 * np.cos(2 * np.pi * (day.day_of_year - 15) / 365)
    hours += np.where(carrier == "freight", 1.5, 0.2) * np.minimum(weight, 12)
    hours += rng.normal(0, 2, n)
    frame = pd.DataFrame(
        {
            "ordered": day,
            "town": pd.Categorical(town),
            "carrier": pd.Categorical(carrier),
            "distance_km": distance.round(1),
            "weight_kg": weight.round(2),
        }
    )
    frame.loc[rng.random(n) < 0.1, "weight_kg"] = np.nan
    frame.loc[rng.random(n) < 0.05, "town"] = np.nan
    about = "generated: 1,500 deliveries with dates, categories and missing values"
    return DataSet("deliveries", about, "regression", frame, np.asarray(hours), "hours")


def _digits() -> DataSet:
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True, as_frame=True)
    about = "1,797 handwritten digits of 8 × 8 pixels"
    return DataSet("digits", about, "classification", pixels, digits, "digit")
