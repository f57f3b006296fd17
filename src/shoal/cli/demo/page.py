"""``shoal demo --page``: the live page of the demo, in a browser."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from shoal.cli.run.page import PageOptions, described, open_page
from shoal.cli.terminal import print_message
from shoal.metrics import Summary
from shoal.run.observe import Figures, Health
from shoal.run.pipeline import Pipeline

__all__ = ["DemoPage"]

#: The seconds between two changes of the figures: the people are made up, and the demo is short.
INTERVAL = 1.0
#: The seconds for which the page is still served at the end, so that it shows the last figures.
LINGER = 2.5


class DemoPage:
    """Serve the live page of a demo until it is over.

    Parameters
    ----------
    pipeline
        What the demo runs.
    then
        Called with the figures, too.
    """

    def __init__(self, pipeline: Pipeline, then: Callable[[Summary], None]) -> None:
        self._pipeline, self._then = pipeline, then
        more = {"input": "made-up people", "output": "memory"}
        job = described("shoal demo", pipeline.schema, pipeline.policy, pipeline.anonymizer, more)
        self._activity: str | None = None
        self._page = open_page(
            PageOptions(address="127.0.0.1:0"), job,
            interval=INTERVAL, activity=lambda: self._activity,
        )  # fmt: skip

    def __enter__(self) -> Self:
        print_message(f"page: {self._page.url}")
        with suppress(webbrowser.Error):
            webbrowser.open(self._page.url)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._activity = "stopping"
        if error is None:
            time.sleep(LINGER)
        self._page.close()

    def show(self, summary: Summary) -> None:
        """Show the figures."""
        self._then(summary)
        self._page.offer(
            Figures.of(summary, algorithm=self._pipeline.anonymizer.name, k=self._pipeline.policy.k)
        )
        self._page.health(Health())
