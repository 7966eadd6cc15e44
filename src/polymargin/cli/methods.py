"""The methods by name: the classifier of each, and the search that tunes it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    ProximalSVC,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    make_cost_scorer,
)
from polymargin.cli._terminal import Misuse

MANY_ROWS = 5_000
"""Rows beyond which a kernel machine is given landmarks: its kernel matrix would have a gigabyte and more."""

LANDMARKS = 500
ROBUST_CS = tuple(2.0**power for power in range(-6, 7, 2))


class Method(StrEnum):
    """The five families."""

    multicategory = "multicategory"
    proximal = "proximal"
    sparse = "sparse"
    shared = "shared"
    robust = "robust"

    @property
    def takes_costs(self) -> bool:
        """Whether costs and priors can act in the training."""
        return self in (Method.multicategory, Method.sparse, Method.robust)


class Kernel(StrEnum):
    """The kernels offered."""

    linear = "linear"
    rbf = "rbf"


@dataclass(frozen=True, slots=True)
class Choice:
    """A method and how it is to be used.

    Attributes
    ----------
    C, kernel, landmarks : None for what suits the method and the data.
    costs, priors : (k, k) and (k,) arrays in the order of the classes, or None.
    seed : draws landmarks and folds.
    shown : whether searches show how far they are.
    """

    method: Method
    C: float | None = None
    kernel: Kernel | None = None
    landmarks: int | None = None
    costs: NDArray[np.float64] | None = None
    priors: NDArray[np.float64] | None = None
    seed: int = 0
    shown: bool = False

    def check(self) -> None:
        """Refuse what the method cannot use."""
        if not self.method.takes_costs:
            for option, value in (("--costs", self.costs), ("--priors", self.priors)):
                if value is not None:
                    raise Misuse(
                        f"{option} cannot act in the training of --method {self.method}; multicategory, sparse "
                        "and robust can use it."
                    )
        if self.method is Method.sparse and (self.kernel is Kernel.rbf or self.landmarks is not None):
            raise Misuse("--method sparse is linear: --kernel rbf and --landmarks do not go with it.")

    def landmarks_for(self, n_rows: int) -> int | None:
        """Return the number of landmarks: as asked for, or LANDMARKS where the kernel would be too large."""
        uses_kernel = self.kernel is Kernel.rbf or (self.kernel is None and self.method is Method.multicategory)
        if self.landmarks is None and uses_kernel and n_rows > MANY_ROWS:
            return LANDMARKS
        return self.landmarks

    def classifier(self, n_rows: int) -> Any:
        """Return the untuned classifier."""
        given: dict[str, Any] = {} if self.C is None else {"C": self.C}
        if self.method.takes_costs:
            given |= {"cost_matrix": self.costs, "priors": self.priors}
        if self.method is Method.sparse:
            return SparseSVC(**given)
        given |= {} if self.kernel is None else {"kernel": str(self.kernel)}
        given |= {"landmarks": self.landmarks_for(n_rows), "random_state": self.seed}
        match self.method:
            case Method.multicategory:
                return MulticategorySVC(**given)
            case Method.proximal:
                return ProximalSVC(**given)
            case Method.shared:
                # Without bounds on the relations the fit goes on until it is certified.
                return SharedStructureSVC(bounds=None, class_weight="balanced", **given)
            case _:
                return RobustSVC(**given)

    def search(self, n_rows: int) -> Any:
        """Return the classifier within the search that tunes it."""
        if self.C is not None:
            raise Misuse(f"--tune chooses C itself, leave --C out; got {self.C:g}.")
        machine = self.classifier(n_rows)
        match self.method:
            case Method.multicategory:
                return MarginSearch(machine, verbose=self.shown)
            case Method.proximal:
                return ProximalSVCCV(machine)
            case Method.sparse:
                # The columns are standardised before, all of them or, as asked for, none.
                return SparseSVCCV(
                    cost_matrix=self.costs, priors=self.priors, standardize=False, verbose=self.shown
                )
            case Method.shared:
                return SharedStructureSearch(machine, verbose=self.shown)
            case _:
                return GridSearchCV(machine, {"C": ROBUST_CS}, scoring=make_cost_scorer(self.costs))


def tuned(classifier: Any) -> Any:
    """Return the classifier that a fitted search chose, fitted, or the classifier itself."""
    return getattr(classifier, "best_estimator_", classifier)


def machine_of(model: Any) -> Any:
    """Return the machine within a fitted model: the last step, without search and rejection around it."""
    machine = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if isinstance(machine, RejectOptionClassifier):
        machine = machine.estimator_
    return tuned(machine)
