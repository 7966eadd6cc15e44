"""Table 1 of Liu, Wu & He: utilities reached on Example 2, three Gaussian classes with flipped labels."""

from collections.abc import Mapping

from polymargin.datasets import make_triangle
from reproductions.declare import Band, Claim, Context, Key, Reproduction, Theirs, difference
from reproductions.robust._utilities import bayes_utility, best, fitted, mean_utility, utility
from reproductions.rules import HALF

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8)
_PRINTED = {
    ("WRSVM", 1): ((70.67, 0.24), (71.58, 0.36), (72.60, 0.31), (73.90, 0.42), (74.79, 0.94)),
    ("WRSVM", 2): (None, (72.53, 0.34), (74.57, 0.45), (76.42, 0.99), (79.99, 0.29)),
    ("WRSVM", 3): (None, (72.82, 0.28), (75.44, 0.31), (77.39, 1.84), (86.59, 0.09)),
    ("WSVM", 1): ((70.62, 0.28), (71.32, 0.47), (72.13, 0.49), (72.88, 0.93), (73.96, 0.71)),
    ("WSVM", 2): (None, (71.98, 0.70), (71.88, 1.04), (74.46, 0.38), (80.04, 0.26)),
    ("WSVM", 3): (None, (72.60, 0.43), (74.35, 1.08), (75.90, 1.58), (86.61, 0.08)),
}


def _paper() -> dict[Key, Theirs]:
    numbers = {}
    for (method, kind), row in _PRINTED.items():
        for a, cell in zip(LEVELS, row, strict=True):
            if cell is not None:
                numbers[method, f"U{kind}", f"{a:g}"] = Theirs(*cell)
    return numbers


PAPER = _paper()


def repetition(context: Context) -> Mapping[Key, float]:
    """One training, tuning and test sample; every method at every utility."""
    n = 100 if context.quick else 400
    sizes = (n, n, 10 * n if context.quick else 100 * n)
    train, tuning, test = (
        make_triangle(size, flip=0.15, random_state=seed)
        for size, seed in zip(sizes, context.seeds(3), strict=True)
    )
    grid = [{"C": 10.0**power} for power in ((-1,) if context.quick else range(-2, 1))]
    kinds = [(1, a) for a in LEVELS] + [(kind, a) for kind in (2, 3) for a in LEVELS[1:]]
    values: dict[Key, float] = {}
    for kind, a in kinds[::4] if context.quick else kinds:
        matrix = utility(kind, a)
        for method, machines in fitted(train, matrix, grid, tol=1e-5).items():
            predicted = best(machines, tuning, matrix).predict(test.data)
            values[method, f"U{kind}", f"{a:g}"] = mean_utility(test.target, predicted, matrix)
        values["Bayes rule", f"U{kind}", f"{a:g}"] = bayes_utility(test, matrix)
    return values


CELLS = tuple(dict.fromkeys(key[1:] for key in PAPER))
GAINS = {cell: PAPER["WRSVM", *cell].value - PAPER["WSVM", *cell].value for cell in CELLS}
"""What truncation gains in the paper, by utility and a."""

GAIN = sum(GAINS.values()) / len(GAINS)

REPRODUCTION = Reproduction(
    title="Table 1: utilities (times 100) on Example 2",
    parts=("method", "utility", "a"),
    repetition=repetition,
    repetitions=20,
    paper=PAPER,
    paper_repetitions=100,
    claims=(
        Claim(
            "truncation helps to higher utilities in most cases",
            [
                difference(
                    f"{cell[0]}, a = {cell[1]}: WRSVM minus WSVM", ("WRSVM", *cell), ("WSVM", *cell), HALF * GAIN
                )
                for cell in CELLS
            ],
            needed=HALF,
        ),
    ),
    band=lambda key: Band.of_effect(GAIN, "what truncation gains on average"),
    method_part=0,
    digits=2,
    protocol="C = .01, .1, 1 (the paper gives no grid) is chosen on a tuning sample of the size of the training "
    "sample; of equal utilities the smallest C is taken.",
    notes="WRSVM starts the DC algorithm where the paper does, at the untruncated machine; where no class holds "
    'half of the expected utility that start is zero, and stays there. "Two starts" keeps the '
    "better of two fits.",
)
