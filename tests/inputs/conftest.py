"""A frame with columns of every kind; and one thread, because the data is tiny."""

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

SMALL = {"n_components": 30, "max_iter": 2, "n_members": 1, "random_state": 0}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def mixed_frame(n=240, seed=0):
    """Numbers and categories with gaps, many levels, booleans, dates; and a target of them."""
    rng = np.random.default_rng(seed)
    hours = pd.to_timedelta(rng.integers(0, 24 * 400, n), unit="h")
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)).astype("float32"),
            "wet": rng.random(n) < 0.5,
            "town": rng.choice(np.array(["Bern", "Uri", "Zug", None], dtype=object), n),
            "zone": rng.choice([f"z{k}" for k in range(60)], n),
            "day": pd.Timestamp("2022-03-01") + hours,
        }
    )
    frame["until"] = frame["day"] + pd.to_timedelta(rng.integers(1, 90, n), unit="m")
    zone = frame["zone"].str[1:].astype(int) % 7
    y = frame["size"].fillna(0) + 2 * (frame["town"] == "Uri") + 0.5 * zone + frame["wet"]
    minutes = (frame["until"] - frame["day"]).dt.total_seconds() / 60
    return frame, (y + minutes / 30).to_numpy(float)


def spoilt_rows(frame):
    """Some rows, with levels that nobody has seen, and gaps where there were none."""
    rows = frame[:12].copy()
    rows["wet"] = rows["wet"].astype(object)
    rows.loc[1, "zone"], rows.loc[2, "town"] = "elsewhere", "Atlantis"
    rows.loc[3, "zone"], rows.loc[4, "wet"] = None, None
    rows.loc[5, "day"], rows.loc[6, "until"] = pd.NaT, pd.NaT
    return rows
