"""The Bayes errors of Table 1 of Guo (2010), and the power of the adaptive weights, which it leaves open."""

import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polymargin import SparseSVCCV
from polymargin.datasets import make_class_specific
from reproductions.declare import Band, Claim, Context, Key, Reproduction, Theirs, difference
from reproductions.sparse import example1, example2
from reproductions.sparse._simulation import selection

POWERS = (1.0, 2.0, 3.0)
BAYES = "Bayes rule"
PAPER = {("1", BAYES, "error"): Theirs(13.0), ("2", BAYES, "error"): Theirs(13.8)} | {
    (str(number), f"gamma = {power:g}", measure): Theirs(example.table1["APF"][place], judged=False)
    for number, example in ((1, example1.EXAMPLE), (2, example2.EXAMPLE))
    for power in POWERS
    for measure, place in (("error", 0), ("noise", 4))
}


def repetition(context: Context) -> Mapping[Key, float]:
    """Return the Bayes rule's error on a test sample, and what adaptive fusion selects by power of its weights."""
    n, n_test, n_noise = (60, 500, 10) if context.quick else (200, 10_000, 100)
    values: dict[Key, float] = {}
    for example in (1, 2):
        *training_seeds, validation_seed, test_seed = context.seeds(22)
        validation, test = (
            make_class_specific(example, size, n_noise=n_noise, random_state=seed)
            for size, seed in ((n, validation_seed), (n_test, test_seed))
        )
        draws = (make_class_specific(example, n, n_noise=n_noise, random_state=seed) for seed in training_seeds)
        train = next(draw for draw in draws if len(np.unique(draw.target)) == len(draw.coefficients))
        wrong = test.probabilities.argmax(axis=1) != test.target
        values[str(example), BAYES, "error"] = 100.0 * float(np.mean(wrong))
        for power in POWERS:
            model = SparseSVCCV(adaptive=True, adaptive_power=power, n_Cs=8 if context.quick else 15, eps=2.0**-14)
            with warnings.catch_warnings():
                # A gap of 1e-7 where 1e-8 was asked for changes nothing here.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(train.data, train.target, validation_set=(validation.data, validation.target))
            label = f"gamma = {power:g}"
            values[str(example), label, "error"] = 100.0 * (1.0 - model.score(test.data, test.target))
            values[str(example), label, "noise"] = selection(model, train.coefficients)["noise"]
    return values


CLAIMS = (
    Claim(
        "powers 2 and 3 leave adaptive fusion fewer noise variables than 1",
        [
            difference(
                f"Example {example}: noise, gamma 1 minus {power:g}",
                (example, "gamma = 1", "noise"),
                (example, f"gamma = {power:g}", "noise"),
                0.5,
            )
            for example in ("1", "2")
            for power in POWERS[1:]
        ],
        of_paper=False,
    ),
)

REPRODUCTION = Reproduction(
    title="Table 1, Bayes errors, and adaptive fusion by the power gamma of its weights",
    parts=("example", "method", "measure"),
    repetition=repetition,
    repetitions=20,
    paper=PAPER,
    paper_repetitions=100,
    claims=CLAIMS,
    band=lambda key: Band(0.2, "the last digit of the paper's numbers, twice"),
    protocol="As of Tables 1 and 2, Weston and Watkins' loss. The paper does not state gamma: beside its "
    "numbers of APF those of three powers are shown, and not judged.",
)
