"""Text tables as people have them: what separates columns, the decimal sign and the encoding are found out.

What was assumed is said; where two readings are as likely, the file is refused with the option that decides.
"""

import bz2
import csv
import gzip
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from polymargin.cli.names import Misuse, Problems

if TYPE_CHECKING:
    from polymargin.cli.tables import Reading

SEPARATORS = {",": ",", ";": ";", "tab": "\t", "\t": "\t", "|": "|", "space": " ", " ": " "}
WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
USUAL = {"csv": ",", "tsv": "\t"}
SEEN_LINES = 200
"""Lines that tell how a file is written."""

BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
COMMA_NUMBER = re.compile(r"[-+]?\d+,\d+(e[-+]?\d+)?", re.IGNORECASE)
WHOLE_NUMBER = re.compile(r"[-+]?\d+")


def read(path: Path, kind: str, reading: "Reading") -> tuple[pd.DataFrame, tuple[str, ...], "Reading"]:
    """Return the table in a file of text, what was assumed in reading it, in words, and how it was read."""
    content, encoding = _decoded(path, reading.encoding)
    lines = content[:1_000_000].splitlines()[: SEEN_LINES + 1]
    sep = _separator(path, lines, USUAL[kind], reading.sep)
    decimal = _decimal(path, lines, sep, reading.decimal)
    assumed = []
    if sep != USUAL[kind] and reading.sep is None:
        assumed.append(f"columns separated by {WORDS[sep]} (--sep)")
    if decimal == "," and reading.decimal is None:
        assumed.append("decimal commas (--decimal)")
    if encoding not in ("utf-8", "utf-8-sig") and reading.encoding is None:
        assumed.append(f"encoding {encoding} (--encoding)")
    if "?" not in reading.na and re.search(rf"(^|{re.escape(sep)})\?($|{re.escape(sep)})", content, re.MULTILINE):
        assumed.append("? as a missing value")
    _check_header(path, lines, sep)
    frame = pd.read_csv(
        io.StringIO(content),
        sep=sep,
        decimal=decimal,
        dtype=dict.fromkeys(reading.as_text, str),
        na_values=["?", *reading.na],
        low_memory=False,
        on_bad_lines="error",
    )
    return frame, tuple(assumed), replace(reading, sep=sep, decimal=decimal, encoding=encoding)


def _decoded(path: Path, given: str | None) -> tuple[str, str]:
    """Return the text of a file and its encoding: as given, by its mark, UTF-8, or else what Windows writes."""
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(path.suffix.lower(), bytes)
    data = unpack(path.read_bytes())
    if given is not None:
        try:
            return data.decode(given), given
        except LookupError:
            raise Misuse(f"--encoding must be one that Python knows, got {given!r}.") from None
        except UnicodeDecodeError as error:
            raise Problems(
                path, [f"it is not {given} text (byte {error.start}); give another --encoding."]
            ) from error
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding), encoding
    if b"\0" in data[:10_000]:
        raise Problems(path, ["it is no text, or in an --encoding such as utf-16-le that it does not say."])
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError as error:
        raise Problems(path, [f"it is not UTF-8 text (byte {error.start}); give its --encoding."]) from error


def _separator(path: Path, lines: list[str], usual: str, given: str | None) -> str:
    """Return what separates the columns: what splits header and rows into the same number of fields."""
    if given is not None:
        if given not in SEPARATORS:
            raise Misuse(f"--sep must be one of ',', ';', 'tab', '|' and 'space', got {given!r}.")
        return SEPARATORS[given]
    shapes = {sep: _shape(lines, sep) for sep in (",", ";", "\t", "|")}
    likely = [sep for sep, (columns, agree) in shapes.items() if columns > 1 and agree]
    if usual in likely or not likely:
        rivals = [sep for sep in likely if sep != usual and shapes[sep][0] >= shapes[usual][0] > 1]
        if rivals:
            words = " or ".join(WORDS[sep] for sep in (usual, *rivals))
            raise Problems(path, [f"{words} may separate its columns; give --sep."])
        return usual
    likely.sort(key=lambda sep: -shapes[sep][0])
    return likely[0]


def _shape(lines: list[str], sep: str) -> tuple[int, bool]:
    """Return the fields of the header, and whether the rows have as many."""
    counts = [len(row) for row in csv.reader(lines, delimiter=sep) if row]
    return (counts[0], all(count == counts[0] for count in counts)) if counts else (0, False)


def _decimal(path: Path, lines: list[str], sep: str, given: str | None) -> str:
    """Return the decimal sign: a comma where it separates no columns and some column holds such numbers."""
    if given is not None:
        if given not in (".", ","):
            raise Misuse(f"--decimal must be '.' or ',', got {given!r}.")
        if given == sep:
            raise Misuse(f"--decimal {given!r} also separates the columns; give --sep.")
        return given
    if sep == ",":
        return "."
    rows = [row for row in csv.reader(lines, delimiter=sep) if row][1:]
    with_commas = False
    for column in zip(*rows, strict=False):
        present = [cell.strip() for cell in column if cell.strip() not in ("", "?", "NA", "NaN")]
        commas = sum(bool(COMMA_NUMBER.fullmatch(cell)) for cell in present)
        if commas and all(COMMA_NUMBER.fullmatch(cell) or WHOLE_NUMBER.fullmatch(cell) for cell in present):
            with_commas = True
    return "," if with_commas else "."


def _check_header(path: Path, lines: list[str], sep: str) -> None:
    """Refuse two columns of one name, which pandas would rename."""
    header = [name.strip() for name in next(csv.reader(lines, delimiter=sep), [])]
    repeated = [name for name in dict.fromkeys(header) if name and header.count(name) > 1]
    if repeated:
        raise Problems(path, [f"two columns have the same name: {', '.join(map(repr, repeated))}; rename one."])
