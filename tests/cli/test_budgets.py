"""A budget is that of the whole command, and what a command will take is said before it begins."""

import numpy as np
import pandas as pd
import pytest

from polymargin import MulticategorySVC, ProximalSVC, persistence
from polymargin.cli import main, training
from polymargin.cli.clock import SHORTEST, Clock
from polymargin.cli.estimates import Estimate, estimate, memory_of
from polymargin.cli.methods import Choice
from polymargin.cli.names import DEFAULT_BUDGET, Method
from polymargin.selection.budget import Trial
from tests.cli.commands import accept


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(["ash", "beech", "oak"])[np.arange(120) % 3]
    frame = pd.DataFrame({"a": rng.normal(size=120) + 2.0 * (y == "ash"), "b": rng.normal(size=120), "y": y})
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


class Stopped:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)


def test_reading_counts(monkeypatch):
    stopped = Stopped(monkeypatch)
    clock = Clock.of("10s")
    stopped.now += 4.0
    assert clock.left == pytest.approx(6.0)
    assert clock.part(0.5) == pytest.approx(3.0)
    assert clock.within("60s").left == pytest.approx(56.0)
    stopped.now += 100.0
    assert clock.part(0.5) == SHORTEST


@pytest.mark.parametrize(("again", "kept"), [(False, training.JUDGING), (True, training.JUDGING + training.AGAIN)])
def test_a_search_leaves_time_for_what_comes_after_it(data, monkeypatch, again, kept):
    """Reading took 2 of 10 seconds; the search gets its part of the other 8."""

    def asked(self, X, observer=None):
        raise StopIteration(self.budget)

    monkeypatch.setattr(Choice, "search", asked)
    job = training.read_job(data, target="y")
    stopped = Stopped(monkeypatch)
    clock = Clock.of("10s")
    stopped.now += 2.0
    with pytest.raises(StopIteration) as given:
        training.train(job, Choice(Method.auto), clock=clock, again=again)
    assert float(given.value.value.removesuffix("s")) == pytest.approx((1.0 - kept) * 8.0)


def test_a_named_method_keeps_to_the_budget_too(data, monkeypatch):
    seen = []
    fit = MulticategorySVC.fit

    def watched(self, X, y, **more):
        seen.append(self.time_limit)
        return fit(self, X, y, **more)

    monkeypatch.setattr(MulticategorySVC, "fit", watched)
    job = training.read_job(data, target="y")
    Stopped(monkeypatch)
    trained = training.train(job, Choice(Method.multicategory, budget="7s"))
    assert seen == [pytest.approx((1.0 - training.JUDGING) * 7.0)]
    assert trained.model[-1].time_limit is None
    training.train(job, Choice(Method.multicategory))
    assert seen[-1] is None


def test_the_model_that_was_judged_stays_where_fitting_again_takes_too_long(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(training, "seconds_again", lambda trained, job: 1234.0)
    model = tmp_path / "model.skops"
    fit = ("fit", data, "--target", "y", "--method", "proximal", "--save", model)
    printed = accept(capsys, *fit)
    assert "fitted again to all" in printed  # without a budget there is time enough
    assert main([*map(str, fit), "--budget", "20s"]) == 0
    shown = capsys.readouterr()
    assert "fitting again to all 120 would take about 1234 s" in " ".join(shown.err.split())
    assert "fitted again" not in shown.out
    mean = persistence.load(model).model[0].named_transformers_["numeric"][0].mean_[0]
    assert mean != pytest.approx(pd.read_csv(data)["a"].mean())


def test_who_has_a_budget():
    assert Choice(Method.auto).budget_for(10, tune=False) == DEFAULT_BUDGET
    assert Choice(Method.auto, C=1.0).budget_for(10, tune=False) is None
    assert Choice(Method.proximal).budget_for(900, tune=True) is None
    assert Choice(Method.proximal).budget_for(9_000, tune=True) == DEFAULT_BUDGET
    assert Choice(Method.proximal, budget="5m").budget_for(10, tune=False) == "5m"


def test_memory_is_that_of_what_is_kept():
    X, y = np.zeros((40_000, 10)), np.arange(40_000) % 4
    assert memory_of(MulticategorySVC(cache_size=500), X, y) == pytest.approx(500e6 + 32.0 * 40_000 * 14)
    assert memory_of(MulticategorySVC(landmarks=100), X, y) == pytest.approx(32.0 * 40_000 * 114)
    assert memory_of(ProximalSVC(kernel="linear"), X, y) == pytest.approx(32.0 * 40_000 * 14)


def test_an_estimate_is_bounded_by_the_budget(monkeypatch):
    pilot = Trial({}, 200, 0.0, 0.0, 0.01)
    monkeypatch.setattr("polymargin.cli.estimates._pilots", lambda machine, X, y: (pilot, 1.5))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 4)), rng.integers(0, 5, 3000)
    machine = MulticategorySVC(loss="weston", tol=1e-3)
    free, bound = (estimate(machine, X, y, budget) for budget in (np.inf, 1e-3))
    assert free.seconds > 1e-3
    assert not free.is_bound
    assert bound.is_bound
    assert bound.seconds == 1e-3
    search = estimate(Choice(Method.auto).search(X), X, y, np.inf)
    assert search.seconds > 10.0 * free.seconds
    assert not Estimate(1.0, 1e6).is_worth_saying
    assert Estimate(30.0, 1e6).is_worth_saying


def test_costs_of_many_classes_can_be_estimated():
    """Small fits have rows of every class: costs and priors are given for all of them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 3)), np.arange(900) % 30
    machine = MulticategorySVC(loss="weston", tol=1e-1, cost_matrix=1.0 - np.eye(30), kernel="linear")
    assert estimate(machine, X, y, np.inf).seconds > 0.0


def test_compare_says_what_it_takes_before_it_begins(data, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ("compare", data, "--target", "y", "--only", "LinearSVC", "--folds", "2", "--budget", "3s")
    assert main([str(word) for word in words]) == 0
    assert "1 method, 2 folds each: at most 3 s and about" in capsys.readouterr().err
