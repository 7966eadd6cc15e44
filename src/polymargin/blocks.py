"""Rows in blocks, wherever these are: what an algorithm may do with rows that it does not hold.

An algorithm that needs its rows only through sums over them is written once, against `Blocks`. Rows in memory are
one block, and a sum is a call; elsewhere the blocks stay where they are, and only sums travel.
"""

from collections.abc import Callable
from typing import Any, Protocol


class Blocks(Protocol):
    """Equally many blocks of rows, or of something that belongs to them.

    Functions get a block, then the `arguments`: of an argument that is itself `Blocks` the block at the same
    place, any other as it is. They must be pure, as a block that is lost is computed anew.
    """

    def map(self, function: Callable[..., Any], *arguments: Any, keep: bool = False) -> "Blocks":
        """Return what `function` makes of every block; with `keep` it is computed once, else at every use."""
        ...

    def reduce(self, combine: Callable[[Any, Any], Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `function` makes of the blocks, combined in their order by the associative `combine`."""
        ...

    def spread(self, values: list) -> "Blocks":
        """Return one value a block as blocks."""
        ...

    def restricted(self, places: list[int]) -> "Blocks":
        """Return the blocks at some places."""
        ...


class OneBlock:
    """All rows in memory.

    Examples
    --------
    >>> total(OneBlock([1.0, 2.0]), sum)
    3.0
    """

    def __init__(self, block: Any):
        self.block = block

    def map(self, function: Callable[..., Any], *arguments: Any, keep: bool = False) -> "OneBlock":
        """Return what `function` makes of the block."""
        return OneBlock(function(self.block, *map(_own, arguments)))

    def reduce(self, combine: Callable[[Any, Any], Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `function` makes of the block."""
        return function(self.block, *map(_own, arguments))

    def spread(self, values: list) -> "OneBlock":
        """Return the only value as a block."""
        (value,) = values
        return OneBlock(value)

    def restricted(self, places: list[int]) -> "OneBlock":
        """Return the block itself, the only one there is."""
        return self


def total(blocks: Blocks, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the sum over the blocks: of numbers, arrays, or tuples of them."""
    return blocks.reduce(added, function, *arguments)


def added(first: Any, second: Any) -> Any:
    """Return the sum of two numbers or arrays, or of two tuples of them, part by part."""
    if isinstance(first, tuple):
        return tuple(map(added, first, second))
    return first + second


def joined(first: list, second: list) -> list:
    """Return two lists as one."""
    return first + second


def _own(argument: Any) -> Any:
    return argument.block if isinstance(argument, OneBlock) else argument
