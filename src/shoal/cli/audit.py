"""``shoal audit``: check published data against the policy."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from shoal.cli.terminal import print_result
from shoal.job import Job
from shoal.job.auditing import audit as judge
from shoal.job.auditing import files_behind

__all__ = ["audit"]


def audit(
    job_path: Path,
    published: str,
    *,
    original: str | None,
    trace: Path | None,
    from_format: str | None,
    html: Path | None = None,
    force: bool = False,
    as_json: bool,
) -> int:
    """Audit published data; return the exit code."""
    job: Job | Path = job_path
    if html is not None:
        # An audit without a page doesn't import what makes one.
        from shoal.cli.report import check_page, files_of

        job = Job.load(job_path)
        read = files_of(job_path, published, original, trace)
        check_page(html, read, job=job, force=force, way="--html")
    report = judge(job, published, original=original, trace=trace, format=from_format)
    if html is not None:
        from shoal.report.page import write_page
        from shoal.report.parts.promise import audit_page

        page = audit_page(
            report,
            job=job_path.name,
            files=files_behind(published),
            made=datetime.now(UTC).date(),
        )
        write_page(html, page, private=True)
    print_result(json.dumps(report.as_dict()) if as_json else str(report))
    return report.exit_code
