"""A run as a Python script that stands for itself: reading, preparation, model, judgement, predictions."""

import inspect
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from polymargin import ProbabilityClassifier
from polymargin.cli.given import format_of
from polymargin.cli.methods import machine_of, tuned
from polymargin.cli.tables import Reading
from polymargin.cli.training import Job, Trained
from polymargin.studio.plan import Plan

CATEGORY = '''
def category(value):
    """Return a category as text, whole numbers without a decimal point."""
    if isinstance(value, float):
        return value if np.isnan(value) else (str(int(value)) if value.is_integer() else str(value))
    return str(value)

'''


def script(plan: Plan, job: Job, trained: Trained, path: Path) -> str:
    """Return the script."""
    last, machine = trained.model[-1], machine_of(trained.model)
    around = [last] if isinstance(last, ProbabilityClassifier) else []
    parts = [_head(path, ", ".join(sorted(type(one).__name__ for one in (machine, *around))))]
    if job.columns.categorical:
        parts.append(CATEGORY)
    parts += [_rows(plan, job, path), _preparation(job), _model(plan, last, job, trained), _use(job)]
    return "".join(parts)


def _head(path: Path, classes: str) -> str:
    return dedent(f'''\
        """What the studio did with {_plain(path.name)}."""

        import numpy as np
        import pandas as pd
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.model_selection import train_test_split
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        from polymargin import {classes}
        ''')


def _plain(name: str) -> str:
    """Return a name that can stand in a docstring."""
    return name.encode("unicode_escape").decode("ascii").replace('"', "'")


def _rows(plan: Plan, job: Job, path: Path) -> str:
    rows, columns = job.rows, job.columns
    reading, kind = rows.reading, format_of(path, rows.reading.file_format)
    assert rows.y is not None
    labels = "int" if rows.y.dtype.kind == "i" else "str"
    if kind in ("csv", "tsv"):
        lines = [
            "frame = pd.read_csv(",
            f"    {str(path)!r},",
            f"    sep={reading.sep!r},",
            f"    decimal={reading.decimal!r},",
            f"    encoding={reading.encoding!r},",
            f"    na_values={['?', *reading.na]!r},",
            f"    dtype=dict.fromkeys({list(plan.categorical)!r}, str),",
            "    low_memory=False,",
            ")",
            f"y = frame[{plan.target!r}].to_numpy().astype({labels})",
        ]
    elif kind == "parquet":
        lines = [
            f"frame = pd.read_parquet({str(path)!r}).rename(columns=str)",
            f"y = frame[{plan.target!r}].to_numpy().astype({labels})",
        ]
    else:
        given = ", ".join(f"{name}={value!r}" for name, value in _given(reading).items())
        lines = [
            "from pathlib import Path\n\nfrom polymargin.cli.tables import Reading, read_rows\n",
            f"rows = read_rows(Path({str(path)!r}), target={plan.target!r}, reading=Reading({given}))",
            "frame, y = rows.X, rows.y",
        ]
    if columns.n_features is not None:
        lines.append("X = frame")
    else:
        lines += [
            f"numeric = {columns.numeric!r}",
            f"categorical = {columns.categorical!r}",
            "X = frame[numeric + categorical].copy()",
            "X[numeric] = X[numeric].apply(pd.to_numeric).astype(float)",
        ]
        if columns.categorical:
            lines.append("X[categorical] = X[categorical].astype(object).map(category)")
    return "\n" + "\n".join(lines) + "\n"


def _given(reading: Reading) -> dict[str, Any]:
    fields = {name: getattr(reading, name) for name in Reading.__dataclass_fields__}
    return {name: value for name, value in fields.items() if value}


def _preparation(job: Job) -> str:
    prepare = job.columns.preprocessing(scale=True)
    if job.columns.n_features is not None:
        return f"prepare = {prepare!r}\n"
    lines = ["prepare = ColumnTransformer(", "    ["]
    for name, steps, _ in prepare.transformers:
        made = ", ".join(_call(step) for _, step in steps.steps)
        lines.append(f'        ("{name}", make_pipeline({made}), {name}),')
    lines += ["    ],", "    verbose_feature_names_out=False,", ').set_output(transform="pandas")']
    return "\n".join(lines) + "\n"


def _model(plan: Plan, classifier: Any, job: Job, trained: Trained) -> str:
    note = ""
    if not trained.is_complete:
        note = (
            f"# The studio's model had {trained.n_rows} of the {len(job.train[1])} training rows, as many as the "
            "budget allowed.\n"
        )
    return (
        f"\n# The settings were chosen within a budget of {plan.budget}.\n{note}"
        f"model = make_pipeline(prepare, {_call(tuned(classifier))})\n"
        "X_train, X_test, y_train, y_test = train_test_split(\n"
        f"    X, y, test_size={plan.share!r}, stratify=y, random_state={plan.seed}\n)\n"
        "model.fit(X_train, y_train)\n"
        'print("error on held-out rows:", np.mean(model.predict(X_test) != y_test))\n'
    )


def _use(job: Job) -> str:
    lines = ["", "# What is to be used learns from all rows; the error was measured before.", "model.fit(X, y)"]
    if job.columns.n_features is None:
        lines.append('frame.assign(prediction=model.predict(X)).to_csv("predictions.csv", index=False)')
    else:
        lines.append('pd.DataFrame({"prediction": model.predict(X)}).to_csv("predictions.csv", index=False)')
    return "\n".join(lines) + "\n"


def _call(estimator: StandardScaler | SimpleImputer | OneHotEncoder | Any) -> str:
    """Return the expression that makes an estimator: all parameters that are not its defaults."""
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(type(estimator)).parameters.items()
    }
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if isinstance(value, np.ndarray) or (value is not defaults[name] and value != defaults[name])
    }
    return f"{type(estimator).__name__}({', '.join(f'{name}={_value(value)}' for name, value in given.items())})"


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    if hasattr(value, "get_params"):
        return _call(value)
    return repr(value.item() if isinstance(value, np.generic) else value)
