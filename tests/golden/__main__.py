"""``python -m tests.golden`` compares all fits with the stored ones.

``--write`` stores them anew, ``--write landmarks`` those alone that have the word in their names.
"""

import sys

from tests.golden.cases import CASES
from tests.golden.record import distance, fitted, load, write

ROUNDING = 1e-10

if sys.argv[1:2] == ["--write"] and len(sys.argv) <= 3:
    write(*sys.argv[2:])
elif sys.argv[1:]:
    sys.exit(f"usage: python -m tests.golden [--write [PART OF A NAME]], got {' '.join(sys.argv[1:])}")
else:
    stored = load()
    moved = 0
    print(f"{'fit':34} {'objective':>10} {'scores':>10} {'labels':>6} {'gap before':>10} {'gap now':>10}")
    for name, case in CASES.items():
        now = fitted(case)
        objective, scores, labels = distance(stored[name], now)
        if objective > ROUNDING or scores > ROUNDING or labels:
            moved += 1
            gaps = f"{stored[name]['gap']:10.1e} {now['gap']:10.1e}"
            print(f"{name:34} {objective:10.1e} {scores:10.1e} {labels:6} {gaps}")
    print(f"{moved} of {len(CASES)} fits moved by more than rounding ({ROUNDING:g}).")
