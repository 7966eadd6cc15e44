"""Types of arguments that users give, so that a type checker finds a misspelt word before a run does."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

KernelName = Literal["linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"]
KernelLike = KernelName | Callable[[Any, Any], Any]
Width = Literal["scale", "auto"] | float
LossName = Literal[
    "lee", "weston", "crammer", "mmr", "adm", "atm", "ats", "one_vs_rest", "reinforced",
    "lee_squared", "weston_squared", "logistic",
]  # fmt: skip
PenaltyName = Literal["fusion", "supnorm", "l1", "group", "elastic_net", "l2"]
SparseLoss = Literal["weston", "lee", "crammer"]
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None
RandomState = int | np.random.RandomState | None
