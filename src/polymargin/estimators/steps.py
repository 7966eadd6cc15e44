"""The steps of a fit by name: all that searches, paths and criteria ask of an estimator beyond what users call.

A search prepares once what its fits share, and goes through the steps itself for every setting. They are methods
of the estimators, which users do not see; this is the one door to them from other packages.
"""

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from polymargin.estimators._base import TrainingSet
from polymargin.estimators._scoring import Scoring
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers.contract import Settings, Solution

if TYPE_CHECKING:
    from polymargin.gram import Gram

# of every estimator


def check_arguments(machine: Any) -> Settings:
    """Check the arguments that do not depend on data, and return the solver's settings."""
    return machine._check_arguments()


def is_pairwise(machine: Any) -> bool:
    """Tell whether rows are rows of a kernel matrix."""
    return machine._is_pairwise()


def training_set(machine: Any, X: Any, y: Any, sample_weight: Any = None, **given: Any) -> TrainingSet:
    """Check rows, labels, weights and costs, and return them encoded."""
    return machine._training_set(X, y, sample_weight, **given)


def prepare(machine: Any, X: Any, y: Any, sample_weight: Any, *costs: Any) -> Any:
    """Return all that a fit needs: the settings, the training set and what the family adds to them."""
    return machine._prepare(X, y, sample_weight, *costs)


def check_partitionable(machine: Any) -> None:
    """Refuse a kernel that rows in partitions cannot have."""
    machine._check_partitionable()


def conclude(machine: Any, solution: Solution, tol: float) -> None:
    """Store what the solver tells, and warn where it has not converged."""
    machine._conclude(solution, tol)


def scoring(machine: Any) -> Scoring:
    """Return the scores of a fitted estimator as a function of rows."""
    return machine._scoring()


def scores(machine: Any, X: Any) -> NDArray:
    """Return the scores of all classes on rows that were checked already."""
    return machine._scores(X)


# of kernel machines


def gram(machine: Any, kernel: Any, X: Any, nystroem: Any) -> "Gram":
    """Return the kernel matrix of rows, or their features, as the estimator's cache allows."""
    return machine._gram(kernel, X, nystroem)


def store(
    machine: Any, data: TrainingSet, kernel: Any, nystroem: Any, problem: HingeProblem, point: HingePoint
) -> None:
    """Store the solution of a kernel machine."""
    machine._store_solution(data, kernel, nystroem, problem, point)


def support_problem(machine: Any) -> tuple[HingeProblem, HingePoint]:
    """Return the problem of the support vectors alone, and its solution."""
    return machine._support_problem()


def fitted_rows(machine: Any) -> int:
    """Return the number of rows that a kernel machine was fitted to."""
    return machine._fit_record.n_rows


def hand_on(machine: Any) -> None:
    """Let the next fit of a machine keep what `left_out_scores` needs, until it is asked for."""
    if hasattr(machine, "_hands_on"):
        machine._hands_on = True


def left_out_scores(machine: Any, *rows: Any, **costs: Any) -> NDArray | None:
    """Return the scores of every row without itself; None where the estimator cannot tell."""
    return machine._left_out_scores(*rows, **costs)


def equal_rows(machine: Any) -> NDArray | None:
    """Return a number for every row that equal rows of a class share, where the fit that hands on knows it."""
    return machine._equal_rows() if hasattr(machine, "_equal_rows") else None


# of machines on moments


def features(machine: Any, data: Any) -> Any:
    """Return the map from rows to features; None for the rows themselves."""
    return machine._features(data)


def statement(machine: Any, data: Any, mapped: Any) -> Any:
    """Return the moments, the problem, the rows and their factors of a proximal machine."""
    return machine._state(data, mapped)


def adopt(machine: Any, data: Any, mapped: Any, moments: Any, Z: NDArray, rows: Any) -> None:
    """Take over the solution of a proximal machine, and refine it."""
    machine._adopt(data, mapped, moments, Z, rows)


def fit_prepared(machine: Any, data: Any, mapped: Any, settings: Settings) -> Solution:
    """Fit a proximal machine to a training set."""
    return machine._fit_prepared(data, mapped, settings)


def begin(machine: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return settings, training set, features and observer of a machine of tasks."""
    return machine._begin(X, y, sample_weight)


def summarise(machine: Any, data: Any, mapped: Any) -> Any:
    """Return the moments of the tasks, those of the classes, and the rotation of the features."""
    return machine._summarise(data, mapped)


def tasks(machine: Any, moments: Any, classes: NDArray) -> Any:
    """Return the moments of the tasks from those of the classes."""
    return machine._tasks(moments, classes)


def codes(machine: Any, n_classes: int) -> NDArray:
    """Return the signs of the classes in the tasks."""
    return machine._codes(n_classes)


def augmented(machine: Any, data: TrainingSet, mapped: Any) -> NDArray:
    """Return the features of rows with the column of the intercept."""
    return machine._augmented(data, mapped)


def problem(machine: Any, *tasks_and_classes: Any) -> Any:
    """Return the problem of shared structure, or of the trace norm."""
    return machine._problem(*tasks_and_classes)


def starts(machine: Any, stated: Any, base_step: Any) -> list[NDArray]:
    """Return the relations from which shared structure is sought."""
    return machine._starts(stated, base_step)


def solve(machine: Any, stated: Any, base_step: Any, settings: Settings) -> Solution:
    """Solve a problem of shared structure from every start, and return the best solution."""
    return machine._solve(stated, base_step, settings)


def stops_early(machine: Any) -> bool:
    """Tell whether the limit of iterations is part of the method."""
    return machine._early_stopping()


# of robust and sparse machines


def utilities(machine: Any, data: TrainingSet) -> NDArray:
    """Return the utilities of decisions of a robust machine."""
    return machine._utilities(data)


def truncation(machine: Any, n_classes: int) -> float:
    """Return the level at which a robust machine truncates its losses."""
    return machine._truncation(n_classes)


def penalty_weights(machine: Any, prepared: Any, penalty: Any, settings: Settings) -> Any:
    """Return the weights of the penalty of a sparse machine."""
    return machine._weights(prepared, penalty, settings)
