"""The page "How fast": what it measures, its pictures and its text. `python -m benchmarks --document` writes it.

Every fit runs in a process of its own with one thread; every case is kept in results/how_fast.jsonl with the
revision that it was measured at, so that a run may be stopped and taken up. Times are the processor's.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.ticker import PercentFormatter
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import CLOCK, RESULTS, Kept, in_markdown, machine, real_data, revision
from benchmarks.linear import apart, shortest
from benchmarks.profiles import ratios_to_best, shares_within, slope
from benchmarks.rivals import RIVALS, r_is_here, seconds_of_rivals
from polymargin import MulticategorySVC

DOCS = Path(__file__).parents[1] / "docs"
LOSSES = ("lee", "weston", "crammer")
DATA_SETS = (
    "vowel", "vehicle", "satimage", "letter", "segment", "waveform", "pendigits", "usps", "covtype", "mnist",
)  # fmt: skip
GROWING = ("pendigits", "covtype", "mnist")
ROWS, LINEAR_ROWS = 1000, 2000
SIZES = (500, 1000, 2000, 4000)
KERNEL_CS, LINEAR_CS = (1.0, 100.0), (0.1, 10.0)
ITERATIONS = 10_000
"""Of LinearSVC, at most."""
TOLERANCES = (1e-3, 1e-4, 1e-6)
OVER = f"{{:g}} over {TOLERANCES[0]:g}"
LIMIT = 30
"""Seconds of the processor after which a fit counts as unsolved."""
FACTORS = np.geomspace(1.0, 1000.0, 2001)
SHOWN = (1.0, 2.0, 5.0, 20.0, 100.0)
"""Factors of the best that the tables show."""
STYLES = {
    "lee": ("tab:blue", "-"),
    "weston": ("tab:orange", "-"),
    "crammer": ("tab:green", "-"),
    "SVC": ("black", "--"),
    "e1071": ("black", ":"),
    "kernlab C-svc": ("tab:red", "--"),
    "kernlab spoc-svc": ("tab:red", ":"),
    "kernlab kbb-svc": ("tab:red", "-."),
    "LinearSVC": ("tab:purple", "--"),
    "LinearSVC crammer_singer": ("tab:purple", ":"),
}
"""Colours and dashes by which a machine is known in every picture."""


def rows_of(name: str, n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return at most n rows of a data set, drawn once for all; None where it is not at hand."""
    found = real_data(name)
    if found is None:
        return None
    some = np.random.default_rng(0).permutation(len(found[1]))[:n]
    return found[0][some], found[1][some]


def seconds_of(fit: Callable[[], object]) -> float:
    """Return the seconds of a fit in a process of its own; infinite where they are too many, or it stalls."""

    def measured() -> dict[str, float]:
        models: list[object] = []
        (seconds,) = shortest(lambda: models.append(fit()))
        return {"seconds": seconds if getattr(models[-1], "converged_", True) else np.inf}

    seconds = (apart(measured) or {}).get("seconds", np.inf)
    return seconds if seconds <= LIMIT else np.inf


def ours(X: np.ndarray, y: np.ndarray, tol: float = 1e-3, **options: object) -> float:
    """Return the seconds of a fit of ours to a certified gap."""
    return seconds_of(partial(MulticategorySVC(tol=tol, time_limit=4.0 * LIMIT, **options).fit, X, y))


def kernel_case(name: str, n: int, C: float, *, with_rivals: bool) -> dict[str, float]:
    """Return the seconds of every machine with an RBF kernel of gamma = 1/p."""
    X, y = rows_of(name, n)
    gamma = 1.0 / X.shape[1]
    seconds = {loss: ours(X, y, loss=loss, C=C, gamma=gamma) for loss in LOSSES}
    seconds["SVC"] = seconds_of(partial(SVC(C=C, gamma=gamma, cache_size=1000).fit, X, y))
    return seconds | (seconds_of_rivals(X, y, gamma, C, LIMIT) if with_rivals else {})


def linear_case(name: str, n: int, C: float) -> dict[str, float]:
    """Return the seconds of every linear machine."""
    X, y = rows_of(name, n)
    seconds = {loss: ours(X, y, loss=loss, C=C, kernel="linear") for loss in LOSSES}
    theirs = {"LinearSVC": "ovr", "LinearSVC crammer_singer": "crammer_singer"}
    for label, scheme in theirs.items():
        machine = LinearSVC(C=C, multi_class=scheme, max_iter=ITERATIONS, random_state=0)
        seconds[label] = seconds_of(partial(machine.fit, X, y))
    return seconds


def tolerance_case(name: str, n: int) -> dict[str, float]:
    """Return the seconds of every loss at every tolerance."""
    X, y = rows_of(name, n)
    return {
        f"{loss} {tol:g}": ours(X, y, tol, loss=loss, gamma=1.0 / X.shape[1])
        for loss in LOSSES
        for tol in TOLERANCES
    }


def cases(*, quick: bool, rivals: bool) -> Iterator[tuple[tuple, Callable[[], dict[str, float]]]]:
    """Yield the keys of all cases, and how each is measured."""
    names = DATA_SETS[1::3] if quick else DATA_SETS
    for name in names:
        for C in KERNEL_CS[:1] if quick else KERNEL_CS:
            yield ("kernel", name, ROWS, C), partial(kernel_case, name, ROWS, C, with_rivals=rivals)
        yield ("tolerance", name, ROWS), partial(tolerance_case, name, ROWS)
    for name in GROWING[:1] if quick else GROWING:
        for n in SIZES[:-1] if quick else SIZES:
            yield ("growth", name, n), partial(kernel_case, name, n, 1.0, with_rivals=False)
    for name in names:
        for C in LINEAR_CS[:1] if quick else LINEAR_CS:
            yield ("linear", name, LINEAR_ROWS, C), partial(linear_case, name, LINEAR_ROWS, C)


def measured(*, quick: bool, only_stored: bool) -> list[dict]:
    """Return all cases with their times, measured where they are not stored."""
    rivals = not only_stored and r_is_here()
    kept = Kept(
        "how_fast", {"clock": CLOCK, "limit": LIMIT, "sizes": [ROWS, LINEAR_ROWS]}, only_stored=only_stored
    )
    found = []
    for case, measure in cases(quick=quick, rivals=rivals):
        if real_data(case[1]) is None:
            continue

        def stamped(measure: Callable[[], dict[str, float]] = measure) -> dict:
            return {"seconds": measure(), "commit": revision(), "machine": machine()}

        known = case in kept.results
        result = kept.of(case, stamped)
        if result is not None:
            found.append({"part": case[0], "case": case[1:], **result})
            if not known:
                print(
                    *case,
                    json.dumps({name: round(time, 3) for name, time in result["seconds"].items()}),
                    flush=True,
                )
    return found


def of_part(found: Sequence[dict], part: str) -> list[dict]:
    """Return the cases of one part of the page."""
    return [entry for entry in found if entry["part"] == part]


def made_by(entries: Sequence[dict]) -> str:
    """Say at which revisions and on which machines figures were measured."""
    commits = Counter(entry["commit"] for entry in entries)
    machines = Counter(entry["machine"] for entry in entries)
    several = ", ".join(commits) if len(commits) < 4 else f"{len(commits)} commits up to {list(commits)[-1]}"
    return f"*{len(entries)} cases. Measured at {several}; {'; '.join(machines)}; one thread.*"


def times_of(entries: Sequence[dict]) -> dict[str, list[float]]:
    """Return the times of all methods that most cases have, problem by problem; infinite where there is none."""
    names = dict.fromkeys(name for entry in entries for name in entry["seconds"])
    return {name: [entry["seconds"].get(name, np.inf) for entry in entries] for name in names}


def profile_table(entries: Sequence[dict]) -> str:
    """Tabulate the shares of problems that are solved within some factors of the best."""
    rows = []
    for name, ratios in ratios_to_best(times_of(entries)).items():
        shares = shares_within(ratios, SHOWN)
        within = {f"{factor:g}x": f"{share:.0%}" for factor, share in zip(SHOWN, shares, strict=True)}
        rows.append({"machine": name, **within, "solved": f"{np.isfinite(ratios).mean():.0%}"})
    return in_markdown(rows, ("machine", *(f"{factor:g}x" for factor in SHOWN), "solved"))


def growth_table(entries: Sequence[dict]) -> str:
    """Tabulate the times over the sizes, and their slopes."""
    rows = []
    for data in dict.fromkeys(entry["case"][0] for entry in entries):
        some = [entry for entry in entries if entry["case"][0] == data]
        sizes = [entry["case"][1] for entry in some]
        for name, seconds in times_of(some).items():
            row = {"data": data, "machine": name, "slope": f"{slope(sizes, seconds):.2f}"}
            rows.append(row | {str(n): float(time) for n, time in zip(sizes, seconds, strict=True)})
    sizes = sorted({entry["case"][1] for entry in entries})
    return in_markdown(rows, ("data", "machine", *map(str, sizes), "slope"))


def tolerance_table(entries: Sequence[dict]) -> str:
    """Tabulate the times at every tolerance: the median over the data sets, and over the time at the first one."""
    rows = []
    for loss in LOSSES:
        times = np.array([[entry["seconds"][f"{loss} {tol:g}"] for tol in TOLERANCES] for entry in entries])
        times = np.where(np.isfinite(times), times, np.inf)
        row = {"loss": loss}
        for at, tol in enumerate(TOLERANCES):
            row[f"{tol:g}"] = f"{np.median(times[:, at]):.3f} s"
        for at, tol in enumerate(TOLERANCES[1:], start=1):
            over = times[:, at] / times[:, 0]
            row[OVER.format(tol)] = f"{np.median(over):.2f} ({over.min():.2f} to {over.max():.2f})"
        rows.append(row)
    seconds = tuple(f"{tol:g}" for tol in TOLERANCES)
    ratios = tuple(OVER.format(tol) for tol in TOLERANCES[1:])
    return in_markdown(rows, ("loss", *seconds, *ratios))


def draw_profiles(panels: dict[str, Sequence[dict]], path: Path) -> None:
    """Draw the shares of problems over the factors, a panel each."""
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(9.0, 4.6), layout="constrained", squeeze=False, sharey=True
    )
    for ax, (title, entries) in zip(axes[0], panels.items(), strict=True):
        for name, ratios in ratios_to_best(times_of(entries)).items():
            ax.step(FACTORS, shares_within(ratios, FACTORS), where="post", label=name, **line_of(name))
        ax.set(xscale="log", xlim=(1, FACTORS[-1]), ylim=(0, 1.02), title=title)
        ax.set_xlabel("times the quickest machine")
        ax.xaxis.set_major_formatter("{x:,g}")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        under(ax, columns=3)
    axes[0, 0].set_ylabel("share of problems")
    save(figure, path)


def draw_growth(entries: Sequence[dict], path: Path) -> None:
    """Draw times over the number of rows, a panel a data set, all on the same scale."""
    names = list(dict.fromkeys(entry["case"][0] for entry in entries))
    figure, axes = pyplot.subplots(
        1, len(names), figsize=(9.0, 4.8), layout="constrained", squeeze=False, sharey=True
    )
    for ax, data in zip(axes[0], names, strict=True):
        some = [entry for entry in entries if entry["case"][0] == data]
        sizes = [entry["case"][1] for entry in some]
        for name, seconds in times_of(some).items():
            label = f"{name}, slope {slope(sizes, seconds):.1f}"
            ax.plot(sizes, seconds, marker="o", ms=3, label=label, **line_of(name))
        ax.set(xscale="log", yscale="log", title=data, xlabel="rows")
        ax.minorticks_off()
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ax.yaxis.set_major_formatter("{x:g}")
        under(ax, columns=1)
    axes[0, 0].set_ylabel("seconds")
    save(figure, path)


def line_of(name: str) -> dict[str, object]:
    """Return how a machine is drawn: ours bold."""
    color, dashes = STYLES[name]
    return {"color": color, "ls": dashes, "lw": 2.0 if name in LOSSES else 1.2}


def under(ax: "pyplot.Axes", columns: int) -> None:
    """Put the legend under a panel, where it hides no line, and leave the frame open."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize="small", ncols=columns, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def save(figure: "pyplot.Figure", path: Path) -> None:
    """Write a picture whose file depends on what it shows alone."""
    with pyplot.rc_context({"svg.hashsalt": "polymargin", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


PAGE = """# How fast

Written by `python -m benchmarks --document`, from what is stored in benchmarks/results and what the command
measures itself. Times are seconds of one processor; compare them within this page only.

```{{image}} _static/how-fast-profiles.svg
:alt: Shares of problems solved within a factor of the quickest machine, with an RBF kernel and linear.
```

A point (x, y) of a line: on a share y of the problems the machine takes at most x times as long as the
quickest one. Rows are standardised. With an RBF kernel, gamma one over the number of variables:
{data}; {rows:,} rows at most, C = {kernel_Cs}. Linear:
{linear_data}; {linear_rows:,} rows at most, C = {linear_Cs}.
The machines solve different problems: `SVC` solves one small problem for every pair of classes, ours ("lee",
"weston", "crammer") one for all classes at once, to a certified relative gap of 1e-3; the others stop where
they do by default, LinearSVC after {iterations:,} iterations.
{rivals}
A fit that takes more than {limit} seconds counts as unsolved.

## RBF kernel

{kernel}

## Linear

{linear}

## Growth with the rows

```{{image}} _static/how-fast-growth.svg
:alt: Seconds over the number of rows, on logarithmic axes.
```

RBF kernel, C = 1, gamma one over the number of variables. The slope is the power of the number of rows that
the time grows with, by least squares of the logarithms.

{growth}

## What a tolerance costs

Seconds to relative duality gaps of 1e-3, 1e-4 and 1e-6, RBF kernel, C = 1, {rows:,} rows at most: medians
over the data sets, and times over those at 1e-3, the median and in brackets the least and the largest.

{tolerance}
{cases}
## More

`benchmarks.portfolio` has {{doc}}`which method solves what <explain/multicategory>`,
`benchmarks.selection` {{doc}}`searches <explain/selection>`, `benchmarks.classes`
machines of up to 300 classes (docs/figures/classes.md), `benchmarks.threads`
first fits with one thread and with more, alone and beside busy processes.
"""
WITH_R = """`e1071` and kernlab's "C-svc" are one-vs-one machines of R, "spoc-svc" is the machine of Crammer &
Singer, "kbb-svc" that of Weston & Watkins; R has its own BLAS."""
WITHOUT_R = "R with kernlab and e1071 was not at hand when this was measured: their machines are missing."
FIGURES = {
    "widths": """
## Case by case: kernels beside SVC

Times that SVC takes with the same C and gamma, at gamma of one and of eight over the number of variables; every
case is a data set and some of its rows. Methods were chosen on the sets of the first half; those of the last are
public ones that nothing was chosen on (`python -m benchmarks.widths` prints all cases).

```{include} figures/widths.md
```
""",
    "linear": """
## Case by case: linear machines beside LinearSVC(crammer_singer) at equal accuracy

Times that LinearSVC takes with the largest tolerance that comes within 1e-3 of the optimum of its own problem; the
halves are as above, but that when block descent is left for another method was compared on sets of all three
(`python -m benchmarks.linear` prints all cases).

```{include} figures/linear.md
```
""",
    "threads": """
## Threads

First fits with one thread and with BLAS's default, alone and beside two busy processes; wall seconds, medians.

```{include} figures/threads.md
```
""",
}
"""Sections on what other benchmarks have written to the folder of figures."""


def page(found: Sequence[dict]) -> str:
    """Return the text of the page."""
    parts = {part: of_part(found, part) for part in PARTS}
    has_rivals = any(name in entry["seconds"] for entry in parts["kernel"] for name in RIVALS)
    return PAGE.format(
        data=data_of(parts["kernel"]),
        linear_data=data_of(parts["linear"]),
        iterations=ITERATIONS,
        rows=ROWS,
        linear_rows=LINEAR_ROWS,
        limit=LIMIT,
        kernel_Cs=values_of_C(parts["kernel"]),
        linear_Cs=values_of_C(parts["linear"]),
        rivals=WITH_R if has_rivals else WITHOUT_R,
        cases="".join(text for name, text in FIGURES.items() if (DOCS / "figures" / f"{name}.md").exists()),
        **{part: f"{table(parts[part])}\n\n{made_by(parts[part])}" for part, table in PARTS.items()},
    )


def data_of(entries: Sequence[dict]) -> str:
    """Return the names of the data sets of some cases."""
    return ", ".join(dict.fromkeys(entry["case"][0] for entry in entries))


def values_of_C(entries: Sequence[dict]) -> str:
    """Return the values of C of some cases."""
    return " and ".join(f"{C:g}" for C in sorted({entry["case"][2] for entry in entries}))


PARTS: dict[str, Callable[[Sequence[dict]], str]] = {
    "kernel": profile_table,
    "linear": profile_table,
    "growth": growth_table,
    "tolerance": tolerance_table,
}
"""The parts of the page that are measured, and their tables."""


def document(*, quick: bool, only_stored: bool, folder: Path = DOCS) -> None:
    """Measure what is missing, and write the page and its pictures."""
    found = measured(quick=quick, only_stored=only_stored)
    missing = PARTS.keys() - {entry["part"] for entry in found}
    if missing:
        raise SystemExit(f"No results of {', '.join(sorted(missing))} in {RESULTS}; run without --only-stored.")
    panels = {"RBF kernel": of_part(found, "kernel"), "linear": of_part(found, "linear")}
    draw_profiles(panels, folder / "_static" / "how-fast-profiles.svg")
    draw_growth(of_part(found, "growth"), folder / "_static" / "how-fast-growth.svg")
    (folder / "how_fast.md").write_text(page(found), "utf-8")
