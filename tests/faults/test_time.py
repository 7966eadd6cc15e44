"""`time_limit` counts everything that a fit does, the kernel matrix included."""

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polymargin import MulticategorySVC, RobustSVC, SparseSVC
from polymargin.gram import DenseGram, LazyGram, make_gram
from polymargin.gram.kernels import Kernel, MatrixSettings
from polymargin.problems.hinge.catalogue import LOSSES
from tests.simulate import blobs

X, Y = blobs(np.random.default_rng(0), 400, 5, 4)
TIMED = [
    *(MulticategorySVC(loss=loss, kernel=kernel) for loss in LOSSES for kernel in ("rbf", "linear")),
    *(
        MulticategorySVC(solver=solver)
        for solver in ("decomposition", "active_set", "splitting", "kernel_interior")
    ),
    *(
        MulticategorySVC(solver=solver, kernel="linear")
        for solver in ("interior_point", "feature_newton", "block_descent", "general_newton")
    ),
    MulticategorySVC(loss="crammer", solver="relative_splitting", kernel="linear"),
    MulticategorySVC(landmarks=30, random_state=0),
    *(RobustSVC(loss=loss, kernel=kernel) for loss in ("hinge", "logistic") for kernel in ("rbf", "linear")),
    RobustSVC(kernel="rbf", n_init=20, random_state=0),
    *(SparseSVC(penalty=penalty) for penalty in ("fusion", "supnorm", "l1", "l2")),
    SparseSVC(adaptive=True),
]


class SlowKernel:
    """A kernel that takes its time."""

    seconds = 0.0

    def __call__(self, A, B):
        """Return inner products, late."""
        time.sleep(self.seconds)
        return A @ B.T


@pytest.mark.parametrize("machine", TIMED, ids=repr)
def test_a_limit_that_is_over_at_once_leaves_a_certified_point(machine):
    """Without a second to spare: work beyond a start shows in the iterations, not in a clock."""
    machine = type(machine)(**machine.get_params()).set_params(time_limit=1e-9, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a collapse, where nothing was learnt
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="The time limit was reached"):
            machine.fit(X, Y)
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, Y)
    assert machine.status_ == "time_limit"
    assert machine.n_iter_ <= 1
    assert machine.certificate_.is_finite
    assert not machine.converged_
    assert np.isfinite(machine.decision_function(X)).all()


@pytest.mark.parametrize("family", [MulticategorySVC, RobustSVC])
def test_the_kernel_matrix_counts(family):
    kernel = SlowKernel()
    quick = family(kernel=kernel, C=0.01, tol=0.5, time_limit=60.0).fit(X, Y)
    assert quick.converged_
    kernel.seconds = 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        late = family(kernel=kernel, C=0.01, tol=0.5, time_limit=0.1).fit(X, Y)
    assert late.status_ == "time_limit"
    assert late.n_iter_ <= 1


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("megabytes", [10.0, 0.8])
def test_a_matrix_is_given_up_when_time_is_over(name, megabytes):
    kernel, in_parts = Kernel(name, 0.1), MatrixSettings(at_once=2**14)
    assert isinstance(make_gram(kernel, X, megabytes, time.perf_counter(), in_parts), LazyGram)
    whole = make_gram(kernel, X, megabytes, time.perf_counter() + 60.0, in_parts)
    assert isinstance(whole, DenseGram)
    precision = 1e-12 if megabytes > 1 else 1e-5
    np.testing.assert_allclose(whole.matrix, kernel(X), rtol=precision, atol=precision)


def test_a_robust_machine_has_one_limit_for_all_its_starts():
    starts = []

    class Noted(RobustSVC):
        def _start_scores(self, *arguments):
            for name, scores in super()._start_scores(*arguments):
                starts.append(name)
                yield name, scores

    kernel = SlowKernel()
    Noted(kernel=kernel, n_init=5, random_state=0).fit(X, Y)
    assert len(starts) == 5
    starts.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Noted(kernel=kernel, n_init=5, random_state=0, time_limit=1e-9).fit(X, Y)
    assert starts == ["utility"]
