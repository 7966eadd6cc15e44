"""The only place that chooses: which methods a hinge problem is given to, in which order, with how much work each.

Every method has an estimate of its work (`solvers.effort` says what operations take). The cheapest is tried first;
one that has done its share of work without reaching the tolerance is left, and the next goes on from the best
point. Block descent, whose number of sweeps nobody can foretell, is first given as much work as the cheapest of
the others would take: so it never costs more than twice the better choice, and often a tenth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy import sparse

from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem
from polymargin.solvers.contract import Solver
from polymargin.solvers.effort import RATES, Rates
from polymargin.solvers.hinge.block_descent import BlockDescent
from polymargin.solvers.hinge.decomposition import Decomposition
from polymargin.solvers.hinge.feature_newton import FeatureNewton
from polymargin.solvers.hinge.general import GeneralNewton
from polymargin.solvers.hinge.interior_point import ENTRIES_VISITED, InteriorPoint, operations_per_iteration
from polymargin.solvers.hinge.kernel_interior import seconds_to_solve

METHODS: dict[str, type] = {
    method.name: method for method in (Decomposition, InteriorPoint, FeatureNewton, BlockDescent, GeneralNewton)
}
"""The methods that users may name."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A method, the work that it is expected to take and at most may take; None: nobody knows, no limit."""

    method: Solver
    predicted: float | None = None
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds and expectations; an instance is passed to whoever needs other ones.

    Attributes
    ----------
    small_rows : rows up to which the kernel matrix is formed whatever the features: the decomposition ends in
        rounding error there.
    gram_rows : rows up to which it may be formed at all.
    newton_features : features up to which matrices of that size are factorised once per class.
    interior_unknowns : unknowns, (features + 1)(k - 1), up to which one matrix of that size is.
    interior_iterations : that a gap of 1e-3 takes, for losses that see single scores and for others.
    descent_sweeps : that block descent is expected to need on easy problems.
    working_set_passes : passes of the working sets' steps over the kernel matrix, per class.
    newton_steps, newton_products, newton_entries : steps of the proximal Newton method, all its products with the
        features, and all its passes over examples and classes.
    patience : how often its predicted work a method may do.
    shortest : work, in seconds, that every method may do.
    rates : of operations.
    """

    small_rows: int = 500
    gram_rows: int = 5000
    newton_features: int = 1500
    interior_unknowns: int = 1000
    interior_iterations: tuple[int, int] = (18, 42)
    descent_sweeps: int = 60
    working_set_passes: float = 30.0
    newton_steps: int = 80
    newton_products: float = 640.0
    newton_entries: float = 1500.0
    patience: float = 2.5
    shortest: float = 0.1
    rates: Rates = RATES

    def stages(self, problem: HingeProblem) -> Sequence[Stage]:
        """Return the methods for a problem, in the order in which to try them."""
        small = not isinstance(problem.gram, FeatureGram) or problem.gram.n <= self.small_rows
        if not problem.losses.is_compiled:
            special = () if small else self._candidates(problem)
            return *(stage for stage in special if stage.method.name == "interior_point"), Stage(GeneralNewton())
        if small:
            return (Stage(Decomposition()),)
        others = sorted(self._candidates(problem), key=lambda stage: stage.predicted or 0.0)
        if not others:
            return (Stage(BlockDescent()),)
        if problem.losses.sees_single_scores:  # block descent needs thousands of sweeps
            return others
        k = problem.losses.n_classes
        share = max(others[0].predicted or 0.0, self.shortest)
        sweeps = self.rates.seconds("sweep", 2.0 * self.descent_sweeps * _stored(problem) * k)
        return Stage(BlockDescent(), sweeps, share), *others, Stage(BlockDescent())

    def _candidates(self, problem: HingeProblem) -> Sequence[Stage]:
        """Return the methods other than block descent that can take the problem, with their work."""
        n, p, k = _shape(problem)
        single = problem.losses.sees_single_scores
        found: list[tuple[Solver, float]] = []
        falls_apart = single and p <= self.newton_features
        if falls_apart or (p + 1) * (k - 1) <= self.interior_unknowns:
            products, factors = operations_per_iteration(n, p + 1, k, k if single else k * (k - 1) // 2)
            once = self.rates.seconds("product", products) + self.rates.seconds("factor", factors)
            once += self.rates.seconds("entry", ENTRIES_VISITED * (2.0 if single else 1.0) * n * k)
            found.append((InteriorPoint(), self.interior_iterations[0 if single else 1] * once))
        if n <= self.gram_rows:
            gram = self.rates.seconds("product", float(n) * _stored(problem))
            steps = self.rates.seconds("sweep", self.working_set_passes * n**2 * k)
            found.append((Decomposition(), gram + (2.0 * seconds_to_solve(n, k) if single else steps)))
        if p <= min(n, self.newton_features):
            rows = min(n, 5 * p + 500)
            products = self.newton_products * _stored(problem) * k + self.newton_steps * k * float(rows) * p**2
            factors = self.newton_steps * k * p**3 / 3.0
            work = self.rates.seconds("product", products) + self.rates.seconds("factor", factors)
            work += self.rates.seconds("entry", self.newton_entries * n * k)
            found.append((FeatureNewton(), work))
        return [Stage(method, work, max(self.patience * work, self.shortest)) for method, work in found]

    def stages_of(self, solver: Any, problem: HingeProblem) -> Sequence[Stage]:
        """Return the stages for `solver`: "auto", a name of `METHODS`, or a solver of the user's own.

        Raises
        ------
        ValueError
            The name is unknown, or the solver does not accept the problem.
        TypeError
            The object is no solver.
        """
        fit = [name for name, method in METHODS.items() if method().accepts(problem) is True]
        if isinstance(solver, str) and solver == "auto":
            stages = [stage for stage in self.stages(problem) if stage.method.accepts(problem) is True]
            stages = stages or [Stage(METHODS[name]()) for name in fit[:1]]
            if not stages:
                raise ValueError(f"no solver takes this problem: {Decomposition().accepts(problem)}")
            return *stages[:-1], replace(stages[-1], budget=None)
        if isinstance(solver, str):
            if solver not in METHODS:
                raise ValueError(
                    f"solver must be 'auto', a solver or one of {fit} for this problem, got {solver!r}."
                )
            solver = METHODS[solver]()
        if not (callable(getattr(solver, "solve", None)) and callable(getattr(solver, "accepts", None))):
            raise TypeError(
                f"solver must be 'auto', a name or an object with the methods solve and accepts, got {solver!r}."
            )
        answer = solver.accepts(problem)
        if answer is not True:
            raise ValueError(f"solver {solver.name!r} cannot take this problem: {answer}")
        return (Stage(solver),)


def _shape(problem: HingeProblem) -> tuple[int, int, int]:
    assert isinstance(problem.gram, FeatureGram)
    return *problem.gram.features.shape, problem.losses.n_classes


def _stored(problem: HingeProblem) -> float:
    """Return the number of entries of the features that are stored."""
    assert isinstance(problem.gram, FeatureGram)
    features = problem.gram.features
    return float(features.nnz if sparse.issparse(features) else features.size)
