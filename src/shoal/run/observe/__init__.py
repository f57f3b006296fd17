"""Eyes on a running job: figures for Prometheus, and whether it is well, on loopback.

Nothing of it is imported by a run that isn't watched; `prometheus_client` (extra ``metrics``) is
imported when a `MetricsServer` is made.
"""

from shoal.run.observe.figures import Figures
from shoal.run.observe.health import Health
from shoal.run.observe.server import MetricsServer

__all__ = ["Figures", "Health", "MetricsServer"]
