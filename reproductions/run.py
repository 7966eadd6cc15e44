"""Run an item's repetitions: every one has its own seed, is stored when done, and is never done twice."""

import json
import os
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from polymargin.files import write_atomically
from polymargin.selection.progress import counted
from reproductions.declare import Context, Key, Reproduction
from reproductions.provenance import commit, digest


@dataclass(frozen=True)
class Record:
    """The numbers of one repetition, the CPU seconds that it took, and the code that computed it.

    Commit and code are empty where a run is older than their being kept.
    """

    repetition: int
    seed: int
    values: dict[Key, float]
    seconds: float
    commit: str = ""
    code: str = ""

    def to_line(self) -> str:
        """Return the record as a line of the results file."""
        values = [[*key, value] for key, value in self.values.items()]
        entries = {
            "repetition": self.repetition,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "commit": self.commit,
            "code": self.code,
            "values": values,
        }
        return json.dumps(entries)

    @classmethod
    def from_line(cls, line: str) -> "Record":
        """Read a line of the results file."""
        stored = json.loads(line)
        values = {tuple(entry[:-1]): entry[-1] for entry in stored["values"]}
        return cls(
            stored["repetition"], stored["seed"], values, stored["seconds"], stored["commit"], stored["code"]
        )


def seed_of(name: str, repetition: int) -> int:
    """Return the seed of a repetition, a function of the table's name and of its number alone."""
    return int(np.random.SeedSequence([zlib.crc32(name.encode()), repetition]).generate_state(1)[0])


def run(
    name: str,
    item: Reproduction,
    results: Path,
    *,
    repetitions: int,
    jobs: int = 1,
    quick: bool = False,
    data_home: str | None = None,
    shown: bool = False,
) -> list[Record]:
    """Compute the repetitions that `results` does not hold yet, append each as it is done, return all in order."""
    done = {record.repetition: record for record in open_results(results, header_of(name, quick))}
    missing = [number for number in range(repetitions) if number not in done]
    origin = commit(), digest(item.repetition)
    computed = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(compute)(name, item, number, quick, data_home, origin) for number in missing
    )
    with results.open("a") as file:
        for record in counted(computed, len(missing), name, shown=shown):
            file.write(record.to_line() + "\n")
            file.flush()
            os.fsync(file.fileno())
            done[record.repetition] = record
    return [done[number] for number in sorted(done) if number < repetitions]


def header_of(name: str, quick: bool) -> dict:
    """Return what the first line of a results file says: which command made it."""
    command = f"python -m reproductions {name.replace('/', ' ')}" + " --quick" * quick
    return {"reproduction": name, "command": command, "quick": quick}


def compute(
    name: str,
    item: Reproduction,
    repetition: int,
    quick: bool,
    data_home: str | None,
    origin: tuple[str, str] = ("", ""),
) -> Record:
    """Compute one repetition; `origin` is the commit and the digest of its code."""
    seed = seed_of(name, repetition)
    start = time.process_time()
    values = dict(item.repetition(Context(seed, quick, data_home, repetition)))
    return Record(repetition, seed, values, time.process_time() - start, *origin)


def open_results(path: Path, header: dict) -> list[Record]:
    """Read the finished repetitions, cutting off a line that a kill left unfinished; start a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_bytes() if path.exists() else b""
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(path, len(whole))
    lines = whole.decode().splitlines()
    if not lines:
        write_atomically(path, json.dumps(header) + "\n")
        return []
    stored = json.loads(lines[0])
    stored.pop("verified", None)
    if stored != header:
        raise ValueError(
            f"{path} holds results of {stored}, this run is {header}: remove the file, or choose another --output."
        )
    return [Record.from_line(line) for line in lines[1:]]


def read_results(path: Path) -> tuple[dict, list[Record]]:
    """Return the header and the records, in order of repetition."""
    header, *lines = path.read_text().splitlines()
    return json.loads(header), sorted(map(Record.from_line, lines), key=lambda record: record.repetition)


def write_results(path: Path, header: dict, records: list[Record]) -> None:
    """Replace a results file, whole or not at all."""
    lines = [json.dumps(header), *(record.to_line() for record in records)]
    write_atomically(path, "\n".join(lines) + "\n")
