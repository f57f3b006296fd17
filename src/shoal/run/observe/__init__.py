"""Metrics for Prometheus and the health of a running job, served on loopback.

A run without metrics imports nothing of this package; `prometheus_client` (extra ``metrics``) is
imported when a `MetricsServer` is made.
"""

from shoal.run.observe.figures import Figures
from shoal.run.observe.health import Health
from shoal.run.observe.server import MetricsServer

__all__ = ["Figures", "Health", "MetricsServer"]
