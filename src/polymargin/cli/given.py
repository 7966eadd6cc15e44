"""What can be refused by the words of a command alone; imports nothing heavy, so that it is said at once."""

from pathlib import Path

from polymargin.cli.names import FORMATS, PAGES, TABLES, Misuse
from polymargin.files import check_writable

COMPRESSIONS = (".gz", ".bz2")


def check_inputs(*paths: Path | None, file_format: str | None = None) -> None:
    """Refuse files of data that are not there, or of which nobody can tell the format."""
    for path in paths:
        if path is not None:
            check_file(path, "a file of data")
            format_of(path, file_format)


def check_file(path: Path, what: str) -> None:
    """Refuse what does not exist, and folders."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not {what}.")
    if not path.exists():
        raise ValueError(f"{path} does not exist.")


def check_model(path: Path | None) -> None:
    """Refuse places where no model can be written."""
    if path is not None:
        check_writable(path, "--save")


def check_page(path: Path | None, option: str = "--report") -> None:
    """Refuse places where no page can be written."""
    if path is not None:
        check_writable(path, option)
        if path.suffix.lower() not in PAGES:
            raise Misuse(f"{option} writes a page: its name must end in .html, got {path.name!r}.")


def check_table(path: Path | None, what: str) -> None:
    """Refuse places where no table can be written."""
    if path is not None:
        check_writable(path, "--out")
        if format_of(path) not in TABLES:
            raise ValueError(f"--out {path}: {what} are written as {', '.join(TABLES)}.")


def check_share(test_size: float | None, test: Path | None, report: Path | None) -> float:
    """Return the share of rows to hold out, or refuse options that do not go together."""
    if test_size is not None and test is not None:
        raise Misuse("--test-size and --test exclude each other.")
    share = 0.25 if test_size is None else test_size
    if not 0.0 <= share < 1.0:
        raise Misuse(f"--test-size must be a share from 0 to below 1, got {share:g}.")
    if share == 0.0 and test is None and report is not None:
        raise Misuse("--report needs held-out rows, give --test or a --test-size above 0.")
    return share


def format_of(path: Path, given: str | None = None) -> str:
    """Return the format of a file, by its ending unless `given`.

    >>> format_of(Path("a.CSV.gz")), format_of(Path("letter.scale"), "libsvm")
    ('csv', 'libsvm')
    """
    if given is not None:
        if given not in FORMATS.values():
            raise Misuse(f"--format must be one of {', '.join(dict.fromkeys(FORMATS.values()))}, got {given!r}.")
        return given
    name = path.name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    suffix = Path(name).suffix
    if suffix not in FORMATS:
        raise ValueError(
            f"{path}: the ending {suffix or '(none)'} tells no format; known are {', '.join(FORMATS)}, or give "
            "--format."
        )
    return FORMATS[suffix]
