"""The first section, and the few numbers above it: what was fitted and how it was certified."""

import inspect
from typing import Any

import numpy as np
from scipy.stats import binomtest

from polymargin.report.evidence import Evidence
from polymargin.report.markup import Content, Markup, definitions, join, paragraph, tag
from polymargin.report.section import Section, number

ROUNDING = 1e-14
"""Gaps below are those of rounding."""

MACHINES = {
    "MulticategorySVC": "the multicategory support vector machine of Lee, Lin & Wahba (2004)",
    "ProximalSVC": "the proximal support vector machine of Fung & Mangasarian (2005)",
    "SparseSVC": "the support vector machine with class-specific variables of Guo (2010)",
    "SparseSVCCV": "the support vector machine with class-specific variables of Guo (2010), tuned",
    "SharedStructureSVC": "the classifiers with shared structure of Vural, Fung, Rosales & Dy (2009)",
    "TraceNormSVC": "the classifiers of low rank of Amit, Fink, Srebro & Ullman (2007)",
    "RobustSVC": "the robust support vector machine with utilities of Liu, Wu & He (2011)",
    "NewtonRefinement": "the Newton refinement of Fung & Mangasarian (2005) around another classifier",
}


def key_figures(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Return the few numbers that stand at the top: name, value, remark."""
    n, n_accepted, wrong = len(evidence.labels), int(evidence.accepted.sum()), int(evidence.wrong.sum())
    figures = [
        (
            "Error on held-out rows",
            f"{evidence.error:.1%}",
            f"{wrong:,} of {n_accepted:,}; {_interval(wrong, n_accepted)}",
        ),
        _balance(evidence),
        ("Mean cost", number(evidence.expected_cost), _whose_costs(evidence)),
    ]
    if evidence.parts.rejector is not None:
        figures.append(("Rejected as too weak", f"{1 - n_accepted / n:.1%}", f"{n - n_accepted:,} of {n:,}"))
    certificate = getattr(evidence.parts.machine, "certificate_", None)
    if certificate is not None:
        kind = "proven" if certificate.kind == "global" else "of the last convex step"
        figures.append(("Relative gap", gap_text(certificate.gap), kind))
    figures.append(_size_of(evidence.parts.machine))
    return figures


def _balance(evidence: Evidence) -> tuple[str, str, str]:
    """Return the mean recall, which does not hide classes that are never found."""
    recalls = evidence.recalls
    never = [name for name, share in zip(evidence.names, recalls, strict=True) if share == 0.0]
    remark = "mean recall of the classes"
    if never:
        more = f" and {len(never) - 3} more" if len(never) > 3 else ""
        remark = f"never found: {', '.join(never[:3])}{more}"
    return "Balanced accuracy", f"{np.nanmean(recalls):.1%}", remark


def gap_text(gap: float) -> str:
    """Return a gap in as many digits as mean anything."""
    return f"{gap:.1e}" if gap >= ROUNDING else f"< {ROUNDING:.0e}"


def _interval(count: int, n: int) -> str:
    """Return Wilson's interval for a share."""
    if n == 0:
        return "no interval"
    low, high = binomtest(count, n).proportion_ci(0.95, method="wilson")
    return f"95 % interval {100 * low:.1f} to {100 * high:.1f} %"


def _size_of(machine: Any) -> tuple[str, str, str]:
    if hasattr(machine, "selected_features_"):
        used = len(machine.selected_features_)
        return "Variables used", f"{used:,}", f"of {machine.n_features_in_:,}"
    if getattr(machine, "support_", None) is not None:
        return "Support vectors", f"{len(machine.support_):,}", "training rows that matter"
    if hasattr(machine, "landmarks_"):
        return "Landmarks", f"{np.shape(machine.landmarks_)[0]:,}", "where the kernel is placed"
    return "Variables", f"{machine.n_features_in_:,}", f"{len(machine.classes_)} classes"


def fitted(evidence: Evidence) -> Section:
    """Say what was fitted, and how it was certified."""
    parts = evidence.parts
    machine, name = parts.machine, type(parts.machine).__name__
    about: list[Content] = [tag("strong", name), f", {MACHINES.get(name, 'a classifier of Polymargin')}."]
    if parts.steps:
        about.append(f" Rows first go through {', '.join(type(step).__name__ for _, step in parts.steps)}.")
    if parts.search is not None:
        about.append(f" {type(parts.search).__name__} chose its parameters.")
    if parts.probable is not None:
        rule = (
            "most probable class" if parts.probable.model.cost_matrix is None else "class of least expected cost"
        )
        about.append(
            f" {type(parts.probable.model).__name__} makes probabilities of its scores and decides for the {rule}."
        )
    if parts.rejector is not None:
        about.append(" Weak predictions are rejected.")
    given, left = ([(tag("code", key), text) for key, text in parameters] for parameters in parameters_of(machine))
    body = [paragraph(*about)]
    if given:
        body.append(definitions(given, class_="parameters"))
    if left:
        body.append(
            tag(
                "details",
                tag("summary", f"{len(left)} parameters at their defaults"),
                definitions(left, class_="parameters"),
            )
        )
    return Section(
        "fitted",
        "What was fitted",
        "The machine, its settings, and the proof that came with its solution.",
        join([*body, *_certificate(machine)]),
    )


def parameters_of(machine: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the parameters that differ from their defaults, and those that do not, as they are written."""
    given: list[tuple[str, str]] = []
    left: list[tuple[str, str]] = []
    for name, parameter in inspect.signature(type(machine)).parameters.items():
        value = getattr(machine, name)
        text = short_repr(value)
        is_default = value is parameter.default or text == repr(parameter.default)
        (left if is_default else given).append((name, text))
    return given, left


def short_repr(value: Any) -> str:
    """Return how a value is written in Python, or of what shape it is where that would be long."""
    if hasattr(value, "shape") and np.size(value) > 12:
        return f"{type(value).__name__} of shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 90 else text[:86] + " ..."


def _certificate(machine: Any) -> list[Markup]:
    certificate = getattr(machine, "certificate_", None)
    if certificate is None:
        return [paragraph("This wrapper has no certificate of its own.", class_="note")]
    converged, tol = bool(machine.converged_), float(machine.tol)
    if certificate.kind == "global":
        words = (
            f"The optimal value of the training problem lies between {certificate.dual:.8g}, the dual "
            f"objective, and {certificate.primal:.8g}, that of the solution: no other could be better by more "
            f"than this gap, relatively {gap_text(certificate.gap)}."
        )
    else:
        words = (
            "The training problem is not convex, so that a global optimum cannot be proven. What can be is how "
            f"far the last convex step was solved: its optimal value lies between {certificate.dual:.8g} and "
            f"{certificate.primal:.8g}."
        )
    if converged:
        state = tag("span", "Certified", class_="badge good")
        words += f" The tolerance, {tol:g}, was reached."
    else:
        state = tag("span", "Not within the tolerance", class_="badge bad")
        factor = certificate.gap / tol
        words += f" The gap is {number(factor)} times the tolerance, {tol:g}."
        if getattr(machine, "max_iter", -1) not in (-1, None):
            words += f" The iterations were limited to {machine.max_iter}."
    numbers = [
        ("Primal objective", f"{certificate.primal:.8g}"),
        ("Dual objective", f"{certificate.dual:.8g}"),
        ("Relative gap", f"{certificate.gap:.2e}"),
        ("Infeasibility", f"{certificate.infeasibility:.1e}"),
        ("Iterations", f"{machine.n_iter_:,}"),
    ]
    return [
        tag(
            "div",
            tag("h3", "Certificate ", state),
            paragraph(words),
            definitions(numbers, class_="numbers"),
            class_="panel",
        )
    ]


def _whose_costs(evidence: Evidence) -> str:
    """Say by which costs predictions are judged."""
    if evidence.prices is not None:
        return "with the costs of the rows"
    return "with the costs given" if evidence.costs_given else "an error costs 1"
