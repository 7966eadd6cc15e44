"""Tables 1 and 2 of Guo (2010), Example 2: five classes, three informative variables among 103."""

from collections.abc import Mapping

from reproductions.declare import Context, Key, Table
from reproductions.sparse._simulation import NOTES, compare, paper_numbers

TABLE1 = {
    "L2": (56.6, 3.68, 3.0, 0.0, 100.0, 0.0),
    "L1": (54.5, 4.11, 2.8, 0.72, 94.1, 23.80),
    "SN": (54.8, 4.13, 2.8, 0.72, 94.0, 24.00),
    "PF": (54.7, 3.89, 2.8, 0.72, 94.0, 24.00),
    "AL1": (20.9, 3.10, 3.0, 0.28, 7.4, 8.27),
    "ASN-I": (21.7, 2.23, 3.0, 0.00, 4.1, 6.36),
    "ASN-II": (19.3, 3.01, 3.0, 0.14, 3.4, 5.00),
    "APF": (18.8, 4.00, 3.0, 0.14, 0.2, 0.72),
}
PAIRS = ("1: 1/2", "1: 3/4", "2: 2/3", "2: 2/4", "2: 3/4", "3: 2/3", "3: 4/5")
TABLE2 = {
    "L2": (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00),
    "L1": (0.06, 0.14, 0.12, 0.08, 0.08, 0.20, 0.06),
    "AL1": (0.02, 0.78, 0.72, 0.36, 0.54, 1.00, 0.02),
    "SN": (0.14, 0.06, 0.06, 0.06, 0.06, 0.06, 0.12),
    "ASN-I": (0.48, 0.00, 0.00, 0.00, 0.00, 0.00, 0.44),
    "ASN-II": (0.02, 0.02, 0.00, 0.00, 0.00, 0.00, 0.00),
    "PF": (0.16, 0.14, 0.08, 0.06, 0.08, 0.14, 0.18),
    "APF": (0.72, 0.88, 0.72, 0.34, 0.52, 0.86, 0.74),
}


def repetition(context: Context) -> Mapping[Key, float]:
    """Fit every method to one draw."""
    return compare(context, 2)


REPRODUCTION = Table(
    title="Tables 1 and 2, Example 2: class-specific variable selection",
    parts=("method", "loss", "measure"),
    paper=paper_numbers(TABLE1, TABLE2, PAIRS),
    repetition=repetition,
    repetitions=50,
    paper_repetitions=100,
    tolerance=0.5,
    digits=2,
    notes=NOTES,
)
