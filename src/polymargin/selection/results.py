"""The one form in which every search tells what it tried and what it chose: that of scikit-learn's searches."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.estimators.parts import OUTCOME

COPIED = ("classes_", "n_features_in_", "feature_names_in_", "intercept_", *OUTCOME)
"""What a search takes over from the model it chose."""


def cv_results(
    params: Sequence[Mapping[str, Any]],
    scores: NDArray[np.float64],
    order: Sequence[int] | NDArray[np.intp],
    columns: Mapping[str, NDArray],
) -> dict[str, Any]:
    """Return the table of a search, one entry per model tried.

    Parameters
    ----------
    params : the parameters of every model; those that a model does not have are None in the columns.
    scores : (m,) how good they are; more is better.
    order : (m,) positions of the models, the best first.
    columns : what else is known of every model.

    Returns
    -------
    dict
        "params", "param_<name>", "mean_test_score", "rank_test_score" (1 for the best), and the columns.
    """
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[np.asarray(order)] = np.arange(1, len(scores) + 1)
    table: dict[str, Any] = {"params": [dict(one) for one in params]}
    names = dict.fromkeys(name for one in params for name in one)
    table |= {f"param_{name}": np.array([one.get(name) for one in params]) for name in names}
    return table | {"mean_test_score": np.asarray(scores), "rank_test_score": ranks} | dict(columns)


def keep_results(search: Any, results: dict[str, Any], winner: Any) -> None:
    """Store the table, the best entry of it and the fitted model of that entry."""
    best = int(np.argmin(results["rank_test_score"]))
    search.cv_results_ = results
    search.best_index_ = best
    search.best_params_ = results["params"][best]
    search.best_score_ = float(results["mean_test_score"][best])
    search.best_estimator_ = winner


def copy_from(search: Any, winner: Any) -> None:
    """Take over from the chosen model what a fitted classifier has."""
    for name in COPIED:
        if hasattr(winner, name):
            setattr(search, name, getattr(winner, name))
