"""Metrics for Prometheus, the health of a running job, and a page about it.

A run without metrics and page imports nothing of this package; `prometheus_client` (extra
``metrics``) is imported when a `MetricsServer` is made.
"""

from shoal.run.observe.figures import Figures
from shoal.run.observe.health import Health
from shoal.run.observe.page import PageServer
from shoal.run.observe.server import MetricsServer

__all__ = ["Figures", "Health", "MetricsServer", "PageServer"]
