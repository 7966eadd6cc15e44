"""The tables and figures of the five papers, ours beside theirs: ``python -m reproductions --list``."""
