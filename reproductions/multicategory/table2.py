"""Table 2 of Lee, Lin & Wahba: MSVM, Weston-Watkins and one-versus-rest in three scenarios."""

from collections.abc import Mapping
from itertools import combinations

from polymargin.datasets import make_interval_scenario
from reproductions.declare import Band, Claim, Comparison, Context, Key, Reproduction, Theirs, difference
from reproductions.multicategory._interval import OneVersusRest, error_rate, grid, tuned_by_gckl
from reproductions.rules import HALF

PAPER = {
    ("1", "Bayes rule"): Theirs(0.3763, judged=False),
    ("1", "MSVM"): Theirs(0.3817, 0.0021),
    ("1", "Weston-Watkins"): Theirs(0.3784, 0.0005),
    ("1", "one-versus-rest"): Theirs(0.3811, 0.0017),
    ("2", "Bayes rule"): Theirs(0.5408, judged=False),
    ("2", "MSVM"): Theirs(0.5495, 0.0040),
    ("2", "Weston-Watkins"): Theirs(0.5547, 0.0056),
    ("2", "one-versus-rest"): Theirs(0.6133, 0.0072),
    ("3", "Bayes rule"): Theirs(0.5387, judged=False),
    ("3", "MSVM"): Theirs(0.5517, 0.0045),
    ("3", "Weston-Watkins"): Theirs(0.5708, 0.0089),
    ("3", "one-versus-rest"): Theirs(0.5972, 0.0071),
}


def repetition(context: Context) -> Mapping[Key, float]:
    """One sample of 200 of every scenario."""
    values: dict[Key, float] = {}
    points = grid(context, range(-13, -2, 2), range(-5, 1))
    for scenario, seed in zip((1, 2, 3), context.seeds(3), strict=True):
        sample = make_interval_scenario(scenario, 60 if context.quick else 200, random_state=seed)
        machines = {
            "MSVM": tuned_by_gckl(sample, points, "lee"),
            "Weston-Watkins": tuned_by_gckl(sample, points, "weston"),
            "one-versus-rest": OneVersusRest(sample, points),
        }
        values[str(scenario), "Bayes rule"] = sample.bayes_error
        for method, machine in machines.items():
            values[str(scenario), method] = error_rate(machine, sample, -1.0, 1.0)
    return values


GAIN = PAPER["3", "Weston-Watkins"].value - PAPER["3", "MSVM"].value
"""What the table is about: how much less MSVM errs than Weston and Watkins' machine where two classes compete."""


def _apart(scenario: str, worse: str, better: str, margin: float) -> Comparison:
    return difference(
        f"scenario {scenario}: {worse} minus {better}", (scenario, worse), (scenario, better), margin
    )


CLAIMS = (
    Claim(
        "in scenario 1 the three methods are almost indistinguishable",
        [
            _apart("1", worse, better, HALF * GAIN)
            for worse, better in combinations(("one-versus-rest", "Weston-Watkins", "MSVM"), 2)
        ],
        same=True,
    ),
    Claim(
        "in scenario 2 MSVM and Weston-Watkins perform similarly",
        [_apart("2", "Weston-Watkins", "MSVM", HALF * GAIN)],
        same=True,
    ),
    Claim(
        "in scenario 2 both err clearly less than one-versus-rest",
        [
            _apart(
                "2",
                "one-versus-rest",
                method,
                HALF * (PAPER["2", "one-versus-rest"].value - PAPER["2", method].value),
            )
            for method in ("MSVM", "Weston-Watkins")
        ],
    ),
    Claim(
        "in scenario 3 MSVM errs less than Weston-Watkins (the paper's Wilcoxon p is .0137)",
        [_apart("3", "Weston-Watkins", "MSVM", HALF * GAIN)],
    ),
)

REPRODUCTION = Reproduction(
    title="Table 2: error rates in three scenarios",
    parts=("scenario", "method"),
    repetition=repetition,
    repetitions=30,
    paper=PAPER,
    # The brackets in the paper are standard errors already, over ten replicates.
    paper_repetitions=1,
    claims=CLAIMS,
    band=lambda key: Band.of_effect(GAIN, "MSVM's gain over Weston-Watkins in scenario 3"),
    method_part=1,
    digits=4,
    protocol="The paper gives no grid. Ours is log2 lambda = -13, -11, ..., -3 and log2 sigma = -5, ..., 0: the "
    "wide one of the replicates takes five times as long, and flatters one-versus-rest less. All are tuned by "
    "the expected loss given the true probabilities (GCKL), each in its own loss; of equal ones the smaller "
    "lambda, then sigma is taken.",
    notes="Error rates are exact, on a fine grid, as in the paper. Its p-value is two-sided over ten replicates, "
    "ours are one-sided.",
)
