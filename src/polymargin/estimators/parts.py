"""What other packages build on: the base of all classifiers, their data, scoring, and fits that are whole."""

from polymargin.estimators._base import OUTCOME, MarginClassifier, TrainingSet
from polymargin.estimators._callbacks import with_callbacks
from polymargin.estimators._kernel import KernelClassifier
from polymargin.estimators._moments import class_moments
from polymargin.estimators._partitions import PartitionedSet, rows_in_memory
from polymargin.estimators._scoring import Scoring, count_votes, scoring_of
from polymargin.estimators._sparse_machine import Machine, name_of, named_penalty, weights_from
from polymargin.estimators._statement import brought_together
from polymargin.estimators._tasks import TaskClassifier, class_scores
from polymargin.estimators._transaction import all_or_nothing, refuses_costs

__all__ = [
    "OUTCOME",
    "KernelClassifier",
    "Machine",
    "MarginClassifier",
    "PartitionedSet",
    "Scoring",
    "TaskClassifier",
    "TrainingSet",
    "all_or_nothing",
    "brought_together",
    "class_moments",
    "class_scores",
    "count_votes",
    "name_of",
    "named_penalty",
    "refuses_costs",
    "rows_in_memory",
    "scoring_of",
    "weights_from",
    "with_callbacks",
]
