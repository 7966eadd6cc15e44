"""One self-contained HTML page about a fitted model."""
