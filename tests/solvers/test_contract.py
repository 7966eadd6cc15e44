import signal
import threading

import pytest

from polymargin.problems.certificate import FEASIBLE, Certificate
from polymargin.solvers.contract import Interrupted, Progress, Settings, Status, at_rest


def test_the_gap_is_relative_to_the_primal_but_never_to_less_than_one():
    assert Certificate.of(200.0, 198.0).gap == pytest.approx(0.01)
    assert Certificate.of(0.1, 0.05).gap == pytest.approx(0.05)
    assert Certificate.of(1.0, 1.0).within(1e-12)
    assert not Certificate.of(1.0, 1.0, infeasibility=2 * FEASIBLE).within(1.0)


def test_the_limit_of_iterations():
    with Progress(Settings(max_iter=3)) as progress:
        assert list(progress) == [1, 2, 3]
        assert progress.finish(None, Certificate.of(1.0, 0.0)).status is Status.MAX_ITER
        assert progress.finish(None, Certificate.of(1.0, 1.0)).status is Status.SOLVED


def test_the_limit_of_time():
    with Progress(Settings(time_limit=1e-9)) as progress:
        assert list(progress) == []
        solution = progress.finish("point", Certificate.of(1.0, 0.0))
    assert solution.status is Status.TIME_LIMIT
    assert (solution.point, solution.n_iter) == ("point", 0)


def test_an_interrupt_raises_a_flag_and_a_second_one_acts():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Progress(Settings(max_iter=100)) as progress:  # noqa: PT012
        for iteration in progress:
            if iteration == 2:
                signal.raise_signal(signal.SIGINT)
        assert progress.status is Status.INTERRUPTED
        assert progress.iteration == 2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_stops_the_inner_solver_too():
    with pytest.raises(KeyboardInterrupt), Progress(Settings(max_iter=100)) as outer:  # noqa: PT012
        with Progress(Settings(max_iter=100)) as inner:
            signal.raise_signal(signal.SIGINT)
            assert list(inner) == []
        assert inner.status is Status.INTERRUPTED
        assert outer.interrupted


def interrupted_solver(gap):
    """Finish at a certificate of the given gap after Ctrl-C."""
    with Progress(Settings(max_iter=100)) as progress:
        for _ in progress:
            signal.raise_signal(signal.SIGINT)
        return progress.finish("point", Certificate.of(1.0, 1.0 - gap))


@pytest.mark.parametrize("gap", [0.5, 0.0])
def test_an_interrupt_is_passed_on_with_the_solution(gap):
    with pytest.raises(Interrupted) as stop:
        interrupted_solver(gap)
    assert stop.value.solution.status is Status.INTERRUPTED
    assert stop.value.solution.point == "point"
    assert f"{gap:.3g}" in str(stop.value)
    assert at_rest(interrupted_solver, gap).certificate.gap == gap


def test_errors_are_not_hidden_by_an_interrupt():
    with pytest.raises(ZeroDivisionError), Progress(Settings()):  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError


def test_other_threads_leave_the_signals_alone():
    seen = []

    def work():
        with Progress(Settings()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_the_observer_sees_every_record():
    records = []
    with Progress(Settings(max_iter=2), records.append) as progress:
        for iteration in progress:
            progress.record(10.0, 10.0 - iteration)
    assert [record.gap for record in records] == pytest.approx([0.1, 0.2])
    assert progress.finish(None, Certificate.of(1.0, 1.0)).history == tuple(records)


def test_a_method_that_goes_on_keeps_its_row():
    with Progress(Settings(), method="alone") as progress:
        assert [row.method for row in progress.finish(None, Certificate.of(1.0, 0.5)).trace] == ["alone"]
        for method, primal in (("first", 4.0), ("first", 3.0), ("second", 2.0)):
            with Progress(Settings(), method=method) as inner:
                inner.iteration, inner.work = 1, 0.5
            progress.take(inner.finish(None, Certificate.of(primal, 0.0)), predicted=primal)
    trace = progress.finish(None, Certificate.of(1.5, 1.0)).trace
    assert [(row.method, row.iterations, row.primal, row.dual) for row in trace] == [
        ("first", 2, 3.0, 0.0),
        ("second", 1, 1.5, 1.0),
    ]
    assert [(row.work, row.predicted) for row in trace] == [(1.0, 4.0), (0.5, 2.0)]
    assert [row.primal for row in trace.scaled(2.0)] == [6.0, 3.0]


def test_a_method_whose_primal_falls_has_hope_while_its_relative_gap_hardly_changes():
    with Progress(Settings(tol=1e-3, work=10.0)) as progress:
        for step in range(11):
            progress.work = 0.25 * step
            progress.record(primal=1.0 + 1e4 * 0.5**step, dual=1.0)
        assert progress.history[-1].gap > 0.9
        assert not progress.is_hopeless()
        for step in range(11, 20):
            progress.work = 0.25 * step
            progress.record(primal=1.0 + 9.7 * 0.999**step, dual=1.0)
        assert progress.is_hopeless()
