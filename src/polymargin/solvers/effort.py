"""Operations and what they take: the rates at which one core does each kind of them.

Solvers count operations, and budgets are in the seconds that the counts stand for at these rates. Nothing here
looks at a clock, so that the same data always go the same way. ``python -m benchmarks.calibrate`` measures the
rates of a machine and writes them to `effort.json`; only their ratios decide which method is tried.
"""

import json
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Literal

Kind = Literal["sweep", "stream", "product", "factor", "entry", "call"]
Operations = dict[Kind, float]
"""How many of each kind."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Operations per second of one core.

    Attributes
    ----------
    sweep : multiplications with an addition of the compiled loops over rows, a few numbers at a time.
    stream : of those that go over long rows without a stop.
    product : of products of matrices (BLAS).
    factor : of factorisations (LAPACK) of matrices of some hundred rows.
    entry : entries of tables over examples and classes that a NumPy expression visits.
    call : calls of NumPy functions, however small their arrays are: most of what small problems take.
    """

    sweep: float
    stream: float
    product: float
    factor: float
    entry: float
    call: float

    def seconds(self, kind: Kind, operations: float) -> float:
        """Return about how long one core takes for so many operations of a kind."""
        return operations / getattr(self, kind)

    def work(self, operations: Operations) -> float:
        """Return about how long one core takes for all these operations."""
        total = 0.0
        for kind, number in operations.items():
            total += number / getattr(self, kind)
        return total


def stored_rates() -> Rates:
    """Return the rates that the calibration wrote."""
    written = json.loads(files("polymargin.solvers").joinpath("effort.json").read_text(encoding="utf-8"))
    return Rates(**{field.name: float(written[field.name]) for field in fields(Rates)})


RATES = stored_rates()
