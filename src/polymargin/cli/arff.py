"""ARFF files, dense or sparse."""

import csv
import io
import re
from pathlib import Path

import pandas as pd
from scipy.io import arff

ATTRIBUTE = re.compile(r"\s*@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


def read(path: Path) -> pd.DataFrame:
    """Return the table in a file; "?" is missing, nominal attributes are categories."""
    values, attributes = arff.loadarff(io.StringIO(_dense(path.read_text("utf-8-sig"))))
    frame = pd.DataFrame(values)
    for name, kind in zip(attributes.names(), attributes.types(), strict=True):
        if kind == "nominal":
            text = frame[name].str.decode("utf-8")
            frame[name] = text.where(text != "?").astype("category")
    return frame


def _dense(text: str) -> str:
    """Return the file with its sparse rows ``{index value, ...}`` written out: 0, or the first nominal value."""
    head, mark, body = re.split(r"(?im)^(\s*@data.*)$", text, maxsplit=1)
    if not re.search(r"(?m)^\s*\{", body):
        return text
    kinds = [match[2].strip() for match in map(ATTRIBUTE.match, head.splitlines()) if match]
    resting = [
        next(csv.reader([kind.strip("{} ")], quotechar="'", skipinitialspace=True))[0]
        if kind.startswith("{")
        else "0"
        for kind in kinds
    ]
    rows = []
    for line in body.splitlines():
        line = line.strip()
        if not line.startswith("{"):
            rows.append(line)
            continue
        row = list(resting)
        for entry in next(csv.reader([line.strip("{}")], quotechar="'", skipinitialspace=True), []):
            if entry.strip():
                at, value = entry.strip().split(None, 1)
                row[int(at)] = value
        rows.append(",".join(row))
    return "\n".join([head, mark, *rows])
