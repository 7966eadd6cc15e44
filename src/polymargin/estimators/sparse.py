"""SparseSVC: which variable separates which classes (Guo, 2010)."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted

from polymargin.arguments import ClassWeight, PenaltyName, SparseLoss
from polymargin.checks import check_choice, check_integer, check_real, check_weight
from polymargin.estimators._base import MarginClassifier, TrainingSet
from polymargin.estimators._callbacks import with_callbacks
from polymargin.estimators._scoring import Scoring, prepared
from polymargin.estimators._sparse_machine import Machine, named_penalty, weights_from
from polymargin.estimators._transaction import all_or_nothing
from polymargin.problems.penalties import Penalty, pair_differences
from polymargin.solvers.contract import Settings, at_rest
from polymargin.solvers.sparse.settings import DEFAULTS

LOSSES = ("weston", "lee", "crammer")


class SparseClassifier(MarginClassifier):
    """Base of the sparse classifiers: what can be asked of a fitted `coef_` (n_classes, n_features)."""

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    @property
    def selected_features_(self) -> NDArray[np.intp]:
        """Positions of the variables with a coefficient other than 0."""
        check_is_fitted(self)
        return np.flatnonzero(self.coef_.any(axis=0))

    @property
    def fused_pairs_(self) -> NDArray[np.bool_]:
        """Whether the classes of a pair (rows) have the same coefficient of a variable (columns)."""
        check_is_fitted(self)
        return pair_differences(self.coef_) == 0.0

    def pairwise_coef(self, a: Any, b: Any) -> NDArray[np.float64]:
        """Return the coefficients of ``f_a - f_b``, zero where a variable does not separate classes a and b.

        Parameters
        ----------
        a, b : class labels

        Returns
        -------
        ndarray of shape (n_features,)
        """
        check_is_fitted(self)
        positions = []
        for label in (a, b):
            found = np.flatnonzero(self.classes_ == label)
            if len(found) != 1:
                raise ValueError(f"{label!r} is not among the classes {self.classes_.tolist()}.")
            positions.append(found[0])
        return self.coef_[positions[0]] - self.coef_[positions[1]]

    def separations(self) -> Any:
        """Tell for every selected variable which classes it separates.

        Returns
        -------
        pandas.DataFrame, or a list of dicts where pandas is not installed
            One row per selected variable, widest range of coefficients first: `feature`, `partition` (the groups
            of classes with the same coefficient, the highest first, such as ``"RMS > BL = EWS"``) and for every
            class its coefficient, in a column such as `coef_RMS`.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        selected = self.selected_features_
        ranges = np.ptp(self.coef_[:, selected], axis=0)
        coefficients = [f"coef_{label}" for label in self.classes_]
        rows = [
            {
                "feature": names[j],
                "partition": _partition(self.coef_[:, j], self.classes_),
                **dict(zip(coefficients, self.coef_[:, j].tolist(), strict=True)),
            }
            for j in selected[np.argsort(-ranges, kind="stable")]
        ]
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame(rows, columns=["feature", "partition", *coefficients])

    def _scoring(self) -> Scoring:
        return prepared(self, (self.coef_, self.intercept_), _selected_scoring)


def _selected_scoring(coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> Scoring:
    selected = np.flatnonzero(coef.any(axis=0))
    return Scoring(np.ascontiguousarray(coef[:, selected].T), intercept, columns=selected)


def _partition(coef: NDArray[np.float64], classes: NDArray) -> str:
    """Name the groups of classes with equal coefficients, the highest first."""
    groups = (" = ".join(map(str, classes[coef == value])) for value in np.unique(coef)[::-1])
    return " > ".join(groups)


class SparseSVC(SparseClassifier):
    """Linear multicategory SVM that tells which variable separates which classes.

    Finds scores ``f_k(x) = w_k.x + b_k`` that sum to zero over the classes and minimise ::

        J(W) + C * sum_i w_i loss(f(x_i), y_i)

    with one of the penalties, ``tau`` being 1 unless `adaptive`,

    - ``"fusion"``: ``sum_j sum_{k<l} tau_jkl |w_kj - w_lj|``: classes that variable j does not separate get
      exactly the same coefficient;
    - ``"supnorm"``: ``sum_j max_k tau_kj |w_kj|``: a variable enters or stays out for all classes;
    - ``"l1"``: ``sum_kj tau_kj |w_kj|``;
    - ``"group"``: ``sum_j tau_j (sum_k w_kj^2)^(1/2)``: for all classes or none, like the sup-norm;
    - ``"elastic_net"``: half of "l1" and half of "l2" (`ElasticNetPenalty` for other parts);
    - ``"l2"``: ``sum_kj w_kj^2``, which selects nothing;

    or with a penalty object of your own (`polymargin.extend.Penalty`),
    and with the losses of `MulticategorySVC`. In the notation of the paper ``C = 1/lambda``, its loss (1) is
    ``loss="lee"`` up to the scale of W, and its methods are

    ====== ========= ==============      ====== ========= ==============
    paper  penalty   adaptive            paper  penalty   adaptive
    ====== ========= ==============      ====== ========= ==============
    PF     fusion    False               APF    fusion    True
    L1     l1        False               AL1    l1        True
    SN     supnorm   False               ASN-I  supnorm   True
    L2     l2        False               ASN-II supnorm   "per_variable"
    ====== ========= ==============      ====== ========= ==============

    The variables should be of one scale: `SparseSVCCV` standardises them itself.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed losses against the penalty.
    penalty : {"fusion", "supnorm", "l1", "group", "elastic_net", "l2"} or Penalty, default="fusion"
        The penalty: a name, or an object such as ``ElasticNetPenalty(l1_ratio=0.8)``. "group", "elastic_net" and
        objects of your own are described to the solver by tangents, which takes some tens of rounds of cuts.
    adaptive : bool, "per_variable" or array-like, default=False
        Weights tau: False for ones; True for ``1/|w~_kj|^g`` or, with fusion, ``1/|w~_kj - w~_lj|^g``, from an
        initial fit w~ with the l2 penalty; "per_variable" for one weight per variable, from the largest of these
        sizes; or the weights themselves, (n_classes, n_features), for fusion (n_pairs, n_features) with the pairs
        (0, 1), (0, 2), ... of `classes_`, for group (1, n_features).
    adaptive_power : float, default=1.0
        The power g.
    adaptive_rounds : int, default=1
        How often weights are computed: from the second round on from the sparse fit of the round before.
    initial_C : float, default=1.0
        C of the initial fit.
    loss : {"weston", "lee", "crammer"}, default="weston"
        The loss. "lee" cannot find classes that lie between others.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Costs as in `MulticategorySVC`; with "crammer" one cost per true class.
    priors : array-like, dict or None, default=None
        Proportions of the classes in the population, where the sample does not have them.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the classes.
    solver : str or object, default="auto"
        "cutting_planes", which takes every penalty; "squared_norm" (``penalty="l2"``), which states the problem as
        a `MulticategorySVC`, whose methods `trace_` then tells; or an object with the methods `solve` and
        `accepts` of a solver. "auto" is the second where that can be, also for the initial fits of weights.
    tol : float, default=1e-8
        Relative duality gap to reach: a vertex of the linear program has it at once, and zeros and ties are exact.
    max_iter : int, default=-1
        Limit of the rounds of cuts; -1 for none.
    time_limit : float or None, default=None
        Limit of the whole fit in seconds.
    verbose : bool, default=False
        Log a line per round, to the logger "polymargin".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients; zeros and ties are exact.
    intercept_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes, n_samples)
        Multipliers of the hinges, between 0 and C times weight times cost; what certifies the fit.
    weights_ : ndarray or None
        The weights tau, in the shapes that `adaptive` takes; None for ones.
    selected_features_ : ndarray of shape (n_selected,)
        Positions of the variables with a coefficient other than 0.
    fused_pairs_ : ndarray of bool, shape (n_pairs, n_features)
        Whether the two classes of a pair have the same coefficient; pairs (0, 1), (0, 2), ... of `classes_`.
    certificate_ : Certificate
        Primal and dual objective of the problem over all variables, and their relative gap.
    converged_ : bool
        Whether the certificate is within `tol`.
    n_iter_ : int
        Rounds of cuts.
    solver_ : str
        Name of the method that found the solution.
    status_ : str
        Why it stopped: "solved", or the limit that it met.
    trace_ : Trace
        The methods that took part, one row each: iterations, objectives, gap, counted and predicted work.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    References
    ----------
    J. Guo (2010). Class-specific variable selection for multicategory support vector machines. Statistics and Its
    Interface 3(1), 19-26.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polymargin import SparseSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(C=0.1).fit(StandardScaler().fit_transform(X), y)
    >>> model.certificate_.gap < 1e-8
    True
    >>> model.separations()[["feature", "partition"]]
       feature  partition
    0        3  2 > 0 = 1
    1        2  1 = 2 > 0
    2        1  0 > 1 = 2
    """

    _why_in_memory = (
        "it selects among many variables of few rows, which one machine holds, and its solvers need whole columns"
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        penalty: PenaltyName | Penalty = "fusion",
        adaptive: Any = False,
        adaptive_power: float = 1.0,
        adaptive_rounds: int = 1,
        initial_C: float = 1.0,
        loss: SparseLoss = "weston",
        cost_matrix: Any = None,
        priors: Any = None,
        class_weight: ClassWeight = None,
        solver: Any = "auto",
        tol: float = 1e-8,
        max_iter: int = -1,
        time_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.penalty = penalty
        self.adaptive = adaptive
        self.adaptive_power = adaptive_power
        self.adaptive_rounds = adaptive_rounds
        self.initial_C = initial_C
        self.loss = loss
        self.cost_matrix = cost_matrix
        self.priors = priors
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; a weight of 2 equals the row given twice.
        costs : array-like or DataFrame of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, instead of `cost_matrix`, as in `MulticategorySVC.fit`.

        Returns
        -------
        self
        """
        settings, data, machine, penalty = self._prepare(X, y, sample_weight, costs)
        settings = settings.started()
        self.weights_ = self._weights(machine, penalty, settings)
        penalty = penalty if self.weights_ is None else penalty.weighted(self.weights_)
        solution = at_rest(machine.solve, penalty, self.C, settings, solver=self.solver, observer=self._observer())
        self.classes_ = data.classes
        self.coef_ = solution.point.coef
        self.intercept_ = solution.point.intercept
        self.dual_coef_ = self.C * machine.spread(solution.point.dual, data.rows, _num_samples(X)).T
        self._conclude(solution, settings.tol)
        return self

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, costs: Any = None
    ) -> tuple[Settings, TrainingSet, Machine, Penalty]:
        """Check every argument, then the data, and state the losses and the penalty."""
        settings = self._settings()
        check_weight("C", self.C)
        check_weight("initial_C", self.initial_C)
        check_real("adaptive_power", self.adaptive_power, above=0.0, at_most=5.0)
        check_integer("adaptive_rounds", self.adaptive_rounds, at_least=1)
        named_penalty(self.penalty)
        check_choice("loss", self.loss, LOSSES)
        if isinstance(self.adaptive, str) and self.adaptive != "per_variable":
            raise ValueError(
                f"adaptive must be True, False, 'per_variable' or an array of weights, got {self.adaptive!r}."
            )
        data = self._training_set(X, y, sample_weight, costs=costs)
        machine = Machine.of(data, self.loss)
        penalty = machine.penalty(self.penalty)
        machine.method(self.solver, machine.problem(penalty, self.C))  # refused before the initial fit
        return settings, data, machine, penalty

    def _weights(self, machine: Machine, penalty: Penalty, settings: Settings) -> NDArray[np.float64] | None:
        """Return the weights tau that `adaptive` asks for, None for those that the penalty has."""
        flag = isinstance(self.adaptive, (bool, np.bool_, str))
        if flag and not self.adaptive:
            return None
        machine.check_weighted(penalty, self.adaptive)
        if not flag:
            return machine.given_weights(penalty, self.adaptive)
        initial = replace(settings, tol=max(settings.tol, DEFAULTS.initial_tol))
        coef = machine.solve_l2(self.initial_C, initial).point.coef
        for _ in range(self.adaptive_rounds - 1):
            weighted = penalty.weighted(self._weights_from(coef, penalty))
            coef = machine.solve(weighted, self.C, settings).point.coef
        return self._weights_from(coef, penalty)

    def _weights_from(self, coef: NDArray[np.float64], penalty: Penalty) -> NDArray[np.float64]:
        return weights_from(coef, penalty, power=self.adaptive_power, per_variable=isinstance(self.adaptive, str))
