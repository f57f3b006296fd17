"""The command line. Commands are imported when used, so that help is quick."""

from __future__ import annotations

from shoal.cli.app import main

__all__ = ["main"]
