"""The script that tries the oldest and the newest versions."""

import tomllib
from pathlib import Path

import pytest

from tools.versions import ROOT, requirements


def test_every_requirement_of_the_tests_has_an_oldest_version():
    project = tomllib.loads((Path(ROOT) / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = requirements(project, "test")
    assert {"numpy", "scipy", "scikit-learn", "highspy", "pandas", "dask", "onnx", "pytest"} <= set(oldest)


def test_requirements_of_another_form_are_named():
    project = {"name": "me", "dependencies": ["a<3"], "optional-dependencies": {"test": []}}
    with pytest.raises(ValueError, match="'a<3' is no requirement"):
        requirements(project, "test")
