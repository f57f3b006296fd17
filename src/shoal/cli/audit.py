"""``shoal audit``: check published data against the policy."""

from __future__ import annotations

import json
from pathlib import Path

from shoal.cli.terminal import print_result
from shoal.job.auditing import audit as judge

__all__ = ["audit"]


def audit(
    job_path: Path,
    published: str,
    *,
    original: str | None,
    trace: Path | None,
    from_format: str | None,
    as_json: bool,
) -> int:
    """Audit published data; return the exit code."""
    report = judge(job_path, published, original=original, trace=trace, format=from_format)
    print_result(json.dumps(report.as_dict()) if as_json else str(report))
    return report.exit_code
