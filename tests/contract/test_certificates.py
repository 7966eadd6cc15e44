"""Every certificate, recomputed from what the model stores, on rows of several kinds in their own dtype."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import polymargin
from polymargin import (
    MulticategorySVC,
    ProximalSVC,
    RobustSVC,
    SharedStructureSVC,
    SparseSVC,
    TraceNormSVC,
)
from polymargin.problems.hinge import LOSSES
from tests.objectives import OBJECTIVES, dual_of, primal_of
from tests.simulate import blobs

CLASSICAL = ("lee", "weston", "crammer")
MACHINES = [
    *(MulticategorySVC(C, loss=loss, kernel=kernel)
      for loss in CLASSICAL for kernel in ("linear", "rbf", "poly") for C in (0.01, 100.0)),
    *(MulticategorySVC(loss=loss, kernel="rbf") for loss in LOSSES if loss not in CLASSICAL),
    RobustSVC(),
    RobustSVC(kernel="rbf", truncation=-0.4),
    ProximalSVC(refine=False),
    ProximalSVC(C=100.0, balance=False, refine=False),
    SharedStructureSVC(),
    SharedStructureSVC(scheme="ovo"),
    TraceNormSVC(),
    TraceNormSVC(scheme="ovo", loss="smoothed_hinge"),
    *(SparseSVC(loss=loss, penalty=penalty)
      for loss in CLASSICAL for penalty in ("fusion", "supnorm", "l1", "l2")),
]  # fmt: skip
ROWS = {
    "doubles": lambda X: X,
    "single precision": lambda X: X.astype(np.float32),
    "integers": lambda X: np.round(3 * X).astype(np.int64),
    "unsigned": lambda X: np.round(3 * np.abs(X)).astype(np.uint64),
    "shifted": lambda X: X + 1e3,
    "sparse": lambda X: sparse.csr_array(np.where(X > 0.3, X, 0.0)),
}


def fitted(machine, kind):
    X, y = blobs(np.random.default_rng(0), 45, 4, 3)
    X, y = ROWS[kind](X), np.array(["ash", "beech", "cedar"])[y]
    weight = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(machine).fit(X, y, sample_weight=weight), X, y, weight


def test_every_certified_estimator_is_here():
    """Searches and wrappers hold one of these; streams are refined ones of them."""
    public = {name: getattr(polymargin, name) for name in polymargin.__all__}
    certified = {
        name for name, it in public.items() if "certificate_ :" in (it.__doc__ or "") and hasattr(it, "fit")
    }
    searches = {name for name in certified if name.endswith(("Search", "CV"))}
    assert certified - searches - {"ProbabilityClassifier"} == {machine.__name__ for machine in OBJECTIVES}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_the_objective_is_that_of_the_stored_model(machine, kind):
    model, X, y, weight = fitted(machine, kind)
    certificate = model.certificate_
    recomputed = primal_of(model, X, y, weight)
    scale = max(1.0, abs(certificate.primal))
    assert certificate.gap == (certificate.primal - certificate.dual) / scale
    assert model.converged_ == (certificate.gap <= model.tol and certificate.infeasibility <= 1e-9)
    if kind == "shifted" and not model.converged_:
        return  # kernels of such rows have lost their digits, and the model says that it proves nothing
    # squares of such rows, of 1e6, leave ten digits to their products, and those are multiplied by C
    has_offsets = kind == "shifted" and not isinstance(model, SparseSVC)
    rounding = max(model.tol, 1e-7) if has_offsets else 1e-9
    assert abs(certificate.primal - recomputed) <= rounding * scale
    assert certificate.dual <= recomputed + rounding * scale


@pytest.mark.parametrize("kind", ["doubles", "single precision", "integers", "unsigned"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("loss", CLASSICAL)
def test_the_dual_is_that_of_the_stored_coefficients(loss, kernel, kind):
    X, y = blobs(np.random.default_rng(0), 45, 4, 3)
    X = ROWS[kind](X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MulticategorySVC(loss=loss, kernel=kernel).fit(X, y)
    dual, violation = dual_of(model, X.astype(np.float64), y)
    assert violation <= 1e-9
    assert abs(model.certificate_.dual - dual) <= 1e-9 * max(1.0, abs(dual))


@pytest.mark.parametrize("machine", [machine for machine in MACHINES if type(machine) is not RobustSVC], ids=repr)
def test_no_other_model_lies_below_the_dual(machine):
    """The dual is a bound on all models; 20 others, around the one that was found, have their say."""
    model, X, y, weight = fitted(machine, "doubles")
    if model.certificate_.kind != "global":
        pytest.skip("a stationary point bounds its convex step alone")
    rng = np.random.default_rng(2)
    parts = ("coef_", "dual_coef_", "intercept_", "base_coef_", "base_intercept_", "relation_")
    stored = {name: np.array(value) for name, value in vars(model).items() if name in parts}
    values = []
    for size in np.repeat([0.0, 1e-6, 1e-3, 0.1], 5):
        for name, value in stored.items():
            moved = value + size * np.abs(value).mean() * rng.normal(size=value.shape)
            sums = isinstance(model, (MulticategorySVC, SparseSVC)) and model.__dict__.get("loss") != "one_vs_rest"
            setattr(model, name, moved - moved.mean(axis=0) if sums else moved)
        values.append(primal_of(model, X, y, weight))
    assert min(values) >= model.certificate_.dual - 1e-9 * max(1.0, abs(values[0]))
