"""The pages of the documentation about the reproductions, written from the stored results alone."""

from pathlib import Path


def write_documentation(folder: Path) -> list[Path]:
    """Write the pages."""
    return []
