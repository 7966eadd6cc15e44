"""What skl2onnx is told about the classifiers: which outputs they have, and the nodes that make them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx import update_registered_converter
from skl2onnx._parse import _parse_sklearn
from skl2onnx.common._registration import register_converter, register_shape_calculator
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.pipeline import Pipeline

from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.estimators.parts import scoring_of
from polymargin.estimators.proximal import ProximalSVC
from polymargin.estimators.refinement import NewtonRefinement
from polymargin.estimators.robust import RobustSVC
from polymargin.estimators.shared import SharedStructureSVC
from polymargin.estimators.sparse import SparseSVC
from polymargin.estimators.trace_norm import TraceNormSVC
from polymargin.export.graph import Graph, label_dtype
from polymargin.selection.multicategory import MarginSearch
from polymargin.selection.prediction_sets import PredictionSetClassifier
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

WRAPPERS = (NewtonRefinement, RejectOptionClassifier, ProbabilityClassifier, PredictionSetClassifier)
"""Classifiers around others."""

SCORED, EXACT = "PolymarginScored", "PolymarginExact"
REFINED, REJECTING, PROBABLE = "PolymarginRefined", "PolymarginRejecting", "PolymarginProbable"
IN_SETS, ROUNDED = "PolymarginInSets", "PolymarginRounded"
LABEL_TYPES = {np.int64: Int64TensorType, np.float64: DoubleTensorType, np.object_: StringTensorType}


def register() -> None:
    """Teach skl2onnx's own ``to_onnx`` all the classifiers."""
    # skl2onnx hands the option on to whatever classifies; scores stay a matrix with any of its values.
    options = {"zipmap": [True, False, "columns"]}
    for kind in MACHINES:
        update_registered_converter(
            kind, SCORED, _declare_types, _convert_machine, parser=_parse_machine, options=options
        )
    for wrapper in WRAPPERS:
        update_registered_converter(
            wrapper, ROUNDED, _declare_types, _round, parser=_parse_wrapper, options=options
        )
    converters = {
        EXACT: _convert_machine,
        REFINED: _convert_refined,
        REJECTING: _convert_rejecting,
        PROBABLE: _convert_probable,
        IN_SETS: _convert_in_sets,
    }
    for alias, converter in converters.items():
        register_converter(alias, converter, overwrite=True)
        register_shape_calculator(alias, _declare_types, overwrite=True)


def _parse_machine(scope: Any, model: Any, inputs: list, custom_parsers: Any = None) -> list:
    """Declare the one operator of a machine."""
    return _declare(scope, SCORED, model, inputs)


def _parse_wrapper(scope: Any, model: Any, inputs: list, custom_parsers: Any = None) -> list:
    """Declare the operators of a wrapper; return its labels, its scores or probabilities, and its sets.

    A wrapper works on the scores of what it wraps, pipelines and searches included. The last operator rounds to
    the precision of the rows.
    """
    if isinstance(model, PredictionSetClassifier):
        parts = [_parse_probabilities(scope, one, inputs, custom_parsers) for one in set_models(model)]
        found = _declare(scope, IN_SETS, model, [part[1] for part in parts], ("label", "probabilities", "sets"))
    elif isinstance(model, ProbabilityClassifier):
        found = _parse_probabilities(scope, model, inputs, custom_parsers)
    else:
        found = _parse_scores(scope, model, inputs, custom_parsers)
    return _declare(scope, ROUNDED, model, [*found, *inputs], [output.raw_name for output in found])


def set_models(model: PredictionSetClassifier) -> list[ProbabilityClassifier]:
    """Return the classifier that predicts, and with folds those that its sets are made from."""
    return [model.model_, *(fold.model for fold in model._folds if fold.model is not model.model_)]


def _parse_probabilities(scope: Any, model: ProbabilityClassifier, inputs: list, custom_parsers: Any) -> list:
    scores = _parse_scores(scope, model.estimator_, inputs, custom_parsers)
    return _declare(scope, PROBABLE, model, scores, ("label", "probabilities"))


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
    if scoring_of(model) is not None:
        return _declare(scope, EXACT, model, inputs)
    if hasattr(model, "best_estimator_"):
        return _parse_scores(scope, model.best_estimator_, inputs, custom_parsers)
    raise ValueError(
        f"{type(model).__name__} has no ONNX form here: what is wrapped must be a classifier of polymargin or a "
        "linear one of scikit-learn, alone, in a pipeline or in a search."
    )


def _declare(
    scope: Any, alias: str, model: Any, inputs: list, outputs: Sequence[str] = ("label", "scores")
) -> list:
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = list(inputs)
    for name in outputs:
        operator.outputs.append(scope.declare_local_variable(name, FloatTensorType()))
    return operator.outputs


def _declare_types(operator: Any) -> None:
    """Tell skl2onnx what comes out: scores in double precision, unless they are rounded."""
    classes = operator.raw_operator.classes_
    label, scores, *sets = operator.outputs
    label.type = LABEL_TYPES[label_dtype(classes)]([None])
    scores.type = (DoubleTensorType if _is_double(operator) else FloatTensorType)([None, len(classes)])
    for output in sets:
        output.type = BooleanTensorType([None, len(classes)])


def _is_double(operator: Any) -> bool:
    """Tell whether scores leave an operator in double precision: inside the graph, and for rows that have it."""
    rows = {SCORED: operator.inputs, ROUNDED: operator.inputs[len(operator.outputs) :]}.get(operator.type)
    return rows is None or any(isinstance(one.type, DoubleTensorType) for one in rows)


def _proto(operator: Any) -> int:
    return TensorProto.DOUBLE if _is_double(operator) else TensorProto.FLOAT


def _round(scope: Any, operator: Any, container: Any) -> None:
    """Give the scores in the precision of the rows; labels and sets stay."""
    graph = Graph(scope, container)
    label, scores, *sets = zip(operator.inputs, operator.outputs, strict=False)
    for found, named in (label, *sets):
        graph.node("Identity", found.full_name, output=named.full_name)
    graph.node("Cast", scores[0].full_name, output=scores[1].full_name, to=_proto(operator))


def _convert_machine(scope: Any, operator: Any, container: Any) -> None:
    graph = Graph(scope, container)
    scoring = scoring_of(operator.raw_operator)
    assert scoring is not None  # the parser has seen to it
    _finish(graph, operator, graph.scores(scoring, graph.rows(operator.inputs)))


def _convert_refined(scope: Any, operator: Any, container: Any) -> None:
    """Slide and scale the scores as `NewtonRefinement` does."""
    graph, model = Graph(scope, container), operator.raw_operator
    scale, offset = model._affine()
    scaled = graph.node("Mul", operator.inputs[1].full_name, graph.constant(scale))
    _finish(graph, operator, graph.node("Sub", scaled, graph.constant(offset)))


def _convert_rejecting(scope: Any, operator: Any, container: Any) -> None:
    graph, model = Graph(scope, container), operator.raw_operator
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
    graph, model = Graph(scope, container), operator.raw_operator
    probabilities = graph.probabilities(model.map_, operator.inputs[1].full_name, len(model.classes_))
    label, named = (output.full_name for output in operator.outputs)
    if model._costs is None:
        winners = graph.winners(probabilities)
    else:
        winners = graph.winners(graph.node("MatMul", probabilities, graph.constant(-model._costs)))
    graph.labels(winners, model.classes_, label)
    graph.node("Identity", probabilities, output=named)


def _convert_in_sets(scope: Any, operator: Any, container: Any) -> None:
    """Find the classes that fit no worse than left-out rows fit theirs, as `PredictionSetClassifier` does."""
    graph, model = Graph(scope, container), operator.raw_operator
    k = len(model.classes_)
    probabilities, *of_folds = (one.full_name for one in operator.inputs)
    label, named, sets = (output.full_name for output in operator.outputs)
    graph.labels(graph.winners(probabilities), model.classes_, label)
    graph.node("Identity", probabilities, output=named)
    if model.cv is None:
        misfits = graph.misfits(model.misfit, probabilities, k)
        graph.node("Not", graph.node("Greater", misfits, graph.constant(model.thresholds_)), output=sets)
        return
    candidates = [graph.misfits(model.misfit, found, k) for found in of_folds]
    if model.form == "minmax":
        candidates = [graph.node("Min", *candidates)] * len(candidates)
    counts = []
    for fold, misfits in zip(model._folds, candidates, strict=True):
        compared = [fold.labels == j if model.coverage_of == "class" else slice(None) for j in range(k)]
        columns = [
            graph.counts_below(misfits, j, fold.misfits[at], fold.weights[at]) for j, at in enumerate(compared)
        ]
        counts.append(graph.node("Concat", *columns, axis=1))
    better = graph.node("Sum", *counts)
    graph.node("Less", better, graph.constant(model._most_better(model.coverage)), output=sets)


def _finish(graph: Graph, operator: Any, scores: str) -> None:
    """Name the outputs: the label of the highest score, and the scores."""
    label, named = (output.full_name for output in operator.outputs)
    graph.labels(graph.winners(scores), operator.raw_operator.classes_, label)
    graph.node("Cast", scores, output=named, to=_proto(operator))
