"""Verdicts on stored numbers: claims, level and order of an item, each with every finding behind it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from reproductions.declare import Claim, Key, Reproduction, Row
from reproductions.rules import (
    HALF,
    LEAST_REPETITIONS,
    Answer,
    Finding,
    gain,
    quantile,
    same,
    share_of,
    together,
    within,
)
from reproductions.run import Record

NORMAL_MEDIAN = np.sqrt(np.pi / 2)
"""Standard error of a median in units of that of a mean, for normal numbers."""


@dataclass(frozen=True)
class Statement:
    """One of the three statements of a verdict: its answer and the findings behind it."""

    answer: Answer
    findings: tuple[Finding, ...] = ()

    def count(self, answer: Answer) -> int:
        """Return how many findings have that answer."""
        return sum(finding.answer is answer for finding in self.findings)

    def counts(self, noun: str) -> str:
        """Return the counts behind the answer, in words."""
        total = len(self.findings)
        if not total:
            return ""
        parts = [f"{self.count(Answer.YES)} of {total} {noun}"]
        if self.count(Answer.NO):
            parts.append(f"{self.count(Answer.NO)} not")
        if self.count(Answer.OPEN):
            parts.append(f"{self.count(Answer.OPEN)} undecided")
        return ", ".join(parts)


@dataclass(frozen=True)
class Verdict:
    """What the stored numbers say about an item."""

    claims: tuple[tuple[Claim, Statement], ...]
    level: Statement
    order: Statement

    @property
    def claimed(self) -> Answer:
        """Whether what the paper says holds."""
        return together(statement.answer for claim, statement in self.claims if claim.of_paper)

    @property
    def reason(self) -> str:
        """Return why, in one line."""
        theirs = [(claim, statement) for claim, statement in self.claims if claim.of_paper]
        parts = []
        for answer, words in ((Answer.NO, "does not hold"), (Answer.OPEN, "undecided")):
            named = [claim.says for claim, statement in theirs if statement.answer is answer]
            parts += [f"{words}: {says}" for says in named]
        if not parts and theirs:
            parts.append("; ".join(claim.says for claim, _ in theirs))
        parts.append(self.level.counts("numbers agree"))
        parts.append(self.order.counts("pairs in the paper's order"))
        return "; ".join(part for part in parts if part)


def summarise(item: Reproduction, records: Sequence[Record]) -> list[Row]:
    """Average over the repetitions; the keys in the paper's order, then what is ours alone.

    Where the paper prints no deviation, that of its repetitions is taken to be that of ours.
    """
    ours = dict.fromkeys(key for record in records for key in record.values)
    keys = [key for key in item.paper if key in ours] + [key for key in ours if key not in item.paper]
    rows = []
    for key in keys:
        by_median = key[-1] in item.medians
        inflation = NORMAL_MEDIAN if by_median else 1.0
        values = np.array([record.values[key] for record in records if key in record.values])
        centre = np.median(values) if by_median else values.mean()
        deviation = float(values.std(ddof=1)) if len(values) > 1 else np.nan
        theirs = item.paper.get(key)
        their_error = None
        if theirs is not None and item.paper_repetitions:
            spread = deviation if theirs.deviation is None else theirs.deviation
            their_error = float(inflation * spread / np.sqrt(item.paper_repetitions))
        rows.append(
            Row(
                key,
                float(centre),
                float(inflation * deviation / np.sqrt(len(values))),
                len(values),
                None if theirs is None else theirs.value,
                their_error,
                theirs is not None and theirs.judged,
            )
        )
    return rows


def judge(item: Reproduction, records: Sequence[Record]) -> Verdict:
    """Return the verdict that follows from the records."""
    rows = summarise(item, records)
    return Verdict(
        tuple((claim, judge_claim(claim, item, records)) for claim in item.claims),
        judge_level(item, rows),
        judge_order(item, records),
    )


def judge_claim(claim: Claim, item: Reproduction, records: Sequence[Record]) -> Statement:
    """Test every comparison of a claim on the repetitions that have its numbers."""
    findings = []
    for comparison in claim.comparisons:
        effects = []
        for record in records:
            try:
                effects.append(comparison.effect(record.values))
            except KeyError:  # this repetition leaves out what takes long
                continue
        if not effects:
            findings.append(Finding(comparison.label, Answer.OPEN, np.nan, -np.inf, np.inf, comparison.margin, 0))
            continue
        rule = same if claim.same else gain
        findings.append(rule(comparison.label, effects, comparison.margin, exact=item.exact))
    return Statement(share_of((finding.answer for finding in findings), claim.needed), tuple(findings))


def judge_level(item: Reproduction, rows: Sequence[Row]) -> Statement:
    """Hold every number that the paper prints against its band."""
    if item.band is None:
        return Statement(Answer.NONE)
    findings = []
    for row in rows:
        if not row.judged:
            continue
        band = item.band(row.key).width
        half = (
            0.0 if item.exact else quantile(row.repetitions) * float(np.hypot(row.error, row.their_error or 0.0))
        )
        low, high = row.difference - half, row.difference + half
        # One repetition has no interval.
        decidable = item.exact or row.repetitions >= LEAST_REPETITIONS
        answer = Answer.OPEN if np.isnan(half) else within(low, high, band, decidable)
        findings.append(Finding(" / ".join(row.key), answer, row.difference, low, high, band, row.repetitions))
    return Statement(share_of(finding.answer for finding in findings), tuple(findings))


def judge_order(item: Reproduction, records: Sequence[Record]) -> Statement:
    """Test the order of any two methods that the paper sets apart by more than a band, data and measure alike."""
    if item.band is None or item.method_part is None:
        return Statement(Answer.NONE)
    groups: dict[Key, list[Key]] = defaultdict(list)
    for key, theirs in item.paper.items():
        if theirs.judged:
            part = item.method_part % len(key)
            groups[key[:part] + key[part + 1 :]].append(key)
    findings = []
    for keys in groups.values():
        for first, second in combinations(keys, 2):
            apart = item.paper[first].value - item.paper[second].value
            if abs(apart) <= max(item.band(first).width, item.band(second).width):
                continue
            larger, smaller = (first, second) if apart > 0 else (second, first)
            effects = [
                record.values[larger] - record.values[smaller]
                for record in records
                if larger in record.values and smaller in record.values
            ]
            if effects:
                what = f"{' / '.join(larger)} > {' / '.join(smaller)}"
                findings.append(gain(what, effects, HALF * abs(apart), exact=item.exact))
    return Statement(share_of(finding.answer for finding in findings), tuple(findings))
