"""Read job files: what is read, promised and published, as TOML."""

from __future__ import annotations

from shoal.job.file import BadRows, Job

__all__ = ["BadRows", "Job"]
