"""One self-contained HTML page about a fitted model."""

from polymargin.report.page import build

__all__ = ["build"]
