"""What all tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Undo what a command does to the logger of this process."""
    logger = logging.getLogger("shoal")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before
