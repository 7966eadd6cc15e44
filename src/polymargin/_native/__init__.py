"""Every compiled loop of the package; called by :mod:`polymargin.solvers` and :mod:`polymargin.gram` alone.

Where a build holds the loops for x86-64-v3 as well (AVX2 and FMA; wheels do), they are imported in place of those
for every processor if this one can run them. The environment variable POLYMARGIN_BASELINE=1 keeps to the latter.
"""

import os
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_features__ as _features

_faster = Path(__file__).with_name("x86_64_v3")
if (
    _features.get("AVX2")
    and _features.get("FMA3")
    and os.environ.get("POLYMARGIN_BASELINE") != "1"
    and any(_faster.glob("*.*"))
):
    __path__.insert(0, str(_faster))
