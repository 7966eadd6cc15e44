"""What skl2onnx is told about the classifiers: which outputs they have, and the nodes that make them."""

from typing import Any

import numpy as np
from skl2onnx import update_registered_converter
from skl2onnx._parse import _parse_sklearn
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import Pipeline

from polymargin.estimators._base import MarginClassifier
from polymargin.estimators._scoring import Scoring
from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.estimators.proximal import ProximalSVC
from polymargin.estimators.refinement import NewtonRefinement
from polymargin.estimators.robust import RobustSVC
from polymargin.estimators.shared import SharedStructureSVC
from polymargin.estimators.sparse import SparseSVC
from polymargin.estimators.trace_norm import TraceNormSVC
from polymargin.export.graph import Graph, label_dtype
from polymargin.selection.multicategory import MarginSearch
from polymargin.selection.probabilities import ProbabilityClassifier
from polymargin.selection.proximal import ProximalSVCCV
from polymargin.selection.rejection import RejectOptionClassifier
from polymargin.selection.shared import SharedStructureSearch
from polymargin.selection.sparse import SparseSVCCV
from polymargin.selection.weakness import minimises_paper_loss

MACHINES = (
    MarginSearch,
    MulticategorySVC,
    ProximalSVC,
    ProximalSVCCV,
    RobustSVC,
    SharedStructureSVC,
    SharedStructureSearch,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
)
"""Classifiers whose scores are a formula of the rows."""

SCORED, REFINED, REJECTING = "PolymarginScored", "PolymarginRefined", "PolymarginRejecting"
PROBABLE = "PolymarginProbable"
LABEL_TYPES = {np.int64: Int64TensorType, np.float64: DoubleTensorType, np.object_: StringTensorType}


def register() -> None:
    """Teach skl2onnx's own ``to_onnx`` all the classifiers."""
    for kind in MACHINES:
        _register(kind, SCORED, _convert_machine)
    _register(NewtonRefinement, REFINED, _convert_refined)
    _register(RejectOptionClassifier, REJECTING, _convert_rejecting)
    _register(ProbabilityClassifier, PROBABLE, _convert_probable)


def _register(kind: type, alias: str, converter: Any) -> None:
    # skl2onnx hands the option on to whatever classifies; scores stay a matrix with any of its values.
    options = {"zipmap": [True, False, "columns"]}
    update_registered_converter(kind, alias, _declare_types, converter, parser=parse, options=options)


def parse(scope: Any, model: Any, inputs: list, custom_parsers: Any = None) -> list:
    """Declare the operators of a classifier; return its labels, and its scores or probabilities.

    A wrapper works on the scores of what it wraps, pipelines and searches included.
    """
    if isinstance(model, ProbabilityClassifier):
        scores = _parse_scores(scope, model.estimator_, inputs, custom_parsers)
        return _declare(scope, PROBABLE, model, scores, second="probabilities")
    return _parse_scores(scope, model, inputs, custom_parsers)


def _parse_scores(scope: Any, model: Any, inputs: list, custom_parsers: Any) -> list:
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            if step is not None and step != "passthrough":
                inputs = _parse_sklearn(scope, step, inputs, custom_parsers=custom_parsers)
        return _parse_scores(scope, model.steps[-1][1], inputs, custom_parsers)
    if isinstance(model, NewtonRefinement):
        return _declare(scope, REFINED, model, _parse_scores(scope, model.estimator_, inputs, custom_parsers))
    if isinstance(model, RejectOptionClassifier):
        model._one_threshold("ONNX export")
        return _declare(scope, REJECTING, model, _parse_scores(scope, model.estimator_, inputs, custom_parsers))
    if isinstance(model, (MarginClassifier, LinearClassifierMixin)):
        return _declare(scope, SCORED, model, inputs)
    if hasattr(model, "best_estimator_"):
        return _parse_scores(scope, model.best_estimator_, inputs, custom_parsers)
    raise ValueError(
        f"{type(model).__name__} has no ONNX form here: what is wrapped must be a classifier of polymargin or a "
        "linear one of scikit-learn, alone, in a pipeline or in a search."
    )


def _declare(scope: Any, alias: str, model: Any, inputs: list, second: str = "scores") -> list:
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = list(inputs)
    for name in ("label", second):
        operator.outputs.append(scope.declare_local_variable(name, FloatTensorType()))
    return operator.outputs


def _declare_types(operator: Any) -> None:
    model = operator.raw_operator
    label, scores = operator.outputs
    number = DoubleTensorType if _dtype(operator) == np.float64 else FloatTensorType
    label.type = LABEL_TYPES[label_dtype(model.classes_)]([None])
    scores.type = number([None, len(model.classes_)])


def _dtype(operator: Any) -> Any:
    """Return the precision of an operator: double if any of its inputs (the last, if scores are) is."""
    inputs = operator.inputs if operator.type == SCORED else operator.inputs[-1:]
    return np.float64 if any(isinstance(one.type, DoubleTensorType) for one in inputs) else np.float32


def _formula(model: Any) -> Scoring:
    if isinstance(model, MarginClassifier):
        return model._scoring()
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
    return Scoring(coef.T, np.broadcast_to(intercept, len(coef)))


def _convert_machine(scope: Any, operator: Any, container: Any) -> None:
    graph = Graph(scope, container, _dtype(operator))
    _finish(graph, operator, graph.scores(_formula(operator.raw_operator), graph.rows(operator.inputs)))


def _convert_refined(scope: Any, operator: Any, container: Any) -> None:
    """Slide and scale the scores: ``a (s - b) - g``, as `NewtonRefinement` does."""
    graph, model = Graph(scope, container, _dtype(operator)), operator.raw_operator
    scale, offset = model.refinement_.scale, model.refinement_.offset
    scaled = graph.node("Mul", operator.inputs[1].full_name, graph.constant(scale))
    _finish(graph, operator, graph.node("Sub", scaled, graph.constant(scale * model._geometry()[1] + offset)))


def _convert_rejecting(scope: Any, operator: Any, container: Any) -> None:
    graph, model = Graph(scope, container, _dtype(operator)), operator.raw_operator
    scores = operator.inputs[1].full_name
    k, of_paper = len(model.classes_), minimises_paper_loss(model.estimator_)
    weak = graph.node("Greater", graph.losses(scores, k, of_paper=of_paper), graph.constant(model.threshold_))
    positions = graph.node("Where", weak, graph.constant(k, np.int64), graph.winners(scores))
    labels = np.append(model.classes_.astype(object), model.reject_label_)
    kind = label_dtype(model.classes_)
    graph.labels(positions, labels if kind is np.object_ else labels.astype(kind), operator.outputs[0].full_name)
    graph.node("Identity", scores, output=operator.outputs[1].full_name)


def _convert_probable(scope: Any, operator: Any, container: Any) -> None:
    """Map scores to probabilities, and decide by these or by expected costs."""
    graph, model = Graph(scope, container, _dtype(operator)), operator.raw_operator
    probabilities = graph.probabilities(model.map_, operator.inputs[1].full_name, len(model.classes_))
    label, named = (output.full_name for output in operator.outputs)
    if model._costs is None:
        winners = graph.winners(probabilities)
    else:
        winners = graph.winners(graph.node("MatMul", probabilities, graph.constant(-model._costs)))
    graph.labels(winners, model.classes_, label)
    graph.node("Identity", probabilities, output=named)


def _finish(graph: Graph, operator: Any, scores: str) -> None:
    """Name the outputs: the label of the highest score, and the scores."""
    label, named = (output.full_name for output in operator.outputs)
    graph.labels(graph.winners(scores), operator.raw_operator.classes_, label)
    graph.node("Identity", scores, output=named)
