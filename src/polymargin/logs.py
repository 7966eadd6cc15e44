"""The logger "polymargin": what `verbose` tells goes there, and nothing is ever printed to standard output."""

import logging
import sys
from typing import Any

logger = logging.getLogger("polymargin")


class _StandardError(logging.StreamHandler):
    """Writes to whatever standard error is at the time."""

    def __init__(self) -> None:
        logging.Handler.__init__(self, logging.INFO)

    @property
    def stream(self) -> Any:
        return sys.stderr


def tell(message: str) -> None:
    """Log what a person asked for by `verbose`; who has set up no logging at all reads it on standard error."""
    if not logger.hasHandlers():
        logger.addHandler(_StandardError())
        logger.setLevel(logging.INFO)
    logger.info(message)
