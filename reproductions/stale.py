"""Stored runs against the code as it is: which have other code, and whether their numbers still come out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reproductions import catalogue
from reproductions.declare import Key, Reproduction
from reproductions.provenance import commit, digest
from reproductions.run import Record, compute, read_results, write_results

TENTH = 0.1
"""A recomputed number may differ from the stored one by that share of its band, or without a band of its standard
deviation over the repetitions: less than a verdict could feel, more than what fits change within their tolerance.

Where nothing varies, numbers must come out to EXACT of their size.
"""

EXACT = 1e-6


@dataclass(frozen=True)
class Check:
    """What became of a stored run.

    Attributes
    ----------
    name : the item.
    current : whether all repetitions were computed, or last checked, by the code as it is.
    recomputed : the repetition that was computed anew, None if none was.
    differing : the numbers that came out otherwise: what was stored and what came out.
    """

    name: str
    current: bool
    recomputed: int | None = None
    differing: tuple[str, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether the stored numbers are known to be those of the code as it is."""
        return self.current if self.recomputed is None else not self.differing

    def line(self) -> str:
        """Return the check in a line or, where numbers differ, in several."""
        if self.recomputed is None:
            return f"{self.name:32} {'same code' if self.current else 'other code, not recomputed'}"
        code = "same code" if self.current else "other code"
        if not self.differing:
            return f"{self.name:32} {code}, repetition {self.recomputed} comes out as stored"
        head = f"{self.name:32} {code}, repetition {self.recomputed} DIFFERS in {len(self.differing)} numbers:"
        return "\n    ".join([head, *self.differing[:5]])


def stored_runs(folder: Path) -> Iterator[tuple[str, Path]]:
    """Return the names and files of the stored runs, in the order of the papers."""
    for name in catalogue.names():
        results = (folder / name).with_suffix(".jsonl")
        if results.exists() and read_results(results)[1]:
            yield name, results


def is_current(item: Reproduction, header: dict, records: list[Record]) -> bool:
    """Tell whether the code of a run is the code as it is, or was checked to give the same."""
    code = digest(item.repetition)
    verified = header.get("verified", {}).get("code") == code
    return verified or all(record.code == code for record in records)


def cheapest(records: list[Record]) -> Record:
    """Return the repetition that took the least time."""
    return min(records, key=lambda record: record.seconds)


def check(name: str, results: Path, *, recompute: bool, data_home: str | None = None) -> Check:
    """Hold a stored run against the code as it is, by one repetition computed anew where asked."""
    item = catalogue.load(name)
    header, records = read_results(results)
    current = is_current(item, header, records)
    if not recompute:
        return Check(name, current)
    stored = cheapest(records)
    fresh = compute(name, item, stored.repetition, header["quick"], data_home)
    return Check(name, current, stored.repetition, tuple(differences(item, stored, fresh, spreads(records))))


def differences(item: Reproduction, stored: Record, fresh: Record, spread: Mapping[Key, float]) -> Iterator[str]:
    """Return the numbers of a repetition that came out otherwise than stored."""
    for key in stored.values.keys() | fresh.values.keys():
        if key[-1] in item.timed:
            continue
        before, after = stored.values.get(key, np.nan), fresh.values.get(key, np.nan)
        if not abs(before - after) <= tolerance(item, key, before, spread.get(key, 0.0)):
            yield f"{' / '.join(key)}: {before:.6g} was stored, {after:.6g} came out"


def spreads(records: Sequence[Record]) -> dict[Key, float]:
    """Return the standard deviations over repetitions of the numbers that every repetition has."""
    shared = set.intersection(*(set(record.values) for record in records))
    return {key: float(np.std([record.values[key] for record in records])) for key in shared}


def tolerance(item: Reproduction, key: Key, stored: float, spread: float) -> float:
    """Return by how much a recomputed number may differ."""
    is_judged = item.band is not None and key in item.paper and item.paper[key].judged
    width = item.band(key).width if item.band is not None and is_judged else spread
    return max(TENTH * width, EXACT * max(1.0, abs(stored)))


def mark_verified(item: Reproduction, results: Path, repetition: int) -> None:
    """Note in a results file that the code as it is gives the same."""
    header, records = read_results(results)
    verified = {"commit": commit(), "code": digest(item.repetition), "repetition": repetition}
    write_results(results, header | {"verified": verified}, records)
