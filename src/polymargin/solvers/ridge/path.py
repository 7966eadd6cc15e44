"""Ridge regression for all C at once: one decomposition per problem, then a product for every C.

With ``E'N E = V diag(l) V'`` the solution is ``V diag(1 / (l + 1/C)) V'E'N d``. Decomposing the moments
is quick; where the largest C would show that squaring the rows has cost digits, the rows are decomposed instead.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.proximal import NormalEquations, RowProblem
from polymargin.solvers.ridge.class_qr import ClassQR, qr_per_class, weighted_systems
from polymargin.solvers.ridge.settings import DEFAULTS
from polymargin.threads import eigh, svd


@dataclass(frozen=True, slots=True)
class SpectralRidge:
    """A ridge problem in the basis of its principal axes.

    Attributes
    ----------
    values : (m,) squared singular values l.
    vectors : (q, m) principal axes V.
    target : (m,) the right-hand side ``V'E'N d``.
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    target: NDArray[np.float64]

    def inverse(self, Cs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``1 / (l + 1/C)`` (m, n_Cs)."""
        return 1.0 / (self.values[:, None] + 1.0 / Cs)

    def coefficients(self, Cs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the solutions (q, n_Cs)."""
        return self.vectors @ (self.target[:, None] * self.inverse(Cs))


def decompose(
    problem: NormalEquations | None,
    rows: RowProblem | None,
    largest_C: float,
    class_qr: ClassQR | None = None,
) -> list[SpectralRidge]:
    """Decompose the problems by their moments, or by their rows where those are not accurate enough or not given.

    One of both may be missing: without rows the moments have to do, without moments the rows are used, by their
    `class_qr` if that is at hand.
    """
    if problem is not None and class_qr is None:
        bases = [eigh(hessian) for hessian in problem.hessians()]
        worst = max(values[-1] / (max(values[0], 0.0) + 1.0 / largest_C) for values, _ in bases)
        if rows is None or worst <= DEFAULTS.squaring_suffices:
            targets = problem.targets()
            groups = [targets] if len(bases) == 1 else targets.T[:, :, None]
            return [
                SpectralRidge(np.maximum(values, 0.0), vectors, column)
                for (values, vectors), group in zip(bases, groups, strict=True)
                for column in (vectors.T @ group).T
            ]
    if rows is None:
        raise ValueError("one of problem and rows must be given, got None for both.")
    spectra = []
    for system in weighted_systems(qr_per_class(rows) if class_qr is None else class_qr, rows.sides):
        U, s, Vt = svd(system.A)
        spectra += [SpectralRidge(s**2, Vt.T, s * column) for column in (U.T @ system.right).T]
    return spectra
