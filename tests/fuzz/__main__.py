"""Run a campaign by hand: ``python -m tests.fuzz --calls 10000 --seed 1 --log campaign.log``.

Every defect is printed as it is found, as a recipe: its line, appended to `corpus.jsonl`, becomes a test. The last
line counts the calls. With ``--log`` the same lines are appended to a file, and a campaign that was stopped
goes on after the last call that the file knows of.
"""

import argparse
import re
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.oracle import judge
from tests.fuzz.recipes import draw

SAID_EVERY = 500
"""Calls between two lines that count them."""


class Tally:
    """What has become of the calls of one seed so far, on the screen and in a file."""

    def __init__(self, seed: int, log: Path | None):
        self.seed, self.log = seed, log
        self.counts: Counter[str] = Counter(right=0, refused=0, defect=0)
        self.seconds = 0.0
        said = log.read_text().splitlines() if log is not None and log.exists() else []
        counted = [match for line in said if (match := COUNTED.fullmatch(line)) and int(match["seed"]) == seed]
        if counted:
            self.counts.update({kind: int(counted[-1][kind]) for kind in self.counts})
            self.seconds = float(counted[-1]["seconds"])

    def line(self) -> str:
        """Return the counts as one line."""
        counts = self.counts
        return (
            f"seed {self.seed}: {counts.total()} calls, {counts['defect']} defects "
            f"({counts['right']} right, {counts['refused']} refused, {self.seconds:.0f} CPU seconds)"
        )

    def say(self, line: str) -> None:
        """Print a line, and keep it."""
        print(line, flush=True)
        if self.log is not None:
            with self.log.open("a") as log:
                log.write(line + "\n")


COUNTED = re.compile(
    r"seed (?P<seed>\d+): \d+ calls, (?P<defect>\d+) defects "
    r"\((?P<right>\d+) right, (?P<refused>\d+) refused, (?P<seconds>\d+) CPU seconds\)"
)


def main() -> int:
    """Draw and judge calls until there are enough, or the time is over; return 1 if there was a defect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="at most so long")
    parser.add_argument("--calls", type=int, default=10_000, help="so many calls of the seed in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="file to which everything said is appended")
    chosen = parser.parse_args()
    tally = Tally(chosen.seed, chosen.log)
    until, known = time.monotonic() + 60.0 * chosen.minutes, set()
    for number in range(tally.counts.total(), chosen.calls):
        if time.monotonic() > until:
            break
        recipe, began = draw(chosen.seed, number), time.process_time()
        verdict = judge(recipe)
        tally.seconds += time.process_time() - began
        tally.counts[verdict.kind] += 1
        if verdict.kind == "defect" and verdict.reason not in known:
            known.add(verdict.reason)
            tally.say(f"defect {number}: {verdict.reason}\n{recipe.to_json()}")
        if (number + 1) % SAID_EVERY == 0 and number + 1 < chosen.calls:
            tally.say(tally.line())
    tally.say(tally.line())
    return 1 if tally.counts["defect"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
