"""What the page asks for: a target, columns, costs and how to train, checked; and the same as a command line."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.cli.methods import Choice
from polymargin.cli.names import DEFAULT_BUDGET, CostsIn, Method
from polymargin.cli.tables import Reading
from polymargin.cli.training import Job, read_job
from polymargin.costs import resolve_cost_matrix
from polymargin.selection.seconds import parse_seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """How a file is to be learnt.

    Attributes
    ----------
    target : column of the classes; None for a LIBSVM file.
    drop, categorical, numeric : columns to leave out, and columns whose kind was said.
    impute : whether missing values are filled in.
    method, budget, share, seed : as the command line has them.
    costs : rows of true by columns of predicted classes, in the order of the classes; None for 1 per error.
    """

    target: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    impute: bool = False
    method: Method = Method.auto
    budget: str = DEFAULT_BUDGET
    share: float = 0.25
    seed: int = 0
    costs: tuple[tuple[float, ...], ...] | None = None

    @classmethod
    def of(cls, asked: Any) -> "Plan":
        """Return the plan that a page sent, or say what is wrong with it."""
        if not isinstance(asked, Mapping):
            raise ValueError("a plan must be an object of names and values.")
        unknown = [name for name in asked if name not in cls.__dataclass_fields__]
        if unknown:
            raise ValueError(f"a plan has no {unknown[0]!r}.")
        target, costs, share, seed = (asked.get(name) for name in ("target", "costs", "share", "seed"))
        if target is not None and not isinstance(target, str):
            raise ValueError(f"target must be the name of a column, got {target!r}.")
        lists = {name: _names(name, asked.get(name, [])) for name in ("drop", "categorical", "numeric")}
        method, budget = asked.get("method", "auto"), asked.get("budget", DEFAULT_BUDGET)
        if method not in list(Method):
            raise ValueError(f"method must be one of {', '.join(Method)}, got {method!r}.")
        if not isinstance(budget, str):
            raise ValueError(f"budget must be a time such as 60s or 5m, got {budget!r}.")
        parse_seconds(budget)
        share = 0.25 if share is None else share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
            raise ValueError(f"share must be a share of the rows above 0 and below 1, got {share!r}.")
        seed = 0 if seed is None else seed
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}.")
        if not isinstance(asked.get("impute", False), bool):
            raise ValueError(f"impute must be true or false, got {asked['impute']!r}.")
        return cls(
            target=target,
            impute=asked.get("impute", False),
            method=Method(method),
            budget=budget,
            share=float(share),
            seed=seed,
            costs=None if costs is None else _costs(costs),
            **lists,
        )

    def job(self, path: Path, reading: Reading) -> Job:
        """Read the file, and hold rows out."""
        return read_job(
            path,
            target=self.target,
            reading=reading,
            categorical=self.categorical,
            numeric=self.numeric,
            drop=self.drop,
            impute=self.impute,
            share=self.share,
            seed=self.seed,
        )

    def choice(self, classes: NDArray) -> Choice:
        """Return the method with its costs, which act in the decisions by probabilities."""
        costs = None
        if self.costs is not None:
            if len(self.costs) != len(classes):
                raise ValueError(f"costs must be a table of {len(classes)} by {len(classes)} classes.")
            costs = resolve_cost_matrix(np.array(self.costs), classes, name="costs")
        choice = Choice(self.method, costs=costs, costs_in=CostsIn.decisions, seed=self.seed, budget=self.budget)
        choice.check()
        return choice

    def command(self, path: Path, reading: Reading) -> str:
        """Return the command line that does the same."""
        words = ["polymargin", "fit", str(path)]
        options: list[tuple[str, Any]] = [("target", self.target), ("budget", self.budget)]
        if self.method is not Method.auto:
            words.append("--tune")
            options.append(("method", str(self.method)))
        if self.costs is not None:
            options.append(("costs", "costs.csv"))
        options += [("test-size", None if self.share == 0.25 else f"{self.share:g}"), ("seed", self.seed or None)]
        for option in ("drop", "categorical", "numeric"):
            options += [(option, name) for name in getattr(self, option)]
        options += [("format", reading.file_format), ("sep", reading.sep), ("decimal", reading.decimal)]
        options += [("encoding", reading.encoding), *(("na", text) for text in reading.na)]
        words += ["--impute"] if self.impute else []
        words += [word for option, value in options if value is not None for word in (f"--{option}", str(value))]
        return shlex.join([*words, "--save", "model.skops", "--report", "report.html"])


def _names(name: str, asked: Any) -> tuple[str, ...]:
    if not isinstance(asked, list) or not all(isinstance(entry, str) for entry in asked):
        raise ValueError(f"{name} must be a list of columns, got {asked!r}.")
    return tuple(asked)


def _costs(asked: Any) -> tuple[tuple[float, ...], ...]:
    square = isinstance(asked, list) and all(isinstance(row, list) and len(row) == len(asked) for row in asked)
    if not square or not all(
        isinstance(cost, int | float) and not isinstance(cost, bool) for row in asked for cost in row
    ):
        raise ValueError("costs must be a square table of numbers.")
    return tuple(tuple(float(cost) for cost in row) for row in asked)
