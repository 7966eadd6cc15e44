"""Files as users have them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris


@pytest.fixture(scope="session")
def iris(tmp_path_factory):
    """A CSV file with the species in the last column."""
    bunch = load_iris(as_frame=True)
    frame = bunch.data.assign(species=bunch.target_names[bunch.target])
    path = tmp_path_factory.mktemp("iris") / "iris.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def trees():
    """A frame with awkward names, categories and classes."""
    rng = np.random.default_rng(0)
    n = 120
    kind = np.array(["Eiche, rot", 'Buche "alt"', "楓"])[rng.integers(0, 3, n)]
    where = {"Eiche, rot": 0.0, 'Buche "alt"': 2.0, "楓": 4.0}
    return pd.DataFrame(
        {
            "Höhe (m)": np.array([where[k] for k in kind]) + rng.normal(size=n),
            'said "width", cm': rng.normal(size=n),
            "leaf colour": np.where(kind == "楓", "red, bright", rng.choice(["green", "déjà vu"], n)),
            "  art ": kind,
        }
    )
