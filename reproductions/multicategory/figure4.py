"""Figure 4 of Lee, Lin & Wahba: decision vectors and losses of the SRBCT test arrays, and of five others."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectKBest, f_classif

from polymargin import MarginSearch, MulticategorySVC, RejectOptionClassifier
from polymargin.datasets import standardize_arrays
from reproductions.declare import Band, Claim, Comparison, Context, Key, Reproduction, Theirs

TISSUES = ("EWS", "BL", "NB", "RMS", "non-SRBCT")
CHOSEN = "leave-one-out's choice"
PAPER = {
    (CHOSEN, "others rejected, of 5"): Theirs(5.0),
    (CHOSEN, "test arrays rejected, of 20"): Theirs(3.0),
    (CHOSEN, "test errors, of 20"): Theirs(0.0),
    (CHOSEN, "threshold"): Theirs(0.2171, judged=False),
}


def _arrays(context: Context) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows and labels, test rows and labels, with the 100 genes of highest (29)."""
    arrays, others = context.fetch("khan_srbct"), context.fetch("khan_srbct_test25")
    X, y = standardize_arrays(arrays.data)[arrays.train_indices], arrays.target[arrays.train_indices]
    genes = SelectKBest(f_classif, k=100).fit(X, y)
    order = np.concatenate([np.flatnonzero(others.target == tissue) for tissue in TISSUES])
    F = genes.transform(standardize_arrays(others.data))[order]
    return genes.transform(X), y, F, others.target[order]


def _chosen(X: np.ndarray, y: np.ndarray, context: Context) -> MulticategorySVC:
    """Return the machine that leave-one-out chooses."""
    scale = 1.0 / (X.shape[1] * X.var())
    Cs = [10.0] if context.quick else 2.0 ** np.arange(-4, 11, 2)
    gammas = scale * (1.0 if context.quick else 2.0) ** np.arange(-6 if not context.quick else 0, 1)
    search = MarginSearch(MulticategorySVC(), Cs=Cs, gammas=gammas, criterion="loo", exhaustive=True)
    return search.fit(X, y).best_estimator_


def repetition(context: Context) -> Mapping[Key, float]:
    """Return what is rejected at leave-one-out's own choice and over the whole grid; nothing is random."""
    X, y, F, tissues = _arrays(context)
    machine = _chosen(X, y, context)
    values = _rejections(machine, X, y, F, tissues, CHOSEN)
    values[CHOSEN, "C"] = float(machine.C)
    values[CHOSEN, "gamma"] = float(machine.gamma)
    return values


def _rejections(
    machine: MulticategorySVC, X: np.ndarray, y: np.ndarray, F: np.ndarray, tissues: np.ndarray, label: str
) -> dict[Key, float]:
    model = RejectOptionClassifier(machine).fit(X, y)
    rejected = model.prediction_loss(F) > model.threshold_
    known = tissues != "non-SRBCT"
    wrong = model.estimator_.predict(F[known]) != tissues[known]
    return {
        (label, "others rejected, of 5"): float(rejected[~known].sum()),
        (label, "test arrays rejected, of 20"): float(rejected[known].sum()),
        (label, "test errors, of 20"): float(wrong.sum()),
        (label, "threshold"): float(model.threshold_),
    }


def draw(context: Context) -> Any:
    """Draw the four scores and the loss of the predicted class, with the threshold that left-out arrays set."""
    from matplotlib import pyplot

    X, y, F, tissues = _arrays(context)
    model = RejectOptionClassifier(_chosen(X, y, context)).fit(X, y)
    scores, losses = model.estimator_.decision_function(F), model.prediction_loss(F)
    colours = [f"C{TISSUES.index(tissue)}" for tissue in tissues]
    figure, axes = pyplot.subplots(5, 1, figsize=(8, 9), sharex=True)
    for ax, tissue in zip(axes, TISSUES[:4], strict=False):
        ax.bar(range(25), scores[:, list(model.classes_).index(tissue)], color=colours)
        ax.set_ylabel(f"f of {tissue}")
    axes[4].bar(range(25), losses, color=colours)
    axes[4].axhline(model.threshold_, linestyle=":", color="black")
    axes[4].set(ylabel="loss", xlabel="test arrays: EWS, BL, NB, RMS, non-SRBCT")
    return figure


CLAIMS = (
    Claim(
        "the five other tissues are all rejected",
        [Comparison("rejected minus 4.5", lambda values: values[CHOSEN, "others rejected, of 5"] - 4.5, 0.5)],
    ),
    Claim(
        "few of the 20 test arrays are (three in the paper), and none is wrong",
        [
            Comparison(
                "5.5 minus rejected", lambda values: 5.5 - values[CHOSEN, "test arrays rejected, of 20"], 0.5
            ),
            Comparison(
                "half an error minus errors", lambda values: 0.5 - values[CHOSEN, "test errors, of 20"], 0.5
            ),
        ],
    ),
)

REPRODUCTION = Reproduction(
    title="Figure 4, SRBCT: decision vectors and losses of the 20 test arrays and of five others",
    parts=("setting", "measure"),
    repetition=repetition,
    repetitions=1,
    paper=PAPER,
    claims=CLAIMS,
    band=lambda key: Band(1.0, "one array"),
    exact=True,
    digits=4,
    draw=draw,
    protocol="100 genes, as of Table 4; C = 2^-4, 2^-2, ..., 2^10 and gamma = 2^-6, ..., 1 over the number of "
    "genes times their variance, chosen by the leave-one-out loss of the training arrays: no test array is "
    "looked at. The threshold is the 95th percentile of the right left-out predictions.",
    notes="The paper does not report its C and gamma, so that its threshold is shown and not judged.",
)
