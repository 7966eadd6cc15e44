"""The public way to extend Polymargin: what a part of your own inherits from, and what verifies it.

>>> from polymargin import ElasticNetPenalty
>>> from polymargin.extend import check_penalty
>>> check_penalty(ElasticNetPenalty(l1_ratio=0.2))
"""

from polymargin.extend.penalty import check_penalty
from polymargin.problems.penalties import Atoms, Penalty

__all__ = ["Atoms", "Penalty", "check_penalty"]
