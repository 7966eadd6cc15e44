"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[Path, typer.Argument(help="CSV, TSV, Excel, Parquet, ARFF or LIBSVM file.", show_default=False)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]
Model = Annotated[Path, typer.Argument(help="Model saved by polymargin fit --save.", show_default=False)]
Target = Annotated[str | None, typer.Option(help="Column that holds the classes (not for LIBSVM files).")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, excel, parquet, arff or libsvm, where the ending does not tell."),
]
Sep = Annotated[str | None, typer.Option(help="What separates columns of text: ',', ';', 'tab', '|', 'space'.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal sign: '.' or ','.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of text: utf-8, latin-1, utf-16, ...")]
Na = Annotated[list[str] | None, typer.Option(help="Text that stands for a missing value; may be repeated.")]
Costs = Annotated[
    Path | None,
    typer.Option(help="CSV of costs: predicted classes in the header, true ones in the first column."),
]
CostColumns = Annotated[
    str | None,
    typer.Option(help="Columns of costs per row, CLASS=COLUMN,...: what the class costs where it is wrong."),
]
Impute = Annotated[bool, typer.Option("--impute", help="Fill in missing values (median, most frequent).")]
Categorical = Annotated[list[str] | None, typer.Option(help="Column of categories, though it may look numeric.")]
Numeric = Annotated[list[str] | None, typer.Option(help="Column of numbers, though it may look like an ID.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Seed = Annotated[int, typer.Option(help="Draws the held-out rows, folds and landmarks.", min=0)]
