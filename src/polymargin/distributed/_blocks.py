"""Blocks of rows as tasks of Dask: lazy, kept where they are computed, and reduced as a tree.

Everything is a pure task of its partition and of small values, so that Dask can compute again what a lost worker
held. A reduction is one round: one graph for what is to be kept and for the sum, of which only the sum is fetched.
"""

import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.threaded
from dask.base import DaskMethodsMixin

FAN_IN = 8
"""Sums that one task adds up: a tree of this width keeps what a worker receives small."""

Graph = dict[Any, Any]


class DaskBlocks:
    """`Blocks`, every one per task with a key, or an expression that becomes part of the tasks that use it.

    Attributes
    ----------
    parts : one key or expression a block.
    graph : tasks that the parts name; of kept blocks, once computed, what stands for their values.
    sources : the blocks that the parts depend on.
    fit : what belongs together.
    """

    def __init__(self, parts: list, graph: Graph, fit: "Fit", sources: tuple["DaskBlocks", ...] = ()):
        self.parts = parts
        self.graph = graph
        self.sources = sources
        self.fit = fit
        self.awaited = False

    def map(self, function: Callable[..., Any], *arguments: Any, keep: bool = False) -> "DaskBlocks":
        """Return what `function` makes of every block, lazily."""
        name = _new_name(function)
        sources = (self, *(argument for argument in arguments if isinstance(argument, DaskBlocks)))
        small = [_Slot() if isinstance(argument, DaskBlocks) else argument for argument in arguments]
        graph: Graph = {name: _Call(function, small)}
        parts: list = [(_run, name, *inputs) for inputs in zip(*(each.parts for each in sources), strict=True)]
        blocks = DaskBlocks(parts, graph, self.fit, sources)
        return blocks._named(name, awaited=True) if keep else blocks

    def _named(self, name: str, *, awaited: bool) -> "DaskBlocks":
        """Make every expression a task of its own."""
        keys: list = [(name, at) for at in range(len(self.parts))]
        self.graph.update(zip(keys, self.parts, strict=True))
        self.parts, self.awaited = keys, awaited
        return self

    def spread(self, values: list) -> "DaskBlocks":
        """Return one small value a block as blocks."""
        return DaskBlocks([(_run, _Call(_same, []), _Call(value, [])) for value in values], {}, self.fit)

    def restricted(self, places: list[int]) -> "DaskBlocks":
        """Return the blocks at some places."""
        return DaskBlocks([self.parts[place] for place in places], {}, self.fit, (self,))

    def reduce(self, combine: Callable[[Any, Any], Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `function` makes of the blocks, combined pairwise in their order."""
        leaves = self.map(function, *arguments)._named(_new_name(function), awaited=False)
        name = _new_name(combine)
        level, parts, graph = 0, leaves.parts, {name: _Call(combine, [])}
        while len(parts) > 1:
            groups = [parts[first : first + FAN_IN] for first in range(0, len(parts), FAN_IN)]
            parts = [(name, level, at) for at in range(len(groups))]
            graph.update({key: (_fold, name, *group) for key, group in zip(parts, groups, strict=True)})
            level += 1
        return DaskBlocks(parts, graph, self.fit, (leaves,))._fetch()

    def _fetch(self) -> Any:
        """Compute the only block, and everything on the way that is to be kept."""
        closure = list(self._unsettled({}))
        graph: Graph = {}
        for blocks in closure:
            graph.update(blocks.graph)
        kept = [blocks for blocks in closure if blocks.awaited]
        try:
            if kept:
                keys = [key for blocks in kept for key in blocks.parts]
                graph = _Tasks(graph, [*keys, *self.parts]).persist().graph
                for blocks in kept:
                    blocks._settle({key: graph[key] for key in blocks.parts})
                graph = {key: graph[key] for key in self.parts}
            (result,) = _Tasks(graph, self.parts).compute()
        except BaseException:
            graph.clear()
            self.fit.release()
            raise
        return result

    def _unsettled(self, seen: dict[int, None]) -> Iterator["DaskBlocks"]:
        """Yield the blocks that this depends on, as far as the first kept ones, and itself."""
        if id(self) in seen:
            return
        seen[id(self)] = None
        yield self
        for source in self.sources:
            yield from source._unsettled(seen)

    def _settle(self, values: Graph) -> None:
        """Stand for values that Dask holds from now on."""
        self.graph, self.sources, self.awaited = values, (), False
        self.fit.kept.add(self)


class Fit:
    """What one fit keeps on the workers, to be let go should the fit fail."""

    def __init__(self) -> None:
        self.kept: weakref.WeakSet[DaskBlocks] = weakref.WeakSet()

    def release(self) -> None:
        """Let go of everything: a traceback would hold on to it."""
        for blocks in list(self.kept):
            blocks.graph = {}


def read_in_place(graph: Graph, partitions: list[list]) -> tuple[list, Graph]:
    """Return for the keys of every partition themselves, or what does all their work in the task that uses them.

    The latter where nothing but tasks of its own leads to a partition, as in reading a file: a scheduler that
    reads ahead would fill the workers. Returned are also the tasks that are left to the scheduler.
    """
    needed = [set().union(*(_needed(graph, key) for key in keys)) for keys in partitions]
    users = Counter(each for own in needed for each in own)
    parts: list = []
    left: Graph = {}
    for keys, own in zip(partitions, needed, strict=True):
        tasks = {each: graph[each] for each in own}
        if all(users[each] == 1 and _is_work(task) for each, task in tasks.items()):
            parts.append((_read, _Call(dask.get, [tasks, keys])))
        else:
            parts.append(keys)
            left.update(tasks)
    return parts, left


def _needed(graph: Graph, key: Any) -> set:
    """Return the keys that a key depends on, and itself."""
    found, waiting = set(), [key]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(getattr(graph[each], "dependencies", ()))
    return found


def _is_work(node: Any) -> bool:
    """Tell whether a node of a graph is something to do, not data that is at hand or that a worker holds."""
    return hasattr(node, "dependencies") and not hasattr(node, "value")


class _Tasks(DaskMethodsMixin):
    """Some keys of a graph, as a collection that Dask computes and persists on the active scheduler."""

    __dask_scheduler__ = staticmethod(dask.threaded.get)

    @staticmethod
    def __dask_optimize__(graph: Any, keys: list, **options: Any) -> Any:
        return graph

    def __init__(self, graph: Graph, keys: list):
        self.graph = graph
        self.keys = keys

    def __dask_graph__(self) -> Graph:
        return self.graph

    def __dask_keys__(self) -> list:
        return self.keys

    def __dask_tokenize__(self) -> tuple:
        return tuple(map(str, self.keys))

    def __dask_postcompute__(self) -> tuple:
        return list, ()

    def __dask_postpersist__(self) -> tuple:
        return _rebuilt, (self.keys,)


def _rebuilt(graph: Any, keys: list, *, rename: Any = None) -> _Tasks:
    return _Tasks(dict(graph), keys)


class _Slot:
    """Where among the arguments a block goes."""


class _Call:
    """A function and its small arguments: sent once, not with every task."""

    def __init__(self, function: Callable[..., Any], arguments: list):
        self.function = function
        self.arguments = arguments


def _run(call: _Call, *blocks: Any) -> Any:
    """Call the function with the first block, and the other blocks at their places among the arguments."""
    rest = iter(blocks[1:])
    arguments = [next(rest) if isinstance(argument, _Slot) else argument for argument in call.arguments]
    return call.function(*blocks[:1], *arguments)


def _read(source: _Call) -> Any:
    return source.function(*source.arguments)


def _fold(combine: _Call, *parts: Any) -> Any:
    result = parts[0]
    for part in parts[1:]:
        result = combine.function(result, part)
    return result


def _same(value: _Call) -> Any:
    return value.function


def _new_name(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__name__', 'call').strip('_')}-{uuid.uuid4().hex}"
