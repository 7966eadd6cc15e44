"""What came of a run: figures, predictions joined to the input, variables, the report, the model."""

import tempfile
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polymargin import persistence, report
from polymargin.cli import predicting, training
from polymargin.cli.methods import machine_of
from polymargin.cli.summary import class_figures, plain_predictions, summary_lines
from polymargin.cli.training import Job, Trained
from polymargin.selection.scoring import expected_cost
from polymargin.studio.plan import Plan
from polymargin.studio.script import script
from polymargin.studio.variables import variables

PAGE = 50
"""Rows of a table that are shown at once."""


class Outcome:
    """A finished run, to be looked at and taken away; what takes long is computed once, when first asked for."""

    def __init__(self, plan: Plan, job: Job, trained: Trained, path: Path):
        self.plan, self.job, self.trained, self.path = plan, job, trained, path
        self.costs = plan.choice(job.classes).costs

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures on held-out rows."""
        assert self.job.held_out is not None
        X, y = self.job.held_out
        predicted = plain_predictions(self.trained.model, X)
        classes = machine_of(self.trained.model).classes_
        figures = class_figures(y, predicted, classes)
        return {
            "lines": [list(line) for line in summary_lines(self.trained, self.job, self.costs, predicted)],
            "settings": training.describe_settings(self.trained.search) if self.trained.search else None,
            "error": float(np.mean(predicted != y)),
            "cost": expected_cost(y, predicted, self.costs, labels=classes),
            "classes": [str(label) for label in classes],
            "by_class": figures.rows,
            "confusion": figures.confusion.tolist(),
            "command": self.plan.command(self.path, self.job.rows.reading),
            "script": script(self.plan, self.job, self.trained, self.path),
        }

    @cached_property
    def report(self) -> str:
        """The page about the model on held-out rows."""
        assert self.job.held_out is not None
        return report.build(
            self.trained.model,
            *self.job.held_out,
            title=self.path.name,
            cost_matrix=self.costs,
            command=self.plan.command(self.path, self.job.rows.reading),
        )

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """All rows of the file with their predictions; `part` says which of them the model was trained on."""
        rows = self.job.rows
        X = self.job.everything[0]
        kept = None if rows.is_sparse else rows.X
        table = predicting.predictions(self.trained.model, X, kept=kept)
        assert rows.y is not None
        assert self.job.held_out_rows is not None
        part = np.full(len(table), "training", dtype=object)
        part[self.job.held_out_rows] = "held out"
        at = table.columns.get_loc("prediction")
        table.insert(at, self._free("true class", table), rows.y)
        table.insert(at + 1, self._free("part", table), part)
        return table

    @staticmethod
    def _free(name: str, table: pd.DataFrame) -> str:
        """Return a name that no column of the file has."""
        while name in table.columns:
            name = f"polymargin {name}"
        return name

    def page_of(
        self, *, offset: int, sort: str | None, descending: bool, wrong: bool, held_out: bool, text: str
    ) -> dict[str, Any]:
        """Return some of the predictions: from `offset` on, sorted, those that contain `text`."""
        table = self.predictions
        true, part = table.columns[table.columns.get_loc("prediction") - 2 :][:2]
        kept = np.ones(len(table), dtype=bool)
        if wrong:
            kept &= (table[true] != table["prediction"]).to_numpy()
        if held_out:
            kept &= (table[part] == "held out").to_numpy()
        if text:
            words = table.astype(str).apply(lambda column: column.str.contains(text, case=False, regex=False))
            kept &= words.any(axis=1).to_numpy()
        shown = table[kept]
        if sort in table.columns:
            shown = shown.sort_values(sort, ascending=not descending, kind="stable")
        shown = shown.iloc[offset : offset + PAGE]
        return {
            "columns": [str(name) for name in table.columns],
            "true": true,
            "rows": [[_shown(value) for value in row] for row in shown.itertuples(index=False)],
            "total": int(kept.sum()),
            "offset": offset,
            "page": PAGE,
        }

    def exported(self, kind: str) -> bytes:
        """Return all predictions as a file."""
        if kind not in predicting.WRITERS:
            raise ValueError(f"predictions are written as {', '.join(predicting.WRITERS)}, not as {kind!r}.")
        table = self.predictions
        written = predicting.WRITERS[kind](table)
        return written.encode() if isinstance(written, str) else written

    @cached_property
    def variables(self) -> dict[str, Any]:
        """What the columns matter for the model."""
        return variables(self.trained.model, self.job, self.costs, until=time.perf_counter() + 10.0)

    def model(self) -> bytes:
        """Return the model, fitted again to all rows, as the file that `polymargin predict` takes."""
        final = (training.refitted(self.trained, self.job) if self.trained.is_complete else None) or self.trained
        metadata = {
            "target": self.plan.target,
            "columns": self.job.columns.to_dict(),
            "costs": None if self.costs is None else self.costs.tolist(),
            "command": self.plan.command(self.path, self.job.rows.reading),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.skops"
            persistence.save(final.model, path, metadata=metadata)
            return path.read_bytes()

    def cost_file(self) -> str:
        """Return the costs as the file that the command line takes."""
        classes = [str(label) for label in self.job.classes]
        costs = np.ones((len(classes), len(classes))) - np.eye(len(classes)) if self.costs is None else self.costs
        return pd.DataFrame(costs, index=pd.Index(classes, name="true"), columns=classes).to_csv()


def _shown(value: Any) -> Any:
    """Return a cell as JSON has it."""
    if isinstance(value, float | np.floating):
        return None if not np.isfinite(value) else float(value)
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return value.item() if isinstance(value, np.generic) else value
    return None if value is None or value is pd.NA else str(value)
