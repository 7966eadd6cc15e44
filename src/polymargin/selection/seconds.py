"""Times as people write them; imports nothing heavy, so that a command refuses a wrong one at once."""

import re

_SECONDS = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|m|min|h)\s*")
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """Return the seconds that a text such as "60s", "5m" or "1.5h" stands for.

    >>> parse_seconds("60s"), parse_seconds("1.5 h")
    (60.0, 5400.0)
    """
    match = _SECONDS.fullmatch(text)
    if match is None or float(match[1]) == 0.0:
        raise ValueError(f"budget must be a time above zero such as 60s, 5m or 1h, got {text!r}.")
    return float(match[1]) * _UNITS[match[2]]
