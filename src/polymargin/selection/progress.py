"""One progress bar for searches and paths."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress_bar(items: Iterable[Item], total: int, label: str, *, shown: bool, width: int = 30) -> Iterator[Item]:
    """Yield the items, drawing how many of `total` have come to standard error if `shown`."""
    for done, item in enumerate(items, start=1):
        if shown:
            filled = width * done // total
            end = "\n" if done == total else ""
            sys.stderr.write(f"\r{label} [{'#' * filled}{'.' * (width - filled)}] {done}/{total}{end}")
            sys.stderr.flush()
        yield item
