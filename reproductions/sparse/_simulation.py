"""Examples 1 and 2 of Guo (2010): the eight methods under two losses, and our adaptive procedures."""

from collections.abc import Mapping

import numpy as np

from polymargin import SparseSVCCV
from polymargin.coding import class_pairs
from polymargin.datasets import make_class_specific
from reproductions.declare import Context, Key, Theirs

ADAPTIVE = {"AL1": "l1", "ASN-I": "supnorm", "ASN-II": "supnorm", "APF": "fusion"}
PLAIN = {"L2": "l2", "L1": "l1", "SN": "supnorm", "PF": "fusion"}
LOSSES = {"weston": "Weston-Watkins", "lee": "Lee (1)"}
NOTES = (
    "Adaptive methods are on standardised variables, the others on raw ones, which is how they come near to the "
    "paper. The paper states loss (1), with which classes that lie between others are never predicted: no penalty "
    "can reach its tables with it, and the numbers beside Weston-Watkins are the ones to compare. 'rounds' and "
    "'auto' are ours. 'fused j: a/b' is how often classes a and b, which variable j does not separate, got equal "
    "coefficients; 'wrongly fused' counts informative variables times pairs of classes that they do separate. "
    "The paper searches lambda = 2^-15, ..., 2^15; ours has the same steps, from where the first variable enters "
    "down to 2^-14 of it. A training set without a member of some class (one in thirty of Example 2) is drawn "
    "again. Methods on raw variables and those with loss (1) take longest and are in the first repetitions only."
)


def paper_numbers(
    table1: Mapping[str, tuple[float, float, float, float, float, float]],
    table2: Mapping[str, tuple[float, ...]],
    pairs: tuple[str, ...],
) -> dict[Key, Theirs]:
    """Return the paper's numbers by (method, loss, measure), beside both losses."""
    numbers: dict[Key, Theirs] = {}
    for loss in LOSSES.values():
        for method, (error, error_sd, info, info_sd, noise, noise_sd) in table1.items():
            numbers[method, loss, "error"] = Theirs(error, error_sd)
            numbers[method, loss, "informative"] = Theirs(info, info_sd)
            numbers[method, loss, "noise"] = Theirs(noise, noise_sd)
            for pair, share in zip(pairs, table2[method], strict=True):
                numbers[method, loss, f"fused {pair}"] = Theirs(share)
    return numbers


def compare(context: Context, example: int) -> Mapping[Key, float]:
    """Draw training, validation and test sets of one repetition and fit every method."""
    n, n_test, n_noise = (60, 500, 10) if context.quick else (200, 10_000, 100)
    *training_seeds, validation_seed, test_seed = context.seeds(22)
    validation, test = (
        make_class_specific(example, size, n_noise=n_noise, random_state=seed)
        for size, seed in ((n, validation_seed), (n_test, test_seed))
    )
    draws = (make_class_specific(example, n, n_noise=n_noise, random_state=seed) for seed in training_seeds)
    train = next(draw for draw in draws if len(np.unique(draw.target)) == len(draw.coefficients))
    numbers: dict[Key, float] = {}
    for method, loss, model in methods():
        if context.repetition >= most_repetitions(method, loss):
            continue
        if context.quick:
            model.set_params(n_Cs=8)
        model.fit(train.data, train.target, validation_set=(validation.data, validation.target))
        found = {
            "error": 100.0 * (1.0 - model.score(test.data, test.target)),
            **selection(model, train.coefficients),
        }
        numbers |= {(method, LOSSES[loss], measure): value for measure, value in found.items()}
    return numbers


def most_repetitions(method: str, loss: str) -> float:
    """Return how many repetitions to make at most of what takes long: loss (1), and raw variables."""
    return 1 if loss == "lee" else 3 if method in PLAIN else np.inf


def methods() -> list[tuple[str, str, SparseSVCCV]]:
    """Return method, loss and estimator of every row; those of the paper on its grid, lambda in steps of two."""
    rows = []
    for loss in LOSSES:
        shared = {"loss": loss, "n_Cs": 15, "eps": 2.0**-14}
        for method, penalty in PLAIN.items():
            rows.append((method, loss, SparseSVCCV(penalty=penalty, adaptive=False, standardize=False, **shared)))
        for method, penalty in ADAPTIVE.items():
            model = SparseSVCCV(penalty=penalty, adaptive=True, per_variable=method == "ASN-II", **shared)
            rows.append((method, loss, model))
    rows += [(procedure, "weston", SparseSVCCV(adaptive=procedure)) for procedure in ("rounds", "auto")]
    return rows


def selection(model: SparseSVCCV, truth: np.ndarray) -> dict[str, float]:
    """Count selected variables of both kinds, and what was fused rightly and wrongly."""
    informative = truth.any(axis=0)
    selected = model.coef_.any(axis=0)
    counts = {
        "informative": float(np.sum(selected & informative)),
        "noise": float(np.sum(selected & ~informative)),
        "wrongly fused": 0.0,
    }
    for j in np.flatnonzero(informative):
        for (a, b), fused in zip(class_pairs(len(truth)), model.fused_pairs_[:, j], strict=True):
            if truth[a, j] == truth[b, j]:
                counts[f"fused {j + 1}: {a + 1}/{b + 1}"] = float(fused)
            else:
                counts["wrongly fused"] += float(fused)
    return counts
