"""What ran: one row per method that took part in a solution."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class TraceRow:
    """What one method did.

    Attributes
    ----------
    method : str
        Name of the method.
    iterations : int
        Its iterations.
    primal, dual : float
        Objectives when it ended; of the solution's certificate in the last row.
    work : float or None
        Work that it counted, in about seconds of one core: operations over the rates of `solvers.effort`, never
        measured by a clock; None where a method does not count.
    predicted : float or None
        Work that was expected of it before it ran; None where nobody had to know.
    """

    method: str
    iterations: int
    primal: float
    dual: float
    work: float | None = None
    predicted: float | None = None

    @property
    def gap(self) -> float:
        """Relative gap when the method ended."""
        return (self.primal - self.dual) / max(1.0, abs(self.primal))

    def followed_by(self, later: "TraceRow") -> "TraceRow":
        """Return one row for the same method run again from where it stopped."""
        work = None if self.work is None and later.work is None else (self.work or 0.0) + (later.work or 0.0)
        iterations = self.iterations + later.iterations
        return TraceRow(self.method, iterations, later.primal, later.dual, work, self.predicted)


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """The methods that led to a solution, in the order in which they ran.

    Examples
    --------
    >>> rows = TraceRow("decomposition", 12, 3.5, 3.25, 0.2), TraceRow("active_set", 2, 3.5, 3.5, 0.4, 0.3)
    >>> trace = Trace(rows)
    >>> trace
    method         iterations    primal      dual       gap      work  predicted
    decomposition          12       3.5      3.25    0.0714       0.2          -
    active_set              2       3.5       3.5         0       0.4        0.3
    >>> [row.method for row in trace], len(trace), trace[-1].iterations
    (['decomposition', 'active_set'], 2, 2)
    """

    rows: tuple[TraceRow, ...] = ()

    def __iter__(self) -> Iterator[TraceRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> TraceRow:
        return self.rows[at]

    def __repr__(self) -> str:
        lines = [f"{'method':<13}  iterations    primal      dual       gap      work  predicted"]
        for row in self.rows:
            work, predicted = ("-" if value is None else f"{value:.3g}" for value in (row.work, row.predicted))
            lines.append(
                f"{row.method:<13}  {row.iterations:>10}  {row.primal:>8.5g}  {row.dual:>8.5g}  {row.gap:>8.3g}  "
                f"{work:>8}  {predicted:>9}"
            )
        return "\n".join(lines)

    def scaled(self, factor: float) -> "Trace":
        """Return the trace of a problem whose objective is `factor` times this one's."""
        return Trace(tuple(replace(row, primal=factor * row.primal, dual=factor * row.dual) for row in self.rows))

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Returns
        -------
        DataFrame with columns method, iterations, primal, dual, gap, work, predicted
        """
        import pandas as pd

        columns = ["method", "iterations", "primal", "dual", "gap", "work", "predicted"]
        return pd.DataFrame([asdict(row) | {"gap": row.gap} for row in self.rows], columns=columns)
