"""`polymargin demo`: the main job on embedded data."""

from pathlib import Path
from typing import Annotated

import typer

from polymargin.cli._terminal import one_line_errors, results, working
from polymargin.cli.fit import page
from polymargin.cli.given import check_page
from polymargin.cli.options import Debug


def demo(
    out: Annotated[Path, typer.Option(help="Page to write (.html).")] = Path("polymargin-demo.html"),
    debug: Debug = False,
) -> None:
    """Fit all five families to embedded data, print a table and write a page about one of them."""
    with one_line_errors(debug):
        check_page(out, "--out")
        from sklearn.model_selection import train_test_split

        from polymargin.cli.examples import examples, show_example
        from polymargin.cli.methods import machine_of

        for example in examples():
            split = train_test_split(example.X, example.y, test_size=0.5, stratify=example.y, random_state=0)
            with working("fitting", len(split[2])):
                fitted = show_example(example, *split)
        results().print("costs: whether they act in the training; gap: what is certified; used: of the variables")
        # The last example is the one with costs, and its first model with costs the machine of paper 1.
        model = next(model for model in fitted if machine_of(model).get_params().get("cost_matrix") is not None)
        page(model, (split[1], split[3]), example.costs, out, None, f"Polymargin's demo: {example.name}")
        results().print(f"report: {out.resolve()}")
