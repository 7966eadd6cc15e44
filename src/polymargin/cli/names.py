"""Names that options take, and errors that are said to people; light, so that help comes at once."""

from enum import StrEnum


class Method(StrEnum):
    """The five families, and the choice by size and shape."""

    auto = "auto"
    multicategory = "multicategory"
    proximal = "proximal"
    sparse = "sparse"
    shared = "shared"
    robust = "robust"

    @property
    def takes_costs(self) -> bool:
        """Whether costs and priors can act in the training."""
        return self in (Method.auto, Method.multicategory, Method.sparse, Method.robust)


class CostsIn(StrEnum):
    """Where costs act: in the decisions by probabilities, in the training, or in both."""

    decisions = "decisions"
    training = "training"
    both = "both"


class Kernel(StrEnum):
    """The kernels offered."""

    linear = "linear"
    rbf = "rbf"


DEFAULT_BUDGET = "50s"
"""Time of a command that searches, from its first moment to its last: a person waits less than a minute."""

FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
    ".xlsx": "excel",
    ".xls": "excel",
}
"""Formats of files by their endings."""

TABLES = ("csv", "tsv", "excel", "parquet")
"""Formats that predictions can be written in."""

PAGES = (".html", ".htm")
"""Endings of pages."""


class Misuse(ValueError):
    """Options that contradict each other, or one that is needed and was not given: exit code 2."""


class Problems(ValueError):
    """All that is wrong with a file, said at once."""

    def __init__(self, path: object, problems: list[str]):
        self.problems = problems
        if len(problems) == 1:
            super().__init__(f"{path}: {problems[0]}")
        else:
            super().__init__("\n  ".join([f"{path} has {len(problems)} problems:", *problems]))
