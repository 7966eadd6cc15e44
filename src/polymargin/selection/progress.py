"""How far searches and paths are."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from polymargin import logs

Item = TypeVar("Item")


def counted(items: Iterable[Item], total: int, label: str, *, shown: bool) -> Iterator[Item]:
    """Yield the items, logging how many of `total` have come if `shown`."""
    for done, item in enumerate(items, start=1):
        if shown:
            logs.tell(f"{label}: {done} of {total}")
        yield item
