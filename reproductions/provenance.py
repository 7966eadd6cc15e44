"""Which code a stored number came from: the commit, and a digest of all that its repetition calls.

The digest follows names from the function that computes a repetition through the modules of this project, so that
a change elsewhere leaves it as it is; comments and docstrings do not count. Compiled files enter whole.
"""

import ast
import hashlib
import subprocess
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = {"polymargin": "src/polymargin", "reproductions": "reproductions"}
Name = tuple[str, str | None]
"""A module and a name in it, or None for all of the module."""


def commit(root: Path = ROOT) -> str:
    """Return the commit of the checkout, with a plus if its code has been edited since; empty outside of one."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        edited = git("status", "--porcelain", "--", "src", "reproductions/*.py", "reproductions/*/*.py")
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(edited)
    except (OSError, subprocess.CalledProcessError):
        return ""


def digest(function: Callable[..., Any], root: Path = ROOT) -> str:
    """Return twelve hexadecimal digits of the code that a function depends on, arguments of a partial included."""
    bound = ""
    while isinstance(function, partial):
        bound += repr((function.args, sorted(function.keywords.items())))
        function = function.func
    pieces = "\n".join(f"{place}\n{text}" for place, text in sorted(sources(function, root).items()))
    return hashlib.sha256((bound + pieces).encode()).hexdigest()[:12]


def sources(function: Callable[..., Any], root: Path = ROOT) -> dict[str, str]:
    """Return what a function depends on: the text of every definition, by module and name."""
    waiting: list[Name] = [(function.__module__, function.__qualname__.split(".")[0])]
    seen: set[Name] = set()
    found: dict[str, str] = {}
    while waiting:
        module, name = waiting.pop()
        if (module, name) in seen or module.split(".")[0] not in PACKAGES:
            continue
        seen.add((module, name))
        path = _path(module, root)
        if path is None:  # a built extension under another name
            continue
        if path.suffix != ".py":
            found[module] = _without_comments(path)
            shared = (*path.parent.glob("*.pxd"), *path.parent.glob("*.h"))
            found |= {part.name: _without_comments(part) for part in shared}
            continue
        definitions = _definitions(path)
        if name is None:
            waiting += [(module, defined) for defined in definitions]
        elif name in definitions:
            for node in definitions[name]:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    waiting += _imported(node, module, root, name)
                    continue
                place = f"{module}:{name}"
                found[place] = found.get(place, "") + ast.unparse(node) + "\n"
                waiting += _names(node, module, definitions, root)
        elif _path(f"{module}.{name}", root) is not None:
            waiting.append((f"{module}.{name}", None))
        else:
            # A name made when the module runs: all of the module may have made it.
            waiting.append((module, None))
    return found


def _path(module: str, root: Path) -> Path | None:
    package, *rest = module.split(".")
    base = root.joinpath(PACKAGES[package], *rest)
    for candidate in (base.with_suffix(".py"), base / "__init__.py", base.with_suffix(".pyx")):
        if candidate.exists():
            return candidate
    return None


@cache
def _definitions(path: Path) -> dict[str, list[ast.stmt]]:
    """Return the statements of a module by the names that they define."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    defined: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _defined_by(statement):
            defined.setdefault(name, []).append(statement)
    return defined


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def _defined_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _names(node: ast.stmt, module: str, definitions: dict[str, list[ast.stmt]], root: Path) -> Iterator[Name]:
    """Return the names that a statement uses, in this module or in the one that they are imported from."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in definitions:
            yield module, part.id
        elif isinstance(part, ast.Import | ast.ImportFrom):
            yield from _imported(part, module, root)


def _imported(
    statement: ast.Import | ast.ImportFrom, module: str, root: Path, only: str | None = None
) -> Iterator[Name]:
    """Return where the names of an import come from, or only one of them."""
    for alias in statement.names:
        if only is not None and only not in (alias.asname, alias.name, alias.name.split(".")[0]):
            continue
        if isinstance(statement, ast.Import):
            yield alias.name, None
        else:
            yield _origin(statement, module, root), None if alias.name == "*" else alias.name


def _origin(statement: ast.ImportFrom, module: str, root: Path) -> str:
    if not statement.level:
        return statement.module or ""
    path = _path(module, root)
    inside = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
    for _ in range(statement.level - 1):
        inside = inside.rpartition(".")[0]
    return f"{inside}.{statement.module}" if statement.module else inside


def _without_comments(path: Path) -> str:
    lines = (line.split("#")[0].rstrip() for line in path.read_text().splitlines())
    return "\n".join(line for line in lines if line)
