"""What Table 1 of Fung & Mangasarian leaves open: which of equal nu is taken, how far OFRQP's grid must go."""

from collections.abc import Mapping
from dataclasses import replace

from reproductions.declare import Claim, Comparison, Context, Key, Reproduction, Theirs, difference
from reproductions.proximal import table1
from reproductions.proximal._protocol import BUNDLED, LABELS, LARGEST, SMALLEST, compare

PROXIMAL = ("MPSVM", "B-MPSVM", "BR-MPSVM")
COARSER = "OFRQP, nu = 1, 2^3, 2^6, 2^9"
METHODS = {
    "OFRQP": table1.METHODS["OFRQP"],
    COARSER: replace(table1.METHODS["OFRQP"], Cs=tuple(2.0**i for i in range(0, 10, 3))),
} | {name: replace(table1.METHODS[name], ties=LARGEST + SMALLEST) for name in PROXIMAL}
MEASURES = ("train", "test")


def _paper() -> dict[Key, Theirs]:
    shown = {"OFRQP": "OFRQP", COARSER: "OFRQP"} | {
        name + label: name for name in PROXIMAL for label in LABELS.values()
    }
    return {
        (data, label, measure): Theirs(table1.PAPER[data, name, measure].value, judged=False)
        for data in BUNDLED
        for label, name in shown.items()
        for measure in MEASURES
    }


def repetition(context: Context) -> Mapping[Key, float]:
    """One partition into ten folds of the two sets that scikit-learn bundles."""
    values: dict[Key, float] = {}
    for name in BUNDLED:
        found = compare(name, METHODS, context)
        values |= {key: value for key, value in found.items() if key[-1] in MEASURES}
    return values


def _prefers(data: str, method: str, better: int, worse: int) -> Comparison:
    return difference(
        f"{data}: {method}{LABELS[better]} minus the other",
        (data, method + LABELS[better], "test"),
        (data, method + LABELS[worse], "test"),
        1.0,
    )


CLAIMS = (
    Claim(
        "balanced MPSVM on wine prefers the largest of equal nu",
        [_prefers("Wine", "B-MPSVM", -1, 1)],
        of_paper=False,
    ),
    Claim(
        "BR-MPSVM on iris prefers the smallest of equal nu", [_prefers("Iris", "BR-MPSVM", 1, -1)], of_paper=False
    ),
    Claim(
        "OFRQP on iris gains from a grid that is finer and goes beyond 2^9",
        [
            difference(
                "Iris: the grid of Table 1 minus the coarser one",
                ("Iris", "OFRQP", "test"),
                ("Iris", COARSER, "test"),
                1.0,
            )
        ],
        of_paper=False,
    ),
)

REPRODUCTION = Reproduction(
    title="Table 1, wine and iris: both rules for ties, and a coarser grid for OFRQP, tenfold correctness in "
    "percent",
    parts=("data", "method", "measure"),
    repetition=repetition,
    repetitions=5,
    paper=_paper(),
    claims=CLAIMS,
    digits=2,
    protocol="As of Table 1 but for what is compared.",
    notes="The paper's numbers are shown beside both, and judged in Table 1.",
)
