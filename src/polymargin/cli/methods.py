"""The methods by name: the classifier of each, and the search that tunes it."""

import os
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from polymargin import (
    BudgetSearch,
    MarginSearch,
    MulticategorySVC,
    PredictionSetClassifier,
    ProbabilityClassifier,
    ProximalSVC,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSearch,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    make_cost_scorer,
)
from polymargin.cli.names import DEFAULT_BUDGET, CostsIn, Kernel, Method, Misuse

MANY_ROWS = 5_000
"""Rows beyond which the machine of Lee, Lin & Wahba is given landmarks: its kernel matrix would have gigabytes."""

LANDMARKS = 500
AT_ONCE = min(os.cpu_count() or 1, 4)
"""Settings that a budgeted search tries at once."""

SEARCHED_ROWS = 1_000
"""Rows up to which a method's own search tries its whole grid on all of them; beyond, a budget decides."""

CS = tuple(4.0**power for power in range(-1, 5))
WIDTHS = tuple(2.0**power for power in range(-3, 4))
"""Multiples of the width "scale" that are searched."""

LINEAR_CS = tuple(10.0**power for power in range(-3, 2))
ROBUST_CS = tuple(2.0**power for power in range(-6, 7, 2))
SPARSE_CS = tuple(2.0**power for power in range(-8, 3, 2))
SEARCH_TOL = 1e-3
"""Relative gap of the machines that `auto` fits: the decisions do not change beyond."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A method and how it is to be used.

    Attributes
    ----------
    C, kernel, landmarks : None for what suits the method and the data.
    costs, priors : (k, k) and (k,) arrays in the order of the classes, or None.
    by_row : whether rows have costs of their own, instead of those of classes.
    costs_in : where the costs act.
    probabilities : whether the classifier is to have probabilities, which costs in the decisions need.
    sets : probability that sets of classes are to hold the true one with; None for no sets.
    seed : draws landmarks and folds.
    budget : time, "60s" for example; None for a method's own search where rows are few.
    """

    method: Method
    C: float | None = None
    kernel: Kernel | None = None
    landmarks: int | None = None
    costs: NDArray[np.float64] | None = None
    priors: NDArray[np.float64] | None = None
    by_row: bool = False
    costs_in: CostsIn = CostsIn.training
    probabilities: bool = False
    sets: float | None = None
    seed: int = 0
    budget: str | None = None

    def check(self) -> None:
        """Refuse what the method cannot use."""
        if not self.method.takes_costs:
            given = (
                ("--costs", self.costs_of_training is not None),
                ("--cost-columns", self.trains_by_row),
                ("--priors", self.priors is not None),
            )
            for option, is_given in given:
                if is_given:
                    raise Misuse(
                        f"{option} cannot act in the training of --method {self.method}; auto, multicategory, "
                        "sparse and robust can use it."
                    )
        if self.trains_by_row and self.sets is not None:
            raise Misuse("--sets does not go with --cost-columns in the training; --costs-in decisions does.")
        if self.method is Method.sparse and (self.kernel is Kernel.rbf or self.landmarks is not None):
            raise Misuse("--method sparse is linear: --kernel rbf and --landmarks do not go with it.")

        if self.sets is not None and not 0.0 < self.sets < 1.0:
            raise Misuse(f"--sets must be a probability above 0 and below 1, got {self.sets:g}.")

    @property
    def costs_of_training(self) -> NDArray[np.float64] | None:
        """The costs, where they act in the training."""
        return None if self.costs_in is CostsIn.decisions else self.costs

    @property
    def costs_of_decisions(self) -> NDArray[np.float64] | None:
        """The costs, where they act in the decisions."""
        return None if self.costs_in is CostsIn.training else self.costs

    @property
    def trains_by_row(self) -> bool:
        """Whether the classifier is fitted to costs of rows."""
        return self.by_row and self.costs_in is not CostsIn.decisions

    @property
    def decides_by_row(self) -> bool:
        """Whether rows are decided on by their own costs."""
        return self.by_row and self.costs_in is not CostsIn.training

    @property
    def is_probable(self) -> bool:
        """Whether the classifier gets probabilities."""
        decides = self.costs_of_decisions is not None or self.decides_by_row
        return self.probabilities or self.sets is not None or decides

    def with_probabilities(self, machine: Any) -> Any:
        """Return the machine with probabilities around it, and sets where asked for."""
        if self.sets is not None:
            return PredictionSetClassifier(machine, coverage=self.sets, cost_matrix=self.costs_of_decisions)
        return ProbabilityClassifier(machine, cost_matrix=self.costs_of_decisions)

    def budget_for(self, n_rows: int, *, tune: bool) -> str | None:
        """Return the time for all that a command does: as given, or what is usual where a search may take long."""
        searches = self.tunes_itself or (tune and n_rows > SEARCHED_ROWS)
        return DEFAULT_BUDGET if self.budget is None and searches else self.budget

    @property
    def tunes_itself(self) -> bool:
        """Whether the settings are chosen without being asked to."""
        return self.method is Method.auto and self.C is None

    def landmarks_for(self, n_rows: int) -> int | None:
        """Return the number of landmarks: as asked for, or LANDMARKS where the kernel would be too large."""
        uses_kernel = self.kernel is Kernel.rbf or (self.kernel is None and self.method is Method.multicategory)
        if self.landmarks is None and uses_kernel and n_rows > MANY_ROWS and self.method is not Method.auto:
            return LANDMARKS
        return self.landmarks

    def classifier(self, n_rows: int) -> Any:
        """Return the untuned classifier."""
        given: dict[str, Any] = {} if self.C is None else {"C": self.C}
        if self.method.takes_costs:
            given |= {"cost_matrix": self.costs_of_training, "priors": self.priors}
        if self.method is Method.sparse:
            return SparseSVC(**given)
        given |= {} if self.kernel is None else {"kernel": str(self.kernel)}
        given |= {"landmarks": self.landmarks_for(n_rows), "random_state": self.seed}
        match self.method:
            case Method.auto:
                # The losses of Weston & Watkins: any costs, and by far the quickest to fit with many classes.
                return MulticategorySVC(loss="weston", tol=SEARCH_TOL, **given)
            case Method.multicategory:
                return MulticategorySVC(**given)
            case Method.proximal:
                return ProximalSVC(**given)
            case Method.shared:
                # Without bounds on the relations the fit goes on until it is certified.
                return SharedStructureSVC(bounds=None, class_weight="balanced", **given)
            case Method.robust:
                return RobustSVC(**given)
            case unknown:
                assert_never(unknown)

    def search(self, X: Any, observer: Any = None) -> Any:
        """Return the classifier within the search that tunes it, for prepared rows X.

        A search within a budget has all of it; whoever judges or saves as well gives it less.
        """
        if self.C is not None:
            raise Misuse(f"--tune chooses C itself, leave --C out; got {self.C:g}.")
        n_rows = X.shape[0]
        machine = self.classifier(n_rows)
        if self.budget is not None or self.method is Method.auto or n_rows > SEARCHED_ROWS:
            landmarks = self.landmarks_for(n_rows) or 0
            if 2 * landmarks > n_rows:
                raise Misuse(
                    f"--landmarks must be at most half of the {n_rows} rows to be tuned, got {landmarks}."
                )
            return BudgetSearch(
                machine,
                self.settings(X),
                first_rows=max(500, 2 * landmarks),  # the folds of the first round must hold that many
                budget=self.budget or DEFAULT_BUDGET,
                scoring=None if self.trains_by_row else make_cost_scorer(self.costs_of_training),
                random_state=self.seed,
                n_jobs=AT_ONCE,
                observer=observer,
            )
        match self.method:
            case Method.multicategory:
                return MarginSearch(machine, criterion="log_loss" if self.is_probable else "cost")
            case Method.proximal:
                return ProximalSVCCV(machine)
            case Method.sparse:
                # The columns are standardised before, all of them or, as asked for, none.
                return SparseSVCCV(cost_matrix=self.costs_of_training, priors=self.priors, standardize=False)
            case Method.shared:
                return SharedStructureSearch(machine)
            case Method.robust:
                gammas = [kernel_scale(X)] if self.kernel is Kernel.rbf else None
                return RobustSearch(machine, Cs=ROBUST_CS, gammas=gammas)
            case unknown:
                assert_never(unknown)

    def settings(self, X: Any) -> list[dict[str, Any]]:
        """Return the settings among which a budgeted search chooses."""
        if self.method is Method.sparse:
            return [{"C": SPARSE_CS}]
        if self.method is Method.robust:
            return [{"C": ROBUST_CS}]
        Cs: dict[str, Any] = {
            "C": [2.0**power for power in range(0, 36, 5)] if self.method is Method.proximal else CS
        }
        rbf = {"kernel": ["rbf"], **Cs, "gamma": [width * kernel_scale(X) for width in WIDTHS]}
        linear = {"kernel": ["linear"], "C": LINEAR_CS if self.method is Method.auto else Cs["C"]}
        if self.kernel is not None:
            return [rbf if self.kernel is Kernel.rbf else linear]
        if self.method is Method.multicategory:
            return [rbf]
        return [rbf, linear] if self.method is Method.auto else [linear]


def kernel_scale(X: Any) -> float:
    """Return the width that scikit-learn calls "scale"."""
    if sparse.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = float(np.asarray(X, dtype=np.float64).var())
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def tuned(classifier: Any) -> Any:
    """Return the classifier that a fitted search chose, fitted, or the classifier itself."""
    return getattr(classifier, "best_estimator_", classifier)


def machine_of(model: Any) -> Any:
    """Return the machine within a fitted model: the last step, without what is around it."""
    machine = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if isinstance(machine, PredictionSetClassifier):
        machine = machine.model_
    if isinstance(machine, RejectOptionClassifier | ProbabilityClassifier):
        machine = machine.estimator_
    return tuned(machine)
