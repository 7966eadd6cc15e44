"""How slow the losses of the general method are: python -m benchmarks.machines [--rows 150 400] [--markdown FILE].

Every loss that has a name is fitted to the same rows of Gaussian classes, linear and with an RBF kernel. Ratios
are of processor time to the least of three fits with "weston", which has methods of its own; the last row is
"weston" by the general method.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.common import Goals, Table, markdown_option, mixture
from polymargin import MulticategorySVC
from polymargin.problems.hinge import LOSSES

SPECIAL = "weston"
GENERAL = "general_newton"


def seconds(loss: str, kernel: str, X: np.ndarray, y: np.ndarray, solver: str = "auto") -> tuple[float, str]:
    """Return processor time of a fit, and the method that found the solution."""
    began = time.process_time()
    model = MulticategorySVC(loss=loss, kernel=kernel, solver=solver).fit(X, y)
    taken = time.process_time() - began
    return taken if model.converged_ else np.inf, model.solver_


def main() -> None:
    """Fit, print the ratios and, where asked to, write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[150, 400], help="numbers of rows")
    markdown_option(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    columns = (
        "loss",
        *(f"{kernel} {n}" for kernel in ("linear", "rbf") for n in arguments.rows),
        "linear by",
        "rbf by",
    )
    table = Table(columns, width=14)
    cases = [(f"{kernel} {n}", kernel, n) for kernel in ("linear", "rbf") for n in arguments.rows]
    data = {n: mixture(n, 10, 4, separation=1.0) for n in arguments.rows}
    with threadpool_limits(1):
        usual = {case: min(seconds(SPECIAL, kernel, *data[n])[0] for _ in range(3)) for case, kernel, n in cases}
        for loss, solver in [*((loss, "auto") for loss in LOSSES), (SPECIAL, GENERAL)]:
            row: dict[str, object] = {"loss": loss if solver == "auto" else f"{loss}, general"}
            for case, kernel, n in cases:
                taken, method = seconds(loss, kernel, *data[n], solver)
                row[case], row[f"{kernel} by"] = taken / usual[case], method
            table.add(**row)
    asked = " ".join(map(str, arguments.rows))
    table.write(arguments.markdown, f"python -m benchmarks.machines --rows {asked}", Goals())


if __name__ == "__main__":
    main()
