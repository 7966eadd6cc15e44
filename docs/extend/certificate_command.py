"""`polymargin certificate`: what is proved of a saved model, and which methods led to it."""

from polymargin.cli._terminal import make_table, one_line_errors, results
from polymargin.cli.options import Debug, Model


def certificate(model: Model, debug: Debug = False) -> None:
    """Print the certificate of a saved model and the methods that its fit ran."""
    with one_line_errors(debug):
        from polymargin.cli.methods import machine_of  # loaded late: help comes at once
        from polymargin.cli.predicting import load_model

        machine = machine_of(load_model(model)[0])
        proved = machine.certificate_
        table = make_table(None, "method", "iterations", "gap")
        for row in machine.trace_:
            table.add_row(row.method, str(row.iterations), f"{row.gap:.1e}")
        results().print(table)
        results().print(f"{proved.kind}: primal {proved.primal:.6g}, dual {proved.dual:.6g}, gap {proved.gap:.1e}")
