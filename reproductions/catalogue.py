"""Which tables and figures there are: the modules of the papers' folders, found by name."""

from importlib import import_module
from pkgutil import iter_modules

from reproductions.declare import Reproduction

PAPERS = {"1": "multicategory", "2": "proximal", "3": "sparse", "4": "shared", "5": "robust"}


def names() -> list[str]:
    """Return the names PAPER/TABLE of all reproductions, in the order of the papers."""
    found = []
    for paper in PAPERS.values():
        package = import_module(f"reproductions.{paper}")
        modules = sorted(module.name for module in iter_modules(package.__path__) if module.name[0] != "_")
        found += [f"{paper}/{module}" for module in modules]
    return found


def load(name: str) -> Reproduction:
    """Return the reproduction of that name."""
    if name not in names():
        raise ValueError(f"There is no reproduction {name!r}; there are {', '.join(names())}.")
    return import_module("reproductions." + name.replace("/", ".")).REPRODUCTION
