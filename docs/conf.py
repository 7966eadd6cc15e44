"""Configuration of the documentation."""

import os
import sys
import warnings
from importlib.metadata import version as installed_version
from pathlib import Path

# The pages about the papers read the stored runs of the checkout.
sys.path.insert(0, str(Path(__file__).parents[1]))

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
os.environ.setdefault("MPLBACKEND", "agg")

project = "Polymargin"
author = "the Polymargin developers"
copyright = "2026, the Polymargin developers"
release = version = installed_version("polymargin")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax comes with the pages: they need no network
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["amsmath", "dollarmath", "colon_fence"]
autosummary_generate = True
templates_path = ["_templates"]
numpydoc_show_class_members = False
sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "../reproductions/explained"],
    "gallery_dirs": ["gallery", "explained"],
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "show_memory": False,
}
exclude_patterns = ["_build", "evidence.md", "figures/*", "*/*.ipynb", "gallery/*.py", "explained/*.py", "*/*.md5"]
html_theme = "pydata_sphinx_theme"
html_title = "Polymargin"
suppress_warnings = ["config.cache"]
