"""The page: sections put into one self-contained HTML file."""

import base64
import hashlib
import os
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Any

from polymargin.files import write_atomically
from polymargin.report.evidence import Evidence
from polymargin.report.explorer import explorer
from polymargin.report.families import family_sections
from polymargin.report.fitted import fitted, key_figures
from polymargin.report.markup import join, render, tag
from polymargin.report.performance import errors, probabilities, strengths
from polymargin.report.predictions import predictions
from polymargin.report.scoring import scoring_form
from polymargin.report.section import Section


def build(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    cost_matrix: Any = None,
    costs: Any = None,
    path: str | os.PathLike | None = None,
    command: str | None = None,
) -> str:
    """Build a one-page report about a fitted model: a single HTML file that needs nothing else.

    It says what was fitted and how it was certified, what the model gets right and wrong on held-out rows and what
    that costs, how strong its predictions are, what the family of the model has to tell (variables, class
    relations, suspect labels, the search), and lets the reader edit the costs and, where the model is small, score
    rows.

    Parameters
    ----------
    model : fitted classifier of Polymargin
        Or a pipeline, a search, a `RejectOptionClassifier`, `ProbabilityClassifier` or `PredictionSetClassifier`
        around one.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Held-out rows, as the model takes them.
    y : array-like of shape (n_samples,)
        Their classes.
    title : str or None, default=None
        Title of the page; None for the name of the model.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Costs to report with, as the estimators take them; None for those that the model was trained with, or 1 for
        every error.
    costs : array-like or DataFrame of shape (n_samples, n_classes) or None, default=None
        What predicting each class would cost each held-out row, as `MulticategorySVC.fit` takes it, instead of
        `cost_matrix`. The costs that the reader can edit remain those of classes.
    path : path-like or None, default=None
        Where to write the page; an existing file is replaced in one step.
    command : str or None, default=None
        The command line that trains the model with other costs, for the page to show.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polymargin import MulticategorySVC, report
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MulticategorySVC()).fit(X[::2], y[::2])
    >>> page = report.build(model, X[1::2], y[1::2], title="Wine")
    >>> page[:15], "<title>Wine</title>" in page
    ('<!doctype html>', True)
    """
    evidence = Evidence.of(model, X, y, cost_matrix, costs)
    sections = [
        fitted(evidence),
        errors(evidence),
        strengths(evidence),
        *probabilities(evidence),
        *family_sections(evidence),
        *scoring_form(evidence, X),
        explorer(evidence, command),
        predictions(evidence),
    ]
    page = _assemble(title or type(evidence.parts.machine).__name__, evidence, sections)
    if path is not None:
        write_atomically(path, page)
    return page


def _assemble(title: str, evidence: Evidence, sections: list[Section]) -> str:
    folder = files("polymargin.report")
    style, frame = ((folder / f"page.{kind}").read_text("utf-8") for kind in ("css", "html"))
    script = _script()
    n, k = len(evidence.labels), len(evidence.names)
    machine = type(evidence.parts.machine).__name__
    return Template(frame).substitute(
        title=render(title),
        subtitle=render(f"{machine} · {k} classes · {n:,} held-out row{'s' if n > 1 else ''}"),
        version=render(version("polymargin")),
        # With its hash named here no other script can run, whatever the labels hold; and nothing can be loaded.
        script_hash=script_hash(),
        style=style,
        script=script,
        figures=join(
            tag("div", tag("span", name), tag("strong", value), tag("small", remark))
            for name, value, remark in key_figures(evidence)
        ).html,
        contents=join(tag("a", section.title, href=f"#{section.anchor}") for section in sections).html,
        sections=join(_section(section) for section in sections).html,
    )


def script_hash() -> str:
    """Return the hash by which a page allows the report's script, and no other, to run."""
    return base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode("ascii")


def _script() -> str:
    folder = files("polymargin.report")
    return "".join((folder / f"{name}.js").read_text("utf-8") for name in ("page", "scoring"))


def _section(section: Section) -> Any:
    heading = f"{section.anchor}-heading"
    return tag(
        "section",
        tag("h2", section.title, id=heading),
        tag("p", section.lead, class_="lead"),
        section.body,
        id=section.anchor,
        aria_labelledby=heading,
    )
