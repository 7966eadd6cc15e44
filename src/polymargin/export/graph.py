"""Formulas of scores and decisions as nodes of an ONNX graph: plain operators, any number of rows.

All is computed in double precision, whatever rows come in: sums over many points would lose digits in single
precision that the scores must have. Scores are rounded once, where they leave the graph.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from scipy import sparse

from polymargin.estimators.parts import Scoring
from polymargin.gram import PointKernel
from polymargin.problems.softmax import logits
from polymargin.selection.calibration import SigmoidMap, SoftmaxMap
from polymargin.selection.prediction_sets import FREE_RANKS, RANK_PENALTY

NO_FORM = "has no ONNX form: it needs code or training rows that the graph cannot hold; use a built-in kernel"


@dataclass(frozen=True, slots=True)
class Graph:
    """Writes nodes into a converter's container.

    Attributes
    ----------
    scope, container : of skl2onnx: they make names unique and keep nodes and constants.
    """

    scope: Any
    container: Any

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Add an array."""
        array = np.ascontiguousarray(values, dtype=dtype)
        name = self.scope.get_unique_variable_name("constant")
        self.container.initializers.append(numpy_helper.from_array(array.reshape(np.shape(values)), name))
        return name

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = self.scope.get_unique_variable_name(operator.lower()) if output is None else output
        label = self.scope.get_unique_operator_name(operator)
        self.container.add_node(operator, list(inputs), name, name=label, **attributes)
        return name

    def rows(self, variables: Any) -> str:
        """Return one matrix made of the inputs, whatever numbers they hold."""
        parts = [self.double(variable.full_name) for variable in variables]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def double(self, values: str) -> str:
        """Return values of any type as numbers in double precision."""
        return self.node("Cast", values, to=TensorProto.DOUBLE)

    def scores(self, scoring: Scoring, rows: str) -> str:
        """Return the scores (n, k) of the rows."""
        if not len(scoring.weights):
            # Sums of no products are not zero in every runtime: onnxruntime 1.19 gives what the memory held.
            zeros = np.zeros((1, len(scoring.intercept)))
            scoring = Scoring(zeros, scoring.intercept, columns=np.arange(1), votes=scoring.votes)
        if scoring.kernel is not None:
            features = self.kernel(scoring.kernel, rows)
        elif scoring.columns is not None:
            features = self.node("Gather", rows, self.constant(scoring.columns, np.int64), axis=1)
        else:
            features = rows
        products = self.node("MatMul", features, self.constant(scoring.weights))
        scores = self.node("Add", products, self.constant(scoring.intercept))
        return scores if scoring.votes is None else self.votes(scores, scoring.votes)

    def votes(self, tasks: str, codes: NDArray[np.float64]) -> str:
        """Count the votes of pairs of classes, as the classifiers do (`count_votes`)."""
        signs, against = self.constant(codes.T), np.maximum(-codes, 0.0).sum(axis=1)
        positive = self.node("Greater", tasks, self.constant(0.0))
        gained = self.node("MatMul", self.double(positive), signs)
        whole = self.node("Add", gained, self.constant(against))
        # A division after the product would be fused with it, and its factor rounded to single precision.
        ties = self.node("MatMul", self.node("Tanh", tasks), self.constant(codes.T / (2 * len(codes))))
        return self.node("Add", whole, ties)

    def kernel(self, at: PointKernel, rows: str) -> str:
        """Return the kernel (n, m) between the rows and the points."""
        kernel = at.kernel
        if kernel.name == "precomputed" or callable(kernel.name):
            raise ValueError(f"kernel={kernel.name!r} {NO_FORM}.")
        points = np.asarray(at.points.toarray() if sparse.issparse(at.points) else at.points, dtype=np.float64)
        if kernel.name in ("rbf", "laplacian"):
            exponent = self.node("Mul", self._distances(points, rows, kernel.name), self.constant(-kernel.gamma))
            return self.node("Exp", exponent)
        if kernel.name == "linear":
            return self.node("MatMul", rows, self.constant(points.T))
        inner = self.node("MatMul", rows, self.constant(kernel.gamma * points.T))
        inner = self.node("Add", inner, self.constant(kernel.coef0))
        return (
            self.node("Tanh", inner)
            if kernel.name == "sigmoid"
            else self.node("Pow", inner, self.constant(kernel.degree))
        )

    def _distances(self, points: NDArray[np.float64], rows: str, kernel: str) -> str:
        """Return squared distances, or for the Laplacian kernel sums of absolute differences."""
        if kernel == "rbf":
            centre = points.mean(axis=0)  # near it, distances keep their digits
            rows, points = self.node("Sub", rows, self.constant(centre)), points - centre
            squares = self._reduce("ReduceSumSquare", rows, keepdims=1)
            crossed = self.node("MatMul", rows, self.constant(-2.0 * points.T))
            summed = self.node("Add", crossed, self.constant(np.einsum("ij,ij->i", points, points)))
            return self.node("Max", self.node("Add", summed, squares), self.constant(0.0))
        name = self.scope.get_unique_variable_name("distances")
        self.container.add_node(
            "Scan",
            [rows],
            name,
            name=self.scope.get_unique_operator_name("Scan"),
            num_scan_inputs=1,
            body=self._distances_of_a_row(self.constant(points), points.shape[1]),
        )
        return name

    def _distances_of_a_row(self, points: str, width: int) -> Any:
        row, gap, found = (self.scope.get_unique_variable_name(name) for name in ("row", "differences", "found"))
        inputs, attributes = self._axis("ReduceL1")
        return helper.make_graph(
            [
                helper.make_node("Sub", [points, row], [gap]),
                helper.make_node("ReduceL1", [gap, *inputs], [found], keepdims=0, **attributes),
            ],
            "distances of a row",
            [helper.make_tensor_value_info(row, TensorProto.DOUBLE, [width])],
            [helper.make_tensor_value_info(found, TensorProto.DOUBLE, [None])],
        )

    def _reduce(self, operator: str, values: str, *, axis: int = 1, keepdims: int = 0) -> str:
        """Add a node that takes entries along an axis together, by default the columns of a matrix."""
        inputs, attributes = self._axis(operator, axis)
        return self.node(operator, values, *inputs, keepdims=keepdims, **attributes)

    def _axis(self, operator: str, axis: int = 1) -> tuple[list[str], dict[str, Any]]:
        """Return how a reduction is told its axis: an attribute in older versions of ONNX, an input in newer."""
        since = 13 if operator == "ReduceSum" else 18
        if self.container.target_opset_any_domain("") < since:
            return [], {"axes": [axis]}
        return [self.constant([axis], np.int64)], {}

    def losses(self, scores: str, n_classes: int, *, of_paper: bool) -> str:
        """Return the loss (n,) of the predicted class, as `RejectOptionClassifier` measures it."""
        if of_paper:
            hinges = self.node("Relu", self.node("Add", scores, self.constant(1.0 / (n_classes - 1))))
            return self.node("Sub", self._reduce("ReduceSum", hinges), self._reduce("ReduceMax", hinges))
        highest, places = (self.scope.get_unique_variable_name(name) for name in ("highest", "places"))
        label, two = self.scope.get_unique_operator_name("TopK"), self.constant([2], np.int64)
        self.container.add_node("TopK", [scores, two], [highest, places], name=label, axis=1)
        first, second = (self.node("Gather", highest, self.constant(at, np.int64), axis=1) for at in (0, 1))
        return self.node("Sub", second, first)

    def probabilities(self, found: Any, scores: str, n_classes: int) -> str:
        """Return the probabilities (n, k) that a fitted map of `ProbabilityClassifier` gives."""
        if isinstance(found, SoftmaxMap):
            offset = logits(found.parameters, np.zeros((1, n_classes)))
            slope = (logits(found.parameters, np.eye(n_classes)) - offset) / found.spread
            z = self.node("Add", self.node("MatMul", scores, self.constant(slope)), self.constant(offset))
            return self.node("Softmax", z, axis=1)
        if isinstance(found, SigmoidMap):
            z = self.node(
                "Add", self.node("Mul", scores, self.constant(found.slopes)), self.constant(found.offsets)
            )
            columns = self.node("Sigmoid", z)
        else:
            steps = zip(found.thresholds, found.values, strict=True)
            parts = [self._interpolated(scores, j, at, value) for j, (at, value) in enumerate(steps)]
            columns = self.node("Concat", *parts, axis=1)
        sums = self._reduce("ReduceSum", columns, keepdims=1)
        none = self.node("Equal", sums, self.constant(0.0))
        even = self.constant(np.full((1, n_classes), 1.0 / n_classes))
        return self.node("Where", none, even, self.node("Div", columns, sums))

    def misfits(self, kind: str, probabilities: str, n_classes: int) -> str:
        """Return how badly every class fits, (n, k), as `PredictionSetClassifier` measures it."""
        if kind == "lac":
            return self.node("Sub", self.constant(1.0), probabilities)
        # Classes up to y are those more probable, and of the equally probable those not after it.
        own = self.node("Reshape", probabilities, self.constant([0, n_classes, 1], np.int64))
        other = self.node("Reshape", probabilities, self.constant([0, 1, n_classes], np.int64))
        not_after = self.constant(np.tril(np.ones((1, n_classes, n_classes))), np.bool_)
        equal = self.node("And", self.node("Equal", other, own), not_after)
        up_to = self.double(self.node("Or", self.node("Greater", other, own), equal))
        summed = self._reduce("ReduceSum", self.node("Mul", up_to, other), axis=2)
        if kind == "aps":
            return summed
        ranks = self._reduce("ReduceSum", up_to, axis=2)
        beyond = self.node("Relu", self.node("Sub", ranks, self.constant(float(FREE_RANKS))))
        return self.node("Add", summed, self.node("Mul", beyond, self.constant(RANK_PENALTY)))

    def counts_below(self, values: str, column: int, known: NDArray[np.float64], weights: NDArray) -> str:
        """Return the summed weights (n, 1) of the `known` numbers that are below a column of `values`."""
        own = self.node("Gather", values, self.constant([column], np.int64), axis=1)
        below = self.double(self.node("Greater", own, self.constant(known)))
        return self.node("MatMul", below, self.constant(weights[:, None]))

    def _interpolated(self, scores: str, column: int, at: NDArray, values: NDArray) -> str:
        """Return the linear interpolation of `values` at points `at`, constant beyond, of a column of scores."""
        own = self.node("Gather", scores, self.constant([column], np.int64), axis=1)
        if len(at) == 1:
            return self.node("Add", self.node("Mul", own, self.constant(0.0)), self.constant(values[0]))
        run = self.node("Div", self.node("Sub", own, self.constant(at[:-1])), self.constant(np.diff(at)))
        share = self.node("Min", self.node("Max", run, self.constant(0.0)), self.constant(1.0))
        rise = self.node("MatMul", share, self.constant(np.diff(values)[:, None]))
        return self.node("Add", rise, self.constant(values[0]))

    def winners(self, scores: str) -> str:
        """Return the position (n,) of the highest score, the first of equals."""
        return self.node("ArgMax", scores, axis=1, keepdims=0)

    def labels(self, positions: str, labels: NDArray, output: str) -> None:
        """Name the classes at positions."""
        self.node("Gather", self.constant(labels, label_dtype(labels)), positions, output=output, axis=0)


def label_dtype(labels: NDArray) -> Any:
    """Return the type that labels have in a graph: integers, doubles or strings."""
    kind = np.asarray(labels).dtype.kind
    return np.int64 if kind in "iub" else np.float64 if kind == "f" else np.object_
