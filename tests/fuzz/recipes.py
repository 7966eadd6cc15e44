"""Recipes of calls: plain text from which the same call can be made again, drawn at random.

A recipe names what is called, its parameters as Python expressions, and how rows, labels and weights are made.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from polymargin.problems.hinge import catalogue

WRONG = (
    "None", "'nonsense'", "nan", "inf", "-1", "0", "True", "[]", "1e300", "1e-300", "object()", "2.5", "'1'",
    "np.ones(2)", "{}", "-1e30", "10**400", "np.nan * np.ones((3, 3))", "1j", "(1, 2)", "'\\x1b[31m'",
)  # fmt: skip
"""Values that most parameters must refuse."""

C = ("1.0", "1e-3", "100.0", "1e6", "1e12", "1e-12", "1e30", "2", "np.float32(0.5)")
KERNEL = {
    "kernel": ("'linear'", "'rbf'", "'poly'", "'sigmoid'", "'laplacian'", "'precomputed'", "linear", "zeros"),
    "gamma": ("'scale'", "'auto'", "0.5", "1e-8", "1e8"),
    "degree": ("2", "3", "0", "1.5", "20"),
    "coef0": ("0.0", "1.0", "-1.0", "1e6"),
    "landmarks": ("None", "2", "5", "0.5", "1.0", "np.ones((2, 3))", "np.zeros((1, 2))", "[['a', 'b']]"),
}
CLASSES = {
    "cost_matrix": ("None", "'ordinal'", "{(0, 1): 5.0}", "np.ones((3, 3)) - np.eye(3)", "{(0, 1): 1e300}",
                    "np.zeros((3, 3))", "[[0, 1], [1, 0]]", "{('a', 'b'): 2.0}"),
    "priors": ("None", "[0.2, 0.3, 0.5]", "{0: 0.5, 1: 0.25, 2: 0.25}", "[0.5, 0.5]", "[1.0, 1e-300, 0.0]"),
    "class_weight": ("None", "'balanced'", "{0: 2.0}", "{0: 1e300}", "{7: 1.0}"),
}  # fmt: skip
STOPPING = {"tol": ("1e-4", "1e-8", "1e-15", "1.0", "1e-300"), "max_iter": ("-1", "1", "3", "50")}
TIMED = {"time_limit": ("None", "0.001", "0.5")}
LOSS = {"loss": ("'lee'", "'weston'", "'crammer'")}
LOSSES = {"loss": (*LOSS["loss"], *(f"{name!r}" for name in catalogue.LOSSES))}
RANDOM = {"random_state": ("0", "1", "None")}
SHARED = {
    "C": C,
    "relation_penalty": C,
    "scheme": ("'ovr'", "'ovo'"),
    "class_weight": CLASSES["class_weight"],
    **KERNEL,
    **STOPPING,
    **RANDOM,
}
SPARSE = {
    "penalty": ("'fusion'", "'supnorm'", "'l1'"),
    "adaptive_power": ("1.0", "0.5", "3.0", "50.0"),
    **LOSS,
    **CLASSES,
    **STOPPING,
}
MULTICATEGORY = {
    "C": C, **LOSSES, **KERNEL, **CLASSES, **STOPPING, **TIMED, **RANDOM,
    "fit_intercept": ("True", "False"), "cache_size": ("1000", "0.001", "1e-9"),
}  # fmt: skip
PROXIMAL = {
    "C": C, **KERNEL, **RANDOM, "balance": ("True", "False"), "refine": ("True", "False"),
    "refine_weights": ("'uniform'", "'balanced'"), "landmark_method": ("'sample'", "'kmeans'"),
    "tol": STOPPING["tol"],
}  # fmt: skip
GRID = {"Cs": ("[1.0]", "[0.1, 10.0]", "[1.0, 1e300]", "[]", "['1']", "1.0", "[1, None]"),
        "gammas": ("None", "[0.5]", "[1e-3, 1.0]", "[0.0]")}  # fmt: skip
FOLDS = ("2", "3", "1", "50")

TARGETS: dict[str, dict[str, tuple[str, ...]]] = {
    "MulticategorySVC": MULTICATEGORY,
    "ProximalSVC": PROXIMAL,
    "RobustSVC": {
        "C": C, **KERNEL, **CLASSES, **STOPPING, **TIMED, **RANDOM,
        "utility": ("None", "'ordinal'", "np.eye(3)", "{(0, 1): 0.5}", "{(0, 1): 1e300}", "np.ones((3, 3))"),
        "truncation": ("'auto'", "0.0", "-0.5", "-10.0", "-inf", "0.5"),
        "loss": ("'hinge'", "'logistic'", "'exponential'"),
        "fit_intercept": ("True", "False"),
        "starts": ("('utility',)", "('identity',)", "('utility', 'identity')", "()"),
        "max_dc_iter": ("1", "50"),
    },
    "SharedStructureSVC": {
        **SHARED,
        "formulation": ("'original'", "'fast'", "'sum_to_zero'"),
        "n_base": ("None", "1", "2", "3", "9"),
        "bounds": ("None", "(-1, 1)", "(0, 1)", "(0.5, 0.5)", "(2, 1)", "(-1e300, 1e300)"),
        "constraint": ("None", "'symmetric'", "'psd'", "'nonnegative'"),
        "fixed_relations": ("None", "{(0, 1): 0.0}", "{(0, 0): 1.0, (1, 1): 1.0}", "np.full((3, 3), nan)"),
        "n_init": ("1", "3"),
    },
    "TraceNormSVC": {**SHARED, "loss": ("'squared'", "'smoothed_hinge'")},
    "SparseSVC": {
        "C": C, **SPARSE, **TIMED, "penalty": ("'fusion'", "'supnorm'", "'l1'", "'l2'"),
        "adaptive": ("False", "True", "'per_variable'", "np.ones((3, 3))"),
        "adaptive_rounds": ("1", "2"), "initial_C": C,
    },
    "MarginSearch": {
        **GRID, "criterion": ("'cost'", "'loo'", "'gacv'", "'loo_exact'", *FOLDS),
        "search_tol": ("1e-3", "'auto'", "None"), "exhaustive": ("'auto'", "False", "True"),
    },
    "ProximalSVCCV": {**GRID, "criterion": ("'loo'", *FOLDS)},
    "SharedStructureSearch": {
        "Cs": GRID["Cs"], "relation_penalties": ("[1.0]", "[0.1, 10.0]", "None"), "cv": FOLDS,
    },
    "SparseSVCCV": {**SPARSE, "n_Cs": ("3", "2"), "cv": FOLDS, "adaptive": ("False", "True", "'auto'"),
                    "per_variable": ("True", "False"), "standardize": ("True", "False"), "eps": ("0.1", "1e-4")},
    "NewtonRefinement": {"estimator": ("RidgeClassifier()", "ProximalSVC(refine=False)"), "C": C,
                         "refine_weights": ("'uniform'", "'balanced'")},
    "RejectOptionClassifier": {
        "estimator": ("MulticategorySVC()", "ProximalSVC()", "SharedStructureSVC()"), "cv": ("None", *FOLDS),
        "target_error": ("None", "0.1", "1.0"), "coverage": ("None", "0.9"), "reject_label": ("None", "-7", "'?'"),
    },
    "ProbabilityClassifier": {
        "estimator": ("MulticategorySVC()", "ProximalSVC()", "RidgeClassifier()", "SharedStructureSVC()"),
        "cv": ("None", *FOLDS), "cost_matrix": CLASSES["cost_matrix"],
    },
    "PredictionSetClassifier": {
        "estimator": ("MulticategorySVC()", "ProximalSVC()", "RidgeClassifier()"), "cv": ("None", *FOLDS),
        "coverage": ("0.9", "0.5", "1.0", "0.999999"), "coverage_of": ("'all'", "'class'"),
    },
    "compress": {"C": C, "kernel": ("'linear'", "'rbf'"), "max_loss": ("0.0", "0.01", "1.0", "-1.0", "nan")},
    "Decider": {"cost_matrix": CLASSES["cost_matrix"], "priors": CLASSES["priors"],
                "capacity": ("None", "{0: 3}", "{7: 1}", "{0: -1}")},
    "sparse_path": {
        **SPARSE, "Cs": GRID["Cs"], "adaptive": ("False", "True", "'per_variable'"), "n_Cs": ("3", "1"),
    },
    "proximal_path": {"Cs": GRID["Cs"]},
    "trace_norm_path": {"n_penalties": ("2", "4"), "ratio": ("0.01", "1.0", "1e-9")},
    "stability_selection": {"n_resamples": ("2", "1"), "fraction": ("0.5", "0.9", "1.0"), "random_state": ("0",)},
    "expected_cost": {"cost_matrix": CLASSES["cost_matrix"], "labels": ("None", "[0, 1, 2]", "[0]")},
    "gacv": {"C": C, "kernel": KERNEL["kernel"], "loss": LOSS["loss"]},
    "loo": {"C": C, "kernel": KERNEL["kernel"], "loss": LOSS["loss"]},
}  # fmt: skip
"""Everything public that takes rows or labels, with sensible and senseless values of its parameters."""

SMALL_GRIDS = {
    "MarginSearch": {"Cs": "[0.1, 10.0]", "gammas": "[0.5]"},
    "ProximalSVCCV": {"Cs": "[0.1, 10.0]"},
    "SharedStructureSearch": {"Cs": "[0.1, 10.0]", "relation_penalties": "[0.1, 10.0]", "cv": "2"},
    "SparseSVCCV": {"n_Cs": "3", "initial_Cs": "[0.1, 1.0]", "cv": "2"},
    "sparse_path": {"n_Cs": "3"},
    "stability_selection": {"n_resamples": "2"},
    "trace_norm_path": {"n_penalties": "3"},
    "proximal_path": {"Cs": "[0.1, 10.0]"},
}
"""What keeps searches short, unless something else is drawn."""

UNFAIR = frozenset(
    (
        *("one 1e308", "one nan", "one inf", "times 1e-200", "times 1e200", "texts", "prose", "one dimension"),
        *("three dimensions", "complex", "no columns", "mixed types", "with none", "with nan", "continuous"),
        *("one class", "all different", "two columns", "too few", "missing", "zeros", "one negative", "one nan"),
        *("1e300", "1e-300", "too many"),
    )
)
"""Kinds of rows, labels and weights that are to be refused, or mostly so: they are kept out of most calls."""


@dataclass(frozen=True)
class Recipe:
    """One call."""

    target: str
    parameters: dict[str, str] = field(default_factory=dict)
    n: int = 20
    p: int = 3
    k: int = 3
    rows: tuple[str, ...] = ()
    labels: str = "integers"
    weights: str = "none"
    seed: int = 0

    def to_json(self) -> str:
        """Return the recipe as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Recipe":
        """Read a recipe."""
        fields = json.loads(line)
        return cls(**{**fields, "rows": tuple(fields["rows"])})


def draw(campaign: int, number: int) -> Recipe:
    """Draw the recipe of a campaign's call with a given number."""
    rng = np.random.default_rng([campaign, number])
    target = list(TARGETS)[rng.integers(len(TARGETS))]
    table = TARGETS[target]
    parameters = dict(SMALL_GRIDS.get(target, {}))
    fair = rng.random() < 0.6
    for name in rng.permutation(list(table))[: rng.integers(0, 5)]:
        values = WRONG if not fair and rng.random() < 0.15 else table[name]
        parameters[str(name)] = str(values[rng.integers(len(values))])
    rows, labels, weights = ([name for name in kinds if not (fair and name in UNFAIR)] for kinds in
                             (ROWS, LABELS, WEIGHTS))  # fmt: skip
    changes = rng.choice(rows, size=rng.choice([0, 1, 2], p=[0.35, 0.45, 0.2]), replace=False)
    return Recipe(
        target,
        parameters,
        n=int(rng.choice([0, 1, 2, 4, 8]))
        if not fair and rng.random() < 0.3
        else int(rng.choice([6, 12, 20, 40])),
        p=int(rng.choice([1, 2, 3, 3, 3, 8, 30])),
        k=int(rng.choice([2, 3, 3, 3, 4, 6])),
        rows=tuple(map(str, changes)),
        labels="integers" if rng.random() < 0.55 else str(rng.choice(labels)),
        weights="none" if rng.random() < 0.6 else str(rng.choice(weights)),
        seed=int(rng.integers(2**31)),
    )


def _one_value(value: float) -> Callable:
    def put(X: Any, rng: np.random.Generator) -> Any:
        X = np.array(X, dtype=np.float64)
        if X.size:
            X.flat[rng.integers(X.size)] = value
        return X

    return put


def _column(make: Callable) -> Callable:
    def put(X: Any, rng: np.random.Generator) -> Any:
        X = np.array(X, dtype=np.float64)
        X[:, rng.integers(X.shape[1])] = make(rng, len(X))
        return X

    return put


ROWS: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    "shifted 1e3": lambda X, rng: X + 1e3,
    "shifted 1e6": lambda X, rng: X + 1e6,
    "shifted 1e15": lambda X, rng: X + 1e15,
    "times 1e-8": lambda X, rng: X * 1e-8,
    "times 1e8": lambda X, rng: X * 1e8,
    "times 1e-200": lambda X, rng: X * 1e-200,
    "times 1e200": lambda X, rng: X * 1e200,
    "times 1e25": lambda X, rng: X * 1e25,
    "scales apart": lambda X, rng: X * np.logspace(-6, 6, X.shape[1]),
    "one 1e308": _one_value(1e308),
    "one 1e12": _one_value(1e12),
    "one nan": _one_value(np.nan),
    "one inf": _one_value(np.inf),
    "constant column": _column(lambda rng, n: 3.0),
    "zero column": _column(lambda rng, n: 0.0),
    "binary column": _column(lambda rng, n: rng.integers(0, 2, n)),
    "all equal": lambda X, rng: np.ones_like(X),
    "all zero": lambda X, rng: np.zeros_like(X),
    "repeated": lambda X, rng: X[rng.integers(0, max(1, len(X) // 3), len(X))] if len(X) else X,
    "collinear": lambda X, rng: np.repeat(np.asarray(X)[:, :1], X.shape[1], axis=1),
    "integers": lambda X, rng: np.round(3 * X).astype(np.int64),
    "unsigned": lambda X, rng: np.round(3 * np.abs(X)).astype(np.uint64),
    "bytes": lambda X, rng: np.round(np.clip(20 * np.abs(X), 0, 255)).astype(np.uint8),
    "booleans": lambda X, rng: X > 0,
    "single precision": lambda X, rng: X.astype(np.float32),
    "half precision": lambda X, rng: np.clip(X, -6e4, 6e4).astype(np.float16),
    "Fortran order": lambda X, rng: np.asfortranarray(X),
    "reversed view": lambda X, rng: np.repeat(X, 2, axis=0)[::-2],
    "read-only": lambda X, rng: _frozen(X),
    "csr": lambda X, rng: sparse.csr_matrix(np.where(X > 0.5, X, 0.0)),
    "csc array": lambda X, rng: sparse.csc_array(np.where(X > 0.5, X, 0.0)),
    "frame": lambda X, rng: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
    "texts": lambda X, rng: np.asarray(X).astype(str).astype(object),
    "prose": lambda X, rng: np.full(X.shape, "word", dtype=object),
    "list": lambda X, rng: np.asarray(X).tolist(),
    "one dimension": lambda X, rng: np.asarray(X).ravel(),
    "three dimensions": lambda X, rng: np.asarray(X)[:, :, None],
    "complex": lambda X, rng: X + 1j,
    "no columns": lambda X, rng: X[:, :0],
    "masked": lambda X, rng: np.ma.masked_greater(X, 1.0),
}  # fmt: skip

LABELS: dict[str, Callable[[np.ndarray, np.random.Generator], Any]] = {
    "integers": lambda y, rng: y,
    "words": lambda y, rng: np.array([f"class {label}" for label in y]),
    "objects": lambda y, rng: np.array([f"class {label}" for label in y], dtype=object),
    "mixed types": lambda y, rng: np.array([label if label else "zero" for label in y.tolist()], dtype=object),
    "with none": lambda y, rng: np.array([label if label else None for label in y.tolist()], dtype=object),
    "with nan": lambda y, rng: np.where(y == 0, np.nan, y),
    "floats": lambda y, rng: y.astype(float),
    "continuous": lambda y, rng: y + rng.random(len(y)),
    "booleans": lambda y, rng: y > 0,
    "huge": lambda y, rng: y.astype(np.int64) * 2**60 - 2**61,
    "unsigned": lambda y, rng: y.astype(np.uint8),
    "one class": lambda y, rng: np.zeros_like(y),
    "all different": lambda y, rng: np.arange(len(y)),
    "one rare": lambda y, rng: np.where(np.arange(len(y)) == 0, 9, y),
    "column": lambda y, rng: y[:, None],
    "two columns": lambda y, rng: np.column_stack([y, y]),
    "too few": lambda y, rng: y[:-1],
    "missing": lambda y, rng: None,
    "series": lambda y, rng: pd.Series(y),
    "categories": lambda y, rng: pd.Series([f"c{label}" for label in y], dtype="category"),
    "control characters": lambda y, rng: np.array([f"\x1b[31m{label}" for label in y]),
    "list": lambda y, rng: y.tolist(),
}

WEIGHTS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "none": lambda n, rng: None,
    "ones": lambda n, rng: np.ones(n),
    "random": lambda n, rng: rng.random(n),
    "counts": lambda n, rng: rng.integers(1, 4, n),
    "some zero": lambda n, rng: rng.integers(0, 2, n).astype(float),
    "zeros": lambda n, rng: np.zeros(n),
    "one negative": lambda n, rng: np.where(np.arange(n) == 0, -1.0, 1.0),
    "one nan": lambda n, rng: np.where(np.arange(n) == 0, np.nan, 1.0),
    "1e12": lambda n, rng: np.full(n, 1e12),
    "1e300": lambda n, rng: np.full(n, 1e300),
    "1e-300": lambda n, rng: np.full(n, 1e-300),
    "apart": lambda n, rng: 10.0 ** rng.integers(-12, 12, n),
    "too many": lambda n, rng: np.ones(n + 1),
    "two columns": lambda n, rng: np.ones((n, 2)),
    "number": lambda n, rng: 2.0,
    "texts": lambda n, rng: ["heavy"] * n,
}


def _frozen(X: Any) -> Any:
    X = np.array(X)
    X.flags.writeable = False
    return X


def data(recipe: Recipe) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights."""
    rng = np.random.default_rng(recipe.seed)
    labels = np.arange(recipe.n) % recipe.k
    rng.shuffle(labels)
    X: Any = rng.normal(size=(recipe.n, recipe.p)) + rng.normal(size=(recipe.k, recipe.p))[labels] * 1.5
    with np.errstate(all="ignore"):
        for change in recipe.rows:
            X = ROWS[change](X if isinstance(X, np.ndarray) else _dense(X), rng)
    return X, LABELS[recipe.labels](labels, rng), WEIGHTS[recipe.weights](recipe.n, rng)


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def argument(expression: str) -> Any:
    """Return the value of a parameter."""
    from sklearn.linear_model import RidgeClassifier
    from sklearn.svm import LinearSVC

    import polymargin

    public = {name: getattr(polymargin, name) for name in polymargin.__all__}
    names = {**public, "np": np, "nan": np.nan, "inf": np.inf, "linear": linear, "zeros": zeros}
    return eval(expression, names | {"RidgeClassifier": RidgeClassifier, "LinearSVC": LinearSVC})


def linear(A: Any, B: Any) -> Any:
    """Return inner products: a kernel as users write them."""
    with np.errstate(over="ignore"):  # single precision holds less than our ranges
        return np.asarray(A @ B.T)


def zeros(A: Any, B: Any) -> Any:
    """Return a kernel that knows nothing."""
    return np.zeros((A.shape[0], B.shape[0]))
