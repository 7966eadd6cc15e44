"""Run a campaign by hand: ``python -m tests.fuzz --minutes 60 --seed 1``; defects are printed as recipes.

A line printed after "defect" can be appended to `corpus.jsonl`, where it becomes a test.
"""

import argparse
import time
from collections import Counter

from tests.fuzz.oracle import judge
from tests.fuzz.recipes import draw


def main() -> int:
    """Draw and judge calls until the time is over; return 1 if there was a defect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--calls", type=int, default=10**9, help="at most so many calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    chosen = parser.parse_args()
    until, counts, reasons = time.monotonic() + 60.0 * chosen.minutes, Counter(), Counter()
    for number in range(chosen.first, chosen.first + chosen.calls):
        if time.monotonic() > until:
            break
        recipe = draw(chosen.seed, number)
        verdict = judge(recipe)
        counts[verdict.kind] += 1
        if verdict.kind == "defect":
            reasons[verdict.reason] += 1
            if reasons[verdict.reason] == 1:
                print(f"defect {number}: {verdict.reason}\n{recipe.to_json()}", flush=True)
    print(
        f"seed {chosen.seed}: {sum(counts.values())} calls, "
        + ", ".join(f"{n} {kind}" for kind, n in counts.items())
    )
    return 1 if counts["defect"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
